"""Figures with a panel a net that was evaluated: their grid and their small print."""

from drawing import style
from records import evaluations, names, smaller, uncertainty
from records.load import FILLS


def grid(targets, small_print, legend=0):
    """(figure, its panels), up to three in a row; one that says what is missing where there are none."""
    columns = min(max(len(targets), 1), 3)
    rows = -(-max(len(targets), 1) // columns)
    figure, axes = style.panels(rows, columns, small_print, panel=(3.3 if columns > 1 else 4.8, 3.2),
                                legend=legend if targets else 0)
    cells = [cell for row in axes for cell in row]
    for cell in cells[len(targets):] if targets else []:
        cell.set_visible(False)
    if not targets:
        style.absent(cells[0], 'no MC evaluation recorded yet\npython tools/mc_eval.py, then\n%s' % FILLS)
    return figure, cells


def hinge(targets):
    """[what to know of nets without a likelihood], [] where none of these is one."""
    return [uncertainty.NO_LIKELIHOOD] if any(net in uncertainty.HINGE for _, net in targets) else []


def notes(tables, targets, more):
    """Small print: how each evaluation is smaller than the paper's, what is left out, then `more`."""
    small = []
    for target in targets:
        marks = smaller.evaluation(evaluations.chosen(tables, *target)[0])
        small += ['%s: %s.' % (names.target(*target), '; '.join(marks))] if marks else []
    for target in evaluations.left_out(tables):
        n = evaluations.chosen(tables, *target)[0]['n'].max()
        small.append('Left out: %s, evaluated on %s images only.' % (names.target(*target), names.count(n)))
    return small + (more if targets else [])
