#!/usr/bin/env python3
"""What antithetic masks (mc_eval.py --sampler antithetic) gain for a net: variance of its mean probabilities, and time.

Groups of 2, 4 and 8 passes (G = 1, 2, 3 groups of channels) are compared with passes that have masks of their own.
"""

from launcher import paper_net, parser_of, start


def make_parser():
    parser = parser_of(
        __doc__, 'example: python tools/sampler.py --net nin --weights data/nin_weights/cifar10_nin.caffemodel')
    paper_net(parser)
    parser.add_argument('--limit', type=int, default=200, metavar='N', help='the first N test images (default 200)')
    parser.add_argument('--groups', type=int, nargs='+', default=(1, 2, 3), metavar='G',
                        help='of channels (default 1 2 3, those that the net can have)')
    parser.add_argument('--draws', type=int, default=25, help='groups of passes an image (default 25)')
    parser.add_argument('--record', action='store_true', help='write the rows to analysis/results/sampler.csv')
    return parser


def run(args):
    from bcnn.errors import UserError
    from bcnn.mc import targets
    from bcnn.results import writing
    from bcnn.studies import antithetic_gain
    if args.draws < 2:
        raise UserError('--draws is %d: a variance takes 2 or more' % args.draws)
    target = targets.of_arguments(args, limit=args.limit)
    rows = []
    for groups in antithetic_gain.possible(target, args.groups):
        rows.append(antithetic_gain.measure(target, groups, args.draws))
        print(antithetic_gain.line(rows[-1]), flush=True)
    if args.record:
        print('written: %s' % writing.record('sampler', rows))


if __name__ == '__main__':
    start(make_parser(), run)
