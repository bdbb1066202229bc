"""Writing the tables of the recorded results: whole or not at all, as a whole or row by row."""

import os
from collections import OrderedDict

from . import files, results


def write(name, rows, folder=results.FOLDER):
    """Writes a table, in the place of the one that is there."""
    with files.folder(folder):
        files.write_text(results.path(folder, name), results.text(name, rows))


def merged(name, old, new):
    """The rows of a table with new ones added; those of the same key are replaced."""
    table = results.TABLES[name]
    return list(OrderedDict((results.key_of(table, row), row) for row in list(old) + list(new)).values())


def record(name, rows, folder=results.FOLDER):
    """Adds rows to a table, and gives its path."""
    with files.folder(folder), files.lock(os.path.join(folder, '.lock')):
        write(name, merged(name, results.read(folder, name), rows), folder)
    return results.path(folder, name)
