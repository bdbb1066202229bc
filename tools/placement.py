#!/usr/bin/env python3
"""Does the MC error of a net depend on where its dropout samples? The same weights, with the dropout layers moved
before the pooling that they follow, and with one of them sampling alone.
"""

import os

from launcher import paper_net, parser_of, start


def make_parser():
    parser = parser_of(
        __doc__, 'example: python tools/placement.py --net nin --weights data/nin_weights/cifar10_nin.caffemodel')
    paper_net(parser)
    parser.add_argument('--data', help='images: an LMDB, an .npz, or a folder of pictures (default: the test set)')
    parser.add_argument('--limit', type=int, metavar='N', help='the first N images only')
    parser.add_argument('--T', type=int, default=100,
                        help='passes, of which adaptive T takes what it needs (default 100)')
    parser.add_argument('--seed', type=int, default=1, help='of the dropout masks (default 1)')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='processes (default: one a core)')
    parser.add_argument('--out', help='folder of the evaluations (default: below runs/)')
    parser.add_argument('--record', action='store_true', help='write the rows to analysis/results/placement.csv')
    return parser


def run(args):
    from bcnn.mc import targets
    from bcnn.results import writing
    from bcnn.studies import placement
    from bcnn.system import places
    target = targets.of_arguments(args, data=args.data, limit=args.limit)
    folder = args.out or os.path.join(places.evaluations(target.weights, target.name),
                                      'placement-T%d-seed%d' % (args.T, args.seed))
    rows = []
    for row in placement.measure(target, args.T, args.seed, folder, args.jobs):
        print(placement.line(row), flush=True)
        rows.append(row)
    if args.record:
        print('written: %s' % writing.record('placement', rows))


if __name__ == '__main__':
    start(make_parser(), run)
