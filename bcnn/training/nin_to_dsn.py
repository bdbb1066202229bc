"""NIN's weights for DSN, as a caffemodel that tools/train.py --init starts from.

The trunks are the same, layer by layer. Two things are not:

  - DSN's dropout is not inverted: where NIN's next layer sees x, DSN's sees x / 2 (nets.not_inverted).
    So the weights of conv2 and conv3, which read what dropout leaves, are doubled; biases stay.
  - NIN's scores are logits, of tens; the squared hinge of DSN wants margins, of -1 and 1. Its loss on the
    logits is in the hundreds, and its first steps would ruin the net. So cccp6 is put on the scale of margins:
    a * score + c, the least-squares fit to -1 and 1 on training images. One a > 0 and one c for all
    classes, so that no prediction changes. What follows cccp6 is an average, which passes both on as they are.
"""

import os
from typing import NamedTuple, Tuple

import numpy as np

from .. import engine, nets
from ..data import records
from ..errors import UserError
from ..mc import forward, metrics
from ..system import files, progress

DOUBLED = ('conv2', 'conv3')  # the layers that read a Power layer's halves
LAST = 'cccp6'
BATCH = 100


class Fit(NamedTuple):
    """The affine step, and what it does on the images that it was fitted to."""

    a: float
    c: float
    images: int
    error: float         # percent, the same before and after
    loss_before: float   # squared hinge, a mean over the images
    loss: float


def carry_over(weights: str, lmdb: str, count: int, out: str) -> Fit:
    """The Fit of NIN weights on the first training images; writes DSN's caffemodel to `out`, whole or not at all."""
    engine.require_file(weights)
    there = records.count(lmdb)
    if not 1 <= count <= there:
        raise UserError('%s has %d images: --images %d is not possible' % (lmdb, there, count))
    return engine.call(_carry_over, weights, lmdb, count, out)


def _carry_over(weights, lmdb, count, out):
    net = trunk(weights)
    margins, labels = scores(net, lmdb, count)
    margin = fit(margins, labels)
    rescale(net, margin)
    folder = os.path.dirname(os.path.abspath(out))
    with files.folder(folder), files.atomic(out) as temporary:
        net.save(temporary)  # a deploy net: neither data layers nor paths in it
    return margin


def trunk(weights: str) -> engine.CaffeNet:
    """DSN's net for Standard dropout with NIN's weights, its scores those of NIN with DSN's pooling."""
    nin, dsn = engine.load_net(nets.deploy('nin', 'cifar10', 1), weights), engine.load_net(
        nets.deploy('dsn', 'cifar10', BATCH))
    for name, blobs in dsn.params.items():
        for k, blob in enumerate(blobs):
            blob.data[...] = nin.params[name][k].data * (2 if name in DOUBLED and k == 0 else 1)
    return dsn


def scores(net: engine.CaffeNet, lmdb: str, count: int) -> Tuple[np.ndarray, np.ndarray]:
    """(scores, labels) of the first images of an LMDB with Standard dropout."""
    wiring = forward.wiring_of(nets.deploy('dsn', 'cifar10', BATCH), net)
    margins, labels = [], []
    with progress.bar('scores of training images', count, 'images') as step:
        for start in range(0, count, BATCH):
            images, some = records.load(lmdb, start, min(start + BATCH, count))
            margins.append(forward.standard(net, wiring, images)[1])
            labels.append(some)
            step(len(some))
    return np.concatenate(margins).astype(np.float64), np.concatenate(labels)


def fit(margins: np.ndarray, labels: np.ndarray) -> Fit:
    """The Fit of a * score + c to 1 for the label and -1 for every other class."""
    signs = _signs(margins, labels)
    design = np.column_stack([margins.ravel(), np.ones(margins.size)])
    a, c = np.linalg.lstsq(design, signs.ravel(), rcond=None)[0]
    if not a > 0:
        raise UserError('the scores of %d training images do not rise with the right class (a = %g): these are not '
                        'the weights of a net that has learned CIFAR-10' % (len(labels), a))
    return Fit(a=float(a), c=float(c), images=len(labels), error=metrics.error(margins, labels),
               loss_before=squared_hinge(margins, labels), loss=squared_hinge(a * margins + c, labels))


def squared_hinge(margins: np.ndarray, labels: np.ndarray) -> float:
    """DSN's loss: max(0, 1 - s * score)^2 summed over the classes, a mean over the images."""
    return float((np.maximum(0, 1 - _signs(margins, labels) * margins) ** 2).sum(axis=1).mean())


def _signs(margins, labels):
    signs = -np.ones(margins.shape)
    signs[np.arange(len(labels)), labels] = 1
    return signs


def rescale(net: engine.CaffeNet, margin: Fit) -> None:
    """Puts the last convolution's scores on the scale of margins."""
    weights, biases = net.params[LAST]
    weights.data[...] *= margin.a
    biases.data[...] = margin.a * biases.data + margin.c
