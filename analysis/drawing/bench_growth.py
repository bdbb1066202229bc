"""How the cost of an MC evaluation grows: seconds and memory against T and against the number of images."""

from matplotlib.ticker import FuncFormatter, NullFormatter

from drawing import style
from records import names
from records.from_bcnn import paper
from records.load import where

FILL = 'not measured yet:\npython tools/bench.py --growth --record'
AXES = (('T', 'passes T'), ('images', 'images'))


def draw(tables):
    """The figure: seconds above, memory below; left against T, right against images."""
    rows = tables['growth']
    figure, axes = style.panels(2, 2, notes(rows), panel=(4.2, 2.5), legend=1)
    for k, (vary, name) in enumerate(AXES):
        part = where(rows, vary=vary)
        for line, column, words in zip(axes, ('seconds', 'megabytes'), ('seconds', 'largest process, MB')):
            panel(line[k], part, vary, column)
            line[k].set_xlabel(name)
            line[k].set_ylabel(words)
    return style.finish(figure, columns=4)


def notes(rows):
    """What was run."""
    said = ['Whole mc_eval.py commands, start-up and Standard passes included; median of the rounds, both axes of the '
            'upper row logarithmic. Solid: one process; dashed: two.']
    for vary, other, word in (('T', 'images', 'images'), ('images', 'T', 'passes')):
        fixed = sorted(set(where(rows, vary=vary)[other]))
        if fixed:
            said.append('Against %s: %s %s, batches of %s.' % (
                vary, ', '.join(names.count(number) for number in fixed), word,
                ', '.join(names.count(size) for size in sorted(set(rows['batch'])))))
    return said + sorted(set(rows['machine']))


def panel(axes, rows, vary, column):
    """Draws one quantity for all nets and numbers of processes."""
    if not len(rows):
        style.absent(axes, FILL)
        return
    for (net, jobs), group in rows.groupby(['net', 'jobs']):
        group = group.sort_values(vary)
        axes.plot(list(group[vary]), list(group[column]), color=style.COLOURS.get(net, style.DARK),
                  marker=style.MARKERS.get(net, 'o'), linestyle='-' if jobs == 1 else '--',
                  label='%s, --jobs %d' % (paper.title(net), jobs), gid='%s %d' % (net, jobs))
    axes.set_xscale('log')
    if column == 'seconds':
        axes.set_yscale('log')
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: '%g' % y))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, rows[column].max() * 1.25)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: style.short(x)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def flatness(rows, vary):
    """How many times the least memory the most is, along one axis: the worst of all nets and numbers of processes."""
    ratios = [group['megabytes'].max() / group['megabytes'].min()
              for _, group in where(rows, vary=vary).groupby(['net', 'jobs'])]
    return max(ratios) if ratios else None
