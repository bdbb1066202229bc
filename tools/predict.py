#!/usr/bin/env python3
"""What a net makes of some pictures: class, MC probability with its std, Standard beside it, uncertainty. A line each.

With --net lenet_... a picture is made like a digit of MNIST if it is not: grey, inverted where the paper is light, cut
to the ink, scaled to 20 of 28 pixels, centred by its weight. What was done is printed. --as-it-is does none of that.
"""

import os

from launcher import any_net, parser_of, start

EXAMPLES = '''examples:
  python tools/predict.py --net lenet_all digit.png photos/*.jpg --draw digits.png
  python tools/predict.py --prototxt deploy.prototxt --weights my.caffemodel --scale 1/256 cat.jpg'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    any_net(parser)
    add = parser.add_argument
    add('pictures', nargs='+', metavar='PICTURE', help='PNG, JPEG, BMP or PPM')
    add('--T', type=int, default=50, help='stochastic passes (default 50)')
    add('--seed', type=int, default=1, help='of the dropout masks (default 1)')
    add('--unsure', type=float, default=0.5, metavar='H', help='a picture above this entropy is unsure (default 0.5)')
    add('--as-it-is', action='store_true', help='do nothing to pictures that a digit would need')
    add('--csv', metavar='FILE', help='also a table')
    add('--draw', metavar='FILE', help='also a drawing, .png or .svg: each picture with bars of its probabilities')
    add('--jobs', type=int, default=os.cpu_count(), help='processes (default: one a core)')
    add('--gpu', type=int, metavar='N', help='compute on GPU N (default: CPU)')
    return parser


def run(args):
    from bcnn.library import command
    command.predict(args)


if __name__ == '__main__':
    start(make_parser(), run)
