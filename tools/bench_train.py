#!/usr/bin/env python3
"""Compare the training driver with `caffe train`: same solver, same threads, evaluations off, both in one run."""

import argparse

from launcher import start


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__,
                                     epilog='example: python tools/bench_train.py --net lenet_all --rounds 5')
    parser.add_argument('--net', default='lenet_none', help='one without stages (default lenet_none)')
    parser.add_argument('--iters', type=int, default=300, help='iterations of each measurement (default 300)')
    parser.add_argument('--rounds', type=int, default=3, help='measurements of each (default 3)')
    parser.add_argument('--threads', type=int, help='of the BLAS (default 1)')
    return parser


def run(args):
    from bcnn import bench_train
    for line in bench_train.compare(args.net, args.iters, args.rounds):
        print(line, flush=True)


if __name__ == '__main__':
    start(make_parser(), run)
