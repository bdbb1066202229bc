"""Intervals and exact tests: answers worked out by hand or printed elsewhere, and what must hold for any numbers."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verdicts import statistics


def binomial_tail(k, m, p):
    """P(X >= k) of m tosses, by adding up."""
    def choose(i):
        return math.factorial(m) // math.factorial(i) // math.factorial(m - i)
    return float(sum(choose(i) * Fraction(p) ** i * (1 - Fraction(p)) ** (m - i) for i in range(k, m + 1)))


@given(st.integers(1, 60), st.integers(0, 60), st.sampled_from(['1/2', '1/10', '9/10', '1/3']))
def test_the_beta_function_is_the_binomial_tail(k, less, p):
    assert statistics.incomplete_beta(float(Fraction(p)), k, less + 1) == pytest.approx(
        binomial_tail(k, k + less, p), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize('freedom, quantile', [(1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (100, 1.984)])
def test_students_t_as_tables_print_it(freedom, quantile):
    assert statistics.student(freedom) == pytest.approx(quantile, abs=5e-4)


def test_the_normal_quantile():
    assert statistics.normal() == pytest.approx(1.959964, abs=1e-6)
    assert statistics.normal(0.01) == pytest.approx(2.575829, abs=1e-6)


@pytest.mark.parametrize('first, second, p', [
    (4, 0, 2 / 16.0), (0, 4, 2 / 16.0), (5, 0, 2 / 32.0), (6, 0, 2 / 64.0), (6, 1, 2 * 8 / 128.0), (3, 3, 1.0),
    (0, 0, 1.0)])
def test_mcnemar_by_counting_coins(first, second, p):
    assert statistics.mcnemar(first, second) == pytest.approx(p)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_evaluations_own(first, second):
    metrics = pytest.importorskip('bcnn.mc.metrics')
    import numpy as np
    only_a = np.array([True] * first + [False] * second, dtype=bool)
    assert statistics.mcnemar(first, second) == pytest.approx(metrics.mcnemar(only_a, ~only_a)[2], rel=1e-8)


def test_tangos_interval_as_he_printed_it():
    found = statistics.paired(12, 2, 50)  # Tango (1998), table of crossover data: 0.0611 to 0.3447
    assert (found.estimate, found.low, found.high) == pytest.approx((20, 6.11, 34.47), abs=0.01)


def test_four_images_against_none_do_not_count():
    found = statistics.paired(4, 0, 1000)
    assert found.low == 0 and found.high > 0.4 and statistics.paired(6, 0, 1000).low > 0


def test_no_image_differs_is_not_certainty():
    found = statistics.paired(0, 0, 10000)
    assert found.estimate == 0 and found.low == pytest.approx(-found.high) and 0.03 < found.high < 0.04


def test_fishers_test_by_hand():
    # of 4 and 4 images 1 and 3 wrong: (1 * 1 + 4 * 4) / C(8, 4) = 17 / 70 in one tail
    assert statistics.fisher(1, 3, 4) == pytest.approx(2 * 17 / 70.0)
    assert statistics.fisher(5, 5, 100) == 1 and statistics.fisher(4, 0, 10 ** 6) == pytest.approx(0.125, abs=1e-4)


def test_wilsons_and_newcombes_limits():
    assert statistics.wilson(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert statistics.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)  # Newcombe (1998)
    found = statistics.independent(10, 20, 100)
    # 0.1 - hypot(0.2 - 0.1334, 0.1744 - 0.1) would just exclude zero; Fisher's p = 0.07 forbids it
    assert found.estimate == pytest.approx(10) and found.low == 0
    assert found.high == pytest.approx(100 * (0.1 + math.hypot(0.2888 - 0.2, 0.1 - 0.0552)), abs=0.02)


def test_the_gap_of_two_differences_by_hand():
    first = statistics.Difference(estimate=5.0, low=2.0, high=9.0, noise='images', count='')
    second = statistics.Difference(estimate=1.0, low=-2.0, high=5.0, noise='images', count='')
    found = statistics.between(first, second)  # 3 and 4 down, 4 and 3 up: five each way
    assert (found.estimate, found.low, found.high) == pytest.approx((4, -1, 9))


def test_the_t_interval_by_hand():
    found = statistics.over([1.0, 2.0, 3.0], 'seeds', '3 seeds')  # mean 2, std 1, t(2) = 4.303
    half = 4.3027 / 3 ** 0.5
    assert (found.estimate, found.low, found.high) == pytest.approx((2, 2 - half, 2 + half), abs=1e-3)


@pytest.mark.parametrize('ours, theirs, half', [
    ((0.05, 5), (0.05, 5), 2.306 * 0.001 ** 0.5),    # 8 degrees of freedom
    ((0.00, 5), (0.05, 5), 2.776 * 0.0005 ** 0.5),   # 4: only the paper's
    ((0.00, 2), (0.00, 5), 0.0)])
def test_welchs_interval_by_hand(ours, theirs, half):
    assert statistics.welch(*ours + theirs) == pytest.approx(half, rel=1e-3)
    assert statistics.welch(*theirs + ours) == pytest.approx(half, rel=1e-3)


def test_the_median():
    assert statistics.median([3, 1, 2]) == 2 and statistics.median([4, 1, 2, 3]) == 2.5


# --- whatever the numbers -------------------------------------------------------------------------------

@settings(max_examples=60)
@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 200))
def test_more_disagreeing_images_never_decide_a_difference(first, second, more):
    few, many = [statistics.paired(first + k, second + k, 10000) for k in (0, more)]
    assert few.estimate == many.estimate
    assert many.low <= max(few.low, 0) + 1e-9 and many.high >= min(few.high, 0) - 1e-9
    if few.low <= 0 <= few.high:
        assert many.low <= 0 <= many.high


@settings(max_examples=60)
@given(st.integers(0, 400), st.integers(0, 400))
def test_differences_read_the_other_way_round(first, second):
    for difference in (statistics.paired, statistics.independent):
        one, other = difference(first, second, 1000), difference(second, first, 1000)
        assert one.estimate == pytest.approx(-other.estimate)
        assert (one.low, one.high) == pytest.approx((-other.high, -other.low), abs=1e-6)


@settings(max_examples=60)
@given(st.integers(0, 400), st.integers(0, 400))
def test_an_interval_holds_its_estimate_and_equal_counts_are_never_a_difference(first, second):
    for found in (statistics.paired(first, second, 1000), statistics.independent(first, second, 1000)):
        assert found.low <= found.estimate + 1e-9 and found.high >= found.estimate - 1e-9
        if first == second:
            assert found.low <= 0 <= found.high


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=15), st.floats(-50, 50), st.floats(1, 10))
def test_the_t_interval_moves_and_widens_with_its_values(values, shift, factor):
    found = statistics.over(values, '', '')
    moved = statistics.over([value + shift for value in values], '', '')
    wider = statistics.over([found.estimate + factor * (value - found.estimate) for value in values], '', '')
    assert (moved.low, moved.high) == pytest.approx((found.low + shift, found.high + shift), abs=1e-6)
    assert wider.low <= found.low + 1e-6 and wider.high >= found.high - 1e-6
