#!/usr/bin/env python3
"""One page of an evaluation to look through: every image, sorted by its uncertainty, with its class probabilities.

The page is one file. It opens from the disk in any browser, loads nothing from anywhere, and shows 10,000 images as
quickly as ten. Filters: wrong with Standard, wrong with MC, put right or spoilt by MC, class. A click on an image
gives its class probabilities with their spread over the passes of repetition 1.
"""

from launcher import parser_of, start

EXAMPLES = '''examples:
  python tools/mc_eval.py --net lenet_all --T 50       # its last line says where it is stored
  python tools/gallery.py runs/mnist-lenet_all-seed1/mc/T50-0123abcd'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    add = parser.add_argument
    add('evaluation', metavar='EVALUATION', help='the folder that mc_eval.py has stored it in')
    add('--out', metavar='FILE', help='the page (default: gallery.html in that folder)')
    add('--data', metavar='PATH', help='the images, if they are no longer where the evaluation had them')
    add('--channels', choices=('bgr', 'rgb'), help='order of the colours of an LMDB or .npz (default: bgr, as Caffe)')
    return parser


def run(args):
    from bcnn.gallery import page
    print('%s: %d images' % page.write(args.evaluation, args.out, args.data, args.channels))


if __name__ == '__main__':
    start(make_parser(), run)
