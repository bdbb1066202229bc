"""The curve of a run: at which iterations the test error is measured, and the file it goes to."""

import csv
import math
import os
from collections import namedtuple

from . import files
from .errors import UserError

# A row of curve.csv. lr: the learning rate of the next step, as `caffe train` prints it.
# train_loss: mean of the last LOSSES minibatches. *_errors: of n test images, with Standard
# dropout, and with MC dropout of T passes averaged as probabilities and as scores; empty
# where the net has no dropout.
COLUMNS = ('stage', 'iteration', 'lr', 'train_loss', 'standard_errors', 'mc_errors', 'mc_errors_scores', 'n', 'T')
Row = namedtuple('Row', COLUMNS)
LOSSES = 100


# --- at which iterations ---------------------------------------------------------------------

def log_spaced(iteration, start=100):
    """Whether an iteration is 1, 2 or 5 times a power of ten, from `start` on."""
    digits = str(iteration)
    return iteration >= start and digits[0] in '125' and not digits[1:].strip('0')


def points(text, interval):
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

def learning_rate(solver, iteration):
    """The learning rate of a SolverParameter at an iteration, by Caffe's formulas."""
    if solver.lr_policy == 'fixed':
        return solver.base_lr
    if solver.lr_policy == 'step':
        return solver.base_lr * solver.gamma ** (iteration // solver.stepsize)
    if solver.lr_policy == 'inv':
        return solver.base_lr * (1 + solver.gamma * iteration) ** -solver.power
    raise UserError('no learning rate policy %r: there are fixed, inv, step' % solver.lr_policy)


# --- the file --------------------------------------------------------------------------------

def read(path):
    """The Rows of a curve.csv, [] where there is none."""
    if not os.path.exists(path):
        return []
    try:
        with open(path, newline='') as file:
            lines = list(csv.reader(file))
        if tuple(lines[0]) != COLUMNS:
            raise ValueError('columns %s' % ','.join(lines[0]))
        return [_parsed(line) for line in lines[1:]]
    except (ValueError, IndexError, TypeError, csv.Error) as error:
        raise UserError('%s: not a curve of this version (%s): move it away' % (path, error))


def _parsed(line):
    """The Row of a line; refuses what is no number."""
    found = Row(int(line[0]), int(line[1]), *line[2:])
    for cell in found[2:4] + tuple(cell or '0' for cell in found[4:7]) + (found.T or '0',):
        float(cell)
    if not all(cell.isdigit() for cell in found[4:7] + (found.T,) if cell) or not 0 < int(found.n) < 1 << 53:
        raise ValueError('%s is no measurement' % ','.join(line))
    return found


def row(stage, iteration, lr, losses, errors, n, T):
    """A Row, its numbers as they are written."""
    standard, probs, scores = ('' if count is None else '%d' % count for count in errors)
    return Row(stage, iteration, '%.6g' % lr, '%.6g' % (math.fsum(losses) / len(losses)),
               standard, probs, scores, '%d' % n, '%d' % T if probs else '')


def write(path, rows):
    """Writes the curve, whole or not at all."""
    with files.atomic(path) as temporary, open(temporary, 'w', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(COLUMNS)
        writer.writerows(rows)


def percent(row):
    """'Standard 9.52%, MC 8.32%' of a Row."""
    parts = [(name, count) for name, count in (('Standard', row.standard_errors), ('MC', row.mc_errors)) if count]
    return ', '.join('%s %.2f%%' % (name, 100.0 * int(count) / int(row.n)) for name, count in parts)
