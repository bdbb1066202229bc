"""Nets that are not the paper's: what was measured of them, and the commands for one's own."""

from pages.html import Html, Section, code, fill, nothing, put, table
from records import evaluations, names, smaller
from records.from_bcnn import paper

HEADS = ['net', 'Standard', 'MC', 'T', 'images', 'repetitions', 'McNemar p']
COMMANDS = ['python tools/mc_eval.py --prototxt my_net.prototxt --weights my_net.caffemodel --data my_test_lmdb --T 50',
            'python tools/record.py', 'python analysis/compare.py    # any two evaluations of the same images']


def section(tables):
    """A row a net that is not of the paper."""
    rows = [_row(tables, target) for target in evaluations.targets(tables) + evaluations.left_out(tables)
            if paper.experiment_of(*target) == 'other']
    return Section('own-nets', 'Own nets', 'Your own nets', fill(
        'own_nets', table=table(HEADS, rows) if rows else nothing('python tools/mc_eval.py --prototxt'),
        departing=departing(tables, of_table1=False), commands=code(COMMANDS)))


def departing(tables, of_table1):
    """A row an evaluation that is kept out of the paper's rows, of Table 1's nets or of all others; '' for none."""
    rows = [_cells(group) + [smaller.departures(group)] for group in evaluations.departing(tables, of_table1)]
    return put('<h3>Not by the paper\'s protocol</h3>$table',
               table=table(HEADS + ['departs by'], rows)) if rows else Html('')


def _row(tables, target):
    return _cells(evaluations.chosen(tables, *target)[0])


def _cells(group):
    line = evaluations.measured(group)
    return [names.target(group['dataset'].iloc[0], group['net'].iloc[0]), '%.2f' % line['standard'],
            names.spread(line['mc'], line['std']), '%d' % line['T'],
            names.count(line['n']), '%d' % line['repetitions'], '%.2g' % line['mcnemar_p']]
