"""MC dropout: stochastic passes of a net as a stream of softmax batches.

Two ways to the same distribution. `stream`: the part of the net before the first dropout
is computed once for a batch of distinct images, the rest T times. `replicate`: the paper's
appendix, every image T times in one minibatch. Memory grows with T in the second only, and
with the number of images in neither.
"""

from typing import Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from ..engine import CaffeNet, NetParameter, load_net
from ..prototxt import facts

Pass = Tuple[np.ndarray, np.ndarray]  # class probabilities and scores of a batch, a row an image


class Wiring(NamedTuple):
    """How to run a net."""

    input: str               # the blob of the images
    first: Optional[int]     # the index of the first layer that samples; None where none does
    prob: str                # the blob of the class probabilities
    score: str               # and of the scores that they are made of


class NotFinite(Exception):
    """An image of the batch, by its row, and the first blob in which it is not finite."""

    def __init__(self, row: int, blob: str):
        Exception.__init__(self, row, blob)
        self.row, self.blob = row, blob


def wiring_of(message: NetParameter, net: CaffeNet) -> Wiring:
    """The Wiring of a loaded net and the message it was loaded from."""
    first = facts.first_sampling(message)
    return Wiring(net.inputs[0], None if first is None else list(net._layer_names).index(first),
                  facts.prob_blob(message), facts.score_blob(message))


def load(message: NetParameter, weights: Optional[str] = None,
         extra_weights: bool = False) -> Tuple[CaffeNet, Wiring]:
    """(net, its Wiring) of a message, as engine.load_net does it."""
    net = load_net(message, weights, extra_weights=extra_weights)
    return net, wiring_of(message, net)


# --- passes ------------------------------------------------------------------------------

def standard(net: CaffeNet, wiring: Wiring, images: np.ndarray) -> Pass:
    """(probabilities, scores) of one pass over a batch, copies."""
    fill(net, wiring, images)
    net.forward()
    return tuple(np.array(rows) for rows in outputs(net, wiring, len(images)))


class Passes:
    """Passes over the images in a net, a group of one pass at a time: Caffe's own dropout draws the masks."""

    size = 1  # passes of a group, which may depend on one another; groups do not

    def __init__(self, net: CaffeNet, wiring: Wiring):
        self.net, self.wiring = net, wiring

    def once(self) -> List[np.ndarray]:
        """Arrays, a row an image, of what is computed once for them, after the layers before the first dropout."""
        return []

    def group(self, _once: List[np.ndarray]) -> Iterator[Pass]:
        """Yields (probabilities, scores) of the passes of a group; views, valid until the next pass."""
        self.net._forward(self.wiring.first, len(self.net.layers) - 1)
        yield self.outputs()

    def outputs(self) -> Pass:
        return outputs(self.net, self.wiring, self.net.blobs[self.wiring.input].data.shape[0])


def in_groups(passes: Passes, images: np.ndarray, T: int) -> Iterator[Pass]:
    """Yield (probabilities, scores) of T stochastic passes over a batch, group by group; views."""
    fill(passes.net, passes.wiring, images)
    passes.net._forward(0, passes.wiring.first - 1)
    once = passes.once()
    for _ in range(T // passes.size):
        yield from passes.group(once)


def stream(net: CaffeNet, wiring: Wiring, images: np.ndarray, T: int) -> Iterator[Pass]:
    """Yield (probabilities, scores) of T stochastic passes over a batch; views, valid until the next pass."""
    return in_groups(Passes(net, wiring), images, T)


def replicate(net: CaffeNet, wiring: Wiring, images: np.ndarray, T: int) -> Iterator[Pass]:
    """Yield the same from one pass of a net that copies its batch T times before the first dropout."""
    fill(net, wiring, images)
    net.forward()
    probs, scores = outputs(net, wiring, len(images) * T)
    return zip(probs.reshape(T, len(images), -1), scores.reshape(T, len(images), -1))


def fill(net: CaffeNet, wiring: Wiring, images: np.ndarray) -> None:
    """Put a batch into the net, which takes its size."""
    blob = net.blobs[wiring.input]
    if blob.data.shape != images.shape:
        blob.reshape(*images.shape)
        resize(net, len(images))
    blob.data[...] = images


def resize(net: CaffeNet, rows: int) -> None:
    """Make a net one for so many images: all of its inputs, masks too."""
    for name in net.inputs:
        net.blobs[name].reshape(rows, *net.blobs[name].data.shape[1:])
    net.reshape()


def finite(net: CaffeNet, passes: Iterable[Pass]) -> Iterator[Pass]:
    """The same passes; raises NotFinite at the first with a number that is none."""
    for probs, scores in passes:
        check_finite(net, probs, scores)
        yield probs, scores


def check_finite(net: CaffeNet, probs: np.ndarray, scores: np.ndarray) -> None:
    """Raises NotFinite where an output of the net is not finite."""
    bad = np.flatnonzero(~(np.isfinite(probs).all(axis=1) & np.isfinite(scores).all(axis=1)))
    if len(bad):
        row, rows = int(bad[0]), len(probs)
        # Copies of a batch lie one after the other in a blob: every rows-th row is this image's.
        blob = next((name for name, blob in net.blobs.items() if blob.data.ndim and blob.data.shape[0] % rows == 0
                     and not np.isfinite(blob.data[row::rows]).all()), 'the scores')
        raise NotFinite(row, blob)


def outputs(net: CaffeNet, wiring: Wiring, rows: int) -> Pass:
    return net.blobs[wiring.prob].data.reshape(rows, -1), net.blobs[wiring.score].data.reshape(rows, -1)
