#!/usr/bin/env python3
"""Measure how fast MC evaluation is on this machine, as a table: side by side, interleaved, medians."""

import argparse
import os

from launcher import ROOT, start


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, epilog='example: python tools/bench.py --rounds 9')
    parser.add_argument('--record', action='store_true', help='write the table to analysis/results/bench.csv')
    parser.add_argument('--rounds', type=int, default=5, help='repetitions of each measurement (default 5)')
    return parser


def run(args):
    from bcnn import bench
    from bcnn.errors import UserError
    if args.rounds < 1:
        raise UserError('--rounds is %d: it must be 1 or more' % args.rounds)
    found = []
    for row in bench.rows(args.rounds):
        print('%-36s %10.2f %-10s %s' % row, flush=True)
        found.append(row)
    if args.record:
        bench.record(found, os.path.join(ROOT, 'analysis', 'results'))


if __name__ == '__main__':
    start(make_parser(), run)
