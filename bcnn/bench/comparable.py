"""Whether two ways compute the same: without that, their times are not worth comparing."""

import numpy as np

from ..errors import UserError

STANDARD_TOLERANCE = 1e-4   # between the probabilities of two libraries
SPREAD = (0.6, 1 / 0.6)     # between the variances of the passes of two ways
DISTANCE = 3.0              # between their means, squared, in units of what chance makes of it


def check_standard(mine, theirs):
    """Refuses Standard probabilities that are not the same numbers."""
    if mine.shape != theirs.shape:
        raise UserError('not comparable: Standard probabilities of shape %s, ours %s' % (theirs.shape, mine.shape))
    worst = float(np.abs(mine - theirs).max())
    if not worst <= STANDARD_TOLERANCE:
        raise UserError('not comparable: Standard probabilities differ by %.2g' % worst)


def check_passes(mine, theirs):
    """Refuses T passes that are not of the same distribution: other means or another spread."""
    if mine.shape != theirs.shape:
        raise UserError('not comparable: passes x images x classes are %s, ours %s' % (theirs.shape, mine.shape))
    spread, distance = compare(mine, theirs)
    if not SPREAD[0] <= spread <= SPREAD[1]:
        raise UserError('not comparable: the passes vary %.2f times as much as ours' % spread)
    if not distance <= DISTANCE:
        raise UserError('not comparable: the means differ %.1f times as much as chance allows' % distance)


def compare(mine, theirs):
    """(spread, distance) of two sets of passes: their variance over ours; their means' squared distance over what
    the variance of two such means makes it on average, 1 where both sample the same distribution."""
    variances = [rows.var(axis=0, ddof=1, dtype=np.float64).sum() for rows in (mine, theirs)]
    gap = np.square(mine.mean(axis=0, dtype=np.float64) - theirs.mean(axis=0, dtype=np.float64)).sum()
    expected = variances[0] / len(mine) + variances[1] / len(theirs)
    if not variances[0] or not expected:
        return float('nan'), float('nan')
    return variances[1] / variances[0], gap / expected
