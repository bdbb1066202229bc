"""Does the uncertainty tell images of another kind from the test set's: Fashion-MNIST, and digits that are rotated?

AUROC: how often an image of the other kind is the more uncertain of two, ties counted half. Entropy of Standard dropout
beside entropy and mutual information of MC dropout, on the same images.
"""

import base64
import os
from collections import OrderedDict
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .. import beyond, engine, nets, seeds
from ..inputs import sources
from ..mc import forward, metrics
from ..mc.running_sums import Arrays
from ..system import places
from . import trained

OTHER = 'fashion_mnist'
SHOWN = tuple(range(0, 181, 15))  # angles of the one digit that is shown
DIGIT = 1        # its class: the first of the test set
SHOWN_PASSES = 100
DRAWS, LEVEL = 1000, 0.95
# (method, measure), each judged against the one before it
MEASURES = (('standard', 'entropy'), ('mc', 'entropy'), ('mc', 'mutual_information'))
Values = Sequence[np.ndarray]  # of each of MEASURES, a value an image


# --- images ------------------------------------------------------------------------------------

def rotate(images: np.ndarray, angle: float) -> np.ndarray:
    """Images (n, channels, height, width) of bytes turned counter-clockwise about their centre; what comes in from
    outside is 0. Between pixels the four around are weighted (bilinear)."""
    height, width = images.shape[-2:]
    turn = np.deg2rad(angle)
    rows, columns = np.mgrid[:height, :width].astype(np.float64)
    y, x = rows - (height - 1) / 2.0, columns - (width - 1) / 2.0
    # rounded: a quarter of a turn has to meet the pixels exactly
    from_row = np.round(y * np.cos(turn) + x * np.sin(turn) + (height - 1) / 2.0, 9)
    from_column = np.round(x * np.cos(turn) - y * np.sin(turn) + (width - 1) / 2.0, 9)
    top, left = np.floor(from_row).astype(int), np.floor(from_column).astype(int)
    turned = np.zeros(images.shape)
    for i in (0, 1):
        for k in (0, 1):
            share = (1 - np.abs(from_row - top - i)) * (1 - np.abs(from_column - left - k))
            inside = (0 <= top + i) & (top + i < height) & (0 <= left + k) & (left + k < width)
            pixels = images[..., np.clip(top + i, 0, height - 1), np.clip(left + k, 0, width - 1)]
            turned += np.where(inside, share, 0) * pixels
    return np.clip(np.round(turned), 0, 255).astype(np.uint8)


# --- how well they are told apart ----------------------------------------------------------------

class Ranking:
    """Uncertainties of images of both kinds, sorted once, so that drawing images anew is only counting them."""

    def __init__(self, inside: np.ndarray, outside: np.ndarray):
        values, place = np.unique(np.concatenate([inside, outside]), return_inverse=True)
        self.size, self.inside, self.outside = len(values), place[:len(inside)], place[len(inside):]

    def auroc(self, inside: Optional[np.ndarray] = None, outside: Optional[np.ndarray] = None) -> float:
        """The AUROC, each image counted so many times; once where nothing is said."""
        ours = np.bincount(self.inside, inside, self.size)
        theirs = np.bincount(self.outside, outside, self.size)
        below = np.cumsum(ours) - ours / 2.0
        return float((theirs * below).sum() / (ours.sum() * theirs.sum()))


def counts(paired: bool, inside: int, outside: int, rng: np.random.RandomState) -> Tuple[np.ndarray, np.ndarray]:
    """How often each image is drawn: (of the test set, of the others); paired: the others are the same images."""
    ours = np.bincount(rng.randint(inside, size=inside), minlength=inside).astype(np.float64)
    if paired:  # as often as they are there, once an angle
        return ours, np.tile(ours, outside // inside)
    return ours, np.bincount(rng.randint(outside, size=outside), minlength=outside).astype(np.float64)


class Told(NamedTuple):
    """How well a measure tells the two kinds of images apart."""

    auroc: float
    gain: Optional[float] = None  # over the measure before it; None for the first
    low: Optional[float] = None   # of its interval
    high: Optional[float] = None


def compared(inside: Values, outside: Values, paired: bool) -> List[Told]:
    """How well each of MEASURES tells them apart.

    inside, outside: the uncertainties of both kinds of images by each measure. The interval: images drawn anew,
    the same for all measures.
    """
    rankings = [Ranking(*both) for both in zip(inside, outside)]
    rng = np.random.RandomState(1)
    drawn = np.array([[ranking.auroc(*some) for ranking in rankings] for some in (
        counts(paired, len(inside[0]), len(outside[0]), rng) for _ in range(DRAWS))])
    told, tail = [Told(rankings[0].auroc())], 100 * (1 - LEVEL) / 2
    for k, ranking in enumerate(rankings[1:], 1):
        low, high = np.percentile(drawn[:, k] - drawn[:, k - 1], [tail, 100 - tail])
        told.append(Told(ranking.auroc(), ranking.auroc() - told[-1].auroc, float(low), float(high)))
    return told


def uncertainties(arrays: Arrays, n: Optional[int] = None) -> Values:
    """The values of MEASURES for the first n images of an evaluation."""
    return [metrics.entropy(arrays['standard_probs'])[:n], arrays['entropy'][0][:n],
            arrays['mutual_information'][0][:n]]


# --- the study -----------------------------------------------------------------------------------

def measure(subject: trained.Subject, settings: trained.Settings, folder: str) -> trained.Tables:
    """{'off_data': rows, 'rotation': rows}."""
    own = trained.test_images(subject, settings.data)

    def evaluate(name, source):
        return trained.evaluated(subject, source, settings, os.path.join(folder, places.BLOCKS, name))

    inside, outside = evaluate('mnist', own), evaluate(OTHER, trained.test_images(subject, settings.data, OTHER))
    told = list(rows(OTHER, None, uncertainties(inside), uncertainties(outside), False, (None, None)))
    digits, labels = own.raw(0, min(beyond.ROTATED, settings.count))  # each with all angles
    upright, turned, wrong = uncertainties(inside, len(digits)), [], []
    for angle in beyond.ANGLES:
        arrays = evaluate('rotated_%d' % angle, sources.Arrays(
            rotate(digits, angle), own.transform, labels, 'the test images rotated by %d degrees' % angle))
        turned.append(uncertainties(arrays))
        wrong.append([int((~metrics.correct(probs, labels)).sum())
                      for probs in (arrays['standard_probs'], arrays['mc_probs'][0])])
        told += rows('rotated', angle, upright, turned[-1], True, wrong[-1])
    together = [np.concatenate(parts) for parts in zip(*turned)]
    told += rows('rotated', None, upright, together, True, [sum(part) for part in zip(*wrong)])
    studied = dict(iterations=subject.iterations, T=settings.T, mc_seed=settings.seed)
    return {'off_data': [dict(studied, **row) for row in told], 'rotation': engine.call(shown, subject, settings)}


def rows(against: str, angle: Optional[int], inside: Values, outside: Values, paired: bool,
         wrong: Sequence[Optional[int]]) -> Iterator[Dict[str, Any]]:
    """A row a measure; wrong: images of the other kind that Standard and MC dropout have wrong, where they have a
    class."""
    for (method, measure_), told, ours, theirs in zip(MEASURES, compared(inside, outside, paired), inside, outside):
        yield OrderedDict([
            ('against', against), ('angle', angle), ('method', method), ('measure', measure_), ('n', len(ours)),
            ('others', len(theirs)), ('errors', wrong[0 if method == 'standard' else 1]), ('auroc', told.auroc),
            ('inside', float(ours.mean())), ('outside', float(theirs.mean())), ('gain', told.gain),
            ('gain_low', told.low), ('gain_high', told.high)])


def shown(subject: trained.Subject, settings: trained.Settings) -> List[Dict[str, Any]]:
    """The rows of one digit at each angle and class: its pixels, and what each pass says."""
    own, entry = trained.test_images(subject, settings.data), trained.entry_of(subject)
    labels = own.truth(own.count)
    image = int(np.flatnonzero(labels == DIGIT)[0])
    digit = own.raw(image, image + 1)[0]
    turned = np.concatenate([rotate(digit, angle) for angle in SHOWN])
    engine.use_device(None)
    net, wiring = forward.load(nets.mc(entry.net, entry.base), subject.weights)
    seeds.use_seed('rotation', settings.seed)
    pixels = sources.Arrays(turned, own.transform).read(0, len(turned))[0]
    passes = [(np.array(probs), np.array(scores))
              for probs, scores in forward.stream(net, wiring, pixels, SHOWN_PASSES)]
    probs, scores = (np.stack(part, axis=-1) for part in zip(*passes))  # angle, class, pass
    likely = sorted(set(probs.mean(axis=-1).argmax(axis=1)))  # the classes that it is taken for at some angle
    return [OrderedDict([
        ('iterations', subject.iterations), ('image', image), ('label', int(labels[image])), ('angle', angle),
        ('class', int(c)), ('T', SHOWN_PASSES), ('mc_seed', settings.seed), ('probs', _list(probs[k, c])),
        ('scores', _list(scores[k, c])), ('size', turned.shape[-1]),
        ('pixels', base64.b64encode(turned[k].tobytes()).decode())]) for k, angle in enumerate(SHOWN) for c in likely]


def _list(values):
    return ' '.join('%.3g' % value for value in values)
