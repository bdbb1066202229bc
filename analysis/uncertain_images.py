"""The most and the least uncertain test images of each net, with what Standard and MC dropout say about them."""

import base64

import common
import numpy as np
import reliability
import style

CLASSES = {
    'cifar10': ('airplane', 'automobile', 'bird', 'cat', 'deer', 'dog', 'frog', 'horse', 'ship', 'truck'),
    'fashion_mnist': ('T-shirt', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt', 'sneaker', 'bag', 'boot')}
MEASURE = 'entropy'  # of the predictive distribution
ENDS = (('most', 'most uncertain'), ('least', 'least uncertain'))
WRONG, RIGHT = '#b3261e', style.DARK


# In inches: a picture, from one to the next, a row of them with its words and title.
SIDE, STEP, ROW, TITLE = 0.88, 1.14, 1.62, 0.24


def draw(tables):
    """The figure: two rows of pictures a net."""
    pairs = [pair for pair in common.evaluated(tables) if len(shown(tables, *pair))]
    if not pairs:
        return reliability.grid([], [])[0]
    columns = int(max(shown(tables, *pair)['rank'].max() for pair in pairs))
    made = style.sheet(columns * STEP + 0.1, 2 * len(pairs) * ROW, reliability.notes(tables, pairs, [
        'Ranked by the entropy of the MC predictive distribution (first repetition). Below a picture: the true class; '
        'what Standard '
        'and what MC dropout say, with its probability. Red: wrong.']))
    for k, pair in enumerate(pairs):
        for m, (end, words) in enumerate(ENDS):
            row(made, made.get_figheight() - (2 * k + m) * ROW, '%s: %s' % (reliability.name(*pair), words),
                common.where(shown(tables, *pair), end=end).sort_values('rank'), tables)
    return made


def row(made, top, title, rows, tables):
    """Draws a title and pictures, `top` inches above the bottom."""
    width, height = made.get_figwidth(), made.get_figheight()
    made.text(0.1 / width, (top - 0.06) / height, title, fontsize=9, va='top', gid='title')
    for k, (_, one) in enumerate(rows.iterrows()):
        cell = made.add_axes([(0.1 + k * STEP) / width, (top - TITLE - SIDE) / height, SIDE / width, SIDE / height])
        tile(cell, one, picture(tables, one['dataset'], one['image']))


def shown(tables, dataset, net):
    """The rows of the images to show of a net's best evaluation: those of its first repetition."""
    best = common.evaluations(tables, dataset, net)[:1]
    first = [common.where(group, config=group['config'].iloc[0]) for group in best]
    return common.where(common.of_evaluations(tables['images'], first), measure=MEASURE)


def tile(axes, one, pixels):
    """Draws one picture with its words."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    for side in axes.spines.values():
        side.set_visible(False)
    if pixels is None:
        axes.text(0.5, 0.5, 'image %d\n(no picture\nrecorded)' % one['image'], ha='center', va='center', fontsize=7,
                  color=style.GREY,
                  transform=axes.transAxes, gid='absent')
    else:
        axes.imshow(pixels, cmap='gray_r' if pixels.ndim == 2 else None, interpolation='nearest', vmin=0, vmax=255)
    names = CLASSES.get(common.paper.base_of(one['dataset']), tuple('%d' % k for k in range(1000)))
    axes.text(0.0, -0.06, 'true: %s' % names[one['label']], transform=axes.transAxes, va='top', fontsize=6.8,
              color=RIGHT)
    for k, (word, method) in enumerate((('Std', 'standard'), ('MC', 'mc')), 1):
        axes.text(0.0, -0.06 - 0.145 * k, '%s: %s %.2f' % (word, names[one[method]], one[method + '_p']),
                  transform=axes.transAxes,
                  va='top', fontsize=6.8, color=RIGHT if one[method] == one['label'] else WRONG, gid=method)


def picture(tables, dataset, image):
    """The pixels of a test image, (height, width) or (height, width, 3); None where they are not recorded."""
    rows = common.where(tables['thumbnails'], dataset=common.paper.base_of(dataset), image=image)
    if not len(rows):
        return None
    row = rows.iloc[0]
    size = row['height'] * row['width'] * row['channels']
    try:
        data = base64.b64decode(row['pixels'], validate=True)
    except ValueError:
        data = b''
    if len(data) != size:
        raise common.UserError('thumbnails.csv: the pixels of %s image %d are damaged' % (dataset, image))
    shape = (row['height'], row['width']) + ((row['channels'],) if row['channels'] > 1 else ())
    return np.frombuffer(data, np.uint8).reshape(shape)


if __name__ == '__main__':
    common.start(__doc__, style.make(draw, 'uncertain_images'))
