"""Beyond the paper, dropout probability: the kernels that conv1 learnt, a row a p."""

import numpy as np

from drawing import style
from records import names
from records.from_bcnn import beyond
from records.load import where

QUESTION = 'probability'
SIDE, STEP, LEFT = 0.36, 0.41, 0.75  # inches: a kernel, from one to the next, the words before a row


def chosen(tables):
    """[(p, rows)] of the least seed that every p has."""
    rows = where(tables['kernels'], dataset='mnist', iterations=beyond.ITERATIONS[QUESTION])
    of_p = [(p, where(rows, net=net)) for p, net in beyond.PROBABILITIES.items()]
    of_p = [(p, some) for p, some in of_p if len(some)]
    shared = sorted(set.intersection(*[set(some['seed']) for _, some in of_p])) if of_p else []
    return [(p, where(some, seed=shared[0]).sort_values('map')) for p, some in of_p] if shared else []


def there(tables):
    """Whether it can be drawn."""
    return len(chosen(tables)) > 0


def draw(tables):
    """The contact sheet."""
    found = chosen(tables)
    seed, count = int(found[0][1]['seed'].iloc[0]), max(len(rows) for _, rows in found)
    figure = style.sheet(LEFT + count * STEP + 0.1, len(found) * STEP + 0.15, [
        'lenet-all on MNIST, %s iterations, seed %d: the %d kernels of conv1, one row a dropout probability; the same '
        'initial weights in every row. Dark: positive; one scale a row, the number is its largest weight.' % (
            names.count(beyond.ITERATIONS[QUESTION]), seed, count)])
    for k, (p, rows) in enumerate(found):
        _row(figure, figure.get_figheight() - 0.08 - (k + 1) * STEP, p, rows)
    return figure


def kernel(row):
    """The weights of a kernel, (size, size)."""
    return np.array([float(value) for value in row['weights'].split()]).reshape(row['size'], row['size'])


def _row(figure, bottom, p, rows):
    width, height = figure.get_figwidth(), figure.get_figheight()
    kernels = [kernel(row) for _, row in rows.iterrows()]
    most = max(np.abs(one).max() for one in kernels)
    figure.text(0.06 / width, (bottom + SIDE / 2) / height, 'p = %g\n%.2f' % (p, most), fontsize=8, va='center',
                gid='row')
    for k, one in enumerate(kernels):
        cell = figure.add_axes([(LEFT + k * STEP) / width, bottom / height, SIDE / width, SIDE / height])
        cell.imshow(one, cmap='gray_r', vmin=-most, vmax=most, interpolation='nearest')
        cell.axis('off')


def words(tables):
    """What the figure shows."""
    return 'Small pictures of the kernels of conv1, a row a dropout probability. %s.' % '; '.join(
        'p = %g: largest weight %.2f' % (p, max(np.abs(kernel(row)).max() for _, row in rows.iterrows()))
        for p, rows in chosen(tables))
