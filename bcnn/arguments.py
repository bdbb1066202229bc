"""What holds for the command line of every tool. Standard library only: it is looked at before Caffe is."""

import sys

from .errors import UserError

MOST = (1 << 31) - 1  # what Caffe's and protobuf's whole numbers hold
COUNTS = ('T', 'batch', 'crops', 'jobs', 'repeats', 'rounds', 'seeds', 'snapshot_every', 'threads')


def check(args):
    """Refuses numbers and words that no part of this project could take."""
    if hasattr(sys.stdout, 'reconfigure'):  # Python 3.7: a file name that is no text can be printed, too
        sys.stdout.reconfigure(errors='backslashreplace')
    for name, value in sorted(vars(args).items()):
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(one, int) and abs(one) > MOST:
                raise UserError('--%s %d: it must be below %d' % (name.replace('_', '-'), one, MOST + 1))
            if isinstance(one, int) and one < 1 and name in COUNTS:
                raise UserError('--%s is %d: it must be 1 or more' % (name.replace('_', '-'), one))
            if isinstance(one, str) and '\0' in one:
                raise UserError('--%s %r: a zero byte in it' % (name.replace('_', '-'), one))
