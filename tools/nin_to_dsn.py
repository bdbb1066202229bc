#!/usr/bin/env python3
"""Carry NIN's weights over to DSN: a caffemodel that train.py --init starts from.

Doubles the weights of conv2 and conv3, because DSN's dropout is not inverted, and puts the scores on the scale of
margins by an affine fit on training images, because DSN is trained with a hinge loss. Predictions stay the same.
"""

import os

from launcher import ROOT, no_prepare, parser_of, start

EXAMPLES = '''examples:
  python tools/nin_to_dsn.py --out runs/nin_margins.caffemodel
  python tools/train.py --net dsn_aug --schedule 1/40 --init runs/nin_margins.caffemodel'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    add = parser.add_argument
    add('--weights', metavar='NIN', help='a caffemodel of NIN on CIFAR-10 (default: the published one)')
    add('--out', required=True, metavar='FILE', help='the caffemodel to write')
    add('--images', type=int, default=5000, metavar='N', help='training images of the fit, the first N (default 5000)')
    add('--data', default=os.path.join(ROOT, 'data'), metavar='DIR', help='the prepared sets (default: data/)')
    no_prepare(parser)
    return parser


def run(args):
    from bcnn.data import sets
    from bcnn.training import nin_to_dsn
    prepare = not args.no_prepare
    weights = args.weights
    if not weights:
        sets.ensure('nin_weights', args.data, prepare)
        weights = sets.weights_path('nin_weights', args.data)
    lmdb = os.path.join(sets.ensure('cifar10', args.data, prepare), 'train_lmdb')
    fit = nin_to_dsn.carry_over(weights, lmdb, args.images, args.out)
    print('margin = a * score + c, fitted to the first %d training images: a = %.6f, c = %.4f' % (
        fit.images, fit.a, fit.c))
    print('on these: error %.2f%%, squared hinge %.4f (of the scores as they were: %.1f)' % (
        fit.error, fit.loss, fit.loss_before))
    print('written: %s' % args.out)


if __name__ == '__main__':
    start(make_parser(), run)
