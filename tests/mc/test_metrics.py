"""Each metric on cases worked out by hand, and what must hold for all."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from bcnn.mc import metrics

HALVES = np.array([[0.5, 0.5, 0.0], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])


@st.composite
def predictions(draw):
    rows = draw(st.lists(st.lists(st.floats(0.01, 1), min_size=4, max_size=4), min_size=1, max_size=20))
    probs = np.array(rows)
    labels = draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    return probs / probs.sum(axis=1, keepdims=True), np.array(labels)


def test_correct_counts_ties_as_wrong():
    assert metrics.correct(HALVES, np.array([0, 1, 2])).tolist() == [False, True, True]
    assert metrics.correct(HALVES, np.array([2, 0, 2])).tolist() == [False, False, True]
    assert metrics.error(HALVES, np.array([0, 1, 2])) == pytest.approx(100 / 3)


def test_nll_by_hand():
    # -(ln 0.5 + ln 0.7 + ln 0.1) / 3
    assert metrics.nll(HALVES, np.array([0, 1, 1])) == pytest.approx((0.6931472 + 0.3566749 + 2.3025851) / 3)


def test_nll_of_a_certain_mistake_is_finite():
    value = metrics.nll(np.array([[1, 0]], dtype=np.float32), np.array([1]))
    assert value == pytest.approx(87.3365, abs=1e-3)  # -ln(FLT_MIN), the figure Caffe sticks at


def test_brier_by_hand():
    # (0.25 + 0.25) ; (0.04 + 0.09 + 0.01) ; (0.01 + 0.01 + 0.04)
    assert metrics.brier(HALVES, np.array([0, 1, 2])) == pytest.approx((0.5 + 0.14 + 0.06) / 3)
    assert metrics.brier(np.array([[1.0, 0.0]]), np.array([1])) == 2


def test_ece_by_hand():
    probs = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.4, 0.6]])
    labels = np.array([0, 1, 0, 1])
    # ten bins: confidence 0.9 twice with accuracy 0.5, confidence 0.6 twice with accuracy 1
    assert metrics.ece(probs, labels, bins=10) == pytest.approx(0.5 * 0.4 + 0.5 * 0.4)
    counts, confidence, accuracy = metrics.reliability(probs, labels, bins=10)
    assert counts.tolist() == [0, 0, 0, 0, 0, 2, 0, 0, 2, 0]
    assert confidence[8] == pytest.approx(0.9) and accuracy[8] == 0.5 and accuracy[5] == 1


def test_perfect_confidence_is_in_the_last_bin():
    counts, _, _ = metrics.reliability(np.array([[1.0, 0.0]]), np.array([0]), bins=15)
    assert counts.tolist() == [0] * 14 + [1]


def test_entropy_by_hand():
    assert metrics.entropy(np.array([0.5, 0.5])) == pytest.approx(math.log(2))
    assert metrics.entropy(np.full(10, 0.1)) == pytest.approx(math.log(10))
    assert metrics.entropy(np.array([1.0, 0.0])) == 0


def test_mutual_information_by_hand():
    certain_but_split = np.array([[0.5, 0.5]])  # two samples: (1, 0) and (0, 1)
    assert metrics.mutual_information(certain_but_split, np.array([0.0])) == pytest.approx(math.log(2))
    undecided = np.array([[0.5, 0.5]])          # two samples: (0.5, 0.5) both
    assert metrics.mutual_information(undecided, np.array([math.log(2)])) == pytest.approx(0)


def test_variation_ratio_by_hand():
    assert metrics.variation_ratio(np.array([[3, 1, 0], [4, 0, 0]])).tolist() == [0.25, 0]


def test_mcnemar_by_hand():
    right_a = np.array([1] * 50 + [1] * 1 + [0] * 9 + [0] * 5, dtype=bool)
    right_b = np.array([1] * 50 + [0] * 1 + [1] * 9 + [0] * 5, dtype=bool)
    only_a, only_b, p = metrics.mcnemar(right_a, right_b)
    assert (only_a, only_b) == (1, 9)
    assert p == pytest.approx(2 * (1 + 10) / 1024)  # of 10 coins, 0 or 1 heads, both sides
    assert metrics.mcnemar(right_a, right_a) == (0, 0, 1.0)


@pytest.mark.parametrize('k, n', [(0, 1), (2, 4), (3, 10), (70, 200), (400, 1000)])
def test_mcnemar_p_is_scipys(k, n):
    stats = pytest.importorskip('scipy.stats')
    assert metrics._binomial_two_sided(k, n) == pytest.approx(min(1, 2 * stats.binom.cdf(k, n, 0.5)))


def test_bootstrap_covers_the_difference():
    rng = np.random.RandomState(0)
    right_a, right_b = rng.rand(2000) < 0.90, rng.rand(2000) < 0.93
    low, high = metrics.bootstrap_difference(right_a, right_b)
    difference = 100 * (right_a.mean() - right_b.mean())  # of errors: b errs less
    assert low < difference < high < 0
    # the normal approximation of the same interval
    width = 2 * 1.96 * 100 * np.std(right_a.astype(float) - right_b) / math.sqrt(2000)
    assert high - low == pytest.approx(width, rel=0.05)


def test_bootstrap_of_equals_is_zero():
    right = np.array([True, False, True])
    assert metrics.bootstrap_difference(right, right) == (0, 0)


@given(predictions())
def test_bounds(pair):
    probs, labels = pair
    assert 0 <= metrics.error(probs, labels) <= 100
    assert 0 <= metrics.ece(probs, labels) <= 1
    assert 0 <= metrics.brier(probs, labels) <= 2
    assert metrics.nll(probs, labels) >= 0
    assert (metrics.entropy(probs) <= math.log(4) + 1e-9).all() and (metrics.entropy(probs) >= 0).all()
    assert metrics.reliability(probs, labels)[0].sum() == len(labels)


@given(predictions())
def test_mutual_information_is_jensens_gap(pair):
    probs, _ = pair
    mean = probs.mean(axis=0, keepdims=True)
    information = metrics.mutual_information(mean, metrics.entropy(probs).mean())
    assert 0 <= information[0] <= math.log(4) + 1e-9


@given(predictions())
def test_inputs_are_left_alone(pair):
    probs, labels = pair
    before = probs.copy()
    metrics.summary(probs, labels)
    assert np.array_equal(probs, before)


def test_softmax_by_hand():
    assert metrics.softmax(np.array([[0.0, math.log(3)], [1000.0, 1000.0]])) == pytest.approx(np.array([[.25, .75], [.5, .5]]))
