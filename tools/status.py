#!/usr/bin/env python3
"""List all training runs: state, iteration, last test errors, speed, time left."""

from launcher import parser_of, start

EXAMPLES = '''examples:
  python tools/status.py
  watch python tools/status.py --runs /scratch/runs'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    parser.add_argument('--runs', metavar='DIR', help='the folder with the run folders (default: runs/)')
    return parser


def run(args):
    from bcnn.system import places
    from bcnn.workflow import status
    for line in status.lines(args.runs or places.RUNS):
        print(line)


if __name__ == '__main__':
    start(make_parser(), run)
