"""Pictures beside bars of what a net makes of them: class probabilities, and on each the spread of the passes."""

import os
from typing import Any, Sequence

import numpy as np

from ..errors import UserError
from ..inputs import pictures
from ..system import files
from .messages import Prediction
from .report import class_name

MOST_ROWS, MOST_BARS = 60, 10   # pictures in a drawing; classes of a picture, the most likely ones
BAR, STANDARD, SPREAD = '#3b75af', '#c44e52', '#222222'


def check_path(path: str) -> None:
    """Refuses a path at which no drawing can be."""
    if not path.endswith(('.png', '.svg')):
        raise UserError('%s: a drawing is a .png or an .svg' % path)
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise UserError('%s: no folder for it' % path)


def draw(path: str, items: Sequence[Any], names: Sequence[str], prediction: Prediction) -> int:
    """Writes a drawing of the first pictures (paths or arrays) to a .png or .svg file; gives how many are in it."""
    import matplotlib
    matplotlib.use('Agg')
    from matplotlib import pyplot
    count = min(len(names), MOST_ROWS)
    figure, axes = pyplot.subplots(count, 2, figsize=(8, 0.4 + 2.2 * count), squeeze=False,
                                   gridspec_kw={'width_ratios': [1, 3]})
    for i in range(count):
        _picture(axes[i, 0], items[i], names[i])
        _bars(axes[i, 1], prediction, i)
    figure.legend(*axes[0, 1].get_legend_handles_labels(), loc='upper right', ncol=2, fontsize=7, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / figure.get_figheight()))
    with files.atomic(path) as temporary:
        figure.savefig(temporary, format=path[-3:], dpi=100)
    pyplot.close(figure)
    return count


def _picture(axis, item, name):
    pixels = item if isinstance(item, np.ndarray) else pictures.read(item)
    axis.imshow(pixels, cmap='gray', vmin=0, vmax=255, interpolation='nearest')
    axis.set_title(name if len(name) <= 28 else '...' + name[-25:], fontsize=8)
    axis.axis('off')


def _bars(axis, prediction, i):
    """Bars of the mean with the middle 90% of the passes, a mark for Standard; one std where passes were not kept."""
    rows = prediction.standard if prediction.mean is None else prediction.mean
    shown = np.sort(np.argsort(-rows[i], kind='mergesort')[:MOST_BARS])
    places = np.arange(len(shown))
    if prediction.mean is not None:
        low, high = _spread(prediction, i, shown)
        axis.bar(places, rows[i, shown], color=BAR, label='MC dropout, with the middle 90% of the passes')
        axis.errorbar(places, rows[i, shown], [rows[i, shown] - low, high - rows[i, shown]], fmt='none', ecolor=SPREAD,
                      capsize=2, linewidth=1)
    axis.plot(places, prediction.standard[i, shown], 'D', color=STANDARD, markersize=4, label='Standard dropout')
    axis.set_xticks(places)
    names = [class_name(prediction, k) for k in shown]
    axis.set_xticklabels(names, fontsize=7, rotation=0 if max(map(len, names)) < 4 else 30)
    axis.set_ylim(0, 1.05)
    axis.tick_params(axis='y', labelsize=7)
    if prediction.mean is not None:
        axis.set_title('%s; entropy %.2f, mutual information %.2f' % (
            class_name(prediction, prediction.best[i]), prediction.entropy[i], prediction.mutual_information[i]),
            fontsize=8)


def _spread(prediction, i, shown):
    """(low, high) of the passes of these classes, the mean within."""
    mean = prediction.mean[i, shown]
    if prediction.samples is not None:
        low, high = np.percentile(prediction.samples[:, i][:, shown], [5, 95], axis=0)
    else:
        low, high = mean - prediction.std[i, shown], mean + prediction.std[i, shown]
    return np.minimum(np.clip(low, 0, 1), mean), np.maximum(np.clip(high, 0, 1), mean)
