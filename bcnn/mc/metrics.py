"""How good predictions are, and how sure of themselves: numpy in, numbers out.

`probs` is always (images, classes), a row a predictive distribution; `labels` the true
classes; entropies are in nats, errors in percent.
"""

from typing import Any, Dict, Tuple

import numpy as np

BINS = 15  # of confidence, for calibration (Guo et al., 2017)
# Float32 probabilities underflow to 0, whose logarithm would end every average.
TINY = float(np.finfo(np.float32).tiny)


def softmax(scores: np.ndarray) -> np.ndarray:
    """The probabilities of rows of scores."""
    powers = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


# --- errors ------------------------------------------------------------------------------

def correct(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Whether each image is classified right, as Caffe's Accuracy layer counts: a tie with the true class is wrong."""
    true = scores[np.arange(len(labels)), labels]
    return (scores >= true[:, None]).sum(axis=1) == 1


def error(scores: np.ndarray, labels: np.ndarray) -> float:
    """The error in percent."""
    return 100.0 * (1 - correct(scores, labels).mean())


# --- proper scores and calibration ---------------------------------------------------------

def nll(probs: np.ndarray, labels: np.ndarray) -> float:
    """The mean negative log-likelihood of the true classes."""
    true = probs[np.arange(len(labels)), labels].astype(np.float64)
    return float(-np.log(np.maximum(true, TINY)).mean())


def brier(probs: np.ndarray, labels: np.ndarray) -> float:
    """The mean squared distance to the one-hot truth, summed over classes: 0 is best, 2 worst (Brier, 1950)."""
    difference = probs.astype(np.float64)
    difference[np.arange(len(labels)), labels] -= 1
    return float((difference ** 2).sum(axis=1).mean())


def reliability(probs: np.ndarray, labels: np.ndarray, bins: int = BINS) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each of `bins` equal bins of confidence, ((0, 1/bins], ...): images, mean confidence, accuracy."""
    confidence = probs.max(axis=1).astype(np.float64)
    right = probs.argmax(axis=1) == labels
    which = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(which, minlength=bins)
    filled = np.maximum(counts, 1)  # an empty bin gives 0, not a warning
    return (counts, np.bincount(which, weights=confidence, minlength=bins) / filled,
            np.bincount(which, weights=right, minlength=bins) / filled)


def ece(probs: np.ndarray, labels: np.ndarray, bins: int = BINS) -> float:
    """The expected calibration error: mean distance of confidence and accuracy over the bins (Guo et al., 2017)."""
    counts, confidence, accuracy = reliability(probs, labels, bins)
    return float((counts * np.abs(confidence - accuracy)).sum() / counts.sum())


# --- uncertainty of a single prediction ------------------------------------------------------

def entropy(probs: np.ndarray) -> np.ndarray:
    """The entropy of each row."""
    probs = np.asarray(probs, dtype=np.float64)
    return -(probs * np.log(np.maximum(probs, TINY))).sum(axis=-1)


def mutual_information(mean_probs: np.ndarray, expected_entropy: np.ndarray) -> np.ndarray:
    """What the samples disagree about: entropy of the mean less mean of the entropies, never below 0."""
    return np.maximum(entropy(mean_probs) - expected_entropy, 0)


def variation_ratio(votes: np.ndarray) -> np.ndarray:
    """The share of samples that did not vote for the most voted class; votes is (images, classes)."""
    return 1 - votes.max(axis=1) / votes.sum(axis=1)


def mean_errors(squares: np.ndarray, means: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The standard error of each mean of n independent values an image, from the sum of squares; NaN for one value."""
    n = n[:, None].astype(np.float64)
    variance = np.maximum(squares / n - means ** 2, 0)  # rounding may leave less than nothing
    return np.sqrt(variance / np.where(n > 1, n - 1, np.nan))


def uncertainty_errors(moments: np.ndarray, sums: np.ndarray, entropies: np.ndarray,
                       n: np.ndarray) -> Dict[str, np.ndarray]:
    """{measure: standard errors} of the entropy of the mean, the mean entropy and their difference.

    moments: sums over n passes (or means of groups of them) of the products of (probabilities,
    entropy) with one another; sums, entropies: of these themselves. To first order (the delta
    method) the entropy of the mean moves with the mean of -sum_c p_c log(mean p_c), so that each
    measure is the mean of a weighted sum of what was summed; its variance follows from their
    covariances.
    """
    n = n.astype(np.float64)
    means = np.column_stack([sums, entropies]) / n[:, None]
    covariance = moments / n[:, None, None] - means[:, :, None] * means[:, None, :]
    logs = -np.log(np.maximum(means[:, :-1], TINY))
    zeros, ones = np.zeros((len(n), 1)), np.ones((len(n), 1))
    errors = {}
    for name, weights in (('entropy', np.hstack([logs, zeros])), ('expected_entropy', np.hstack([0 * logs, ones])),
                          ('mutual_information', np.hstack([logs, -ones]))):
        variance = np.maximum(np.einsum('ni,nij,nj->n', weights, covariance, weights), 0)
        errors[name] = np.sqrt(variance / np.where(n > 1, n - 1, np.nan))
    return errors


def errors_kept(uncertainty: np.ndarray, wrong: np.ndarray, kept: int) -> float:
    """The expected errors among the `kept` least uncertain images, equal ones taken at random.

    Ties matter: most images of an easy set have a variation ratio of exactly zero.
    """
    order = np.argsort(uncertainty, kind='mergesort')
    sorted_wrong, values = wrong[order], uncertainty[order]
    edge = values[kept - 1]
    below, upto = np.searchsorted(values, edge, 'left'), np.searchsorted(values, edge, 'right')
    share = (kept - below) / float(upto - below)
    return float(sorted_wrong[:below].sum() + share * sorted_wrong[below:upto].sum())


# --- two methods on the same images ----------------------------------------------------------

def mcnemar(right_a: np.ndarray, right_b: np.ndarray) -> Tuple[int, int, float]:
    """(only a right, only b right, p): the exact two-sided McNemar test that a and b err equally often."""
    only_a = int((right_a & ~right_b).sum())
    only_b = int((~right_a & right_b).sum())
    return only_a, only_b, _binomial_two_sided(min(only_a, only_b), only_a + only_b)


def _binomial_two_sided(k, n):
    """The probability of a result at least as uneven as k of n fair coins."""
    term, total = 1, 1  # binomial coefficients, exact in integers
    for i in range(k):
        term = term * (n - i) // (i + 1)
        total += term
    return min(1.0, 2 * total / 2 ** n) if n else 1.0


def bootstrap_difference(right_a: np.ndarray, right_b: np.ndarray, level: float = 0.95, draws: int = 10000,
                         seed: int = 0) -> Tuple[float, ...]:
    """The percentile interval of error(b) - error(a) in percent, images drawn anew with replacement.

    An image counts by whether only a, only b, or neither alone is right, so drawing images
    is drawing three counts from a multinomial distribution.
    """
    n = len(right_a)
    only_a, only_b = (right_a & ~right_b).sum(), (~right_a & right_b).sum()
    counts = np.random.RandomState(seed).multinomial(n, [only_a / n, only_b / n, 1 - (only_a + only_b) / n], size=draws)
    differences = 100.0 * (counts[:, 0] - counts[:, 1]) / n
    tail = 100 * (1 - level) / 2
    return tuple(float(value) for value in np.percentile(differences, [tail, 100 - tail]))


def summary(probs: np.ndarray, labels: np.ndarray) -> Dict[str, Any]:
    """The metrics of one set of predictions, by name."""
    return {'errors': int((~correct(probs, labels)).sum()), 'error': error(probs, labels), 'nll': nll(probs, labels),
            'brier': brier(probs, labels), 'ece': ece(probs, labels), 'entropy': float(entropy(probs).mean())}
