"""Where weight averaging departs from the mean over masks, layer by layer: does pooling break Standard dropout?

For each layer from the first dropout on: the distance between the mean over masks of its output and its output under
weight averaging (Standard dropout), relative to the size of that mean, squared, for each image. A mean of T passes is
off its expectation by chance, and its square too large by the variance of a pass over T, which is taken off: so that
the distance after a layer that weight averaging gets right is zero on average, and may be below it for one image.

Part of that departure is the same for every image: weight averaging then moves all outputs of a unit by a constant,
such as the score of a class. How large that part is, pairs of images tell: the mean product of the departures of two
different images, whose masks are independent, over the mean square of one.
"""

from collections import OrderedDict
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .. import engine, nets, seeds
from ..mc import forward
from . import trained

BATCH = 100  # images of a block
Loaded = Tuple[engine.CaffeNet, forward.Wiring]
Layer = Tuple[int, engine.LayerParameter]  # with its place in the net


def layers_of(message: engine.NetParameter) -> List[Layer]:
    """The layers of an MC net from its first dropout on."""
    first = next(k for k, layer in enumerate(message.layer) if layer.type == 'Dropout')
    return list(enumerate(message.layer))[first:]


class Departure(NamedTuple):
    """How far the means of a batch are from weight averaging."""

    distance: np.ndarray   # squared and relative, of each image, without bias
    total: np.ndarray      # the sum over images of mean less averaged
    squared: float         # the sum of its squares, and what chance adds to that on average
    chance: float


class Means:
    """Sums over passes of a blob and of its squares, an image a row."""

    def __init__(self, shape: Tuple[int, ...]):
        self.sum, self.squares, self.n = np.zeros(shape), np.zeros(shape), 0

    def add(self, values: np.ndarray) -> None:
        """Add a pass."""
        values = values.reshape(len(values), -1)
        self.sum += values
        self.squares += np.square(values, dtype=np.float64)
        self.n += 1

    def departure(self, averaged: np.ndarray) -> Departure:
        """From the output under weight averaging."""
        mean = self.sum / self.n
        chance = ((self.squares / self.n - mean ** 2) / (self.n - 1)).sum(axis=1)  # variance of the mean
        squared = ((mean - averaged) ** 2).sum(axis=1)
        return Departure(distance=(squared - chance) / ((mean ** 2).sum(axis=1) - chance),
                         total=(mean - averaged).sum(axis=0), squared=squared.sum(), chance=chance.sum())


def common(parts: Sequence[Departure]) -> Optional[float]:
    """The share of a squared departure that is the same for all images; None for one image, or without a departure."""
    n = sum(len(part.distance) for part in parts)
    squared, chance = (sum(getattr(part, name) for part in parts) for name in ('squared', 'chance'))
    if n < 2 or squared <= chance:
        return None
    pairs = np.square(sum(part.total for part in parts)).sum() - squared  # of the products of two different images
    return float(pairs / (n - 1) / (squared - chance))


def of_block(standard: Loaded, sampling: Loaded, pixels: np.ndarray, T: int,
             blobs: Sequence[str]) -> Dict[str, Departure]:
    """{blob: Departure} of a batch."""
    forward.standard(*standard, pixels)
    averaged = {name: standard[0].blobs[name].data.reshape(len(pixels), -1).astype(np.float64) for name in blobs}
    means = {name: Means(averaged[name].shape) for name in blobs}
    for _ in forward.stream(*sampling, pixels, T):
        for name in blobs:
            means[name].add(sampling[0].blobs[name].data)
    return OrderedDict((name, means[name].departure(averaged[name])) for name in blobs)


def measure(subject: trained.Subject, settings: trained.Settings, folder: str) -> trained.Tables:
    """{'approximation': a row a layer}."""
    entry = trained.entry_of(subject)
    source = trained.test_images(subject, settings.data)
    messages = nets.deploy(entry.net, entry.base), nets.mc(entry.net, entry.base)
    layers = layers_of(messages[1])
    blobs = [layer.top[0] for _, layer in layers]

    def worker():
        engine.use_device(None)
        loaded = [forward.load(message, subject.weights) for message in messages]

        def do(block):
            seeds.use_seed('approximation', settings.seed, block)
            pixels = source.read(block * BATCH, min((block + 1) * BATCH, settings.count))[0]
            return of_block(loaded[0], loaded[1], pixels, settings.T, blobs)
        return do

    blocks = range(-(-settings.count // BATCH))
    made = dict(engine.work(worker, blocks, min(settings.jobs, len(blocks))))
    departures = {name: [made[block][name] for block in blocks] for name in blobs}
    return {'approximation': list(rows(layers, departures, subject, settings))}


def rows(layers: Sequence[Layer], departures: Dict[str, List[Departure]], subject: trained.Subject,
         settings: trained.Settings) -> Iterator[Dict[str, Any]]:
    """A row a layer: distance, and how much it grew from the layer that it reads; means over images."""
    distances = {name: np.concatenate([part.distance for part in parts]) for name, parts in departures.items()}
    for index, layer in layers:
        here = distances[layer.top[0]]
        before = distances.get(layer.bottom[0], np.zeros(len(here)))  # before the first dropout both are the same
        distance, growth = trained.spread(here), trained.spread(here - before)
        yield OrderedDict([
            ('iterations', subject.iterations), ('index', index), ('layer', layer.name), ('type', layer.type),
            ('T', settings.T), ('n', len(here)), ('mc_seed', settings.seed), ('distance', distance[0]),
            ('distance_se', distance[1]), ('growth', growth[0]), ('growth_se', growth[1]),
            ('common', common(departures[layer.top[0]]) if distance[0] > 2 * distance[1] else None)])
