#!/usr/bin/env python3
"""Questions beyond the paper, asked of trained weights; tools/record.py takes what they give.

  approximation  where weight averaging departs from the mean over masks, layer by layer
  quality        errors, calibration, mutual information, and the kernels of conv1
  off_data       does the uncertainty tell Fashion-MNIST and rotated digits from the test images?
"""

import os

from launcher import ROOT, no_prepare, parser_of, start

EXAMPLES = '''examples:
  python tools/study.py approximation runs/beyond/mnist-lenet_all*-seed* --iteration 20000
  python tools/study.py off_data runs/beyond/mnist-lenet_ip-seed1
  python tools/record.py --profile beyond runs/beyond     afterwards: into analysis/results/'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    add = parser.add_argument
    add('study', choices=('approximation', 'quality', 'off_data'))
    add('weights', nargs='+', metavar='RUN', help='folders of training runs, or files of weights/')
    add('--iteration', type=int, metavar='N', help='the weights that a run kept of this iteration (default: its last)')
    add('--T', type=int, help='passes (default: 100 for approximation, else 50)')
    add('--limit', type=int, metavar='N', help='the first N test images (default: 1,000 for approximation, else all)')
    add('--seed', type=int, default=1, help='of the dropout masks (default 1)')
    add('--jobs', type=int, default=os.cpu_count(), help='processes (default: one a core)')
    add('--data', default=os.path.join(ROOT, 'data'), help='folder of the prepared sets (default: data/)')
    add('--out', help="where results go (default: studies/ in the run's folder)")
    no_prepare(parser)
    return parser


def run(args):
    from bcnn.studies import beyond
    for line in beyond.command(args):
        print(line, flush=True)


if __name__ == '__main__':
    start(make_parser(), run)
