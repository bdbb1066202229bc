"""Risk-coverage: the error on the images that are kept when the most uncertain ones are rejected, by each measure."""

from command_line import start
from drawing import panels_of_nets, style
from records import evaluations, names, uncertainty

# (method, measure): name and look. Lightness, line and marker all differ.
MEASURES = (
    (('standard', 'max_prob'), 'Standard: 1 - max p', dict(color=style.DARK, linestyle='--')),
    (('standard', 'entropy'), 'Standard: entropy', dict(color='#8a8a8a', linestyle='--')),
    (('mc', 'max_prob'), 'MC: 1 - max p', dict(color=style.BLUE, linestyle='-', marker='o', markevery=5)),
    (('mc', 'entropy'), 'MC: entropy', dict(color='#3a86d8', linestyle='-')),
    (('mc', 'mutual_information'), 'MC: mutual information',
     dict(color='#d1352b', linestyle='-.', marker='^', markevery=5)),
    (('mc', 'variation_ratio'), 'MC: variation ratio', dict(color='#e0912f', linestyle=':', marker='s', markevery=5)))


def draw(tables):
    """The figure: a panel a net that was evaluated."""
    targets = evaluations.targets(tables)
    figure, cells = panels_of_nets.grid(targets, panels_of_nets.notes(tables, targets, panels_of_nets.hinge(targets) + [
        'Lower is better: a good measure of uncertainty rejects the errors first. Images of equal uncertainty are '
        'rejected at random '
        '(expected value). Bands: one standard deviation over repetitions and seeds.']),
        legend=2 if len(targets) > 1 else 3)
    for axes, target in zip(cells, targets):
        panel(axes, tables, *target)
    return style.finish(figure, columns=3 if len(targets) > 1 else 2)


def panel(axes, tables, dataset, net):
    """Draws a line a measure."""
    axes.set_title(names.target(dataset, net))
    groups = evaluations.chosen(tables, dataset, net)
    for (method, measure), label, look in MEASURES:
        rows = uncertainty.error_kept(tables, groups, method, measure)
        if len(rows):
            style.band(axes, rows, 'rejected', look, label)
    axes.set_xlabel('images rejected, %')
    axes.set_ylabel('error of those kept, %')
    axes.set_xlim(0, 95)
    axes.set_ylim(bottom=0)


if __name__ == '__main__':
    start(__doc__, style.maker(draw, 'risk_coverage'))
