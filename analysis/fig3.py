"""Figure 3: LeNet trained on all, 1/4 and 1/32 of MNIST: lenet-ip with Standard, lenet-all with MC dropout."""

from command_line import start
from drawing import style
from records import curves, names, smaller
from records.from_bcnn import paper
from records.load import where

COLUMNS = (('lenet_ip', 'standard'), ('lenet_all', 'mc'))
RUNS = [(dataset, net, method) for dataset in paper.FIGURE3 for net, method in COLUMNS]


def draw(tables):
    """The figure: six panels, a row a fraction, the two panels of a row on one scale."""
    notes = smaller.notes(tables, 'fig3', RUNS)
    seeds = where(tables['curves'], of_paper=True, net='lenet_ip').groupby('dataset')['seed'].nunique()
    notes.append('MC: mean of T softmax outputs, 10 in the paper. The circle marks the lowest error of a curve, the '
                 'number how far its end is above it.'
                 + (' Bands: one standard deviation over seeds; thin: each seed.' if (seeds > 1).any() else ''))
    figure, axes = style.panels(3, 2, notes, panel=(3.7, 2.25))
    for row, dataset in zip(axes, paper.FIGURE3):
        errors = [panel(cell, tables, dataset, *column) for cell, column in zip(row, COLUMNS)]
        _share_scale(row, sum(errors, []))
        row[0].set_ylabel('test error, %')
    return style.finish(figure)


def panel(axes, tables, dataset, net, method):
    """Draws one curve; gives its errors."""
    axes.set_title('%s, %s' % (names.curve(net, method), paper.title(dataset) if '_' in dataset else 'all of MNIST'))
    rows = curves.of_paper(tables, 'fig3', dataset, net, method)
    if not len(rows):
        style.absent(axes, 'not run yet:\npython tools/train.py')
        return []
    mean = style.line(axes, rows, **style.curve_look(net, method))
    if len(mean) > 1:
        lowest = mean.loc[mean['mean'].idxmin()]
        axes.plot([lowest['iteration']], [lowest['mean']], marker='o', markersize=9, markerfacecolor='none',
                  markeredgecolor=style.DARK, linestyle='', gid='lowest')
        axes.text(0.97, 0.93, 'end %+.2f over the lowest' % (mean['mean'].iloc[-1] - lowest['mean']),
                  transform=axes.transAxes,
                  ha='right', va='top', fontsize=8, color=style.DARK, gid='rise')
    style.log_iterations(axes)
    return list(rows['error'])


def _share_scale(row, errors):
    if errors:
        for axes in row:
            if axes.lines:
                style.log_errors(axes, errors)


if __name__ == '__main__':
    start(__doc__, style.maker(draw, 'fig3'))
