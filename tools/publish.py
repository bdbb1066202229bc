#!/usr/bin/env python3
"""Put the weights of finished and recorded runs into weights/, with an entry that says what they are.

That folder is committed. A run that is not finished, or not recorded with an evaluation of its final weights, is
refused.
"""

from launcher import ROOT, parser_of, start

EXAMPLES = '''example:
  python tools/mc_eval.py --net lenet_all --T 50      evaluate the run's final weights
  python tools/record.py runs/mnist-lenet_all-seed1   record the run and its evaluations
  python tools/publish.py runs/mnist-lenet_all-seed1'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    add = parser.add_argument
    add('runs', nargs='+', metavar='RUN', help='folders of training runs')
    add('--results', default=ROOT + '/analysis/results', metavar='DIR',
        help='the recorded tables (default: analysis/results/)')
    add('--data', default=ROOT + '/data', metavar='DIR', help='the prepared sets (default: data/)')
    add('--to', default=ROOT + '/weights', metavar='DIR', help='where to put them (default: weights/)')
    return parser


def run(args):
    from bcnn import weights
    from bcnn.results import shipped
    for folder in args.runs:
        entry = shipped.publish(folder, args.results, args.data, args.to)
        print('%s/%s: %s' % (args.to.rstrip('/'), entry.file, weights.of_entry(entry)))


if __name__ == '__main__':
    start(make_parser(), run)
