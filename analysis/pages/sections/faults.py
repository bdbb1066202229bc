"""Faults, hostile inputs and hours, from what tests/campaigns/faults/ has counted."""

from pages.html import Section, fill, nothing, table
from records import names

COMMAND = 'tools/python tests/campaigns/faults/campaign.py --seed 1 --minutes 60 --report analysis/results/faults.csv'
KINDS = (('fault', 'faults injected into'), ('input', 'damaged and hostile'), ('soak', 'long run of'))
HEADS = ['what', 'tried', 'runs resumed', 'refused in one line', 'files that differ', 'files lost', 'other problems',
         'hours']
COUNTS = ('cases', 'resumed', 'refused', 'bytes_different', 'results_lost', 'problems')


def section(tables):
    """What was tried and what came of it."""
    counted = table(HEADS, rows(tables['faults'])) if len(tables['faults']) else nothing(COMMAND)
    return Section('faults', 'Faults', 'Faults and hostile input', fill('faults', table=counted))


def rows(faults):
    """A row a command or format, and the sums."""
    lines = []
    for kind, title in KINDS:
        part = faults[faults['kind'] == kind]
        for target in sorted(set(part['target'])):
            lines.append(_row('%s %s' % (title, target), part[part['target'] == target]))
        if len(part):
            lines.append(_row('all: %s' % title.split()[0], part))
    return lines


def _row(title, part):
    return [title] + [names.count(part[name].sum()) for name in COUNTS] + ['%.2f' % (part['seconds'].sum() / 3600)]
