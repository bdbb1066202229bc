"""Writing the tables of the recorded results: whole or not at all, as a whole or row by row."""

import os
from typing import Any, Dict, Iterable

from ..system import files, locks, places
from . import csv_tables, schema


def write(name: str, rows: Iterable[Dict[str, Any]], folder: str = places.RESULTS) -> None:
    """Writes a table, in the place of the one that is there."""
    with files.folder(folder):
        files.write_text(csv_tables.path(folder, name), csv_tables.text(name, rows))


def record(name: str, rows: Iterable[Dict[str, Any]], folder: str = places.RESULTS) -> str:
    """Adds rows to a table, in the place of those of the same key, and gives its path."""
    with files.folder(folder), locks.lock(os.path.join(folder, '.lock')):
        table = csv_tables.by_key(folder, name)
        table.update((csv_tables.key_of(schema.TABLES[name], row), row) for row in rows)
        write(name, table.values(), folder)
    return csv_tables.path(folder, name)
