#!/usr/bin/env python3
"""How adaptive evaluations compare with T passes for every image: passes, errors, equal predictions."""

from launcher import parser_of, start


def make_parser():
    parser = parser_of(
        __doc__, 'example: python tools/check_adaptive.py runs/X/mc/adaptive-T100-Y --full runs/X/mc/T100-Z')
    parser.add_argument('folders', nargs='+', help='adaptive evaluations, best some with --adaptive-check')
    parser.add_argument('--full', help='an evaluation of the same weights with T passes for every image')
    parser.add_argument('--record', action='store_true', help='write the rows to analysis/results/adaptive.csv')
    return parser


def run(args):
    from bcnn.results import writing
    from bcnn.studies import adaptive_agreement
    rows = [row for folder in args.folders for row in adaptive_agreement.rows(folder, args.full)]
    for row in rows:
        print('\n'.join(adaptive_agreement.lines(row)))
    if args.record:
        print('written: %s' % writing.record('adaptive', rows))


if __name__ == '__main__':
    start(make_parser(), run)
