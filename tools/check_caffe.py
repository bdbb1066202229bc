#!/usr/bin/env python3
"""Check that the Caffe found here works, with known answers; prints which one it is.

With --gpu N it also computes every net of the paper on that GPU and on the CPU: forward, gradients, ten solver steps,
a snapshot, the masks of dropout and what they lead to. About a minute; exit code 1 if anything is not as it should be.
"""

from launcher import parser_of, start


def make_parser():
    parser = parser_of(__doc__, 'example: python tools/check_caffe.py --gpu 0 --json report.json')
    parser.add_argument('--blas', help='fail unless Caffe computes with this BLAS, for example openblas')
    parser.add_argument('--gpu', metavar='N', help='check this GPU beside the CPU; none: the CPU on both sides')
    parser.add_argument('--json', metavar='FILE', help='write all that was measured to a file, to send to somebody')
    return parser


def run(args):
    from bcnn import engine, selftest
    from bcnn.devices import check
    print(engine.call(selftest.check, args.blas))
    if args.gpu is not None:
        return check.command(args.gpu, args.json)


if __name__ == '__main__':
    start(make_parser(), run)
