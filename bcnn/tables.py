"""Measured rows into the tables of the recorded results: new ones added, those of the same key replaced."""

import os
from collections import OrderedDict

from . import files, results, runs

RESULTS = os.path.join(runs.ROOT, 'analysis', 'results')


def record(name, rows, folder=RESULTS):
    """Writes the rows to a table, and gives its path."""
    table = results.TABLES[name]
    with files.folder(folder), files.lock(os.path.join(folder, '.lock')):
        kept = OrderedDict((results.key_of(table, row), row) for row in results.read(folder, name))
        kept.update((results.key_of(table, row), row) for row in rows)
        with files.atomic(results.path(folder, name)) as temporary, open(temporary, 'w', newline='') as file:
            file.write(results.text(name, list(kept.values())))
    return results.path(folder, name)
