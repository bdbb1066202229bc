"""Antithetic masks: groups of passes from one mask and its complement, for means of less variance in less time.

At p = 0.5 a mask and its complement are equally likely, so the mean over a pair of passes, one with each, is as
unbiased as that of two passes with masks of their own (Hammersley and Morton, 1956). Its variance is (1 + r) times
theirs, r the correlation of the two outputs, mostly below 0 (bcnn.studies.antithetic_gain measures what that gains).

The second pass of a pair is cheaper, too. What follows the first dropout is often linear but for a constant, such as a
convolution: y without dropout, u under a mask that doubles what it keeps. As mask and complement add up to 2,

    2 y - u

is the output under the complement, and y is computed once for an image. Where a non-linearity follows at once, u is
what the dropout itself lets pass, and nothing else changes.

And one convolution gives more than two masks. With its input channels in G groups (a Slice and G smaller convolutions,
the work of one) every choice of u or 2 y - u for each group is the output of a valid mask: 2^G of them. Each value is
dropped with a probability of one half in every pass. The passes of such a group depend on one another, so standard
errors are those of means of groups. A choice is followed by its complement, and so are the masks of all other dropout
layers, drawn anew for every such pair.
"""

import itertools
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .. import batches, engine
from ..errors import UserError
from ..prototxt import masks
from . import forward

BEST = 2   # groups, where channels can be grouped: measured by tools/sampler.py, on NIN and on lenet_ip
MOST = 8   # 256 passes; more groups have more variance


class Wiring(NamedTuple):
    """How to run a net whose masks are inputs: as forward.Wiring, and what is linear in the first mask."""

    input: str
    first: int               # the index of the first dropout
    prob: str
    score: str
    masks: Tuple[str, ...]   # the blobs of the masks, that of the first dropout first
    parts: Tuple[str, ...]   # the blobs, one a group, that are linear in it; their sum is
    end: str                 # this one
    rest: int                # the index of the layer behind it
    pool: int = 0            # see masks.Masked

    @property
    def size(self) -> int:
        """The passes of a group."""
        return 2 ** len(self.parts)


# --- the net -------------------------------------------------------------------------------------------

def load(message: engine.NetParameter, weights: Optional[str], groups: int = 1,
         extra_weights: bool = False) -> Tuple[engine.CaffeNet, Wiring]:
    """(net, Wiring) of an MC net whose masks are inputs."""
    stock, wiring = forward.load(message, weights, extra_weights)
    masked = masks.masked(message, {name: tuple(blob.data.shape) for name, blob in stock.blobs.items()}, groups)
    net = engine.load_net(masked.message)
    for name, blobs in stock.params.items():
        if name == masked.cut:
            _share(net, masked, blobs)
        else:
            for blob, own in zip(blobs, net.params[name]):
                own.data[...] = blob.data
    names = list(net._layer_names)
    return net, Wiring(input=wiring.input, first=names.index(masked.drop), prob=wiring.prob, score=wiring.score,
                       masks=masked.masks, parts=masked.parts, end=masked.end, rest=names.index(masked.last) + 1,
                       pool=masked.pool)


def _share(net, masked, blobs):
    """Gives each part its share of the weights of the layer that was cut, and the first one the constants."""
    weights = blobs[0].data
    by_channel = weights.reshape(weights.shape[0], masked.points[-1], -1)
    for part, start, stop in zip(masked.parts, masked.points, masked.points[1:]):
        own = net.params[part][0].data
        own[...] = by_channel[:, start:stop].reshape(own.shape)
    for blob, own in zip(blobs[1:], net.params[masked.parts[0]][1:]):
        own.data[...] = blob.data


# --- passes --------------------------------------------------------------------------------------------

class Groups(forward.Passes):
    """Groups of passes over the images in a net, with masks from a numpy generator."""

    def __init__(self, net: engine.CaffeNet, wiring: Wiring, rng: np.random.RandomState):
        forward.Passes.__init__(self, net, wiring)
        self.rng, self.size = rng, wiring.size

    def once(self) -> List[np.ndarray]:
        """Twice what the linear layers give without dropout, an array a part."""
        self._data(self.wiring.masks[0])[...] = 1
        self.net._forward(self.wiring.first, self.wiring.rest - 1)
        return [2 * self._data(name) for name in self.wiring.parts]

    def group(self, twice: List[np.ndarray]) -> Iterator[forward.Pass]:
        """Yields (probabilities, scores) of the passes of a group; views. twice: of these images, see once()."""
        wiring, last, both = self.wiring, len(self.net.layers) - 1, self._both(twice)
        for k, choice in enumerate(choices(len(both))):
            if k:  # the first is there. Layers in place change it where it is one part, which nobody reads then
                _add_up([pair[chosen] for pair, chosen in zip(both, choice)], self._data(wiring.end))
            for name in wiring.masks[1:]:
                if k % 2:
                    np.subtract(2, self._data(name), out=self._data(name))
                else:
                    self._draw(name)
            self.net._forward(wiring.rest, last)
            yield self.outputs()

    def _both(self, twice):
        """(what it is under a new mask, and under its complement) of each part; the sum of the first is in the net."""
        self._draw(self.wiring.masks[0])
        self.net._forward(self.wiring.first, self.wiring.rest - 1)
        under = [self._data(name) for name in self.wiring.parts]
        return list(zip(under, [whole - kept for whole, kept in zip(twice, under)]))

    def _data(self, name):
        return self.net.blobs[name].data

    def _draw(self, name):
        mask = self._data(name)
        mask[...] = draw(mask.shape, self.rng)


class PooledPairs(Groups):
    """Pairs of passes where MAX pooling follows the first dropout: both are computed here, several times faster.

    Whole numbers do it: those with the bits of a float, all but the sign turned over below 0, are in the order of the
    floats, 0 for 0. A mask is a bitwise and. Their maximum needs no look at NaN, which makes numpy's of floats slow.
    """

    def once(self) -> List[np.ndarray]:
        """Twice what the first dropout reads, as ordered numbers: images x places in a window x pooled values."""
        first = self.net._layer_names[self.wiring.first]
        values, rows = 2 * self._data(self.net.bottom_names[first][0]), self.wiring.pool
        n, channels, height, width = values.shape
        windows = values.reshape(n, channels, height // rows, rows, width // rows, rows).transpose(0, 3, 5, 1, 2, 4)
        return [ordered(np.ascontiguousarray(windows).view(np.int32)).reshape(
            n, rows * rows, channels, height // rows, width // rows)]

    def _both(self, twice):
        self.kept = np.negative(draw(twice[0].shape, self.rng, 1), dtype=np.int32)  # all bits, or none
        under, there = twice[0] & self.kept, self._data(self.wiring.end)
        there[...] = _highest(under)
        return [(there, _highest(twice[0] ^ under))]


def ordered(bits: np.ndarray) -> np.ndarray:
    """Whole numbers in the order of the floats that have these bits, and the other way round."""
    return bits ^ (bits >> 31 & np.int32(0x7fffffff))


def _highest(windows):
    """The maxima over the places of a window, as floats."""
    highest = np.maximum(windows[:, 0], windows[:, 1])
    for place in range(2, windows.shape[1]):
        np.maximum(highest, windows[:, place], out=highest)
    return ordered(highest).view(np.float32)


def groups_of(net: engine.CaffeNet, wiring: Wiring, rng: np.random.RandomState) -> Groups:
    """The Groups of passes of a net."""
    return (PooledPairs if wiring.pool else Groups)(net, wiring, rng)


def choices(groups: int) -> Iterator[Tuple[int, ...]]:
    """Every choice of 0 and 1 for each group once, each followed by its complement, all zeros first."""
    for rest in itertools.product((0, 1), repeat=groups - 1):
        choice = (0,) + rest
        yield choice
        yield tuple(1 - side for side in choice)


def _add_up(arrays, total):
    np.add(arrays[0], arrays[1] if len(arrays) > 1 else 0, out=total)
    for more in arrays[2:]:
        total += more


def draw(shape: Sequence[int], rng: np.random.RandomState, kept: int = 2) -> np.ndarray:
    """A mask of `kept` and 0, equally likely."""
    size = int(np.prod(shape))
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), np.uint8))[:size]
    return (kept * bits).reshape(shape)


# --- how many groups -------------------------------------------------------------------------------------

def settle(message: engine.NetParameter, asked: int, T: int) -> Tuple[int, batches.Need]:
    """(groups, batches.Need) of an evaluation with T passes; asked: groups, 0 for as many as suit net and T.

    For a process of its own. Refuses groups that the net does not have.
    """
    if asked > MOST:
        raise UserError('%d groups of channels: at most %d' % (asked, MOST))
    if asked:
        return asked, _need(message, asked)
    masks.dropouts(message)
    if T % 2 ** BEST == 0:
        try:
            return BEST, _need(message, BEST)
        except UserError:  # nothing to cut
            pass
    return 1, _need(message, 1)


def _need(message, groups):
    """What an image takes: the blobs, and the arrays beside them, two for each part or four of all values to pool."""
    net, wiring = load(message, None, groups)
    need, rows = batches.need_of(net), net.blobs[wiring.input].data.shape[0]
    beside = 2 * sum(net.blobs[name].count for name in wiring.parts)
    if wiring.pool:
        beside = 4 * net.blobs[wiring.masks[0]].count
    return need._replace(bytes=need.bytes + 4 * beside / rows)


def check_multiple(T: int, size: int, views: int = 1) -> None:
    """Refuses a number of passes that groups of this size do not make up."""
    unit = size * views
    if T % unit:
        near = [str(count) for count in (T // unit * unit, T // unit * unit + unit) if count]
        raise UserError('T is %d: antithetic masks come in groups of %d passes%s, so that the nearest is %s'
                        % (T, size, ' a view' if views > 1 else '', ' or '.join(near)))
