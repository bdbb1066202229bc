"""Beyond the paper, off the data: one digit as it is turned, and what each stochastic pass says of it."""

import base64

import numpy as np

from drawing import style
from records import names
from records import open_questions as runs
from records.from_bcnn import UserError

QUESTION = 'off_data'
COLOURS = ('#12379c', '#c46a00', '#3fb27f', '#d1352b', '#7b4fa3', '#767676', '#00838f', '#8d6e63', '#222222', '#b5b5b5')
MARKERS = 'os^Dv<>Pph'
SIDE, STRIP = 0.56, 0.75  # inches: a picture; the row of them
DEGREES = 9.0             # that the passes of an angle are spread over


def there(tables):
    """Whether it can be drawn."""
    return len(runs.rotation(tables)) > 0


def draw(tables):
    """The figure: the pictures in a row, below them the probability of each pass and its score."""
    rows = runs.rotation(tables)
    classes, angles = sorted(set(rows['class'])), sorted(set(rows['angle']))
    first = rows.iloc[0]
    notes = ['lenet-all with MC dropout, %s iterations; the first %d of the test set as it is turned. A mark a pass, '
             '%d passes an angle; only classes that it is taken for at some angle. A class whose marks spread over the '
             'whole height is one that the net does not know about.' % (
                 names.count(first['iterations']), first['label'], first['T'])]
    figure, axes = style.panels(2, 1, notes, panel=(8.6, 2.3), legend=1)
    figure.set_figheight(figure.get_figheight() + STRIP)
    figure.below *= (figure.get_figheight() - STRIP) / figure.get_figheight()
    figure.top = 1 - (style.LEGEND_HEIGHT + STRIP) / figure.get_figheight()
    for cell, column, label in ((axes[0][0], 'probs', 'probability'), (axes[1][0], 'scores', 'score (before softmax)')):
        for c in classes:
            _passes(cell, rows[rows['class'] == c], column, c)
        cell.set_ylabel(label)
        cell.set_xticks(angles)
        cell.set_xticklabels([u'%d\u00b0' % angle for angle in angles])
        cell.set_xlim(angles[0] - 8, angles[-1] + 8)
    style.finish(figure, len(classes))
    for angle in angles:
        _picture(figure, axes[0][0], rows[rows['angle'] == angle].iloc[0])
    return figure


def _passes(axes, rows, column, c):
    """Draws every pass of a class, spread a little sideways in the order in which they came."""
    look = dict(linestyle='', marker=MARKERS[c], color=COLOURS[c], markeredgewidth=0)
    axes.plot([], [], markersize=6, label='class %d' % c, **look)  # for the legend: the marks themselves are small
    for _, row in rows.iterrows():
        values = [float(value) for value in row[column].split()]
        places = row['angle'] + DEGREES * (np.arange(len(values)) / float(len(values)) - 0.5)
        axes.plot(places, values, markersize=2.4, alpha=0.65, gid='class %d' % c, **look)


def _picture(figure, axes, row):
    """Draws the digit above its angle."""
    pixels = np.frombuffer(base64.b64decode(row['pixels']), np.uint8)
    if len(pixels) != row['size'] ** 2:
        raise UserError('rotation.csv: the pixels at %d degrees are damaged' % row['angle'])
    x = figure.transFigure.inverted().transform(axes.transData.transform((row['angle'], 0)))[0]
    width, height = SIDE / figure.get_figwidth(), SIDE / figure.get_figheight()
    cell = figure.add_axes([x - width / 2, figure.top + 0.05 / figure.get_figheight(), width, height])
    cell.imshow(pixels.reshape(row['size'], row['size']), cmap='gray_r', vmin=0, vmax=255)
    cell.axis('off')


def words(tables):
    """What the figure shows."""
    rows = runs.rotation(tables)
    means = rows.assign(mean=[np.mean([float(value) for value in probs.split()]) for probs in rows['probs']])
    best = means.loc[means.groupby('angle')['mean'].idxmax()]
    return 'A digit of class %d at %d angles, and the probabilities of each pass. Most probable class: %s.' % (
        rows['label'].iloc[0], len(best), ', '.join('%d at %d degrees (%.2f)' % (c, angle, p) for c, angle, p in zip(
            best['class'], best['angle'], best['mean'])))
