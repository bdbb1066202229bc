"""Figure 4: test error against the number of averaged passes T, with one std, and Standard dropout.

The paper shows Augmented-DSN; the other nets of Table 1 are drawn beside it where they were evaluated.
"""

from command_line import start
from drawing import style
from records import evaluations, smaller
from records.from_bcnn import paper


def draw(tables):
    """The figure: a panel a net of Table 1 with an evaluation; Augmented-DSN always."""
    every = [shown for shown in evaluations.by_passes(tables) if shown.group is not None or shown.net == 'dsn_aug']
    notes = [note for shown in every for note in notes_for(shown)]
    notes.append('Line: mean of the repetitions (probabilities averaged); band: one standard deviation. Grey: '
                 'published in the paper (T = %d).' % paper.of_net('cifar10', 'dsn_aug').T)
    width = (5.2, 3.9, 3.2, 2.7)[min(len(every), 4) - 1]
    figure, (row,) = style.panels(1, len(every), notes, panel=(width, 3.1), legend=1)
    for axes, shown in zip(row, every):
        panel(axes, tables, shown)
    row[0].set_ylabel('test error, %')
    return style.finish(figure, columns=4)


def notes_for(shown):
    """How an evaluation is smaller than the paper's."""
    if shown.group is None:
        return ['%s: not evaluated yet.' % shown.name]
    marks = smaller.evaluation(shown.group)
    if shown.of_paper and not on_scale(shown.net, evaluations.error_of_standard(shown.group)):
        known = paper.PUBLISHED[shown.net]
        marks.append('the paper has %.2f with Standard and %.2f with MC dropout, off this scale' % (
            known.standard, known.mc))
    return ['%s: %s.' % (shown.name, '; '.join(marks))] if marks else []


def panel(axes, tables, shown):
    """Draws the convergence of one net."""
    axes.set_title(title(shown))
    if shown.group is None:
        style.absent(axes, 'not evaluated yet:\npython tools/mc_eval.py --net %s' % shown.net)
        return
    mean = evaluations.passes(tables, shown.group)
    axes.fill_between(mean['t'], mean['mean'] - mean['std'], mean['mean'] + mean['std'], color=style.BLUE,
                      alpha=style.BAND, linewidth=0, gid='band')
    axes.plot(mean['t'], mean['mean'], color=style.BLUE, linestyle=style.MC, label='MC dropout', gid='mc')
    level = evaluations.error_of_standard(shown.group)
    axes.axhline(level, color=style.DARK, linestyle=style.STANDARD,
                 label='Standard dropout', gid='standard')
    if shown.of_paper and on_scale(shown.net, level):
        _published(axes, shown.net)
    _zoom(axes, mean)
    axes.set_xlim(0, mean['t'].max() * 1.02)
    axes.set_xlabel('passes T')


def title(shown):
    """The title of a panel, in two lines where it says more than the net."""
    if shown.of_paper:
        return shown.name + ('' if shown.net == 'dsn_aug' else '\n(not in the paper\'s figure)')
    return shown.name.replace(' from', '\nfrom')


def _zoom(axes, mean, first=3):
    """Leaves the first passes out of the scale, in numbers instead: the gain is small beside them."""
    if len(mean) > 2 * first and mean['mean'].iloc[0] > mean['mean'].iloc[first]:
        low, _ = axes.get_ylim()
        axes.set_ylim(low,
                      max([mean['mean'].iloc[first - 1]] + [line.get_ydata()[0] for line in axes.lines[1:]]) * 1.01)
        axes.text(0.1, 0.97, 'T = 1: %.2f%%' % mean['mean'].iloc[0], transform=axes.transAxes, va='top', fontsize=8,
                  color=style.DARK, gid='first')


def on_scale(net, standard):
    """Whether the paper's errors can be drawn beside ours: far away, they would leave nothing else to see."""
    return 0.5 * standard < paper.PUBLISHED[net].standard < 2 * standard


def _published(axes, net):
    known = paper.PUBLISHED[net]
    for value, linestyle, name in ((known.mc, style.MC, 'paper, MC'),
                                   (known.standard, style.STANDARD, 'paper, Standard')):
        axes.axhline(value, color='#b5b5b5', linestyle=linestyle, linewidth=1.0, label=name, zorder=1, gid='paper')


if __name__ == '__main__':
    start(__doc__, style.maker(draw, 'fig4'))
