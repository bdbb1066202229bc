"""Whether stored results are what their raw parts say: summaries derived anew, checksums compared, tables crossed.

Takes run folders, evaluation folders, the recorded tables and weights/, and changes nothing. What is found:
a file that was changed, cut off or put in the place of another; a summary that its raw sums do not
give; rows of the tables that contradict each other or the run they came from. What this cannot
find: raw sums and everything derived from them changed together, consistently.
"""

import argparse
import os
from typing import Iterator, List

from .. import weights
from ..data import sets
from ..errors import UserError
from ..system import places, store
from . import csv_tables, gather, schema, shipped, verify_folders, verify_tables
from .findings import OK, UNKNOWN, WRONG, Finding


def command(args: argparse.Namespace) -> int:
    """The exit code of what tools/verify.py was asked for: 0 if all agrees, 1 if something does not."""
    wrong = checked = 0
    for path in args.paths or everything():
        for finding in check(path, args.data, args.runs or places.RUNS, args.results):
            checked += finding.state != UNKNOWN
            wrong += finding.state == WRONG
            if finding.state != OK or args.all:
                print('%s: %s: %s' % (finding.state, os.path.relpath(finding.path), finding.text))
    print('%d checks, %s' % (checked, '%d WRONG' % wrong if wrong else 'all agree'))
    return 1 if wrong else 0


def everything() -> List[str]:
    """The folders with something to check; a new clone has no runs."""
    return [path for path in (places.RUNS, places.RESULTS, weights.FOLDER)
            if os.path.isdir(path) and (path != places.RUNS or any(gather.walk([path])))]


def check(path: str, data: str = sets.DATA, place: str = places.RUNS,
          results: str = places.RESULTS) -> Iterator[Finding]:
    """Yields the Findings of a run, an evaluation, the recorded tables, weights/, or a folder with runs in it."""
    if not os.path.isdir(path):
        raise UserError('%s: no such folder' % path)
    if os.path.exists(os.path.join(path, weights.INDEX)):
        yield from shipped.check(path, results)
        return
    tabled = any(os.path.exists(csv_tables.path(path, name)) for name in schema.TABLES)
    if tabled and not os.path.exists(os.path.join(path, places.CONFIG)):  # evaluations have an images.csv too
        yield from verify_tables.check_tables(path, place, data)
        return
    folders = sorted(set(gather.walk([path])))
    if not folders:
        raise UserError('%s: neither a run, nor an evaluation, nor recorded tables in it' % path)
    for folder in folders:
        yield from _guarded(folder, data)


def _guarded(folder, data):
    """The Findings of one folder; what cannot even be read is one too."""
    try:
        config = store.read_json(os.path.join(folder, places.CONFIG))
        look = (verify_folders.study_folder if 'study' in config else verify_folders.evaluation_folder
                if 'mc_net' in config else verify_folders.run_folder)
        yield from look(folder, config, data)
    except UserError as error:
        yield Finding(folder, WRONG, str(error))
    except (KeyError, ValueError, IndexError, TypeError, AttributeError, OSError) as error:
        yield Finding(folder, WRONG, 'not a result of this version (%s: %s)'
                      % (type(error).__name__, ' '.join(str(error).split())))
