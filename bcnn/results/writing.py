"""Writing the tables of the recorded results: whole or not at all, as a whole or row by row."""

import os
from collections import OrderedDict
from typing import Any, Dict, Iterable, List

from ..system import files, locks, places
from . import csv_tables, schema


def write(name: str, rows: Iterable[Dict[str, Any]], folder: str = places.RESULTS) -> None:
    """Writes a table, in the place of the one that is there."""
    with files.folder(folder):
        files.write_text(csv_tables.path(folder, name), csv_tables.text(name, rows))


def merged(name: str, old: Iterable[Dict[str, Any]], new: Iterable[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """The rows of a table with new ones added; those of the same key are replaced."""
    table = schema.TABLES[name]
    return list(OrderedDict((csv_tables.key_of(table, row), row) for row in list(old) + list(new)).values())


def record(name: str, rows: Iterable[Dict[str, Any]], folder: str = places.RESULTS) -> str:
    """Adds rows to a table, and gives its path."""
    with files.folder(folder), locks.lock(os.path.join(folder, '.lock')):
        write(name, merged(name, csv_tables.read(folder, name), rows), folder)
    return csv_tables.path(folder, name)
