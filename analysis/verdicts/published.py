"""Whether a published row can be as it is printed: five errors of 10,000 images, their mean, std and lowest.

Errors on 10,000 images are multiples of 0.01, their mean of five a multiple of 0.002, and printed numbers are rounded
to 0.01. Of n values none lies further below the mean than sqrt(n - 1) population stds, or (n - 1) / sqrt(n) stds of the
sample.
"""

import math
from typing import NamedTuple, Optional

from records import names
from records.from_bcnn import paper

HALF = 0.005  # what rounding to 0.01 hides
GRAIN = 100.0 / paper.TEST_IMAGES  # of an error, in percent


class Check(NamedTuple):
    """How far the lowest of a published row lies below its mean."""
    net: str
    least_mean: float        # the least mean that is printed so
    most_std: float          # what the std is below
    distance: float          # at least so many stds from the lowest to the mean
    most_population: float   # so many are possible with the population's std
    most_sample: float       # and so many with the sample's

    @property
    def possible(self) -> bool:
        return self.distance < self.most_population


def check(net: str, repetitions: int = paper.REPETITIONS) -> Optional[Check]:
    """The Check of a net's row, None where no lowest error is published."""
    row = paper.PUBLISHED[net]
    if row.lowest is None:
        return None
    grain = GRAIN / repetitions
    least_mean = math.ceil(round((row.mc - HALF) / grain, 6)) * grain
    most_std = row.std + HALF
    return Check(net=net, least_mean=least_mean, most_std=most_std, distance=(least_mean - row.lowest) / most_std,
                 most_population=math.sqrt(repetitions - 1), most_sample=(repetitions - 1) / math.sqrt(repetitions))


def words(found: Check) -> str:
    """The arithmetic, step by step."""
    row, n = paper.PUBLISHED[found.net], paper.REPETITIONS
    return ("%s is published with a mean of %.2f, a std of %.2f and a lowest error of %.2f. Errors on %s images are "
            "multiples of %.2f, so the lowest is %.2f exactly. The mean of %d of them is a multiple of %.3f, and one "
            "that is printed as %.2f is at least %.3f. A std printed as %.2f is below %.3f. The lowest would lie at "
            "least (%.3f - %.2f) / %.3f = %.2f stds below the mean; %d values allow at most %.2f (population std; "
            "%.2f with the sample's)." % (
                paper.title(found.net), row.mc, row.std, row.lowest, names.count(paper.TEST_IMAGES), GRAIN,
                row.lowest, n, GRAIN / n, row.mc, found.least_mean, row.std, found.most_std, found.least_mean,
                row.lowest, found.most_std, found.distance, n, found.most_population, found.most_sample))


MEANING = ('So the row cannot be as printed. It could mean that the lowest is of a sixth run or of another T, that '
           'the mean and the std are of other runs than the lowest, or that a digit was rounded otherwise.')
