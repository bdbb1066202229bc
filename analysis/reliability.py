"""Reliability diagrams: accuracy against confidence, with the expected calibration error (ECE)."""

import common
import fig4
import style

LOOKS = (('standard', 'Standard',
          dict(color=style.DARK, linestyle=style.STANDARD, marker='s', markerfacecolor='white')),
         ('mc', 'MC', dict(color=style.BLUE, linestyle=style.MC, marker='o')))


def draw(tables):
    """The figure: a panel a net that was evaluated."""
    pairs = common.evaluated(tables)
    made, cells = grid(pairs, notes(tables, pairs, [
        'A net that is right as often as it is confident lies on the diagonal; below it, it is too sure of itself. '
        'Only bins with 10 '
        'images or more are drawn; the ECE counts all. Bands: one standard deviation over repetitions and seeds.']))
    for axes, pair in zip(cells, pairs):
        panel(axes, tables, *pair)
    return style.finish(made)


def grid(pairs, small_print, legend=0):
    """(figure, its panels), up to three in a row; one that says what is missing where there are none."""
    columns = min(max(len(pairs), 1), 3)
    rows = -(-max(len(pairs), 1) // columns)
    made, axes = style.figure(rows, columns, small_print, panel=(3.3 if columns > 1 else 4.8, 3.2),
                              legend=legend if pairs else 0)
    cells = [cell for row in axes for cell in row]
    for cell in cells[len(pairs):] if pairs else []:
        cell.set_visible(False)
    if not pairs:
        style.absent(cells[0], 'no MC evaluation recorded yet\npython tools/mc_eval.py, then\n%s' % common.FILLS)
    return made, cells


def notes(tables, pairs, more):
    """Small print: how each evaluation is smaller than the paper's, what is left out, then `more`."""
    small = []
    for dataset, net in pairs:
        marks = fig4.shorter(common.evaluations(tables, dataset, net)[0])
        small += ['%s: %s.' % (name(dataset, net), '; '.join(marks))] if marks else []
    for dataset, net in common.left_out(tables):
        n = common.evaluations(tables, dataset, net)[0]['n'].max()
        small.append('Left out: %s, evaluated on %s images only.' % (name(dataset, net), common.count(n)))
    return small + (more if pairs else [])


def name(dataset, net):
    return '%s on %s' % (common.paper.title(net), common.paper.title(dataset))


def panel(axes, tables, dataset, net):
    """Draws both methods of a net."""
    axes.set_title(name(dataset, net))
    axes.plot([0, 1], [0, 1], color='#b5b5b5', linewidth=1, gid='diagonal')
    chosen = common.evaluations(tables, dataset, net)
    for method, label, look in LOOKS:
        bins = points(tables, chosen, method)
        ece = rows_of(common.pd.concat(chosen), method)['ece'].mean()
        band(axes, bins, 'confidence', look, '%s, ECE %.3f' % (label, ece))
    axes.set_xlabel('confidence')
    axes.set_ylabel('accuracy')
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    axes.legend(loc='lower right')


def rows_of(table, method):
    return table[(table['method'] == method) & (table['average'] != 'scores')]


def points(tables, chosen, method, least=10):
    """Mean confidence and accuracy of each bin over repetitions and seeds; bins with few images are left out."""
    rows = rows_of(common.of_evaluations(tables['calibration'], chosen), method)
    rows = rows[rows['count'] >= least]
    groups = rows.groupby('bin')
    return common.pd.DataFrame({'confidence': groups['confidence'].mean(), 'mean': groups['accuracy'].mean(),
                                'std': groups['accuracy'].std(ddof=1).fillna(0.0)})


def band(axes, rows, x, look, label):
    """A line through the means, with a band of one std where there is any."""
    if (rows['std'] > 0).any():
        axes.fill_between(rows[x], rows['mean'] - rows['std'], rows['mean'] + rows['std'], color=look['color'],
                          alpha=style.BAND,
                          linewidth=0, gid='band %s' % label)
    axes.plot(rows[x], rows['mean'], label=label, **look)


if __name__ == '__main__':
    common.start(__doc__, style.make(draw, 'reliability'))
