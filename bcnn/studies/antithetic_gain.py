"""What antithetic masks gain for a net: the variance of its mean probabilities and the time of a pass, by groups."""

import time
from collections import OrderedDict
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from .. import engine
from ..errors import UserError
from ..mc import antithetic, forward, running_sums
from ..mc.targets import Target
from ..system import provenance, store

ROUNDS = 5


def measure(target: Target, groups: int, count: int, seed: int = 1, batch: int = 100) -> Dict[str, Any]:
    """The row of one net: how groups of passes, so many an image, compare with passes that have masks of their own."""
    net, wiring = antithetic.load(target.sampling, target.weights, groups, target.extra_weights)
    passes, parts = antithetic.groups_of(net, wiring, np.random.RandomState(seed)), []
    for start in range(0, target.count, batch):
        pixels = target.source.read(start, min(start + batch, target.count))[0]
        parts.append(running_sums.variances(forward.in_groups(passes, pixels, count * passes.size), passes.size))
    alone, together = (np.concatenate(part) for part in zip(*parts))
    gain, error = ratio(alone, together)
    cost = _cost(target, passes, batch)
    return OrderedDict([
        ('net', target.name), ('groups', groups), ('images', target.count), ('draws', count),
        ('variance', float(alone.mean())), ('together', float(together.mean())), ('gain', gain), ('gain_se', error),
        ('time', cost), ('worth', gain / cost), ('weights', store.sha256(target.weights)[:8]),
        ('machine', provenance.machine(engine.describe()))])


def possible(target: Target, asked: Sequence[int]) -> List[int]:
    """Of these numbers of groups those that the net can have: pairs at least."""
    def tried(groups):
        try:
            antithetic.load(target.sampling, None, groups)
        except UserError:
            return False
        return True
    return [groups for groups in asked if groups == 1 or engine.call(tried, groups)]


def line(row: Dict[str, Any]) -> str:
    """A row for people."""
    return ('%s, groups of %d passes (G = %d), %d images, %d groups each: variance of the mean %.2f +- %.2f times '
            'lower at equal passes, a pass takes %.2f times as long: %.1f times less time at equal accuracy' % (
                row['net'], 2 ** row['groups'], row['groups'], row['images'], row['draws'], row['gain'],
                row['gain_se'], row['time'], row['worth']))


def ratio(above: np.ndarray, below: np.ndarray) -> Tuple[float, float]:
    """(sum of above / sum of below, its standard error by leaving out each image in turn)."""
    whole, n = float(above.sum() / below.sum()), len(above)
    without = (above.sum() - above) / (below.sum() - below)
    return whole, float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))


def _cost(target, passes, batch):
    """How many times longer a pass of a group takes than one with Caffe's own masks: median of interleaved rounds.

    Without what is computed once for an image: of T passes that is the less, the larger T.
    """
    plain = forward.Passes(*forward.load(target.sampling, target.weights, target.extra_weights))
    pixels = target.source.read(0, min(batch, target.count))[0]
    once = {sampler: _begun(sampler, pixels) for sampler in (passes, plain)}
    ratios = [_seconds(passes, once[passes]) / _seconds(plain, once[plain]) for _ in range(ROUNDS)]
    return float(np.median(ratios))


def _begun(passes, pixels):
    """What passes.once() gives, with these images in the net."""
    forward.fill(passes.net, passes.wiring, pixels)
    passes.net._forward(0, passes.wiring.first - 1)
    return passes.once()


def _seconds(passes, once):
    """Of a pass: four of them at least, and two groups."""
    groups = max(2, 4 // passes.size)
    start = time.process_time()  # of this process: others on the machine hardly count
    for _ in range(groups):
        for _ in passes.group(once):
            pass
    return (time.process_time() - start) / (groups * passes.size)
