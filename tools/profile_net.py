#!/usr/bin/env python3
"""Where the time of an MC pass goes: each layer, beside the matrix products it is made of."""

import argparse

from launcher import start


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, epilog='example: python tools/profile_net.py --net nin')
    parser.add_argument('--net', help='lenet_all, lenet_ip, nin, dsn ... (default: lenet_ip, lenet_all and nin)')
    parser.add_argument('--dataset', help="mnist or cifar10 (default: the net's own, mnist for the LeNets)")
    parser.add_argument('--batch', type=int, default=100, help='images a batch (default 100)')
    parser.add_argument('--rounds', type=int, default=7, help='repetitions, of which medians are taken (default 7)')
    parser.add_argument('--record', action='store_true', help='write the table to analysis/results/layers.csv')
    return parser


def run(args):
    from bcnn import jobs, layertimes, tables
    for net in [args.net] if args.net else ['lenet_ip', 'lenet_all', 'nin']:
        rows = layertimes.rows(net, args.dataset or jobs.default_dataset(net), args.batch, args.rounds)
        print('\n'.join(layertimes.lines(rows)))
        if args.record:
            print('written: %s' % tables.record('layers', rows))


if __name__ == '__main__':
    start(make_parser(), run)
