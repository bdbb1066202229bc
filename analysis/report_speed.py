"""The report's section on speed: the benchmark's table, chart and growth, with who is ahead said by code."""

import bench_chart
import bench_growth
import common
import page

DASH = u'\u2013'
PARTS = (('MC', 'MC evaluation'), ('training', 'a training step'), ('processes', 'processes'),
         ('settings', 'settings that were tried'), ('data', 'data preparation'), ('start-up', 'start-up'),
         ('limit', 'the machine itself'))


def section(tables, pictures):
    """The whole section."""
    body = [page.figure(pictures['bench_chart'], alt_chart(tables),
                        'MC evaluation: time an image and pass, ours and what people would use instead.')]
    body.append(ahead_list(tables))
    body += [table(tables, *part) for part in PARTS]
    body.append(layers(tables))
    body.append('<h3>How cost grows</h3>' + page.figure(
        pictures['bench_growth'], alt_growth(tables),
        'Time grows with T and with the images; memory should grow with neither.'))
    machines = sorted(set(tables['bench']['machine']))
    return ('<section id="speed"><h2>How fast</h2><p>Everything was measured in one run, in interleaved rounds, with '
            'one thread each; values are medians. <em>Times</em>: how many times as long as this project\'s way. The '
            'last two columns: the arithmetic done and the bytes moved between layers, as shares of the machine\'s own '
            'rate of matrix products and of copying memory. Peers compute the same: their Standard probabilities were '
            'checked to agree to 0.0001, and their passes to have the same means and variances.</p>%s%s<h3>How to '
            'make it again</h3>%s</section>'
            % ('<p class="small">%s</p>' % page.text('; '.join(machines)) if machines else '', '\n'.join(body),
               page.code(['python tools/bench.py --peers    # once', 'python tools/bench.py --record',
                          'python tools/bench.py --growth --record'])))


def table(tables, part, title):
    """The rows of one part of the benchmark."""
    rows = common.where(tables['bench'], part=part)
    if not len(rows):
        return ''
    cells = [cells_of(row) for _, row in rows.sort_values(['subject', 'T', 'value']).iterrows()]
    heads = ['what', 'T', 'way', 'median', 'unit', 'least', 'most', 'times', 'of sgemm', 'of memory', 'note']
    return '<h3>%s</h3>%s' % (page.text(title[0].upper() + title[1:]), page.table(heads, cells, left=3))


def layers(tables):
    """Where the time of an MC pass goes: a line a net, its sampled layers with the longest first."""
    rows, lines = common.where(tables['layers'], part='sampled'), []
    for net in sorted(set(rows['net'])):
        here = common.where(rows, net=net).sort_values('time', ascending=False)
        shares = here.groupby('type')['share'].sum().sort_values(ascending=False)
        lines.append([bench_chart.title(net), bench_chart.figure(here['time'].sum()),
                      ', '.join('%s %.0f%%' % pair for pair in zip(here['layer'][:4], here['share'][:4])),
                      ', '.join('%s %.0f%%' % pair for pair in list(shares.items())[:3])])
    if not lines:
        return ''
    heads = ['net', u'\u00b5s a pass', 'longest layers', 'by type of layer']
    return '<h3>Where the time of a pass goes</h3>%s' % page.table(heads, lines, left=4)


def cells_of(row):
    """A row of the benchmark as texts."""
    def number(name, form='%.4g'):
        return form % row[name] if row[name] == row[name] else DASH

    def share(name):
        return common.percent(row[name]) if row[name] == row[name] else DASH

    return [row['subject'] or DASH, number('T', '%d'), row['way'], number('value'), row['unit'], number('low'),
            number('high'), number('times', '%.2f'), share('sgemm'), share('memory'), row['note'] or DASH]


# --- who is ahead -----------------------------------------------------------------------------------

def ahead(tables):
    """[(subject, T, our way, the fastest other or None, times)]; below 1 the other is ahead.

    Our ways are compared with the peers; adaptive, which samples less, with our other ways too.
    """
    rows, found = bench_chart.evaluations(tables), []
    subjects, passes = bench_chart.names(rows)
    for subject, T in [(subject, T) for subject in subjects for T in passes]:
        here = bench_chart.ranked(common.where(rows, subject=subject, T=T))
        for way in ('stream', 'adaptive'):
            mine = common.where(here, way=way)
            mates = (way,) if way == 'adaptive' else bench_chart.OURS + ('naive',)
            others = here[~here['way'].isin(mates)]
            if len(mine) and len(others):
                other = others.iloc[0]
                found.append((subject, T, way, other['way'], other['value'] / mine['value'].iloc[0]))
            elif len(mine):
                found.append((subject, T, way, None, None))
    return found


def ahead_list(tables):
    """A sentence a net and T."""
    return '<ul>%s</ul>' % ''.join('<li>%s</li>' % page.text(words(*one)) for one in ahead(tables))


def words(subject, T, way, other, times):
    """'lenet-ip on MNIST, T = 100: stream is 20 times as fast as PyTorch, the fastest of the others'"""
    start = '%s, T = %d: %s ' % (bench_chart.title(subject), T, way)
    if other is None:
        return start + 'was measured, but nothing to compare it with'
    if times >= 1:
        return start + 'is %.3g times as fast as %s, the fastest of the others' % (times, other)
    return start + 'is not ahead: %s takes %.3g of its time' % (other, times)


# --- for those who do not see the pictures ------------------------------------------------------------

def alt_chart(tables):
    found = ahead(tables)
    said = '; '.join(words(*one) for one in found) or 'Nothing measured yet'
    return 'Bars of time an image and pass. %s.' % said


def alt_growth(tables):
    flat = [(name, bench_growth.flatness(tables['growth'], vary)) for vary, name in bench_growth.AXES]
    said = ['over all %s the largest process takes at most %.2f times its least memory' % pair
            for pair in flat if pair[1]]
    return 'Seconds and memory against T and images. ' + ('; '.join(said) or 'Nothing measured yet') + '.'
