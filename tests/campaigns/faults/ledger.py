"""Rows of analysis/results/faults.csv: what was tried, and what came of it. The columns are those of bcnn.results."""

import os
import sys
from collections import OrderedDict

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from bcnn import engine  # noqa: E402
from bcnn.results import csv_tables, schema  # noqa: E402
from bcnn.system import files, provenance  # noqa: E402


def new_row(kind, target, what, seed):
    """A row with nothing counted yet."""
    software = provenance.collect(engine.describe())
    row = OrderedDict((name, 0) for name in schema.TABLES['faults'].columns)
    row.update(kind=kind, target=target, what=what, seed=seed, seconds=0.0, caffe=software['caffe'],
               python=software['python'], numpy=software['numpy'], device='cpu', commit=provenance.short_commit(software))
    return row


def store(path, rows):
    """Puts rows into a table, in the place of those of the same kind, target and fault."""
    folder = os.path.dirname(os.path.abspath(path))
    table = csv_tables.by_key(folder, 'faults') if os.path.basename(path) == 'faults.csv' else OrderedDict()
    table.update((csv_tables.key_of(schema.TABLES['faults'], row), row) for row in rows)
    with files.folder(folder):
        files.write_text(path, csv_tables.text('faults', table.values()))
