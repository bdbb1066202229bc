"""Whether two ways compute the same: without that, their times are not worth comparing.

Each way must give the same Standard probabilities, and T passes of the same distribution.
"""

from typing import Optional, Tuple

import numpy as np

from .. import engine
from ..errors import UserError
from . import mc_ways, pass_work
from .measuring import Spent, Work
from .peers import Peer

STANDARD_TOLERANCE = 1e-4   # between the probabilities of two libraries
SPREAD = (0.6, 1 / 0.6)     # between the variances of the passes of two ways
DISTANCE = 3.0              # between their means, squared, in units of what chance makes of it


def check_standard(mine: np.ndarray, theirs: np.ndarray) -> None:
    """Refuses Standard probabilities that are not the same numbers."""
    if mine.shape != theirs.shape:
        raise UserError('not comparable: Standard probabilities of shape %s, ours %s' % (theirs.shape, mine.shape))
    worst = float(np.abs(mine - theirs).max())
    if not worst <= STANDARD_TOLERANCE:
        raise UserError('not comparable: Standard probabilities differ by %.2g' % worst)


def check_passes(mine: np.ndarray, theirs: np.ndarray) -> None:
    """Refuses T passes that are not of the same distribution: other means or another spread."""
    if mine.shape != theirs.shape:
        raise UserError('not comparable: passes x images x classes are %s, ours %s' % (theirs.shape, mine.shape))
    spread, distance = compare(mine, theirs)
    if not SPREAD[0] <= spread <= SPREAD[1]:
        raise UserError('not comparable: the passes vary %.2f times as much as ours' % spread)
    if not distance <= DISTANCE:
        raise UserError('not comparable: the means differ %.1f times as much as chance allows' % distance)


def compare(mine: np.ndarray, theirs: np.ndarray) -> Tuple[float, float]:
    """(spread, distance) of two sets of passes: their variance over ours; their means' squared distance over what
    the variance of two such means makes it on average, 1 where both sample the same distribution."""
    variances = [rows.var(axis=0, ddof=1, dtype=np.float64).sum() for rows in (mine, theirs)]
    gap = np.square(mine.mean(axis=0, dtype=np.float64) - theirs.mean(axis=0, dtype=np.float64)).sum()
    expected = variances[0] / len(mine) + variances[1] / len(theirs)
    if not variances[0] or not expected:
        return float('nan'), float('nan')
    return variances[1] / variances[0], gap / expected


# --- checked, then timed ---------------------------------------------------------------------------------

class Prepared:
    """A case that may be timed, which the peers know too: each way is checked against ours when it is first asked for.

    T: passes for the checks.
    """

    def __init__(self, case: mc_ways.Case, peer: Peer, T: int):
        self.case, self.peer, self.T = case, peer, T
        self.checked, self.works, self.variances, self.reference = set(), {}, {}, None
        mc_ways.tell(peer, case)

    def time(self, way: str, T: int) -> Spent:
        """What T passes over the images of the case take; refuses a way that computes something else."""
        if way not in self.checked:
            self._check(way)
            self.checked.add(way)
        spent = mc_ways.ours(self.case, way, T) if way in mc_ways.OURS else mc_ways.theirs(self.peer, self.case, way, T)
        return spent._replace(note=', '.join(filter(None, [self.case.note, spent.note])))

    def _check(self, way):
        if way in mc_ways.OURS and way not in mc_ways.CHECKED:
            return
        if way not in mc_ways.OURS:  # first, as it is the one that may not be there
            standard = mc_ways.their_standard(self.peer, self.case)
            check_standard(mc_ways.our_standard(self.case), standard)
        few = self.case._replace(pixels=self.case.pixels[:10], labels=self.case.labels[:10])
        if self.reference is None:
            self.reference = mc_ways.passes(few, 'stream', self.T)
        check_passes(self.reference, self.reference if way == 'stream'  # that it samples at all
                     else mc_ways.passes(few, way, self.T) if way in mc_ways.OURS
                     else mc_ways.their_passes(self.peer, few, way, self.T))

    def work(self, way: str, T: int) -> Work:
        """The Work of T passes, computed once; that of adaptive T is not known before."""
        if way not in mc_ways.CHECKED + mc_ways.PEERS:
            return Work()
        kind = way if way == 'antithetic' else way in mc_ways.ONCE
        if (T, kind) not in self.works:
            self.works[T, kind] = self._work(T, kind)
        return self.works[T, kind]

    def _work(self, T, kind):
        if kind == 'antithetic':
            return pass_work.in_groups(self.case.mc_net(), T, mc_ways.groups_for(self.case, T))
        return pass_work.plain(self.case.mc_net(), T, kind)

    def variance(self, way: str, T: int) -> Optional[float]:
        """The variance of the mean of T passes of a way beside that of passes with masks of their own, at equal T."""
        if way not in mc_ways.CHECKED + mc_ways.PEERS:
            return None  # adaptive: an image has as many passes as its class takes, and no other accuracy
        if way != 'antithetic':
            return 1.0
        if T not in self.variances:
            self.variances[T] = engine.call(mc_ways.variance_in_groups, self.case, T, 2 * self.T)
        return self.variances[T]
