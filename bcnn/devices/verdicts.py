"""Whether what two devices show is the same: numpy in, rows with a measured and an allowed number out.

Differences of what is computed are allowed for rounding; tests of what is drawn at random for bad luck: CHANCE is
the probability with which one of them fails on a device that is right.
"""

from collections import OrderedDict
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np
from scipy import stats

CHANCE = 1e-8
SIGMAS = stats.norm.isf(CHANCE / 2)

# What is compared: its name, what is measured, how much is allowed. Two kernels of the same BLAS, which add in another
# order, differ by 1e-6 in scores and gradients, and by 1e-3 after ten steps, where a maximum has tipped over
# (tests/devices/test_devices.py).
CHECKS = OrderedDict([
    ('forward', ('scores and losses of one pass forward', 1e-4)),
    ('gradients', ('gradients of one pass backward', 1e-3)),
    ('steps', ('what ten steps of the solver change', 1e-2)),
    ('resumed', ('the same, gone on from a snapshot', 1e-2)),
    ('values', ('dropout: values that are neither 0 nor input / (1 - p)', 0)),
    ('rate', ('dropout: share that is dropped, in standard errors', SIGMAS)),
    ('rows', ('dropout: agreement of two rows, in standard errors', SIGMAS)),
    ('passes', ('dropout: agreement of two passes, in standard errors', SIGMAS)),
    ('seeds', ('dropout: agreement of two seeds, in standard errors', SIGMAS)),
    ('repeated', ('dropout: values that differ at the same seed', 0)),
    ('ways', ('stream beside replicate: Kolmogorov-Smirnov', None)),  # allowed: depends on how many passes
    ('devices', ('passes beside those of the CPU: Kolmogorov-Smirnov', None)),
    ('middle', ('a pass from the first dropout on beside a whole one', 1e-5)),
])


class Row(NamedTuple):
    """A comparison."""

    net: str
    check: str        # of CHECKS
    measured: float
    allowed: float
    where: str = ''   # it was worst

    @property
    def ok(self) -> bool:
        return bool(self.measured <= self.allowed)  # False for what is no number, too


def compare(net: str, here: Dict[str, Any], there: Dict[str, Any]) -> Iterator[Row]:
    """The rows of a net: what the device `here` shows, beside the CPU's `there`."""
    def row(check, measured, where='', allowed=None):
        return Row(net=net, check=check, measured=float(measured), where=where,
                   allowed=CHECKS[check][1] if allowed is None else allowed)

    for check, other in (('forward', there['forward']), ('gradients', there['gradients']), ('steps', there['steps']),
                         ('resumed', here['steps'])):
        measured, where = max((apart(here[check][key], other[key]), key) for key in other)
        yield row(check, measured, where)
    if 'masks' in here:
        yield from (row(*worst) for worst in masks(here['masks']))
        for check, other in (('ways', here['replicate']), ('devices', there['stream'])):
            measured, where, allowed = distributions(here['stream'], other)
            yield row(check, measured, where, allowed)
        yield row('middle', apart(here['later'], here['whole']))


def apart(here: np.ndarray, there: np.ndarray) -> float:
    """How far two arrays are apart, as a share of the second's length; infinite where one is no number."""
    if np.shape(here) != np.shape(there) or not (np.isfinite(here).all() and np.isfinite(there).all()):
        return np.inf
    size = np.linalg.norm(np.asarray(there, np.float64))
    difference = np.linalg.norm(np.asarray(here, np.float64) - there)
    return difference / size if size else (0.0 if not difference else np.inf)


def masks(layers: Dict[str, np.ndarray], p: float = 0.5) -> List[Tuple[str, float, str]]:
    """(check, measured, layer) of what dropout layers kept, see side.Side.masks: the worst layer of each check."""
    measured = OrderedDict((check, []) for check in ('values', 'rate', 'rows', 'passes', 'seeds', 'repeated'))
    for name, states in layers.items():
        first, second, again, other = states
        measured['values'].append((np.count_nonzero(states == 2), name))
        measured['rate'].append((sigmas(states[[0, 1, 3]] == 0, states[[0, 1, 3]] >= 0, p), name))
        for check, mask, another in (('rows', first[0], first[1]), ('passes', first, second), ('seeds', first, other)):
            both_seen = (mask >= 0) & (another >= 0)
            measured[check].append((sigmas(mask == another, both_seen, p ** 2 + (1 - p) ** 2), name))
        measured['repeated'].append((np.count_nonzero(first != again), name))
    return [(check,) + max(values) for check, values in measured.items()]


def sigmas(happened: np.ndarray, seen: np.ndarray, p: float) -> float:
    """How many standard errors a share is away from p; infinite where nothing was seen."""
    n = np.count_nonzero(seen)
    if not n:
        return np.inf
    return abs(np.count_nonzero(happened & seen) - n * p) / np.sqrt(n * p * (1 - p))


def distributions(first: np.ndarray, second: np.ndarray) -> Tuple[float, str, float]:
    """(largest distance, image, allowed) of the distributions of class probabilities: passes x images x classes."""
    best = second.mean(axis=0).argmax(axis=1)  # the class whose probability is looked at, for each image
    distances = [(stats.ks_2samp(first[:, image, label], second[:, image, label]).statistic, 'image %d' % image)
                 for image, label in enumerate(best)]
    n = len(first) * len(second) / (len(first) + len(second))
    return max(distances) + (np.sqrt(-np.log(CHANCE / 2) / (2 * n)),)
