"""Figure 4: test error against the number of averaged passes T, with one std, and Standard dropout.

The paper shows Augmented-DSN; the other nets of Table 1 are drawn beside it where they were evaluated.
"""

import common
import style


def draw(tables):
    """The figure: a panel a net of Table 1 with an evaluation; Augmented-DSN always."""
    pairs = [('cifar10', net) for net in reversed(common.paper.TABLE1)]
    pairs = [pair for pair in pairs if pair[1] == 'dsn_aug' or chosen_of(tables, *pair)]
    notes = [note for pair in pairs for note in notes_for(tables, *pair)]
    notes.append('Line: mean of the repetitions (probabilities averaged); band: one standard deviation. Grey: '
                 'published in the paper (T = 100).')
    made, (row,) = style.figure(1, len(pairs), notes, panel=((5.2, 3.9, 3.2)[len(pairs) - 1], 3.1), legend=1)
    for axes, pair in zip(row, pairs):
        panel(axes, tables, *pair)
    row[0].set_ylabel('test error, %')
    return style.finish(made, columns=4)


def chosen_of(tables, dataset, net):
    """[the evaluation to draw], [] where there is none with its errors after each pass."""
    return [group for group in common.evaluations(tables, dataset, net)[:1] if len(passes(tables, group))]


def notes_for(tables, dataset, net):
    """How an evaluation is smaller than the paper's."""
    chosen = chosen_of(tables, dataset, net)
    if not chosen:
        return ['%s: not evaluated yet.' % common.paper.title(net)]
    marks = shorter(chosen[0])
    if not on_scale(net, error_of_standard(chosen[0])):
        known = common.paper.PUBLISHED[net]
        marks.append('the paper has %.2f with Standard and %.2f with MC dropout, off this scale' % (
            known.standard, known.mc))
    return ['%s: %s.' % (common.paper.title(net), '; '.join(marks))] if marks else []


def shorter(group):
    """['300 of 200,000 iterations (0.15%)', ...]: where an evaluation is smaller than the paper's."""
    row, mc = group.iloc[0], common.where(group, method='mc', average='probs')
    marks = []
    full = common.paper.schedule(row['experiment'], row['dataset'], row['net'])
    if row['weights'] == 'trained':
        marks.append(common.length(row['iterations'], full))
    elif row['weights'] == 'unknown':
        marks.append('weights of unknown training')
    if row['n'] < common.paper.TEST_IMAGES:
        marks.append('%s of %s test images' % (common.count(row['n']), common.count(common.paper.TEST_IMAGES)))
    run = common.paper.run_of(row['experiment'], row['dataset'], row['net'])
    if run and len(mc):
        if mc['T'].max() < run.T:
            marks.append('T = %d of %d' % (mc['T'].max(), run.T))
        if len(mc) < run.repetitions:
            marks.append('%d of %d repetitions' % (len(mc), run.repetitions))
    return [mark for mark in marks if mark]


def panel(axes, tables, dataset, net):
    """Draws the convergence of one net."""
    axes.set_title(common.paper.title(net) + ('' if net == 'dsn_aug' else ' (not in the paper\'s figure)'))
    chosen = chosen_of(tables, dataset, net)
    if not chosen:
        style.absent(axes, 'not evaluated yet:\npython tools/mc_eval.py --net %s' % net)
        return
    group = chosen[0]
    mean = passes(tables, group)
    axes.fill_between(mean['t'], mean['mean'] - mean['std'], mean['mean'] + mean['std'], color=style.BLUE,
                      alpha=style.BAND, linewidth=0, gid='band')
    axes.plot(mean['t'], mean['mean'], color=style.BLUE, linestyle=style.MC, label='MC dropout', gid='mc')
    level = error_of_standard(group)
    axes.axhline(level, color=style.DARK, linestyle=style.STANDARD,
                 label='Standard dropout', gid='standard')
    if on_scale(net, level):
        _published(axes, net)
    _zoom(axes, mean)
    axes.set_xlim(0, mean['t'].max() * 1.02)
    axes.set_xlabel('passes T')


def error_of_standard(group):
    """The error of Standard dropout in an evaluation, in percent."""
    row = common.where(group, method='standard').iloc[0]
    return 100.0 * row['errors'] / row['n']


def passes(tables, group):
    """Mean and std over the repetitions after each pass of an evaluation."""
    rows = common.where(common.of_evaluations(tables['convergence'], [group]), average='probs')
    rows = rows.assign(error=100.0 * rows['errors'] / rows['n'])
    return common.over_seeds(rows, x='t')


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
    return 0.5 * standard < common.paper.PUBLISHED[net].standard < 2 * standard


def _published(axes, net):
    known = common.paper.PUBLISHED[net]
    for value, linestyle, name in ((known.mc, style.MC, 'paper, MC'),
                                   (known.standard, style.STANDARD, 'paper, Standard')):
        axes.axhline(value, color='#b5b5b5', linestyle=linestyle, linewidth=1.0, label=name, zorder=1, gid='paper')


if __name__ == '__main__':
    common.start(__doc__, style.make(draw, 'fig4'))
