"""What so few test images leave open: the interval of an error that was counted on some of them."""

import math
from typing import Tuple

import pandas as pd

from . import names
from .from_bcnn import paper
from .load import where

Z = 1.96  # a 95% interval


def interval(errors: float, n: float) -> Tuple[float, float]:
    """(low, high) of the 95% interval of an error in percent, of so many errors of n images (Wilson 1927)."""
    share, z2 = errors / float(n), Z ** 2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z * math.sqrt(share * (1 - share) / n + z2 / (4.0 * n * n)) / (1 + z2 / n)
    return 100 * (middle - half), 100 * (middle + half)


def note(group: pd.DataFrame) -> str:
    """'200 of 10,000 test images: others could give Standard 6.8 to 15.4%, MC ...'; '' for all of them."""
    n = group['n'].max()
    if n >= paper.TEST_IMAGES:
        return ''
    mc = where(group, method='mc', average='probs')
    parts = [('Standard', where(group, method='standard')['errors'].mean())]
    parts += [('MC', mc['errors'].mean())] if len(mc) else []
    return '%s of %s test images: others could give %s' % (
        names.count(n), names.count(paper.TEST_IMAGES),
        ', '.join('%s %.1f to %.1f%%' % ((name,) + interval(errors, n)) for name, errors in parts))
