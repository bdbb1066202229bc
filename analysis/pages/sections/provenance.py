"""What computed the results, configuration by configuration."""

from pages.html import Section, code, fill, nothing, table
from records import load, names

HEADS = ['what', 'run', 'training seed', 'config', 'Caffe', 'device', 'commit', 'profile', 'rows']
COLUMNS = ['dataset', 'net', 'seed', 'config', 'caffe', 'device', 'commit', 'profile']
COMMANDS = ['python tools/record.py     # runs/ -> analysis/results/*.csv',
            'python analysis/plot.py    # figures, tables, this page']


def section(tables):
    """A row a configuration."""
    rows = [[cell or names.DASH for cell in row] for row in _rows(tables)]
    return Section('provenance', 'Provenance', 'Provenance', fill(
        'provenance', table=table(HEADS, rows, left=9) if rows else nothing(load.FILLS), commands=code(COMMANDS)))


def _rows(tables):
    for name, what in (('curves', 'training curve'), ('evaluations', 'MC evaluation')):
        recorded = tables[name].assign(seed=tables[name]['seed'].fillna(-1))
        for (dataset, net, seed, config, caffe, device, commit, profile), group in recorded.groupby(COLUMNS):
            yield [what, names.target(dataset, net), 'published weights' if seed < 0 else '%d' % seed, config, caffe,
                   device, commit, profile, '%d' % len(group)]
