#!/usr/bin/env python3
"""Evaluate a net with Standard and with MC dropout: errors, calibration, uncertainty.

A net of the paper by name, or any Caffe net by its prototxt, weights and images. Finished blocks are stored: run
it again after an interruption, or with more --repeats.
"""

import os

from launcher import any_net, no_prepare, parser_of, start, streams

EXAMPLES = '''examples:
  python tools/mc_eval.py --net dsn_aug --T 100
  python tools/mc_eval.py --net nin --repeats 1 --adaptive
  python tools/mc_eval.py --prototxt my_train_val.prototxt --weights my.caffemodel --data my_test_lmdb
  python tools/mc_eval.py --prototxt deploy.prototxt --weights my.caffemodel --data photos --scale 1/256 --resize 28,28
a folder of pictures has labels.csv (lines of picture,label; labels from 0), or a folder a class named by its number'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    for options in (any_net, no_prepare, streams):
        options(parser)
    add = parser.add_argument
    add('--data', help='images: an LMDB, an .npz, or a folder of pictures (default: the test set)')
    add('--limit', type=int, metavar='N', help='the first N images only')
    add('--T', type=int, help='stochastic passes (default 100)')
    add('--repeats', type=int, default=5, help='repetitions of the whole evaluation (default 5)')
    add('--seed', type=int, default=1, help='of the dropout masks (default 1)')
    add('--mode', choices=('stream', 'replicate'), default='stream', help="replicate: the paper's appendix")
    add('--sampler', choices=('independent', 'antithetic', 'shared'), default='independent',
        help='antithetic: opposite masks; shared: opposite masks in different repetitions only')
    add('--groups', type=int, metavar='G', help='such masks come in groups of 2^G passes (default: suits the net)')
    add('--average', choices=('probs', 'scores'), default='probs', help='which average to headline; both are stored')
    add('--crops', type=int, metavar='K', help='share the passes among K random crops and mirrors of padded images')
    add('--adaptive', action='store_true', help='sample an image only until its class after T passes is settled')
    add('--adaptive-error', type=float, metavar='P', help='probability of settling on another class (default 0.01)')
    add('--adaptive-check', action='store_true', help='T passes for all; count where --adaptive had decided otherwise')
    add('--batch', type=int, help='images a batch (default: as many as fit 400 MB)')
    add('--jobs', type=int, default=os.cpu_count(), help='processes (default: one a core)')
    add('--gpu', type=int, metavar='N', help='compute on GPU N (default: CPU)')
    add('--standard-only', action='store_true', help='no MC passes')
    add('--name', help='under which a net or data of your own is recorded (default: of the file or its folder)')
    add('--out', help='folder of the results (default: below runs/)')
    add('--gallery', action='store_true', help='a page there to look through, as tools/gallery.py writes it')
    return parser


def run(args):
    from bcnn.mc import cli
    folder = cli.evaluate(args)
    if args.gallery:
        from bcnn.gallery import page
        print('%s: %d images' % page.write(folder))


if __name__ == '__main__':
    start(make_parser(), run)
