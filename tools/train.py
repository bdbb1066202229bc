#!/usr/bin/env python3
"""Train a net as the paper did: Caffe's solver, test errors with Standard and MC dropout on the way, exact resume.

Everything goes to one folder, runs/<data set>-<net>-seed<K>. Stopped at any moment, even by kill -9, the same
command goes on from the last snapshot, and on the CPU ends in the same bytes. With larger --iters a finished
run goes on. tools/status.py shows all runs.
"""

from launcher import no_prepare, parser_of, start, streams

EXAMPLES = '''examples:
  python tools/train.py --net lenet_all --dataset mnist --seed 1
  python tools/train.py --net lenet_ip --fraction 4 --iters 10000 --cpu
  python tools/train.py --net dsn_aug --schedule 1/20 --gpu 0 --eval-points paper'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    add = parser.add_argument
    add('--net', required=True, help='lenet_all, lenet_ip, lenet_none, nin, dsn, dsn_aug, lenet_all_ave ...')
    add('--dataset', help="mnist, mnist_4 ... cifar10 (default: the net's own, mnist for the LeNets)")
    add('--fraction', type=int, metavar='K', help='train on 1/K of MNIST: 2, 4, 8, 16 or 32')
    add('--seed', type=int, default=1, help='of weights, masks and crops (default 1)')
    add('--iters', metavar='N',
        help="the paper's schedule cut off after N iterations; for DSN's stages N,N,N, or N for at most N each; with "
        '--init 0,0,N leaves its first stages out')
    add('--schedule', metavar='1/K', help="the paper's schedule in proportion: 1/K of the iterations of every stage, "
        'learning rates at the same share of them')
    add('--init', metavar='WEIGHTS', help='start from a caffemodel: layers by name, as caffe train --weights does')
    device = parser.add_mutually_exclusive_group()
    device.add_argument('--gpu', type=int, metavar='N', help='compute on GPU N')
    device.add_argument('--cpu', action='store_true', help='compute on the CPU (default: GPU 0 if this Caffe has one)')
    add('--threads', type=int, help='of the BLAS (default 1)')
    add('--jobs', type=int, help='processes that measure test errors (default: one a core)')
    add('--eval-points', default='log', metavar='WHERE',
        help='where to measure test errors: log (1, 2, 5 times powers of ten, and the end; default), '
        'log:N (N a decade), paper (its test interval), none, or iterations 100,200,1000')
    add('--T', type=int,
        help="stochastic passes of a measurement (default: the paper's, 50, 10 for fractions, 100 for nin and dsn)")
    add('--adaptive', action='store_true', help='measure each image only until its class after T passes is settled')
    add('--test-limit', type=int, metavar='N', help='measure on the first N test images only')
    add('--snapshot-every', type=int, metavar='N', help='iterations (default: about a minute)')
    add('--data', help='folder of the prepared sets (default: data/)')
    no_prepare(parser)
    streams(parser)
    add('--out', help="the run's folder (default: below runs/)")
    add('--wait', action='store_true', help='where another process trains this run: wait for it (default: refuse)')
    return parser


def run(args):
    from bcnn.training import driver
    return driver.command(args)


if __name__ == '__main__':
    start(make_parser(), run)
