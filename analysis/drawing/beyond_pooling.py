"""Beyond the paper, pooling: the gap between Standard and MC dropout, beside where weight averaging breaks."""

from drawing import style
from records import open_questions as runs
from records.from_bcnn import beyond

QUESTION = 'pooling'
LOOKS = ((beyond.NET, 'MAX', dict(color=style.COLOURS['lenet_all'], marker='o')),
         (beyond.AVERAGE, 'AVE', dict(color='#c46a00', marker='D')))
METHODS = (('standard', 'Standard', -0.13, 'white'), ('mc', 'MC', 0.13, None))


def there(tables):
    """Whether it can be drawn."""
    return runs.was_asked(tables, QUESTION)


def draw(tables):
    """The figure: errors by seed, and the distance layer by layer."""
    measured = [runs.layers(tables, net) for net, _, _ in LOOKS]
    notes = ['lenet-all on MNIST, %s iterations. Left: a mark a training seed, the bar their mean; the number is how '
             'far Standard is above MC.' % '{:,}'.format(beyond.ITERATIONS[QUESTION])]
    if any(len(rows) for rows in measured):
        rows = next(rows for rows in measured if len(rows))
        notes.append('Right: distance between the mean over masks of a layer\'s output and its output under weight '
                     'averaging, in percent of its size (%d images, %d masks, mean of the seeds; without the part that '
                     'is chance). Grey: pooling layers. Weight averaging is exact where the line is at zero.' % (
                         rows['n'].iloc[0], rows['T'].iloc[0]))
    figure, axes = style.panels(1, 2, notes, panel=(4.6, 3.3))
    _errors(axes[0][0], tables)
    _layers(axes[0][1], measured)
    return style.finish(figure)


def _errors(axes, tables):
    axes.set_title('Test error with both poolings')
    for x, (net, pooling, look) in enumerate(LOOKS):
        for method, label, shift, face in METHODS:
            values = runs.errors_of(tables, QUESTION, net, method)
            axes.plot([x + shift] * len(values), list(values.values()), linestyle='', markersize=6,
                      markerfacecolor=face or look['color'], gid='%s %s' % (pooling, method), **look)
            axes.plot([x + shift - 0.08, x + shift + 0.08], [runs.mean(values)] * 2, color=look['color'])
            axes.annotate(label, (x + shift, max(values.values())), xytext=(0, 7), textcoords='offset points',
                          ha='center', fontsize=8.5)
        axes.text(x, 0.02, 'gap %.2f' % runs.mean(runs.gaps(tables, net)), transform=axes.get_xaxis_transform(),
                  ha='center', fontsize=9, color=style.DARK, gid='gap')
    low, high = axes.get_ylim()
    axes.set_ylim(max(0, low - 0.15 * (high - low)), high + 0.12 * (high - low))
    axes.set_xticks([0, 1])
    axes.set_xticklabels(['%s pooling' % pooling for _, pooling, _ in LOOKS])
    axes.set_xlim(-0.5, 1.5)
    axes.set_ylabel('test error, %')
    axes.grid(axis='x', visible=False)


def _layers(axes, measured):
    axes.set_title('Weight averaging beside the mean over masks')
    if not any(len(rows) for rows in measured):
        style.absent(axes, 'not measured yet:\npython tools/study.py approximation')
        return
    for rows, (_, pooling, look) in zip(measured, LOOKS):
        if len(rows):
            columns = [[runs.percent_of_size(value) for value in rows[name]]
                       for name in ('distance', 'distance_low', 'distance_high')]
            axes.fill_between(range(len(rows)), columns[1], columns[2], color=look['color'], alpha=style.BAND,
                              linewidth=0, gid='band %s' % pooling)
            axes.plot(range(len(rows)), columns[0], label='%s pooling' % pooling, **look)
    rows = next(rows for rows in measured if len(rows))
    for k in [k for k, kind in enumerate(rows['type']) if kind == 'Pooling']:
        axes.axvspan(k - 0.4, k + 0.4, color='#e8e8e8', linewidth=0, zorder=0, gid='pooling')
    axes.set_xticks(range(len(rows)))
    axes.set_xticklabels(list(rows['layer']), rotation=45, ha='right')
    axes.set_ylabel('distance, % of its size')
    axes.set_ylim(bottom=0)
    axes.legend(loc='upper right')


def words(tables):
    """What the figure shows."""
    parts = ['%s pooling: Standard %.2f%%, MC %.2f%%' % (pooling, *[
        runs.mean(runs.errors_of(tables, QUESTION, net, method)) for method in ('standard', 'mc')])
        for net, pooling, _ in LOOKS]
    for net, pooling, _ in LOOKS:
        rows = runs.layers(tables, net)
        if len(rows):
            parts.append('%s, distance by layer: %s' % (pooling, ', '.join('%s %.0f%%' % (
                layer, runs.percent_of_size(value)) for layer, value in zip(rows['layer'], rows['distance']))))
    return 'Two panels: test errors with MAX and AVE pooling; distance of weight averaging layer by layer. %s.' % (
        '; '.join(parts))
