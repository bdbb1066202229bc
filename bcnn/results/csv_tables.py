"""The recorded tables as CSV files: every problem named, written always the same way. Standard library."""

import csv
import io
import os
from collections import OrderedDict
from typing import Any, Dict, Iterable, List, Tuple

from ..errors import UserError
from . import schema

MOST = 1 << 53  # the largest whole number: what a float holds exactly, so that any tool reads it right
LONGEST = 1 << 24  # characters of a value: the wrong images of a large test set

# Kinds of values; a question mark allows an empty one.
KINDS = {'text': str, 'int': int, 'float': float}


def path(folder: str, name: str) -> str:
    return os.path.join(folder, name + '.csv')


# --- reading -----------------------------------------------------------------------------------

def read(folder: str, name: str) -> List[Dict[str, Any]]:
    """The rows of a table as dictionaries, None for an empty value; [] where there is no file.

    Anything wrong with the file is a UserError of one line: file, line, problem.
    """
    table, where = schema.TABLES[name], path(folder, name)
    if not os.path.exists(where):
        return []
    csv.field_size_limit(LONGEST)
    with open(where, newline='', encoding='utf-8') as file:
        return _parse(table, csv.reader(file, strict=True), where)


def _parse(table, reader, where):
    rows, seen, line, cells = [], {}, 1, []
    try:
        for cells in reader:
            line = reader.line_num
            if line == 1:
                older = _check_header(table, cells)
                continue
            row = _row(table, cells, older)
            key = key_of(table, row)
            if key in seen:
                raise ValueError('the same measurement as line %d' % seen[key])
            seen[key] = line
            rows.append(row)
    except (ValueError, csv.Error) as error:  # bytes that are no UTF-8 raise a ValueError too
        raise UserError('%s, line %d: %s%s' % (where, max(line, reader.line_num), error, _cure(table, cells, where)))
    if reader.line_num == 0:
        raise UserError('%s, line 1: empty, without a header' % where)
    return rows


def _cure(table, cells, where):
    """What to do about a line with a number that is none: the evaluation that gave it is no result; '' for others."""
    names = list(table.columns)
    none = {'nan', 'inf', '-inf'} & {cell.lower() for cell in cells}
    if not none or 'config' not in names or len(cells) != len(names):
        return ''
    return ("; this evaluation is no result, take all of its lines out: sed -i '/\\b%s\\b/d' %s/*.csv"
            % (cells[names.index('config')], os.path.dirname(where)))


def _check_header(table, cells):
    """The columns that a table written before there were any does not have; refuses any other header."""
    wanted = list(table.columns)
    older = [name for name, _ in schema.LATER if name in wanted and name not in cells]
    if cells == [name for name in wanted if name not in older]:
        return older
    missing = [name for name in wanted if name not in cells]
    extra = [name for name in cells if name not in wanted]
    problem = 'columns in another order'
    if missing or extra:
        problem = 'no column %s' % missing[0] if missing else 'unknown column %s' % extra[0]
    raise ValueError('%s; the columns are %s' % (problem, ','.join(wanted)))


def _row(table, cells, older):
    there = [item for item in table.columns.items() if item[0] not in older]
    if len(cells) != len(there):
        raise ValueError('%d values, there are %d columns' % (len(cells), len(there)))
    values = {name: _value(name, kind, cell) for (name, kind), cell in zip(there, cells)}
    return OrderedDict((name, values.get(name)) for name in table.columns)


def _value(name, kind, cell):
    if not cell:
        if kind.endswith('?'):
            return None
        raise ValueError('%s is empty' % name)
    try:
        value = KINDS[kind.rstrip('?')](cell)
        if isinstance(value, float) and value - value != 0 or isinstance(value, int) and abs(value) > MOST:
            raise ValueError
    except ValueError:
        raise ValueError('%s is %r, not a %s'
                         % (name, cell, {'int': 'whole number', 'float': 'number'}[kind.rstrip('?')]))
    if name in ('n', 'errors', 'kept', 'count', 'iteration', 't') and value < 0:
        raise ValueError('%s is %r, below zero' % (name, cell))
    return value


def key_of(table: schema.Table, row: Dict[str, Any]) -> Tuple[Any, ...]:
    """What a row measures, as a tuple."""
    return tuple(row[name] for name in table.key)


def by_key(folder: str, name: str) -> Dict[Tuple[Any, ...], Dict[str, Any]]:
    """{what it measures: row} of a table."""
    return OrderedDict((key_of(schema.TABLES[name], row), row) for row in read(folder, name))


# --- writing -----------------------------------------------------------------------------------

def text(name: str, rows: Iterable[Dict[str, Any]]) -> str:
    """The bytes of a table: rows in order of their key, numbers always written the same way."""
    table = schema.TABLES[name]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator='\n')
    writer.writerow(list(table.columns))
    for row in sorted(rows, key=lambda row: order(table, row)):
        writer.writerow([cell(row[column]) for column in table.columns])
    return out.getvalue()


def cell(value: Any) -> str:
    """How a value is written: floats with six significant digits."""
    if value is None:
        return ''
    return '%.6g' % value if isinstance(value, float) else str(value)


def order(table: schema.Table, row: Dict[str, Any]) -> List[Tuple[bool, Any]]:
    """A sort key: data set, net, seed, then the table's key; empty values first."""
    names = [name for name in ('dataset', 'net', 'seed') if name in table.columns] + list(table.key)
    return [(row[name] is not None, row[name] if row[name] is not None else 0) for name in names]
