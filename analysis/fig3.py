"""Figure 3: LeNet trained on all, 1/4 and 1/32 of MNIST: lenet-ip with Standard, lenet-all with MC dropout."""

import common
import fig2
import style

COLUMNS = (('lenet_ip', 'standard'), ('lenet_all', 'mc'))
RUNS = [(dataset, net, method) for dataset in common.paper.FIGURE3 for net, method in COLUMNS]


def draw(tables):
    """The figure: six panels, a row a fraction, the two panels of a row on one scale."""
    notes = common.shortened(tables, 'fig3', RUNS)
    seeds = common.where(tables['curves'], net='lenet_ip').groupby('dataset')['seed'].nunique()
    notes.append('MC: mean of T softmax outputs, 10 in the paper. The circle marks the lowest error of a curve, the '
                 'number how far its end is above it.'
                 + (' Bands: one standard deviation over seeds; thin: each seed.' if (seeds > 1).any() else ''))
    made, axes = style.figure(3, 2, notes, panel=(3.7, 2.25))
    for row, dataset in zip(axes, common.paper.FIGURE3):
        values = [panel(cell, tables, dataset, *column) for cell, column in zip(row, COLUMNS)]
        _share_scale(row, sum(values, []))
        row[0].set_ylabel('test error, %')
    return style.finish(made)


def panel(axes, tables, dataset, net, method):
    """Draws one curve; gives its errors."""
    axes.set_title('%s, %s' % (common.curve_name(net, method),
                               common.paper.title(dataset) if '_' in dataset else 'all of MNIST'))
    rows = curve(tables, dataset, net, method)
    if not len(rows):
        style.absent(axes, 'not run yet:\npython tools/train.py')
        return []
    mean = style.line(axes, rows, **fig2.look(net, method))
    if len(mean) > 1:
        lowest = mean.loc[mean['mean'].idxmin()]
        axes.plot([lowest['iteration']], [lowest['mean']], marker='o', markersize=9, markerfacecolor='none',
                  markeredgecolor=style.DARK, linestyle='', gid='lowest')
        axes.text(0.97, 0.93, 'end %+.2f over the lowest' % (mean['mean'].iloc[-1] - lowest['mean']),
                  transform=axes.transAxes,
                  ha='right', va='top', fontsize=8, color=style.DARK, gid='rise')
    style.log_iterations(axes)
    return list(rows['error'])


def curve(tables, dataset, net, method):
    """The curve of a panel: no longer than the paper's, where a run of Figure 2 went on."""
    rows = common.curve(tables, dataset, net, method, T=10)
    return rows[rows['iteration'] <= common.paper.schedule('fig3', dataset, net)]


def _share_scale(row, values):
    if values:
        for axes in row:
            if axes.lines:
                style.log_errors(axes, values)


if __name__ == '__main__':
    common.start(__doc__, style.make(draw, 'fig3'))
