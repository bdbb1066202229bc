"""The one rule, by hand and for any numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verdicts.judging import CONTRADICTED, SUPPORTED, UNDECIDED, Evidence, equal, every, judge, unanimous
from verdicts.statistics import Difference


def difference(estimate, half, noise='images'):
    return Difference(estimate, estimate - half, estimate + half, noise, '')


@pytest.mark.parametrize('estimate, half, margin, verdict', [
    (0.5, 0.4, 0, SUPPORTED), (0.5, 0.5, 0, UNDECIDED), (0.35, 0.41, 0, UNDECIDED), (-0.5, 0.4, 0, CONTRADICTED),
    (0.0, 0.0, 0, UNDECIDED), (0.0, 0.0, 0.1, CONTRADICTED),
    (0.35, 0.41, 0.1, UNDECIDED),       # not significant is not contradicted
    (0.02, 0.05, 0.1, CONTRADICTED),    # certainly below the margin
    (0.05, 0.04, 0.1, CONTRADICTED),    # above zero, but certainly too little
    (0.05, 0.06, 0.1, UNDECIDED), (0.08, 0.05, 0.1, UNDECIDED),  # above zero, too little, perhaps not
    (0.12, 0.05, 0.1, SUPPORTED), (0.12, 0.13, 0.1, UNDECIDED)])
def test_the_rule(estimate, half, margin, verdict):
    assert judge(difference(estimate, half), margin) == verdict


NUMBERS = st.floats(-5, 5)


@given(NUMBERS, st.floats(0, 5), st.floats(0, 5), st.floats(0, 2))
def test_more_noise_never_decides_and_never_turns_a_verdict_round(estimate, half, more, margin):
    before, after = judge(difference(estimate, half), margin), judge(difference(estimate, half + more), margin)
    assert after in (before, UNDECIDED)


@given(st.floats(0, 5), st.floats(0, 2))
def test_a_difference_of_zero_is_never_supported(half, margin):
    assert judge(difference(0.0, half), margin) != SUPPORTED


@given(NUMBERS, st.floats(0, 5), st.floats(0.01, 2))
def test_equality_is_judged_alike_from_both_sides(estimate, half, margin):
    low, high = estimate - half, estimate + half
    assert equal(low, high, margin) == equal(-high, -low, margin)
    assert equal(low - 1, high + 1, margin) in (equal(low, high, margin), UNDECIDED)


def test_two_things_are_the_same():
    assert equal(-0.05, 0.09, 0.1) == SUPPORTED and equal(0.1, 0.3, 0.1) == CONTRADICTED
    assert equal(-0.3, -0.1, 0.1) == CONTRADICTED and equal(0.05, 0.15, 0.1) == equal(-0.2, 0.2, 0.1) == UNDECIDED


def test_several_verdicts():
    assert every([SUPPORTED, SUPPORTED]) == SUPPORTED and every([SUPPORTED, UNDECIDED]) == UNDECIDED
    assert every([UNDECIDED, CONTRADICTED]) == CONTRADICTED
    assert unanimous([CONTRADICTED] * 2) == CONTRADICTED and unanimous([SUPPORTED, CONTRADICTED]) == UNDECIDED


@pytest.mark.parametrize('about, images, n, verdict', [
    (None, (0.5, 0.4), 10000, SUPPORTED),              # images stand in
    ((0.5, 0.4), (0.5, 0.9), 10000, SUPPORTED),        # what the statement speaks of decides
    ((0.5, 0.9), (0.5, 0.4), 10000, UNDECIDED),
    ((0.5, 0.4), (0.5, 0.9), 9999, UNDECIDED),         # on a part of the test set the images have to agree
    ((0.5, 0.4), (0.5, 0.3), 9999, SUPPORTED),
    ((0.5, 0.4), (-0.5, 0.3), 9999, UNDECIDED)])
def test_which_noise_decides(about, images, n, verdict):
    evidence = Evidence(difference(*about, noise='seeds') if about else None, difference(*images), n)
    assert evidence.verdict() == verdict
    assert ('over images' in evidence.words()) == (about is not None and n == 10000)
