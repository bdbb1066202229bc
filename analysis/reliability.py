"""Reliability diagrams: accuracy against confidence, with the expected calibration error (ECE)."""

from command_line import start
from drawing import panels_of_nets, style
from records import evaluations, names, uncertainty

LOOKS = (('standard', 'Standard',
          dict(color=style.DARK, linestyle=style.STANDARD, marker='s', markerfacecolor='white')),
         ('mc', 'MC', dict(color=style.BLUE, linestyle=style.MC, marker='o')))


def draw(tables):
    """The figure: a panel a net that was evaluated."""
    every = evaluations.targets(tables)
    targets = [target for target in every if target[1] not in uncertainty.HINGE]
    left_out = ['Left out: %s. %s' % (', '.join(names.target(*target) for target in every if target not in targets),
                                      uncertainty.NO_LIKELIHOOD)] if len(targets) < len(every) else []
    figure, cells = panels_of_nets.grid(targets, panels_of_nets.notes(tables, targets, [
        'A net that is right as often as it is confident lies on the diagonal; below it, it is too sure of itself. '
        'Only bins with 10 '
        'images or more are drawn; the ECE counts all. Bands: one standard deviation over repetitions and seeds.']
        + left_out))
    for axes, target in zip(cells, targets):
        panel(axes, tables, *target)
    return style.finish(figure)


def panel(axes, tables, dataset, net):
    """Draws both methods of a net."""
    axes.set_title(names.target(dataset, net))
    axes.plot([0, 1], [0, 1], color='#b5b5b5', linewidth=1, gid='diagonal')
    groups = evaluations.chosen(tables, dataset, net)
    for method, label, look in LOOKS:
        style.band(axes, uncertainty.calibration_bins(tables, groups, method), 'confidence', look,
                   '%s, ECE %.3f' % (label, uncertainty.calibration_error(groups, method)))
    axes.set_xlabel('confidence')
    axes.set_ylabel('accuracy')
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 1.02)
    axes.legend(loc='lower right')


if __name__ == '__main__':
    start(__doc__, style.maker(draw, 'reliability'))
