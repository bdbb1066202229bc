#!/usr/bin/env python3
"""Fetch MNIST, CIFAR-10 and their like, verify them, and make the LMDBs that the nets read."""

import os

from launcher import ROOT, parser_of, start

EXAMPLES = """examples:
  python tools/prepare_data.py mnist cifar10            make these, from whichever source works
  python tools/prepare_data.py cifar10 --from ~/cifar   from files you have: folder, idx, .gz, .tar.gz, .tgz, .deb
  python tools/prepare_data.py --list                   what there is, and what is ready
  python tools/prepare_data.py --check                  read all that is ready, compare with the known figures
  python tools/prepare_data.py --show cifar10           a contact sheet: raw, GCN, whitened

Downloads are kept in ~/.cache/bcnn/downloads (BCNN_DOWNLOADS names another folder)."""


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    parser.add_argument('sets', nargs='*', metavar='SET', help='mnist, fashion_mnist, cifar10, nin_weights')
    parser.add_argument('--from', dest='given', metavar='PATH', help='folder or file that has the source files')
    parser.add_argument('--data', default=ROOT + '/data', metavar='DIR', help='where the sets are (default: data/)')
    parser.add_argument('--list', action='store_true', help='show every set: ready or not, size, checksum, source')
    parser.add_argument('--check', action='store_true', help='compare sets (default: all ready) with known figures')
    parser.add_argument('--show', metavar='SET', help='write a contact sheet of a set')
    parser.add_argument('--out', metavar='PNG', help='where --show writes (default: DATA/SET.png)')
    cores = len(os.sched_getaffinity(0))  # OPENBLAS_NUM_THREADS wins, as everywhere
    parser.add_argument('--threads', type=int, metavar='N', help='for ZCA (default: all %d cores)' % cores,
                        default=None if os.environ.get('OPENBLAS_NUM_THREADS') else cores)
    return parser


def run(args):
    from bcnn.data import sets
    from bcnn.errors import UserError
    if not (args.sets or args.list or args.check or args.show):
        raise UserError('name a set to prepare (mnist, cifar10 ...), or --list, --check, --show; --help has examples')
    if args.sets and not args.check:
        sets.prepare(args.sets, args.data, args.given)
    if args.list:
        print('\n'.join(sets.listing(args.data)))
    if args.show:
        from bcnn.data import show
        print(show.sheet(args.show, args.data, args.out))
    if args.check:
        from bcnn.data import check
        return check.report(args.sets, args.data, ROOT + '/prototxt/cifar10/nin/deploy.prototxt')


if __name__ == '__main__':
    start(make_parser(), run)
