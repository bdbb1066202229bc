"""From run folders to the committed tables of analysis/results/: gathered, checked, never lost."""

import argparse
import os
import sys
from typing import Sequence

from ..errors import UserError
from ..system import files, locks, places
from . import gather, merge, thumbnails, writing


def forget(results: str, configs: Sequence[str]) -> int:
    """0, once all rows of these configs are out of the tables: of runs that are no longer to be reported."""
    with locks.lock(os.path.join(results, '.lock')):
        recorded = merge.read(results)
        before = {name: len(rows) for name, rows in recorded.items()}
        known = {row.get('config') for rows in recorded.values() for row in rows.values()}
        for config in configs:
            if config not in known:
                raise UserError('--forget %s: no row of %s has this config; provenance.csv lists them'
                                % (config, results))
        for name in sorted(merge.forget(recorded, configs)):
            writing.write(name, list(recorded[name].values()), results)
            print('%s.csv: %d rows fewer' % (name, before[name] - len(recorded[name])))
    return 0


def command(args: argparse.Namespace) -> int:
    """The exit code of what tools/record.py was asked for: 0, or 1 where something was refused."""
    if args.forget:
        return forget(args.results, args.forget)
    options = gather.Options(profile=args.profile, unfinished=args.unfinished, replace=args.replace, data=args.data)
    folders = args.folders or [places.RUNS]
    for folder in folders:
        if not os.path.isdir(folder):
            raise UserError('%s: no such folder' % folder)
    problems, notes = [], []
    runs = gather.gather(folders, options, problems)
    os.makedirs(args.results, exist_ok=True)
    with locks.lock(os.path.join(args.results, '.lock')):
        files.sweep_folder(args.results)
        counts = merge.merge(runs, args.results, options, problems, notes)
        pictures = thumbnails.picture_rows(args.results, args.data, problems, not args.no_prepare)
        counts['thumbnails'] = merge.store(args.results, 'thumbnails', pictures) if pictures else 0
    for note in [run.note for run in runs if run.note] + notes:
        print('record.py: note: %s' % note, file=sys.stderr)
    for problem in problems:
        print('record.py: %s' % problem, file=sys.stderr)
    print('%d runs and evaluations found; new rows: %s' % (
        len(runs), ', '.join('%s %d' % item for item in counts.items() if item[1]) or 'none'))
    return 1 if problems else 0
