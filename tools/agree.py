#!/usr/bin/env python3
"""Say of each finished job of a profile whether its result is the recorded one, or what explains the difference."""

from launcher import parser_of, start

EXAMPLES = '''examples:
  python tools/agree.py
  python tools/agree.py --profile quick --record    # adds its results to analysis/results/reference.csv'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    add = parser.add_argument
    add('--profile', default='quick', help='of run_all.sh (default quick), or a JSON file')
    add('--seeds', type=int, default=1, metavar='N', help='training seeds 1 to N (default 1)')
    add('--record', action='store_true', help='record the results, with the kernels that computed them, for others')
    add('--results', metavar='DIR', help='the recorded tables (default: analysis/results/)')
    return parser


def run(args):
    from bcnn.workflow import agreement
    return agreement.command(args)


if __name__ == '__main__':
    start(make_parser(), run)
