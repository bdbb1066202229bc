"""MC dropout: stochastic passes of a net as a stream of softmax batches, and what they add up to.

Two ways to the same distribution. `stream`: the part of the net before the first dropout
is computed once for a batch of distinct images, the rest T times. `replicate`: the paper's
appendix, every image T times in one minibatch. Memory grows with T in the second only, and
with the number of images in neither.
"""

import hashlib
from collections import OrderedDict, namedtuple

import numpy as np

from . import engine, metrics, prototxt

# How to run a net: its input blob, the index of the first layer that samples (None: none
# does), and the blobs of the class probabilities and of the scores they are made of.
Plan = namedtuple('Plan', 'input first prob score')


def plan(message, net):
    """The Plan of a loaded net and the message it was loaded from."""
    first = prototxt.first_sampling(message)
    return Plan(net.inputs[0], None if first is None else list(net._layer_names).index(first),
                prototxt.prob_blob(message), prototxt.score_blob(message))


def seed_for(*parts):
    """A seed for Caffe from any numbers: of the run, repetition, block ... the same on every machine."""
    digest = hashlib.sha256('/'.join('%d' % part for part in parts).encode()).digest()
    return int.from_bytes(digest[:4], 'big') >> 1  # Caffe takes 31 bits


# --- passes ------------------------------------------------------------------------------

def standard(net, how, images):
    """(probabilities, scores) of one pass over a batch, copies."""
    fill(net, how, images)
    net.forward()
    return tuple(np.array(rows) for rows in outputs(net, how, len(images)))


def stream(net, how, images, T):
    """Yield (probabilities, scores) of T stochastic passes over a batch; views, valid until the next pass."""
    fill(net, how, images)
    last = len(net.layers) - 1
    net._forward(0, how.first - 1)
    for _ in range(T):
        net._forward(how.first, last)
        yield outputs(net, how, len(images))


def replicate(net, how, images, T):
    """Yield the same from one pass of a net that copies its batch T times before the first dropout."""
    fill(net, how, images)
    net.forward()
    probs, scores = outputs(net, how, len(images) * T)
    return zip(probs.reshape(T, len(images), -1), scores.reshape(T, len(images), -1))


def fill(net, how, images):
    """Put a batch into the net, which takes its size."""
    blob = net.blobs[how.input]
    if blob.data.shape != images.shape:
        blob.reshape(*images.shape)
        net.reshape()
    blob.data[...] = images


def outputs(net, how, rows):
    return net.blobs[how.prob].data.reshape(rows, -1), net.blobs[how.score].data.reshape(rows, -1)


# --- what they add up to -----------------------------------------------------------------

MOST_CLASSES = 100


class Sums:
    """Running sums over passes, for each image of a batch; and how many are wrong after each pass.

    group: how many passes in a row depend on one another; their means are what the standard
    errors are made of. With `moments` also the products of probabilities and entropies, for those of
    uncertainties; not for so many classes that a matrix an image would be too large.
    """

    def __init__(self, labels, classes, moments=False, group=1):
        n = len(labels)
        self.labels, self.group, self.held = labels, group, []
        self.passes = np.zeros(n, np.int32)
        self.probs, self.squares, self.scores = (np.zeros((n, classes)) for _ in range(3))
        self.votes, self.vote_squares = np.zeros((n, classes), np.int32), np.zeros((n, classes))
        self.entropy = np.zeros(n)
        self.moments = np.zeros((n, classes + 1, classes + 1)) if moments and classes <= MOST_CLASSES else None
        self.wrong_probs, self.wrong_scores = [], []

    def add(self, probs, scores, images=slice(None)):
        """Add one pass, of all images or of these."""
        entropy, best = metrics.entropy(probs), probs.argmax(axis=1)
        self.passes[images] += 1
        self.probs[images] += probs
        self.scores[images] += scores
        self.votes[np.arange(len(self.votes))[images], best] += 1
        self.entropy[images] += entropy
        if self.group > 1:
            self.held.append(np.column_stack([probs, entropy, best[:, None] == np.arange(probs.shape[1])]))
            if len(self.held) == self.group:
                classes = probs.shape[1]
                probs, entropy, votes = np.split(np.mean(self.held, axis=0), [classes, classes + 1], axis=1)
                self.vote_squares[images] += votes ** 2
                self._add_squares(probs, entropy, images)
                self.held = []
        else:
            self._add_squares(probs, entropy, images)
        self._count_wrong(images)

    def _add_squares(self, probs, entropy, images):
        """Add the squares of independent values: of a pass, or means of a group of passes."""
        self.squares[images] += np.square(probs, dtype=np.float64)
        if self.moments is not None:
            both = np.column_stack([probs, entropy])
            self.moments[images] += both[:, :, None] * both[:, None, :]

    def _count_wrong(self, _images):
        # Dividing by t changes no order: the sum has its maximum where the average has.
        n = len(self.labels)
        self.wrong_probs.append(n - np.count_nonzero(metrics.correct(self.probs, self.labels)))
        self.wrong_scores.append(n - np.count_nonzero(metrics.correct(self.scores, self.labels)))

    def arrays(self):
        """All of it by name, for storing."""
        arrays = OrderedDict(
            probs=self.probs, squares=self.squares, scores=self.scores, votes=self.votes, entropy=self.entropy,
            wrong_probs=np.array(self.wrong_probs, np.int64), wrong_scores=np.array(self.wrong_scores, np.int64),
            passes=self.passes)
        if self.group > 1:  # elsewhere the votes are their own squares, and every pass counts
            arrays.update(vote_squares=self.vote_squares, groups=self.passes // self.group)
        if self.moments is not None:
            errors = metrics.uncertainty_errors(self.moments, self.probs / self.group, self.entropy / self.group,
                                                self.passes // self.group)
            arrays.update((name + '_se', values) for name, values in errors.items())
        return arrays


def sample(passes, labels, classes, moments=False, group=1):
    """The Sums of a stream of passes over one batch."""
    sums = Sums(labels, classes, moments, group)
    for probs, scores in passes:
        sums.add(probs, scores)
    return sums


# --- how large a batch --------------------------------------------------------------------

BATCHES = (1000, 500, 200, 100, 50, 20, 10, 5, 2, 1)


def bytes_an_image(net):
    """What the blobs of a loaded net take for each image in its batch."""
    rows = net.blobs[net.inputs[0]].data.shape[0]
    return sum(blob.count for blob in net.blobs.values()) * 4 / rows


def fitting_batch(size, copies=1, budget=400e6):
    """The largest round number of images whose blobs fit the budget.

    The budget is a constant, not this machine's free memory: the masks that a seed gives
    depend on the batch, and the same command should give the same numbers everywhere. The
    speed hardly depends on it (Caffe's convolutions work image by image).
    """
    return next((batch for batch in BATCHES if batch * copies * size <= budget), 1)


def use_seed(*parts):
    """Seed Caffe from these numbers."""
    engine.set_seed(seed_for(*parts))
