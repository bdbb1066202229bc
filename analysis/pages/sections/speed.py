"""The report's section on speed: the benchmark's table, chart and growth, with who is ahead said by code."""

from drawing import bench_chart, bench_growth
from pages.html import Html, Section, code, figure, fill, items, join, put, small
from pages.html import table as html_table
from records import names
from records.load import where
from records.names import DASH

PARTS = (('MC', 'MC evaluation'), ('training', 'a training step'), ('processes', 'processes'),
         ('settings', 'settings that were tried'), ('data', 'data preparation'), ('start-up', 'start-up'),
         ('limit', 'the machine itself'))


COMMANDS = ['python tools/bench.py --peers    # once', 'python tools/bench.py --record',
            'python tools/bench.py --growth --record']


def section(tables, pictures):
    """The chart, who is ahead, the tables, the growth."""
    machines = sorted(set(tables['bench']['machine']))
    return Section('speed', 'Speed', 'How fast', fill(
        'speed', machines=small('; '.join(machines)) if machines else Html(''),
        chart=figure(pictures['bench_chart'], alt_chart(tables),
                     'MC evaluation: time an image and pass, ours and what people would use instead.'),
        ahead=items([words(*line) for line in ahead(tables)]),
        tables=join([table(tables, *part) for part in PARTS]), layers=layers(tables),
        growth=figure(pictures['bench_growth'], alt_growth(tables),
                      'Time grows with T and with the images; memory should grow with neither.'),
        commands=code(COMMANDS)))


def table(tables, part, title):
    """The rows of one part of the benchmark."""
    rows = where(tables['bench'], part=part)
    if not len(rows):
        return Html('')
    cells = [cells_of(row) for _, row in rows.sort_values(['subject', 'T', 'value']).iterrows()]
    heads = ['what', 'T', 'way', 'median', 'unit', 'least', 'most', 'times',
             'at equal accuracy', 'of sgemm', 'of memory', 'note']
    return put('<h3>$title</h3>$table', title=title[0].upper() + title[1:], table=html_table(heads, cells, left=3))


def layers(tables):
    """Where the time of an MC pass goes: a line a net, its sampled layers with the longest first."""
    rows, lines = where(tables['layers'], part='sampled'), []
    for net in sorted(set(rows['net'])):
        here = where(rows, net=net).sort_values('time', ascending=False)
        shares = here.groupby('type')['share'].sum().sort_values(ascending=False)
        lines.append([bench_chart.title(net), bench_chart.three_digits(here['time'].sum()),
                      ', '.join('%s %.0f%%' % pair for pair in zip(here['layer'][:4], here['share'][:4])),
                      ', '.join('%s %.0f%%' % pair for pair in list(shares.items())[:3])])
    if not lines:
        return Html('')
    heads = ['net', u'\u00b5s a pass', 'longest layers', 'by type of layer']
    return put('<h3>Where the time of a pass goes</h3>$table', table=html_table(heads, lines, left=4))


def cells_of(row):
    """A row of the benchmark as texts."""
    def number(name, form='%.4g'):
        return form % row[name] if row[name] == row[name] else DASH

    def share(name):
        return names.percent(row[name]) if row[name] == row[name] else DASH

    return [row['subject'] or DASH, number('T', '%d'), row['way'], number('value'), row['unit'], number('low'),
            number('high'), number('times', '%.2f'), number('equal', '%.2f'),
            share('sgemm'), share('memory'), row['note'] or DASH]


# --- who is ahead -----------------------------------------------------------------------------------

def ahead(tables):
    """[(subject, T, our way, the fastest other or None, times)]; below 1 the other is ahead.

    Our ways are compared with the peers; adaptive, which samples less, with our other ways too. Antithetic masks at
    equal accuracy: by time times variance.
    """
    rows, lines = bench_chart.evaluations(tables), []
    subjects, passes = bench_chart.panels_of(rows)
    for subject, T in [(subject, T) for subject in subjects for T in passes]:
        here = bench_chart.ranked(where(rows, subject=subject, T=T))
        for way in ('stream', 'antithetic', 'adaptive'):
            mine = where(here, way=way)
            mates = ('adaptive', 'adaptive, pairs') if way == 'adaptive' else bench_chart.OURS + ('naive',)
            others, what = here[~here['way'].isin(mates)], 'equal' if way == 'antithetic' else 'value'
            if len(mine) and len(others):
                other = others.iloc[0]
                lines.append((subject, T, way, other['way'], other[what] / mine[what].iloc[0]))
            elif len(mine):
                lines.append((subject, T, way, None, None))
    return lines


def words(subject, T, way, other, times):
    """'lenet-ip on MNIST, T = 100: stream is 20 times as fast as PyTorch, the fastest of the others'"""
    start = '%s, T = %d: %s ' % (bench_chart.title(subject), T, way)
    if other is None:
        return start + 'was measured, but nothing to compare it with'
    if times >= 1:
        return start + 'is %.3g times as fast as %s, the fastest of the others%s' % (
            times, other, ', at equal accuracy' if way == 'antithetic' else '')
    return start + 'is not ahead: %s takes %.3g of its time' % (other, times)


# --- for those who do not see the pictures ------------------------------------------------------------

def alt_chart(tables):
    said = '; '.join(words(*line) for line in ahead(tables)) or 'Nothing measured yet'
    return 'Bars of time an image and pass. %s.' % said


def alt_growth(tables):
    flat = [(name, bench_growth.flatness(tables['growth'], vary)) for vary, name in bench_growth.AXES]
    said = ['over all %s the largest process takes at most %.2f times its least memory' % pair
            for pair in flat if pair[1]]
    return 'Seconds and memory against T and images. ' + ('; '.join(said) or 'Nothing measured yet') + '.'
