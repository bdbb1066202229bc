"""The classes of pictures in a folder: of its labels.csv, or of the folders that they lie in.

    labels.csv      a line a picture, `name,label`; the label is the number of the class, or with a list of class
                    names one of them
    4/ 7/ 10/       folders named by whole numbers: that number is the class, unless the list has such names
    cat/ dog/       other names: their line in the list of class names (--classes FILE); without one they are numbered
                    0, 1 ... in order of name, which is said
"""

import csv
import os
import re
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from ..errors import UserError
from . import pictures

MOST = 1 << 31  # labels below, as Caffe's are
SHOWN = 50      # classes in a line for people


class Labelled(NamedTuple):
    """Pictures with their classes."""

    items: List[Tuple[str, int]]       # (file name below the folder, class)
    classes: Optional[List[Any]]       # the name of each class, None for one that has none; None where nothing has
    rule: str                          # how the classes were found, for people


def of_folder(path: str, classes: Optional[str] = None) -> Labelled:
    """The Labelled of a folder; classes: the path of a list of class names, a line a class."""
    names = read_classes(classes) if classes else None
    table = os.path.join(path, 'labels.csv')
    if os.path.isfile(table):
        return Labelled(items=_of_table(path, table, names), classes=names, rule='of labels.csv')
    folders = sorted(name for name in os.listdir(path)
                     if os.path.isdir(os.path.join(path, name)) and not name.startswith('.'))
    if not folders:
        raise UserError('%s: neither labels.csv (lines of `name,label`) nor a folder for each class in it' % path)
    numbers, names, rule = _numbers(path, folders, names, classes)
    items = [(os.path.join(folder, file), numbers[folder]) for folder in sorted(folders, key=numbers.get)
             for file in sorted(os.listdir(os.path.join(path, folder))) if file.lower().endswith(pictures.EXTENSIONS)]
    return Labelled(items=items, classes=names, rule=rule)


def read_classes(path: str) -> List[str]:
    """The class names in a file: line 1 is class 0."""
    try:
        with open(path, encoding='utf-8') as file:
            names = [line.strip() for line in file.read().rstrip().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError('%s: not a list of class names, a line a class (%s)' % (path, error))
    for number, name in enumerate(names, 1):
        if not name or name in names[:number - 1]:
            raise UserError('%s, line %d: %s; it should be a list of class names, a line a class'
                            % (path, number, 'the same name as before' if name else 'empty'))
    return names


# --- folders -----------------------------------------------------------------------------------

def _numbers(path, folders, names, source):
    """({folder: class}, class names, rule)."""
    numeric = [folder for folder in folders if re.match(r'[0-9]{1,10}$', folder)]
    if len(numeric) == len(folders) and not set(folders) & _words(names or ()):
        return _by_number(path, folders), names, 'the numbers that the folders are named by'
    if names is not None:
        return ({folder: _line_of(folder, names, '%s: folder %s' % (path, folder), source) for folder in folders},
                names, 'folders by their line in %s' % source)
    ask = 'say which class is which with --classes FILE, a line a class'
    if numeric:
        raise UserError('%s: folders named by numbers (%s) and by words (%s): %s' % (
            path, numeric[0], next(folder for folder in folders if folder not in numeric), ask))
    if folders != sorted(folders, key=_natural):
        raise UserError('%s: folders with numbers in their names, whose order by letters is not that by numbers '
                        '(%s ...): %s' % (path, ', '.join(folders[:3]), ask))
    return ({folder: number for number, folder in enumerate(folders)}, folders,
            'folders numbered in order of name, %s' % table(folders))


def _by_number(path, folders):
    numbers = {folder: int(folder) for folder in folders}
    taken = list(numbers.values())
    for folder, number in numbers.items():
        if number >= MOST or taken.count(number) > 1:
            problem = 'too large a number for a class' if number >= MOST else 'the same class as another'
            raise UserError('%s: folder %s is %s' % (path, folder, problem))
    return numbers


def _natural(name):
    """A sort key by which 10 comes after 2."""
    return [int(part) if part.isdigit() else part for part in re.split(r'([0-9]+)', name)]


def _words(names):
    """What folders of these classes may be called: the whole line, or its first word (synset_words.txt)."""
    return {word for line in names for word in (line, line.split()[0])}


def _line_of(name, names, where, source):
    """The number of a class by its name."""
    numbers = [number for number, line in enumerate(names) if name in _words([line])]
    if len(numbers) != 1:
        raise UserError('%s: %s in %s' % (where, 'several such classes' if numbers else 'no such class', source))
    return numbers[0]


def table(names: Sequence[str]) -> str:
    """'0 ant, 1 cat': the numbers of classes, for people."""
    parts = ['%d %s' % pair for pair in enumerate(names)]
    return ', '.join(parts if len(parts) <= SHOWN else parts[:SHOWN - 1] + ['...', parts[-1]])


# --- labels.csv -----------------------------------------------------------------------------------

def _of_table(path, table, names):
    items = []
    try:
        with open(table, newline='') as file:
            for number, row in enumerate(csv.reader(file, strict=True), 1):
                if row:
                    items.append(_item(path, '%s, line %d' % (table, number), row, names))
    except (ValueError, csv.Error) as error:  # bytes that are no UTF-8, or no CSV
        raise UserError('%s: not a table of "name,label" lines (%s)' % (table, ' '.join(str(error).split())))
    return items


def _item(path, where, row, names):
    name, label = row[0], (row + [''])[1].strip()
    if names is not None and not label.isdigit():
        label = str(_line_of(label, names, '%s: %s' % (where, label), 'the list of classes'))
    if not re.match(r'[0-9]{1,10}$', label) or int(label) >= MOST:
        raise UserError('%s: not "name,label" with the number of a class (0, 1 ...) as the label; names of classes '
                        'need --classes FILE' % where)
    if os.path.isabs(name) or '..' in name.split('/') or '\0' in name or not os.path.isfile(os.path.join(path, name)):
        raise UserError('%s: no file %s in this folder' % (where, ' '.join(name.split())))
    return name, int(label)
