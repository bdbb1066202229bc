"""The command line that every script of analysis/ shares, and how its files are written."""

import argparse
import glob
import os
import sys

from records import load
from records.from_bcnn import UserError

HERE = os.path.dirname(os.path.abspath(__file__))


def parser(text):
    """The options of every script; text: what it does."""
    options = argparse.ArgumentParser(description=text)
    options.add_argument('--results', default=load.RESULTS, metavar='DIR',
                         help='the recorded tables (default: analysis/results/)')
    options.add_argument('--out', default=HERE, metavar='DIR',
                         help='where figures/, tables/ and the pages of the report go (default: analysis/)')
    return options


def start(text, make, argv=None):
    """Runs make(tables, out), which gives the paths it wrote, and ends the process; errors are one line."""
    run(parser(text).parse_args(argv), make)


def run(args, make):
    """The same, with arguments that were parsed before."""
    name = os.path.basename(sys.argv[0])
    try:
        tables = load.load(args.results)
        if load.is_empty(tables):
            print('%s: %s: %s' % (name, os.path.relpath(args.results), load.EMPTY), file=sys.stderr)
        for path in make(tables, args.out):
            print(os.path.relpath(path))
    except UserError as error:
        sys.exit(_fail(name, error))
    except OSError as error:
        sys.exit(_fail(name, '%s: %s' % (error.filename, error.strerror) if error.filename else error))
    except KeyboardInterrupt:
        _fail(name, 'interrupted')
        sys.exit(130)
    sys.exit(0)


def _fail(name, problem):
    print('%s: %s' % (name, ' '.join(str(problem).split())), file=sys.stderr)
    return 2


def write(path, data):
    """Writes text or bytes beside the place and renames; gives the path. Leaves nothing else behind."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _sweep(path)
    part = '%s.%d.part' % (path, os.getpid())
    try:
        with open(part, 'wb') as file:
            file.write(data if isinstance(data, bytes) else data.encode('utf-8'))
        os.replace(part, path)
    except BaseException:  # a full disk, Ctrl-C
        if os.path.exists(part):
            os.remove(part)
        raise
    return path


def _sweep(path):
    """Removes what killed writers of this file left; where there is no /proc nobody can tell who still writes."""
    for left in glob.glob(glob.escape(path) + '.*.part') if os.path.isdir('/proc/self') else ():
        writer = left.split('.')[-2]
        if writer.isdigit() and not os.path.isdir('/proc/' + writer):
            os.remove(left)
