#!/usr/bin/env python3
"""Make a Standard net (deploy.prototxt) and an MC dropout net (mc.prototxt) of any Caffe net with dropout.

Reads training or deploy files, old and new formats; weights of the original load into both.
"""

from launcher import parser_of, start

EXAMPLE = '''example:
  python tools/convert_net.py my_train_val.prototxt --shape 3,32,32 --to my_net'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLE)
    parser.add_argument('net', metavar='NET.prototxt')
    parser.add_argument('--to', metavar='FOLDER', required=True, help='where to write deploy.prototxt and mc.prototxt')
    parser.add_argument('--shape', metavar='C,H,W', action='append',
                        help='of an image, if the data layer does not tell; of several inputs --shape BLOB=C,H,W each')
    parser.add_argument('--batch', type=int, metavar='N', help='images in a batch (default: as in the file)')
    parser.add_argument('--output', metavar='BLOB', help='the class scores, if the file has no loss or softmax')
    parser.add_argument('--draw', metavar='FILE', help='also a picture of the MC net, to FILE.png or FILE.svg')
    return parser


def run(args):
    from bcnn.mc import cli
    from bcnn.prototxt import draw, facts, reading, rewriting
    shape = cli.shapes_of(args.shape)
    _, mc = rewriting.convert(args.net, args.to, shape=shape, batch=args.batch, output=args.output)
    print('written: %s/deploy.prototxt and mc.prototxt' % args.to.rstrip('/'))
    print('dropout: %s; class probabilities: %s' % (', '.join(facts.dropouts(mc)), facts.prob_blob(mc)))
    transform = ' '.join(str(facts.preprocessing(reading.read(args.net)) or '').split())
    if transform:
        print('the data layer does this to the images, whoever feeds these nets has to do it now: %s' % transform)
    if args.draw:
        draw.save(mc, mc.name or args.net, args.draw)
        print('drawn: %s' % args.draw)


if __name__ == '__main__':
    start(make_parser(), run)
