"""Differences with their intervals: over trainings, over masks, over test images. Nothing but the standard library.

Every quantile here comes from one special function, the regularised incomplete beta function: it gives the binomial
distribution (exact tests and limits of paired counts) and Student's t.
"""

import math
from typing import Callable, NamedTuple, Optional, Sequence

LEVEL = 0.05  # two-sided: intervals are of 95%
SEEDS = 3     # the least number of trainings or repetitions for an interval over them


class Difference(NamedTuple):
    """A difference with its interval, in the unit of its values (here mostly points of error)."""
    estimate: float
    low: float
    high: float
    noise: str  # what it rests on: 'seeds', 'masks' or 'images'
    count: str  # of how much of it, in words: '3 seeds', '14 against 70 images'


def words(difference: Difference) -> str:
    """'+0.33 [+0.13, +0.52], 30 against 63 images'"""
    return '%+.2f [%+.2f, %+.2f], %s' % (difference.estimate, difference.low, difference.high, difference.count)


# --- distributions -----------------------------------------------------------------------------------

def incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction converges fast
        return 1 - incomplete_beta(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(1 - x)) / a
    tiny, fraction, c, d = 1e-300, 1.0, 1.0, 0.0
    for k in range(10000):
        m = k // 2
        if k == 0:
            term = 1.0
        elif k % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d or tiny)
        c = 1 + term / c or tiny
        fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * (fraction - 1)


def inverse(function: Callable[[float], float], value: float, low: float, high: float) -> float:
    """Where a growing function has this value, by bisection."""
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if function(middle) < value else (low, middle)
    return (low + high) / 2


def student(freedom: float, level: float = LEVEL) -> float:
    """The two-sided quantile of Student's t."""
    return inverse(lambda t: 1 - incomplete_beta(freedom / (freedom + t * t), freedom / 2.0, 0.5), 1 - level, 0, 1e7)


def normal(level: float = LEVEL) -> float:
    """The two-sided quantile of the normal distribution."""
    return inverse(lambda z: math.erf(z / math.sqrt(2)), 1 - level, 0, 40)


# --- over trainings and masks ---------------------------------------------------------------------------

def deviation(values: Sequence[float]) -> float:
    """The standard deviation of a sample (n - 1)."""
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def median(values: Sequence[float]) -> float:
    """The middle of some values, the mean of two for an even number."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2.0


def over(values: Sequence[float], noise: str, count: str) -> Difference:
    """The mean of two or more differences with its t-interval."""
    mean = sum(values) / len(values)
    half = student(len(values) - 1) * deviation(values) / math.sqrt(len(values))
    return Difference(estimate=mean, low=mean - half, high=mean + half, noise=noise, count=count)


def welch(std: float, n: int, other_std: float, other_n: int) -> float:
    """Half the width of the 95% interval of the difference of two means, by Welch's t."""
    parts = [(std ** 2 / n, n - 1), (other_std ** 2 / other_n, other_n - 1)]
    variance = sum(part for part, _ in parts)
    if not variance:
        return 0.0
    freedom = variance ** 2 / sum(part ** 2 / df for part, df in parts)
    return student(freedom) * math.sqrt(variance)


# --- over test images --------------------------------------------------------------------------------------

def mcnemar(first: float, second: float) -> float:
    """The exact two-sided p of so many images right in the first alone, and in the second alone.

    Means over repetitions need not be whole numbers: between them the beta function goes on smoothly.
    """
    if first == second:
        return 1.0
    more, less = max(first, second), min(first, second)
    return min(1.0, 2 * incomplete_beta(0.5, more, less + 1))


def paired(first: float, second: float, n: int, low_level: float = LEVEL, high_level: float = LEVEL,
           p: Optional[float] = None) -> Difference:
    """How far the second's error is above the first's, in points, where `first` images are right in the first alone.

    Tango's score interval, which holds for few disagreeing images too; McNemar's exact test decides whether it may
    exclude zero. The two ends may have levels of their own. p: the median of several tests, where the counts are
    their means.
    """
    p = mcnemar(first, second) if p is None else p
    low, high = tango(first, second, n, normal(low_level)), tango(first, second, n, -normal(high_level))
    low = min(low, 0.0) if p >= low_level else low
    high = max(high, 0.0) if p >= high_level else high
    return Difference(estimate=100.0 * (first - second) / n, low=100.0 * low, high=100.0 * high, noise='images',
                      count='%s against %s images' % (_number(first), _number(second)))


def tango(first: float, second: float, n: int, z: float) -> float:
    """The difference of the two shares at which the score statistic of the counts is z (Tango 1998)."""
    def statistic(delta):
        a, b = 2.0 * n, -first - second + (2 * n - first + second) * delta
        share = (math.sqrt(max(0.0, b * b + 4 * a * second * delta * (1 - delta))) - b) / (2 * a)
        variance = n * (2 * share + delta * (1 - delta))
        excess = n * delta - (first - second)
        if variance <= 0:
            return math.copysign(math.inf, excess) if excess else 0.0
        return excess / math.sqrt(variance)

    return inverse(statistic, -z, -1.0, 1.0)


def _number(count: float) -> str:
    return '%d' % count if count == int(count) else '%.1f' % count


def fisher(first: int, second: int, n: int) -> float:
    """The two-sided p of Fisher's exact test: two independent sets of n images with so many errors."""
    if first == second:
        return 1.0
    less, total = min(first, second), first + second

    def log_term(k):
        return sum(math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) for i in (k, total - k))

    terms = [log_term(k) for k in range(max(0, total - n), min(total, n) + 1)]
    top = max(terms)
    tail = sum(math.exp(term - top) for term in terms[:less - max(0, total - n) + 1])
    return min(1.0, 2 * tail / sum(math.exp(term - top) for term in terms))


def independent(first: float, second: float, n: int, low_level: float = LEVEL,
                high_level: float = LEVEL) -> Difference:
    """How far the second's error is above the first's, in points, where it is not known which images are wrong.

    As of two independent sets of images, which is cautious, because both saw the same. Newcombe's score interval;
    Fisher's exact test decides whether it may exclude zero. Mean errors of several seeds are rounded to whole ones.
    """
    first, second = int(round(first)), int(round(second))
    a, b = first / float(n), second / float(n)
    limits = []
    for level in (low_level, high_level):
        (low_a, high_a), (low_b, high_b) = wilson(first, n, level), wilson(second, n, level)
        limits.append((b - a - math.hypot(b - low_b, high_a - a), b - a + math.hypot(high_b - b, a - low_a)))
    low, high, p = limits[0][0], limits[1][1], fisher(first, second, n)
    low = min(low, 0.0) if p >= low_level else low
    high = max(high, 0.0) if p >= high_level else high
    return Difference(estimate=100.0 * (b - a), low=100.0 * low, high=100.0 * high, noise='images', count='not paired')


def between(first: Difference, second: Difference) -> Difference:
    """How far the first of two differences over images is above the second, from the limits of each.

    As of two independent sets of images, again; the limits are put together as Newcombe puts Wilson's.
    """
    gap = first.estimate - second.estimate
    return Difference(estimate=gap, low=gap - math.hypot(first.estimate - first.low, second.high - second.estimate),
                      high=gap + math.hypot(first.high - first.estimate, second.estimate - second.low),
                      noise='images', count='not paired')


def wilson(errors: int, n: int, level: float = LEVEL):
    """Wilson's score limits of a share."""
    z, p = normal(level), errors / float(n)
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4.0 * n * n))
    return max(0.0, (centre - half) / (1 + z * z / n)), min(1.0, (centre + half) / (1 + z * z / n))
