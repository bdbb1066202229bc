"""Predictions for people: a line a picture, and the same as CSV."""

import math
from typing import Iterator, Sequence

import numpy as np

from ..system import files
from .messages import Prediction

UNSURE = 0.5  # nats of entropy of the mean: of ten classes, about what two equally likely ones and a rest would have


def lines(names: Sequence[str], prediction: Prediction, unsure: float = UNSURE) -> Iterator[str]:
    """A heading, what `unsure` means, and a line a picture."""
    width = max([len('picture')] + [len(name) for name in names])
    classes = max([len('class')] + [len(class_name(prediction, k)) for k in set(prediction.best)])
    if prediction.mean is None:
        yield '%-*s  %-*s  %s' % (width, 'picture', classes, 'class', 'Standard')
        for name, k, row in zip(names, prediction.best, prediction.standard):
            yield '%-*s  %-*s  %.3f' % (width, name, classes, class_name(prediction, k), row[k])
        return
    yield '%-*s  %-*s  %-14s  %-*s  %7s  %11s' % (width, 'picture', classes, 'class', 'MC', classes + 6, 'Standard',
                                                  'entropy', 'mutual inf.')
    for i, name in enumerate(names):
        k, s = prediction.best[i], prediction.standard[i].argmax()
        yield ('%-*s  %-*s  %.3f +- %.3f  %-*s %.3f  %7.3f  %11.3f%s' % (
            width, name, classes, class_name(prediction, k), prediction.mean[i, k], prediction.std[i, k],
            classes, class_name(prediction, s), prediction.standard[i, s], prediction.entropy[i],
            prediction.mutual_information[i], '  unsure' if prediction.entropy[i] > unsure else '')).rstrip()
    yield 'unsure: an entropy above %g nats; the most that %d classes can have is %.2f' % (
        unsure, prediction.mean.shape[1], math.log(prediction.mean.shape[1]))


def class_name(prediction: Prediction, k: int) -> str:
    """The name of class k, its number where it has none."""
    return str(k) if prediction.names is None or k >= len(prediction.names) else prediction.names[k]


MEASURES = ('entropy', 'expected_entropy', 'mutual_information', 'variation_ratio', 'passes')


def write_csv(path: str, names: Sequence[str], prediction: Prediction, unsure: float = UNSURE) -> None:
    """Writes a row a picture: class, MC and Standard probability, uncertainty, and both distributions."""
    classes = [class_name(prediction, k) for k in range(prediction.standard.shape[1])]
    head, sampled = ['file', 'class', 'standard_class', 'standard_p'], prediction.mean is not None
    if sampled:
        head += ['mc_p', 'mc_std'] + list(MEASURES) + ['unsure']
        head += [kind + name for kind in ('mc ', 'std ') for name in classes]
    head += ['standard ' + name for name in classes]
    rows = []
    for i, name in enumerate(names):
        k, s = prediction.best[i], prediction.standard[i].argmax()
        row = [name, class_name(prediction, k), class_name(prediction, s), prediction.standard[i, s]]
        if sampled:
            row += [prediction.mean[i, k], prediction.std[i, k]]
            row += [getattr(prediction, measure)[i] for measure in MEASURES]
            row += ['yes' if prediction.entropy[i] > unsure else 'no']
            row += list(prediction.mean[i]) + list(prediction.std[i])
        rows.append([_cell(value) for value in row + list(prediction.standard[i])])
    files.write_csv(path, head, rows)


def _cell(value):
    return '%.6g' % value if isinstance(value, (float, np.floating)) else value
