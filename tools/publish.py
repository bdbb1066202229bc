#!/usr/bin/env python3
"""Put the weights of finished and recorded runs into weights/, with an entry that says what they are.

That folder is committed. A run that is not finished, or not recorded with an evaluation of its final weights, is
refused. A file of weights/ that was evaluated again, on more images say, gets the better evaluation into its entry.
"""

import os

from launcher import ROOT, parser_of, start

EXAMPLES = '''example:
  python tools/mc_eval.py --net lenet_all --T 50      evaluate the run's final weights
  python tools/record.py runs/mnist-lenet_all-seed1   record the run and its evaluations
  python tools/publish.py runs/mnist-lenet_all-seed1
  python tools/publish.py weights/mnist-lenet_all-seed1.caffemodel    after another evaluation is recorded'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    add = parser.add_argument
    add('what', nargs='+', metavar='RUN', help='folders of training runs, or files of weights/')
    add('--results', default=ROOT + '/analysis/results', metavar='DIR',
        help='the recorded tables (default: analysis/results/)')
    add('--data', default=ROOT + '/data', metavar='DIR', help='the prepared sets (default: data/)')
    add('--to', default=ROOT + '/weights', metavar='DIR', help='where to put them (default: weights/)')
    return parser


def run(args):
    from bcnn import weights
    from bcnn.results import shipped
    for what in args.what:
        if os.path.isfile(what):
            entry = shipped.renew(what, args.results, args.to)
        else:
            entry = shipped.publish(what, args.results, args.data, args.to)
        print('%s/%s: %s' % (args.to.rstrip('/'), entry.file, weights.of_entry(entry)))


if __name__ == '__main__':
    start(make_parser(), run)
