#!/usr/bin/env python3
"""Write every net and solver of the paper to prototxt/, check that they are as the code says, or draw one."""

import os

from launcher import ROOT, parser_of, start

EXAMPLES = '''examples:
  python tools/gen_prototxt.py                                    write all of prototxt/
  python tools/gen_prototxt.py --check                            fail if a file differs from the code
  python tools/gen_prototxt.py --net cifar10/nin --draw nin.png   a picture of one net'''


def make_parser():
    parser = parser_of(__doc__, EXAMPLES)
    parser.add_argument('--net', metavar='NAME', help='only this net: a name (nin) or a folder (mnist_4/lenet_ip)')
    parser.add_argument('--to', metavar='FOLDER', default=os.path.join(ROOT, 'prototxt'),
                        help='the folder to write to or to check (default: prototxt)')
    what = parser.add_mutually_exclusive_group()
    what.add_argument('--check', action='store_true', help='write nothing; fail if the files differ from the code')
    what.add_argument('--draw', metavar='FILE', help='write nothing but a picture of --net, to FILE.png or FILE.svg')
    return parser


def run(args):
    from bcnn import net_files
    if args.draw:
        net_files.picture(args.net, args.draw)
        print('drawn: %s' % args.draw)
        return
    if args.check:
        print('%d files are as the code says' % net_files.check(args.to, args.net))
        return
    changed = net_files.write(args.to, args.net)
    for path in changed:
        print('written: %s' % os.path.join(args.to, path))
    print('%d files written, all others are up to date' % len(changed))


if __name__ == '__main__':
    start(make_parser(), run)
