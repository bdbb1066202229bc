#!/usr/bin/env python3
"""Check that the Caffe found here works, with known answers; prints which one it is."""

import argparse

from launcher import start


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, epilog='example: python tools/check_caffe.py --blas openblas')
    parser.add_argument('--blas', help='fail unless Caffe computes with this BLAS, for example openblas')
    return parser


def run(args):
    from bcnn import selftest
    print(selftest.check(args.blas))


if __name__ == '__main__':
    start(make_parser(), run)
