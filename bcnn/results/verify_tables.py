"""Whether the recorded tables agree with each other and with the runs that are here."""

import os
from typing import Iterator

from ..data import sets
from ..errors import UserError
from ..system import places
from . import csv_tables, gather, merge, schema
from .findings import OK, UNKNOWN, WRONG, Finding, judge

# --- the recorded tables -----------------------------------------------------------------------------------


def check_tables(folder: str, place: str = places.RUNS, data: str = sets.DATA) -> Iterator[Finding]:
    """Yields the Findings of the recorded tables: against each other, and against the runs that are here."""
    rows = {}
    for name in schema.TABLES:
        try:
            rows[name] = csv_tables.read(folder, name)
        except UserError as error:
            rows[name] = []
            yield Finding(csv_tables.path(folder, name), WRONG, str(error))
    yield from _crossed(folder, rows)
    yield from _against_runs(folder, rows, place, data)


def _crossed(folder, rows):
    """Every number that two tables tell, each in its own way."""
    def by_outcome(name):
        rows_of = {}
        for row in rows[name]:
            rows_of.setdefault(tuple(row[column] for column in schema.REPETITION), []).append(row)
        return rows_of

    parts = {name: by_outcome(name) for name in ('convergence', 'calibration', 'risk', 'wrong')}
    standard = {row['config']: row for row in rows['evaluations'] if row['method'] == 'standard'}
    described = set(row['config'] for row in rows['provenance'])
    for row in rows['evaluations']:
        key = tuple(row[column] for column in schema.REPETITION)
        what = ' '.join(str(part) for part in key if part is not None)
        for name, problem in _row_problems(row, key, parts, standard):
            yield Finding(csv_tables.path(folder, name), WRONG, '%s: %s' % (what, problem))
        yield Finding(csv_tables.path(folder, 'evaluations'), OK, '%s agrees with the other tables' % what)
    for config in sorted(set(row['config'] for name in ('curves', 'evaluations') for row in rows[name]) - described):
        yield Finding(csv_tables.path(folder, 'provenance'), UNKNOWN,
                      'no row for config %s: record its run again' % config)


def _row_problems(row, key, parts, standard):
    """(table, what is wrong) wherever a row of evaluations.csv does not fit the others."""
    if row['errors'] > row['n']:
        yield 'evaluations', '%d errors of %d images' % (row['errors'], row['n'])
    for last in [part for part in parts['convergence'].get(key, ()) if part['t'] == row['T']]:
        if (last['errors'], last['n']) != (row['errors'], row['n']):
            yield 'convergence', '%d errors of %d after the last pass, evaluations.csv has %d of %d' % (
                last['errors'], last['n'], row['errors'], row['n'])
    for problem in _calibration_problems(row, parts['calibration'].get(key, ())):
        yield 'calibration', problem
    for part in parts['risk'].get(key, ()):
        if part['rejected'] == 0 and abs(part['errors_kept'] - row['errors']) > 0.5 or part['n'] != row['n']:
            yield 'risk', '%s: %g errors with nothing rejected, evaluations.csv has %d' % (
                part['measure'], part['errors_kept'], row['errors'])
    for part in parts['wrong'].get(key, ()):
        listed = len((part['wrong'] or '').split())
        if (listed, part['n']) != (row['errors'], row['n']):
            yield 'wrong', '%d images of %d listed, evaluations.csv has %d errors of %d' % (
                listed, part['n'], row['errors'], row['n'])
    if row['method'] == 'mc' and row['config'] in standard:
        only = row['only_mc_right'] - row['only_standard_right']
        if standard[row['config']]['errors'] - row['errors'] != only:
            yield 'evaluations', 'errors differ from Standard by %d, the images right in one of both by %d' % (
                standard[row['config']]['errors'] - row['errors'], only)


def _calibration_problems(row, bins):
    if not bins:
        return
    count = sum(part['count'] for part in bins)
    if count != row['n']:
        yield '%d images in the bins, evaluations.csv has %d' % (count, row['n'])
        return
    gaps = [part['count'] * abs(part['confidence'] - part['accuracy']) for part in bins if part['count']]
    ece = sum(gaps) / float(count)
    if abs(ece - row['ece']) > 1e-4:
        yield 'the bins give a calibration error of %.6g, evaluations.csv has %.6g' % (ece, row['ece'])


def _against_runs(folder, rows, place, data):
    """The rows that the runs here give, against the recorded ones."""
    problems = []
    options = gather.Options(profile=None, unfinished=True, replace=False, data=data)
    runs = gather.gather([place], options, problems) if os.path.isdir(place) else []
    for problem in problems:
        yield Finding(place, WRONG, problem)
    recorded = {name: {csv_tables.key_of(schema.TABLES[name], row): row for row in rows[name]} for name in rows}
    seen = set()
    for run in runs:
        clashes = merge.clashes_of(run, recorded)
        seen.update(row['config'] for name in run.rows for row in run.rows[name])
        yield judge(run.folder, not clashes, 'what is recorded of it',
                    'not what is recorded of it: %s' % '; '.join(clashes[:2]))
    for config in sorted(set(row['config'] for name in ('curves', 'evaluations') for row in rows[name]) - seen):
        yield Finding(folder, UNKNOWN, 'config %s: its run is not below %s' % (config, os.path.relpath(place)))
