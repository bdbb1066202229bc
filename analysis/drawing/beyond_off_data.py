"""Beyond the paper, off the data: how well uncertainty tells Fashion-MNIST and rotated digits from the test images."""

from drawing import style
from records import names
from records import open_questions as runs
from records.from_bcnn import paper
from records.load import where

QUESTION = 'off_data'
LOOKS = (('standard', 'entropy', 'Standard, entropy',
          dict(color=style.DARK, linestyle=style.STANDARD, marker='s', markerfacecolor='white')),
         ('mc', 'entropy', 'MC, entropy', dict(color=style.BLUE, linestyle=style.MC, marker='o')),
         ('mc', 'mutual_information', 'MC, mutual information',
          dict(color='#c46a00', linestyle='-.', marker='D')))


def there(tables):
    """Whether it can be drawn."""
    return runs.was_asked(tables, QUESTION)


def draw(tables):
    """The figure: a panel a net, AUROC against the angle, and Fashion-MNIST beside it."""
    nets = runs.off_data_nets(tables)
    first = runs.off_data(tables, nets[0])
    notes = ['AUROC: how often the image of the other kind is the more uncertain of two; 0.5 is guessing, 1 never '
             'wrong. The first %s test images rotated, all %s beside the test images of Fashion-MNIST; T = %d.' % (
                 names.count(where(first, against='rotated')['n'].iloc[0]),
                 names.count(where(first, against='fashion_mnist')['n'].iloc[0]), first['T'].iloc[0]),
             '; '.join('%s: %s iterations' % (paper.title(net), names.count(
                 runs.off_data(tables, net)['iterations'].iloc[0])) for net in nets) + '.']
    figure, axes = style.panels(1, len(nets), notes, panel=(4.4, 3.2), legend=1)
    for cell, net in zip(axes[0], nets):
        _panel(cell, runs.off_data(tables, net), net)
    low = min(cell.get_ylim()[0] for cell in axes[0])
    for cell in axes[0]:
        cell.set_ylim(low, 1.01)
    return style.finish(figure, 3)


def _panel(axes, rows, net):
    axes.set_title(paper.title(net))
    turned = where(rows, against='rotated').dropna(subset=['angle'])
    right = turned['angle'].max() + 40
    for k, (method, measure, label, look) in enumerate(LOOKS):
        line = where(turned, method=method, measure=measure).sort_values('angle')
        axes.plot(line['angle'], line['auroc'], label=label, **look)
        other = where(rows, against='fashion_mnist', method=method, measure=measure)['auroc']
        axes.plot([right + 12 * (k - 1)], list(other), gid='fashion %s %s' % (method, measure),
                  **dict(look, linestyle=''))
    axes.axvline(right - 22, color='#cccccc', linewidth=1)
    angles = sorted(int(angle) for angle in set(turned['angle']))
    axes.set_xticks(angles + [right])
    axes.set_xticklabels([u'%d\u00b0' % angle for angle in angles] + ['Fashion-\nMNIST'])
    axes.set_xlabel('test digits rotated by')
    axes.set_ylabel('AUROC')


def words(tables):
    """What the figure shows."""
    parts = []
    for net in runs.off_data_nets(tables):
        rows = runs.off_data(tables, net)
        for against, called in (('fashion_mnist', 'Fashion-MNIST'), ('rotated', 'digits rotated by 30 to 180 degrees')):
            whole = where(rows, against=against)
            whole = whole[whole['angle'].isna()]
            parts.append('%s, %s: %s' % (paper.title(net), called, ', '.join('%s %.3f' % (
                label, where(whole, method=method, measure=measure)['auroc'].iloc[0])
                for method, measure, label, _ in LOOKS)))
    return 'AUROC against the angle of rotation, and for Fashion-MNIST. %s.' % '; '.join(parts)
