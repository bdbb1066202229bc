"""Feeds damaged and hostile files to every reader of the project, and counts: only one-line refusals are allowed.

Watched for: other exceptions, aborts, cases that take more than SECONDS or much memory, files
written outside the folder of the case, programs started.

    tools/python tests/campaigns/faults/inputs.py --seed 1 --minutes 30 --report analysis/results/faults.csv
    tools/python tests/campaigns/faults/inputs.py --formats "LMDB;caffemodel" --cases 500
"""

import argparse
import contextlib
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ledger  # noqa: E402
import mutate  # noqa: E402
from commandlines import COMMANDS  # noqa: E402
from formats import FORMATS, UserError  # noqa: E402

ALL = dict(FORMATS, **COMMANDS)

SECONDS = 60          # no case may take longer (the machine may be busy)
MEMORY = 3 << 30      # bytes, of this process and of each child


class TooLong(BaseException):
    """A case that does not end."""


def _alarm(_number, _frame):
    raise TooLong


# --- what must not happen -------------------------------------------------------------------------

_watched = {'places': None, 'seen': []}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = ('os.rename', 'os.remove', 'os.mkdir', 'os.rmdir', 'os.symlink', 'os.link', 'os.truncate', 'os.chmod', 'shutil.move')
PROGRAMS = ('subprocess.Popen', 'os.system', 'os.exec', 'os.posix_spawn', 'os.spawn', 'pty.spawn')


def _audit(event, args):
    if _watched['places'] is None:
        return
    if event in PROGRAMS:
        _watched['seen'].append('%s %s' % (event, args[:2]))
    elif event == 'open' and isinstance(args[0], (str, bytes)) and isinstance(args[2], int) and args[2] & WRITING:
        _outside(event, args[0])
    elif event in CHANGES and not (event in ('os.remove', 'os.rmdir', 'os.mkdir') and args[-1] != -1):  # relative: rmtree
        for path in args[:2]:
            if isinstance(path, (str, bytes)):
                _outside(event, path)


def _outside(event, path):
    path = os.path.realpath(os.fsdecode(path))
    if not path.startswith(_watched['places']):
        _watched['seen'].append('%s %s' % (event, path))


_hooked = []


@contextlib.contextmanager
def watched(place):
    """Notes in the list it gives what the block writes outside `place`, and programs it starts (Python 3.8 on)."""
    if hasattr(sys, 'addaudithook') and not _hooked:
        sys.addaudithook(_audit)  # for ever: there is no way to take one away
        _hooked.append(True)
    _watched.update(places=(os.path.realpath(place), os.path.realpath(tempfile.gettempdir()), '/dev/'), seen=[])
    try:
        yield _watched['seen']
    finally:
        _watched['places'] = None


# --- a case -------------------------------------------------------------------------------------------

def attempt(reader, data):
    """(whether it was refused, what is wrong with how or None)."""
    refused, problem, said = False, None, tempfile.TemporaryFile()
    stderr = os.dup(2)
    os.dup2(said.fileno(), 2)
    signal.signal(signal.SIGALRM, _alarm)
    signal.alarm(SECONDS)
    with watched(reader.place) as seen, warnings.catch_warnings():
        warnings.simplefilter('error', RuntimeWarning)  # a warning would be a second line
        warnings.simplefilter('error', UserWarning)
        try:
            reader.feed(data)
        except UserError as error:
            refused = True
            if '\n' in str(error) or not str(error).strip():
                problem = 'not one line: %r' % str(error)
        except TooLong:
            problem = 'takes longer than %d s' % SECONDS
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            problem = '%s: %s (%s:%d)' % (type(error).__name__, error, os.path.basename(where[0]), where[1])
        finally:
            signal.alarm(0)
            os.dup2(stderr, 2)
            os.close(stderr)
    said.seek(0)
    lines = said.read().decode('utf-8', 'replace').strip()
    said.close()
    return refused, problem or (seen[0] if seen else None) or ('on stderr: %s' % lines[:300] if lines else None)


def limit_memory():
    """A limit for this process and what it starts."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def hold(name, seed, cases, deadline, keep):
    """A row of the table faults: so many damaged files of one format."""
    rng, row = random.Random('%s %d' % (name, seed)), ledger.new_row('input', name, 'damaged and hostile files', seed)
    begin, problems = time.monotonic(), {}
    with tempfile.TemporaryDirectory(prefix='bcnn-inputs-') as place:
        reader = ALL[name](os.path.join(place, 'here'))
        for sample in reader.samples:  # whole files are taken, or refused for a reason, but never a problem
            if row['cases'] < 3 or time.monotonic() < deadline:
                judge(row, problems, reader, sample, keep)
        while row['cases'] < cases and time.monotonic() < deadline:
            sample = mutate.mutated(rng.choice(reader.samples), rng, reader.samples)
            judge(row, problems, reader, sample, keep)
    row['seconds'] = time.monotonic() - begin
    for problem in problems.values():
        print('%s: %s' % (name, problem), flush=True)
    return row


def judge(row, problems, reader, data, keep):
    refused, problem = attempt(reader, data)
    row['cases'] += 1
    row['refused'] += refused
    if problem:
        row['problems'] += 1
        kind = re.sub(r'\d+|[\'"].*[\'"]', '', problem)
        if kind not in problems and keep:
            os.makedirs(keep, exist_ok=True)
            with open(os.path.join(keep, '%s-%d' % (re.sub(r'\W+', '_', row['target']), len(problems))), 'wb') as file:
                file.write(data)
        problems.setdefault(kind, problem)


def run(names, seed, minutes, cases, keep=None):
    """Rows for these formats; each has an equal share of the time."""
    os.environ.setdefault('BCNN_MEMORY', '%d' % MEMORY)
    limit_memory()
    rows = []
    for i, name in enumerate(names):
        share = minutes * 60.0 / len(names)
        rows.append(hold(name, seed, cases, time.monotonic() + share, keep))
        print('%s: %d cases, %d refused, %d problems' % (name, rows[-1]['cases'], rows[-1]['refused'], rows[-1]['problems']),
              flush=True)
    return rows


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--minutes', type=float, default=30, help='shared by the formats (default 30)')
    parser.add_argument('--cases', type=int, default=1000000, help='of each format, at most')
    parser.add_argument('--formats', help='names separated by semicolons (default: all): %s' % '; '.join(ALL))
    parser.add_argument('--keep', metavar='DIR', help='store the first file of each kind of problem here')
    parser.add_argument('--report', metavar='CSV', help='put the counts into this table')
    return parser


def main(args):
    names = args.formats.split(';') if args.formats else list(ALL)
    rows = run(names, args.seed, args.minutes, args.cases, args.keep)
    if args.report:
        ledger.store(args.report, rows)
    print('%d inputs tried, %d refused in one line, %d problems' % tuple(
        sum(row[name] for row in rows) for name in ('cases', 'refused', 'problems')))
    return 1 if any(row['problems'] for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main(make_parser().parse_args()))
