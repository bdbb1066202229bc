"""Risk-coverage: the error on the images that are kept when the most uncertain ones are rejected, by each measure."""

import common
import reliability
import style

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
    pairs = common.evaluated(tables)
    made, cells = reliability.grid(pairs, reliability.notes(tables, pairs, [
        'Lower is better: a good measure of uncertainty rejects the errors first. Images of equal uncertainty are '
        'rejected at random '
        '(expected value). Bands: one standard deviation over repetitions and seeds.']),
        legend=2 if len(pairs) > 1 else 3)
    for axes, pair in zip(cells, pairs):
        panel(axes, tables, *pair)
    return style.finish(made, columns=3 if len(pairs) > 1 else 2)


def panel(axes, tables, dataset, net):
    """Draws a line a measure."""
    axes.set_title(reliability.name(dataset, net))
    chosen = common.evaluations(tables, dataset, net)
    for (method, measure), label, look in MEASURES:
        rows = points(tables, chosen, method, measure)
        if len(rows):
            reliability.band(axes, rows, 'rejected', look, label)
    axes.set_xlabel('images rejected, %')
    axes.set_ylabel('error of those kept, %')
    axes.set_xlim(0, 95)
    axes.set_ylim(bottom=0)


def points(tables, chosen, method, measure):
    """Mean and std of the error kept at each share rejected, over repetitions and seeds."""
    rows = common.where(reliability.rows_of(common.of_evaluations(tables['risk'], chosen), method), measure=measure)
    groups = (100.0 * rows['errors_kept'] / rows['kept']).groupby(rows['rejected'])
    return common.pd.DataFrame({'mean': groups.mean(), 'std': groups.std(ddof=1).fillna(0.0)}).reset_index()


if __name__ == '__main__':
    common.start(__doc__, style.make(draw, 'risk_coverage'))
