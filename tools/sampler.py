#!/usr/bin/env python3
"""What antithetic masks (mc_eval.py --sampler antithetic) gain for a net: the variance of its mean probabilities.

Pairs of passes with complementary masks are compared with as many passes with masks of their own.
"""

import argparse

from launcher import start, trained_net


def make_parser():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog='example: python tools/sampler.py --net nin --weights data/nin_weights/cifar10_nin.caffemodel')
    parser.add_argument('--net', required=True, help='lenet_all, lenet_ip, nin, dsn or dsn_aug')
    trained_net(parser)
    parser.add_argument('--limit', type=int, default=200, metavar='N', help='the first N test images (default 200)')
    parser.add_argument('--pairs', type=int, default=25, help='pairs of passes an image (default 25)')
    parser.add_argument('--record', action='store_true', help='write the row to analysis/results/sampler.csv')
    return parser


def run(args):
    from bcnn import antithetic, jobs, tables
    from bcnn.errors import UserError
    if args.pairs < 2:
        raise UserError('--pairs is %d: a variance takes 2 or more' % args.pairs)
    job = jobs.of_paper(args.net, args.dataset, args.weights, args.training_seed, limit=args.limit)
    row = antithetic.measure(job, args.pairs)
    print(antithetic.line(row))
    if args.record:
        print('written: %s' % tables.record('sampler', [row]))


if __name__ == '__main__':
    start(make_parser(), run)
