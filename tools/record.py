#!/usr/bin/env python3
"""Gather finished training runs and MC evaluations into the tables of analysis/results/, which are committed.

Safe to run again: recorded rows stay, and the second time nothing changes. A run whose numbers contradict
recorded ones is left out (exit code 1, unless it is another training or was computed with other software);
the others are recorded.
"""

from launcher import ROOT, no_prepare, parser_of, start

EXAMPLES = '''examples:
  python tools/record.py                              all that is finished below runs/
  python tools/record.py runs/mnist-lenet_all-seed1   this run and its evaluations
  python tools/record.py --forget 271cce18            what is no longer to be reported
  python analysis/plot.py                             afterwards: figures, tables, report'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    add = parser.add_argument
    add('folders', nargs='*', metavar='FOLDER', help='of runs or evaluations, searched to the bottom (default: runs/)')
    add('--results', default=ROOT + '/analysis/results', metavar='DIR',
        help='where the tables are (default: analysis/results/)')
    add('--data', default=ROOT + '/data', metavar='DIR',
        help='the prepared sets, for pictures of the images shown (default: data/)')
    add('--profile', help='noted with rows whose run does not name one')
    add('--unfinished', action='store_true', help='take the curves of runs that are still going on')
    add('--replace', action='store_true', help='take new runs in the place of recorded ones that they contradict')
    add('--forget', nargs='+', metavar='CONFIG', help='take every row of these configs out of the tables instead')
    no_prepare(parser)
    return parser


def run(args):
    from bcnn.results import record
    return record.command(args)


if __name__ == '__main__':
    start(make_parser(), run)
