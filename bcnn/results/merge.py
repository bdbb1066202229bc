"""New rows into the recorded tables.

A row that is recorded stays. A run whose numbers contradict recorded ones is left out as a whole, unless `replace`
asks for it; then the run it contradicts goes as a whole, so that no curve is of two runs. The others are recorded
all the same.
"""

from collections import OrderedDict
from typing import Any, Container, Dict, Iterable, Iterator, List, Set, Tuple

from .. import beyond
from . import csv_tables, schema, writing
from .gather import Found, Options, Row

Rows = Dict[Tuple[Any, ...], Row]  # of a table, by key
Recorded = Dict[str, Rows]         # by table

# Where weights came from is known only until their run goes on; what computed a row may change without its numbers.
NOT_COMPARED = schema.PROVENANCE_COLUMNS + ('seed', 'iterations', 'weights', 'schedule', 'init')
TOLERANCE = 1e-5  # relative, of floats: another numpy may round the last digit otherwise


# --- merging -----------------------------------------------------------------------------------------

def merge(runs: Iterable[Found], folder: str, options: Options, problems: List[str],
          notes: List[str]) -> Dict[str, int]:
    """{table: new rows}; writes the tables. A run that contradicts them is left out and named in `problems`.

    One that may well differ from what is recorded, since it is another training or was computed by something
    else, is named in `notes`.
    """
    recorded = read(folder)
    sizes = {name: len(rows) for name, rows in recorded.items()}
    changed = set()
    for run in runs:
        clashes = clashes_of(run, recorded)
        if clashes and not options.replace:
            reason = _other_origin(run, recorded)
            (notes if reason else problems).append('%s: %s: %s; --replace takes this one' % (
                run.folder, reason or 'contradicts what is recorded', _listed(clashes)))
            continue
        changed |= forget(recorded, _contradicted(run, recorded) if clashes else ())
        for name, rows in run.rows.items():
            for row in rows:
                key = csv_tables.key_of(schema.TABLES[name], row)
                old = recorded[name].setdefault(key, row)
                if old is row or _becomes_papers(row, old):
                    recorded[name][key] = row
                    changed.add(name)
    for name in changed:
        writing.write(name, list(recorded[name].values()), folder)
    return OrderedDict((name, len(rows) - sizes[name]) for name, rows in recorded.items())


def read(folder: str) -> Recorded:
    """{table: {key: row}} of what is recorded of runs and evaluations."""
    return OrderedDict((name, csv_tables.by_key(folder, name)) for name in schema.TABLES if name != 'thumbnails')


def forget(recorded: Recorded, configs: Container[str]) -> Set[str]:
    """The names of the tables that lose rows, once all rows of these configs are taken out."""
    changed = set()
    for name, rows in recorded.items():
        for key in [key for key, row in rows.items() if row.get('config') in configs]:
            del rows[key]
            changed.add(name)
    return changed


def _contradicted(run, recorded):
    """The configs of the recorded rows that a run contradicts."""
    names = _names_count(run, recorded)
    return {recorded[name][csv_tables.key_of(schema.TABLES[name], row)]['config']
            for name, rows in run.rows.items() for row in rows if any(clash(name, row, recorded[name], names))}


def _other_origin(run, recorded):
    """Why a run may differ from the recorded rows that it contradicts, and none of them be wrong; '' for no reason."""
    mine, = run.rows['provenance']
    others = sorted(_contradicted(run, recorded) - {mine['config']})
    if others:
        return 'another training of this net and seed is recorded (config %s)' % ', '.join(others)
    theirs = recorded['provenance'].get(csv_tables.key_of(schema.TABLES['provenance'], mine))
    other = ['%s %s, here %s' % (name, theirs[name], mine[name])
             for name in schema.LIBRARIES if theirs and theirs[name] != mine[name]]
    return 'recorded with other software (%s)' % '; '.join(other) if other else ''


def clashes_of(run: Found, recorded: Recorded) -> List[str]:
    """What a gather.Found contradicts of the recorded rows, {table: {key: row}}."""
    names = _names_count(run, recorded)
    return [text for name, rows in run.rows.items() for row in rows
            for text in clash(name, row, recorded[name], names)]


def _names_count(run, recorded):
    """Whether it matters under which net and data set a run's rows are recorded.

    Not where that was known once, and is not now: the test set, or the weights that were evaluated, are gone.
    """
    known = {row['config'] for row in recorded['evaluations'].values() if row['weights'] != 'unknown'}
    return run.certain or not any(row['config'] in known for row in run.rows['evaluations'])


def clash(name: str, row: Row, recorded: Rows, names: bool = True) -> Iterator[str]:
    """['curves errors 12, recorded 13 (...)']: where a row differs from the recorded one of the same key.

    names: whether net and data set count.
    """
    old = recorded.get(csv_tables.key_of(schema.TABLES[name], row))
    for column in (schema.TABLES[name].columns if old else ()):
        counts = column not in NOT_COMPARED and (names or column not in ('dataset', 'net'))
        if counts and not _same(old[column], row[column]):
            where = ' '.join('%s=%s' % (part, csv_tables.cell(row[part])) for part in schema.TABLES[name].key
                             if row[part] is not None)
            yield '%s.csv %s: %s is %s, recorded %s' % (
                name, where, column, csv_tables.cell(row[column]), csv_tables.cell(old[column]))


def _same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= TOLERANCE * max(abs(a), abs(b), 1e-12)
    return a == b


def _becomes_papers(row, old):
    """Whether a measurement that was recorded of a run beyond the paper is one of the paper's runs too."""
    return old.get('experiment') == beyond.NAME != row['experiment']


def _listed(clashes):
    return clashes[0] + (' (and %d more)' % (len(clashes) - 1) if len(clashes) > 1 else '')


def store(folder: str, name: str, rows: List[Row]) -> int:
    """The number of these rows, which are added to a table."""
    writing.write(name, csv_tables.read(folder, name) + rows, folder)
    return len(rows)
