#!/usr/bin/env python3
"""Check stored results: summaries derived anew from the raw sums, checksums, and tables against each other.

Says what does not agree, and names the file; changes nothing. Exit code 0 if all agrees, 1 if something does not.
"""

from launcher import ROOT, parser_of, start

EXAMPLES = '''examples:
  python tools/verify.py runs/mnist-lenet_all-seed1   a training run with its evaluations
  python tools/verify.py runs/X/mc/T100-0a1b2c3d      one evaluation
  python tools/verify.py analysis/results             the recorded tables
  python tools/verify.py weights                      the weights of this project's own runs
  python tools/verify.py                              everything'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    parser.add_argument('paths', nargs='*', metavar='FOLDER', help='default: runs/, analysis/results/ and weights/')
    parser.add_argument('--data', default=ROOT + '/data', metavar='DIR', help='the prepared sets (default: data/)')
    parser.add_argument('--runs', metavar='DIR', help='where the runs of the tables are (default: runs/)')
    parser.add_argument('--results', default=ROOT + '/analysis/results', metavar='DIR',
                        help='the tables that weights/ is held against (default: analysis/results/)')
    parser.add_argument('--all', action='store_true', help='show what agrees, too')
    return parser


def run(args):
    from bcnn.results import verify
    return verify.command(args)


if __name__ == '__main__':
    start(make_parser(), run)
