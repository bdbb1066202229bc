"""What stochastic passes add up to: running sums, from which every metric is derived."""

from collections import OrderedDict
from typing import Any, Dict, Iterable, Sequence, Tuple

import numpy as np

from . import metrics
from .forward import Pass

Arrays = Dict[str, np.ndarray]  # what is stored of a block, or of all blocks of a repetition

# --- what they add up to -----------------------------------------------------------------

MOST_CLASSES = 100


class Sums:
    """Running sums over passes, for each image of a batch; and how many are wrong after each pass.

    group: how many passes in a row depend on one another; their means are what the standard
    errors are made of. With `moments` also the products of probabilities and entropies, for those of
    uncertainties; not for so many classes that a matrix an image would be too large.
    """

    def __init__(self, labels: np.ndarray, classes: int, moments: bool = False, group: int = 1):
        n = len(labels)
        self.labels, self.group, self.held = labels, group, []
        self.passes = np.zeros(n, np.int32)
        self.probs, self.squares, self.scores = (np.zeros((n, classes)) for _ in range(3))
        self.pass_squares = np.zeros((n, classes)) if group > 1 else None
        self.votes, self.vote_squares = np.zeros((n, classes), np.int32), np.zeros((n, classes))
        self.entropy = np.zeros(n)
        self.moments = np.zeros((n, classes + 1, classes + 1)) if moments and classes <= MOST_CLASSES else None
        self.wrong_probs, self.wrong_scores = [], []

    def add(self, probs: np.ndarray, scores: np.ndarray, images: Any = slice(None)) -> None:
        """Add one pass, of all images or of these."""
        entropy, best = metrics.entropy(probs), probs.argmax(axis=1)
        self.passes[images] += 1
        self.probs[images] += probs
        self.scores[images] += scores
        self.votes[np.arange(len(self.votes))[images], best] += 1
        self.entropy[images] += entropy
        if self.group > 1:
            self.pass_squares[images] += np.square(probs, dtype=np.float64)
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

    def arrays(self) -> Arrays:
        """All of it by name, for storing."""
        arrays = OrderedDict(
            probs=self.probs, squares=self.squares, scores=self.scores, votes=self.votes, entropy=self.entropy,
            wrong_probs=np.array(self.wrong_probs, np.int64), wrong_scores=np.array(self.wrong_scores, np.int64),
            passes=self.passes)
        if self.group > 1:  # elsewhere the votes are their own squares, and every pass counts
            arrays.update(vote_squares=self.vote_squares, groups=self.passes // self.group,
                          pass_squares=self.pass_squares)
        if self.moments is not None:
            errors = metrics.uncertainty_errors(self.moments, self.probs / self.group, self.entropy / self.group,
                                                self.passes // self.group)
            arrays.update((name + '_se', values) for name, values in errors.items())
        return arrays


def sample(passes: Iterable[Pass], labels: np.ndarray, classes: int, moments: bool = False, group: int = 1) -> Sums:
    """The Sums of a stream of passes over one batch."""
    sums = Sums(labels, classes, moments, group)
    for probs, scores in passes:
        sums.add(probs, scores)
    return sums


# --- how groups of passes vary ------------------------------------------------------------

class Moments:
    """The variances of passes and of means of groups of them, for each image and class."""

    def __init__(self):
        self.groups, self.passes, self.sums, self.squares, self.group_squares = 0, 0, 0, 0, 0

    def add(self, rows: Sequence[np.ndarray]) -> None:
        """Add a group of passes: passes x images x classes."""
        rows = np.asarray(rows, np.float64)
        self.groups, self.passes = self.groups + 1, self.passes + len(rows)
        self.sums, self.squares = self.sums + rows.sum(axis=0), self.squares + (rows ** 2).sum(axis=0)
        self.group_squares = self.group_squares + rows.mean(axis=0) ** 2

    def variances(self) -> Tuple[np.ndarray, np.ndarray]:
        """(variance of a pass, of the mean of a group times its passes), each an image: summed over its classes.

        The two are the same for passes with masks of their own. A pass lies as far from the mean of all as its group
        does and as it lies within that, hence the first, which stays unbiased though passes of a group are alike.
        """
        mean, size = self.sums / self.passes, self.passes // self.groups
        between = (self.group_squares - self.groups * mean ** 2) / (self.groups - 1)
        within = (self.squares - size * self.group_squares) / self.passes
        return (between + within).sum(axis=1), (size * between).sum(axis=1)


def variances(stream: Iterable[Pass], size: int) -> Tuple[np.ndarray, np.ndarray]:
    """Moments.variances() of a stream of passes in groups of a size."""
    moments, held = Moments(), []
    for probs, _ in stream:
        held.append(probs.astype(np.float64))
        if len(held) == size:
            moments.add(held)
            held = []
    return moments.variances()
