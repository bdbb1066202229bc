"""The most and the least uncertain test images of each net, with what Standard and MC dropout say about them."""

from command_line import start
from drawing import panels_of_nets, style
from records import evaluations, names
from records.from_bcnn import paper
from records.load import where
from records.uncertainty import extreme_images, picture

CLASSES = {
    'cifar10': ('airplane', 'automobile', 'bird', 'cat', 'deer', 'dog', 'frog', 'horse', 'ship', 'truck'),
    'fashion_mnist': ('T-shirt', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt', 'sneaker', 'bag', 'boot')}
ENDS = (('most', 'most uncertain'), ('least', 'least uncertain'))
WRONG, RIGHT = '#b3261e', style.DARK


# In inches: a picture, from one to the next, a row of them with its words and title.
SIDE, STEP, ROW, TITLE = 0.88, 1.14, 1.62, 0.24


def draw(tables):
    """The figure: two rows of pictures a net."""
    targets = [target for target in evaluations.targets(tables) if len(extreme_images(tables, *target))]
    if not targets:
        return panels_of_nets.grid([], [])[0]
    columns = int(max(extreme_images(tables, *target)['rank'].max() for target in targets))
    notes = panels_of_nets.notes(tables, targets, panels_of_nets.hinge(targets) + [
        'Ranked by the entropy of the MC predictive distribution (first repetition). Below a picture: the true class; '
        'what Standard and what MC dropout say, with its probability. Red: wrong.'])
    figure = style.sheet(columns * STEP + 0.1, 2 * len(targets) * ROW, notes)
    for k, target in enumerate(targets):
        for m, (end, words) in enumerate(ENDS):
            row(figure, figure.get_figheight() - (2 * k + m) * ROW, '%s: %s' % (names.target(*target), words),
                where(extreme_images(tables, *target), end=end).sort_values('rank'), tables)
    return figure


def row(figure, top, title, rows, tables):
    """Draws a title and pictures, `top` inches above the bottom."""
    width, height = figure.get_figwidth(), figure.get_figheight()
    figure.text(0.1 / width, (top - 0.06) / height, title, fontsize=9, va='top', gid='title')
    for k, (_, image) in enumerate(rows.iterrows()):
        cell = figure.add_axes([(0.1 + k * STEP) / width, (top - TITLE - SIDE) / height, SIDE / width, SIDE / height])
        tile(cell, image, picture(tables, image['dataset'], image['image']))


def tile(axes, image, pixels):
    """Draws one picture with its words."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    if pixels is None:
        axes.text(0.5, 0.5, 'image %d\n(no picture\nrecorded)' % image['image'], ha='center', va='center', fontsize=7,
                  color=style.GREY,
                  transform=axes.transAxes, gid='absent')
    else:
        axes.imshow(pixels, cmap='gray_r' if pixels.ndim == 2 else None, interpolation='nearest', vmin=0, vmax=255)
    classes = CLASSES.get(paper.base_of(image['dataset']), tuple('%d' % k for k in range(1000)))
    axes.text(0.0, -0.06, 'true: %s' % classes[image['label']], transform=axes.transAxes, va='top', fontsize=6.8,
              color=RIGHT)
    for k, (word, method) in enumerate((('Std', 'standard'), ('MC', 'mc')), 1):
        axes.text(0.0, -0.06 - 0.145 * k, '%s: %s %.2f' % (word, classes[image[method]], image[method + '_p']),
                  transform=axes.transAxes,
                  va='top', fontsize=6.8, color=RIGHT if image[method] == image['label'] else WRONG, gid=method)


if __name__ == '__main__':
    start(__doc__, style.maker(draw, 'uncertain_images'))
