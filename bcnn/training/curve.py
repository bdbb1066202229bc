"""The curve of a run: at which iterations the test error is measured, and the files it goes to."""

import csv
import math
import os
from typing import TYPE_CHECKING, Callable, Collection, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..errors import UserError
from ..system import files

if TYPE_CHECKING:
    from ..engine import SolverParameter

LOSSES = 100       # minibatches that a train_loss is the mean of
LONGEST = 1 << 24  # characters of a value


class Row(NamedTuple):
    """A row of curve.csv, its numbers as they are written; '' for what was not measured."""

    stage: int
    iteration: int
    lr: str                # the learning rate of the next step, as `caffe train` prints it
    train_loss: str        # mean of the last LOSSES minibatches
    standard_errors: str   # of n test images, with Standard dropout
    mc_errors: str         # with MC dropout of T passes, averaged as probabilities; '' without dropout
    mc_errors_scores: str  # averaged as scores; '' with adaptive T, which promises nothing of them
    n: str
    T: str
    # Of a run that measures with adaptive T (train.py --adaptive), and only there.
    adaptive: str = ''     # the most probability with which an image's class is another than after all T passes
    passes: str = ''       # the mean of an image


class WrongRow(NamedTuple):
    """A row of wrong.csv: which test images a method has wrong."""

    stage: int
    iteration: int
    method: str  # standard, mc
    images: str  # the SHA-256 of all n of them
    n: str
    wrong: str   # their numbers, with spaces between


COLUMNS, ADAPTIVE = Row._fields[:9], Row._fields[9:]


# --- at which iterations ---------------------------------------------------------------------

def log_spaced(iteration: int, start: int = 100) -> bool:
    """Whether an iteration is 1, 2 or 5 times a power of ten, from `start` on."""
    digits = str(iteration)
    return iteration >= start and digits[0] in '125' and not digits[1:].strip('0')


def points(text: str, interval: int) -> Callable[[int, int], bool]:
    """due(iteration, last): whether `--eval-points TEXT` wants a measurement there; last: of the stage.

    interval: the solver's test_interval, for `paper`.
    """
    def ends(due):
        return lambda iteration, last: iteration == last or due(iteration)

    if text == 'none':
        return lambda iteration, last: False
    if text == 'log':
        return ends(log_spaced)
    if text == 'paper':
        return ends(lambda iteration: iteration > 0 and iteration % interval == 0)
    if text.startswith('log:') and text[4:].isdigit() and 1 <= int(text[4:]) <= 100:
        return ends(_decades(int(text[4:])))
    try:
        wanted = frozenset(int(part) for part in text.split(','))
    except ValueError:
        wanted = frozenset([0])
    if min(wanted) < 1:
        raise UserError('--eval-points %s: it is log, log:N (N a decade), paper, none, or iterations like 100,200,1000'
                        % text)
    return lambda iteration, last: iteration in wanted


def _decades(n, start=100):
    """Whether an iteration is the nearest whole number to start * 10^(k/n) for a k."""
    def due(iteration):
        if iteration < start:
            return False
        k = round(n * math.log10(iteration / float(start)))
        return iteration == int(round(start * 10 ** (k / float(n))))
    return due


# --- the learning rate -----------------------------------------------------------------------

def learning_rate(solver: 'SolverParameter', iteration: int) -> float:
    """The learning rate of a SolverParameter at an iteration, by Caffe's formulas."""
    if solver.lr_policy == 'fixed':
        return solver.base_lr
    if solver.lr_policy == 'step':
        return solver.base_lr * solver.gamma ** (iteration // solver.stepsize)
    if solver.lr_policy == 'inv':
        return solver.base_lr * (1 + solver.gamma * iteration) ** -solver.power
    raise UserError('no learning rate policy %r: there are fixed, inv, step' % solver.lr_policy)


# --- the files -------------------------------------------------------------------------------

def read(path: str) -> List[Row]:
    """The Rows of a curve.csv, [] where there is none."""
    return _read(path, (COLUMNS, COLUMNS + ADAPTIVE), _parsed)


def read_wrong(path: str) -> List[WrongRow]:
    """The WrongRows of a wrong.csv, [] where there is none: runs of before have none, or only their later ones."""
    return _read(path, (WrongRow._fields,), _parsed_wrong)


def _read(path, headers, parsed):
    if not os.path.exists(path):
        return []
    csv.field_size_limit(LONGEST)
    try:
        with open(path, newline='') as file:
            lines = list(csv.reader(file))
        if tuple(lines[0]) not in headers:
            raise ValueError('columns %s' % ','.join(lines[0]))
        return [parsed(line, len(lines[0])) for line in lines[1:]]
    except (ValueError, IndexError, TypeError, csv.Error) as error:
        raise UserError('%s: not a curve of this version (%s): move it away' % (path, error))


def _parsed(line, columns):
    """The Row of a line; refuses what is no number."""
    if len(line) != columns:
        raise ValueError('%d values, there are %d columns' % (len(line), columns))
    point = Row(int(line[0]), int(line[1]), *line[2:])
    for cell in point[2:4] + tuple(cell or '0' for cell in point[4:7]) + (point.T or '0',):
        float(cell)
    if not all(0 < float(cell) < 1e6 for cell in (point.adaptive, point.passes) if cell):
        raise ValueError('%s is no adaptive T' % ','.join(line[-2:]))
    if not all(cell.isdigit() for cell in point[4:7] + (point.T,) if cell) or not 0 < int(point.n) < 1 << 53:
        raise ValueError('%s is no measurement' % ','.join(line))
    return point


def _parsed_wrong(line, _columns):
    point = WrongRow(int(line[0]), int(line[1]), *line[2:])
    if not int(point.n) > 0 or not all(0 <= int(image) < int(point.n) for image in point.wrong.split()):
        raise ValueError('%s is no list of images' % point.wrong[:40])
    return point


def wrong_rows(stage: int, iteration: int, wrong: Dict[str, np.ndarray], images: str) -> List[WrongRow]:
    """The WrongRows of a measurement. wrong: {method: whether each image is wrong}; images: their SHA-256."""
    return [WrongRow(stage=stage, iteration=iteration, method=method, images=images, n='%d' % len(mask),
                     wrong=' '.join(map(str, np.flatnonzero(mask)))) for method, mask in wrong.items()]


def row(stage: int, iteration: int, lr: float, losses: Collection[float], errors: Iterable[Optional[int]], n: int,
        T: int, adaptive: Optional[Tuple[float, float]] = None) -> Row:
    """A Row, its numbers as they are written. adaptive: what adaptive T promised, and the passes that it took."""
    standard, probs, scores = ('' if count is None else '%d' % count for count in errors)
    promised, passes = ('%g' % adaptive[0], '%.2f' % adaptive[1]) if adaptive else ('', '')
    return Row(stage=stage, iteration=iteration, lr='%.6g' % lr, train_loss='%.6g' % (math.fsum(losses) / len(losses)),
               standard_errors=standard, mc_errors=probs, mc_errors_scores=scores, n='%d' % n,
               T='%d' % T if probs else '', adaptive=promised, passes=passes)


def write(path: str, rows: Sequence[Row]) -> None:
    """Writes the curve, whole or not at all."""
    columns = COLUMNS + (ADAPTIVE if any(row.adaptive for row in rows) else ())
    files.write_csv(path, columns, (row[:len(columns)] for row in rows))


def write_wrong(path: str, rows: Sequence[WrongRow]) -> None:
    """Writes which images are wrong, whole or not at all."""
    files.write_csv(path, WrongRow._fields, rows)


def percent(row: Row) -> str:
    """'Standard 9.52%, MC 8.32%' of a Row."""
    parts = [(name, count) for name, count in (('Standard', row.standard_errors), ('MC', row.mc_errors)) if count]
    return ', '.join('%s %.2f%%' % (name, 100.0 * int(count) / int(row.n)) for name, count in parts)
