"""Beyond the paper, dropout probability: errors, calibration and mutual information against p."""

from drawing import style
from records import names
from records import open_questions as runs
from records.from_bcnn import beyond

QUESTION = 'probability'
LOOKS = (('standard', 'Standard',
          dict(color=style.DARK, linestyle=style.STANDARD, marker='s', markerfacecolor='white')),
         ('mc', 'MC', dict(color=style.BLUE, linestyle=style.MC, marker='o')))
QUALITIES = (('ece', 'expected calibration error'), ('mutual_information', 'mutual information, nats'))


def there(tables):
    """Whether it can be drawn."""
    return runs.was_asked(tables, QUESTION)


def draw(tables):
    """The figure: three panels over p."""
    figure, axes = style.panels(1, 3, [
        'lenet-all on MNIST, %s iterations, dropout after both convolutions and after the inner product, all with '
        'probability p of dropping a unit. Marks: training seeds; lines: their mean.'
        % names.count(beyond.ITERATIONS[QUESTION])], panel=(3.2, 2.9), legend=1)
    every = []
    for method, label, look in LOOKS:
        by_p = [(p, runs.errors_of(tables, QUESTION, beyond.PROBABILITIES[p], method))
                for p in runs.probabilities(tables)]
        every += style.seeds_and_mean(axes[0][0], by_p, label, look, line={'marker': ''})
        for cell, (column, _) in zip(axes[0][1:], QUALITIES):
            if method == 'mc' or column == 'ece':
                by_p = [(p, runs.quality(tables, net, method, column)) for p, net in beyond.PROBABILITIES.items()]
                style.seeds_and_mean(cell, by_p, label, look, line={'marker': ''})
    style.log_errors(axes[0][0], every)
    axes[0][0].set_ylabel('test error, %')
    for cell, (column, label) in zip(axes[0][1:], QUALITIES):
        cell.set_ylabel(label)
        if not cell.lines:
            style.absent(cell, 'not measured yet:\npython tools/study.py quality')
    for cell in axes[0]:
        if cell.lines:
            cell.set_xlabel('p')
            cell.set_xticks(list(beyond.PROBABILITIES))
    return style.finish(figure, 2)


def words(tables):
    """What the figure shows."""
    parts = ['p = %g: Standard %.2f%%, MC %.2f%%' % (p, *[
        runs.mean(runs.errors_of(tables, QUESTION, beyond.PROBABILITIES[p], method)) for method in ('standard', 'mc')])
        for p in runs.probabilities(tables)]
    return 'Test error, calibration error and mutual information against the dropout probability. %s.' % (
        '; '.join(parts))
