"""The report's table of faults, hostile inputs and hours, from what tests/faults/ has counted."""

import page

COMMAND = 'tools/python tests/faults/campaign.py --seed 1 --minutes 60 --report analysis/results/faults.csv'
KINDS = (('fault', 'faults injected into'), ('input', 'damaged and hostile'), ('soak', 'long run of'))
HEADS = ['what', 'tried', 'runs resumed', 'refused in one line', 'files that differ', 'files lost', 'other problems',
         'hours']
COUNTS = ('cases', 'resumed', 'refused', 'bytes_different', 'results_lost', 'problems')


def section(tables):
    """The section as HTML."""
    body = page.table(HEADS, rows(tables['faults'])) if len(tables['faults']) else page.nothing(COMMAND)
    return ('<section id="faults"><h2>Faults and hostile input</h2><p>Commands are killed, stopped, starved of disk, '
            'robbed of their data and run twice at once, then run again; what they leave is compared with an '
            'undisturbed run byte for byte. Readers are fed damaged files. Differing, lost and other problems have to '
            'be 0.</p>%s</section>' % body)


def rows(table):
    """A row a command or format, and the sums."""
    found = []
    for kind, title in KINDS:
        part = table[table['kind'] == kind]
        for target in sorted(set(part['target'])):
            found.append(_row('%s %s' % (title, target), part[part['target'] == target]))
        if len(part):
            found.append(_row('all: %s' % title.split()[0], part))
    return found


def _row(title, part):
    counts = ['{:,}'.format(int(part[name].sum())) for name in COUNTS]
    return [title] + counts + ['%.2f' % (part['seconds'].sum() / 3600)]
