"""Beyond the paper, less data: test error against training images."""

from drawing import style
from records import names
from records import open_questions as runs
from records.from_bcnn import beyond, paper

QUESTION = 'less_data'
CURVES = (('lenet_none', 'standard'), ('lenet_ip', 'standard'), ('lenet_ip', 'mc'), ('lenet_all', 'standard'),
          ('lenet_all', 'mc'))


def there(tables):
    """Whether it can be drawn."""
    return runs.was_asked(tables, QUESTION)


def draw(tables):
    """The figure: a line a net and method, a mark a seed."""
    if not there(tables):
        return style.nothing('not run yet:\ntools/run_all.sh --profile beyond --only less_data')
    figure, axes = style.panels(1, 1, [
        'LeNets on parts of MNIST, %s iterations; each training seed has its own draw of the images. Lines: means over '
        'seeds; thin marks: seeds. Grey: the error of lenet-ip with Standard dropout on all images; '
        'dotted, a line a seed: where lenet-all with MC dropout comes down to it (%s).' % (
            names.count(beyond.ITERATIONS[QUESTION]), runs.read_off_words(tables))],
        panel=(7.4, 4.0), legend=2)
    cell, every = axes[0][0], []
    for net, method in CURVES:
        every += _curve(cell, tables, net, method)
    wanted = runs.mean(runs.errors_by_part(tables, 'lenet_ip', 'standard')[1])
    cell.axhline(wanted, color=style.GREY, linewidth=1, gid='wanted')
    for images in runs.read_off(tables).values():
        if images is not None:
            cell.axvline(images, color=style.GREY, linewidth=0.8, linestyle=':', gid='read off')
    cell.set_xscale('log')
    places = [runs.TRAINING_IMAGES // k for k in (1,) + paper.FRACTIONS]
    cell.set_xticks(places)
    cell.set_xticklabels([names.count(place) for place in places])
    cell.minorticks_off()
    style.log_errors(cell, every)
    cell.set_xlabel('training images')
    cell.set_ylabel('test error, %')
    return style.finish(figure, 3)


def _curve(axes, tables, net, method):
    """Draws a line through the means; gives all errors."""
    found = [(runs.TRAINING_IMAGES // k, values) for k, values in runs.errors_by_part(tables, net, method).items()]
    look = style.curve_look(net, method)
    for images, values in found:
        axes.plot([images] * len(values), list(values.values()), gid='seeds', **dict(
            look, linestyle='', markersize=3, alpha=0.6))
    if found:
        axes.plot([images for images, _ in found], [runs.mean(values) for _, values in found],
                  label=names.curve(net, method), **look)
    return [value for _, values in found for value in values.values()]


def words(tables):
    """What the figure shows."""
    parts = []
    for net, method in CURVES:
        found = [(runs.TRAINING_IMAGES // k, runs.mean(values))
                 for k, values in runs.errors_by_part(tables, net, method).items()]
        if found:
            parts.append('%s: %s' % (names.curve(net, method), ', '.join(
                '%.2f%% with %s' % (error, names.count(images)) for images, error in found)))
    return 'Test error against training images, both logarithmic. %s.' % '; '.join(parts)
