"""Speed of MC evaluation beside what people would use instead: microseconds an image and pass, a panel a net and T."""

from matplotlib.ticker import FuncFormatter, NullFormatter

from drawing import style
from records import names
from records.load import where

OURS = ('adaptive', 'adaptive, pairs', 'antithetic', 'stream', 'replicate')
FILL = 'not measured yet:\npython tools/bench.py --record'


def draw(tables):
    """The figure: bars of all ways, shortest is best, what could not be measured in words."""
    rows = evaluations(tables)
    subjects, passes = panels_of(rows)
    figure, axes = style.panels(len(passes), len(subjects), notes(rows), panel=(3.9, 2.7))
    for line, T in zip(axes, passes):
        for cell, subject in zip(line, subjects):
            panel(cell, where(rows, subject=subject, T=T), subject, T)
    return style.finish(figure)


def evaluations(tables):
    """The rows of MC evaluation."""
    return where(tables['bench'], part='MC')


def panels_of(rows):
    """([subject], [T]) in the order of the panels; one empty panel where nothing is measured."""
    order = ['mnist/lenet_ip', 'mnist/lenet_all', 'cifar10/nin']
    subjects = sorted(set(rows['subject']), key=lambda name: (order.index(name) if name in order else len(order), name))
    return subjects or [None], sorted(set(int(T) for T in rows['T'])) or [None]


def notes(rows):
    """What the bars are."""
    machines = sorted(set(rows['machine']))
    return ['Median of interleaved rounds, one thread, same weights and images; whisker: least and most of the rounds. '
            'Logarithmic. Dark: this project; naive: a loop over full passes in Caffe.'] + missing(rows) + machines


def missing(rows):
    """['Not measured: baal (lenet-ip on MNIST, T = 20): not installed ...']"""
    reasons = {}
    for _, row in rows[rows['value'].isnull()].sort_values(['way', 'subject', 'T']).iterrows():
        reasons.setdefault((row['way'], row['note']), []).append('%s, T = %d' % (title(row['subject']), row['T']))
    return ['Not measured: %s (%s): %s.' % (way, '; '.join(cases), note)
            for (way, note), cases in sorted(reasons.items())]


def ranked(rows):
    """The rows that were measured, fastest first."""
    return rows[rows['value'].notnull()].sort_values(['value', 'way'])


def panel(axes, rows, subject, T):
    """Draws the ways of one net at one T."""
    measured = ranked(rows)
    if not len(measured):
        style.absent(axes, FILL)
        return
    axes.set_title('%s, T = %d' % (title(subject), T))
    places = range(len(measured))
    axes.barh(list(places), list(measured['value']), color=[colour(way) for way in measured['way']], height=0.7,
              xerr=[list(measured['value'] - measured['low'].fillna(measured['value'])),
                    list(measured['high'].fillna(measured['value']) - measured['value'])],
              error_kw={'elinewidth': 0.8, 'ecolor': style.GREY})
    axes.set_yticks(list(places))
    axes.set_yticklabels(list(measured['way']))
    axes.invert_yaxis()
    axes.set_xscale('log')
    axes.set_xlim(measured['value'].min() / 3.0, measured['value'].max() * 6.0)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: style.short(x)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(u'\u00b5s an image and pass')
    for place, value, high in zip(places, measured['value'], measured['high'].fillna(measured['value'])):
        axes.text(max(value, high) * 1.1, place, three_digits(value), va='center', fontsize=7.5, color=style.DARK,
                  gid='value')


def three_digits(value):
    """'4.63', '215', '3,736'"""
    return names.count(round(value)) if value >= 1000 else '%.3g' % value


def colour(way):
    return style.BLUE if way in OURS else '#7d93cf' if way == 'naive' else '#c9c9c9'


def title(subject):
    """'lenet-ip on MNIST' of 'mnist/lenet_ip'"""
    return names.target(*subject.split('/'))
