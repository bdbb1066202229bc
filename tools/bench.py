#!/usr/bin/env python3
"""Measure how fast things are on this machine, beside what people would use instead: one table, side by side.

MC evaluation our ways and with PyTorch, baal and torch-uncertainty, training steps beside `caffe
train` and PyTorch, data preparation, start-up; each as a share of the machine's own rates.
"""

import os

from launcher import ROOT, parser_of, start

EXAMPLES = '''examples:
  python tools/bench.py --peers                 # once: PyTorch and the others, into ~/.cache/bcnn/peers
  python tools/bench.py --only 'MC*nin*T=20*'
  python tools/bench.py --record                # the whole table, to analysis/results/bench.csv
  python tools/bench.py --growth --record       # how cost and memory grow, to analysis/results/growth.csv'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    add = parser.add_argument
    add('--peers', action='store_true', help='install PyTorch, baal and torch-uncertainty, outside the project')
    add('--growth', action='store_true', help='measure instead how mc_eval.py grows with T, images and jobs')
    add('--rounds', type=int, help='repetitions of each measurement (default 5; 3 with --growth, 1 with --quick)')
    add('--quick', action='store_true', help='a very small run, to see whether it works')
    add('--only', metavar='GLOB', help="the rows whose name matches, and what they are compared with: 'MC*lenet_ip*'")
    add('--clock', choices=('wall', 'cpu'), default='wall',
        help='cpu: processor time, for a machine that does other things as well (default wall)')
    add('--gpu', type=int, metavar='N', help='measure on this GPU what it has a part in, and the peers on it')
    add('--record', action='store_true', help='write the results to analysis/results/; with --only these rows')
    return parser


def run(args):
    from bcnn.bench import benchmark, growth, peers
    from bcnn.errors import UserError
    if args.peers:
        return peers.install()
    if args.record and args.quick:
        raise UserError('--record writes what was measured with care: not with --quick')
    if args.growth and (args.only or args.clock != 'wall' or args.gpu is not None):
        raise UserError('--only, --clock and --gpu are for the table: not with --growth')
    what, options = (growth, {}) if args.growth else (benchmark, {'by': args.clock, 'only': args.only, 'gpu': args.gpu})
    rounds = args.rounds if args.rounds is not None else 1 if args.quick else what.ROUNDS
    record = what.recorder(os.path.join(ROOT, 'analysis', 'results'), **options) if args.record else None
    found = what.run(rounds, args.quick, **options)
    for line in what.lines(found):
        print(line)
    if record:
        record(found)


if __name__ == '__main__':
    start(make_parser(), run)
