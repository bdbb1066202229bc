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
    figure, axes = style.panels(1, 1, [
        'LeNets on parts of MNIST, %s iterations; each training seed has its own draw of the images. Lines: means over '
        'seeds; thin marks: seeds. Grey: the error of lenet-ip with Standard dropout on all images; '
        'dotted, a line a seed: where lenet-all with MC dropout comes down to it (%s).' % (
            names.count(beyond.ITERATIONS[QUESTION]), runs.read_off_words(tables))],
        panel=(7.4, 4.0), legend=2)
    cell, every = axes[0][0], []
    for net, method in CURVES:
        points = [(runs.TRAINING_IMAGES // k, errors)
                  for k, errors in runs.errors_by_part(tables, net, method).items()]
        every += style.seeds_and_mean(cell, points, names.curve(net, method), style.curve_look(net, method),
                                      mark={'alpha': 0.6})
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
