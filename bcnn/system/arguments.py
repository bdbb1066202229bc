"""What holds for the command line of every tool. Standard library only: it is looked at before Caffe is."""

import argparse
import sys

from ..errors import UserError

MOST = (1 << 31) - 1  # what Caffe's and protobuf's whole numbers hold
COUNTS = ('T', 'batch', 'crops', 'jobs', 'repeats', 'rounds', 'seeds', 'snapshot_every', 'threads')


def check(args: argparse.Namespace) -> None:
    """Refuses numbers and words that no part of this project could take."""
    if hasattr(sys.stdout, 'reconfigure'):  # Python 3.7: a file name that is no text can be printed, too
        sys.stdout.reconfigure(errors='backslashreplace')
    for name, values in sorted(vars(args).items()):
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(value, int) and abs(value) > MOST:
                raise UserError('--%s %d: it must be below %d' % (name.replace('_', '-'), value, MOST + 1))
            if isinstance(value, int) and value < 1 and name in COUNTS:
                raise UserError('--%s is %d: it must be 1 or more' % (name.replace('_', '-'), value))
            if isinstance(value, str) and '\0' in value:
                raise UserError('--%s %r: a zero byte in it' % (name.replace('_', '-'), value))
