"""Verdicts: result sets that support, contradict or leave open each statement of the paper."""

import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from analysishelp import Synthetic, whole_paper  # noqa: E402

import claims  # noqa: E402
from claims import CONTRADICTED, SUPPORTED, UNKNOWN  # noqa: E402

FULL = 10000000


def verdicts(made):
    return {claim.key: claim.verdict for claim in claims.check(made.tables())}


def test_the_papers_own_outcome_is_supported():
    found = verdicts(whole_paper())
    assert found.pop('table1-dsn-improves') == UNKNOWN  # made less than one std better
    assert set(found.values()) == {SUPPORTED} and len(found) == 14


def test_nothing_recorded_is_not_enough_data():
    found = claims.check(Synthetic().tables())
    assert len(found) == 15 and {claim.verdict for claim in found} == {UNKNOWN}


def test_a_scope_says_how_far_the_schedule_went():
    found = {claim.key: claim for claim in claims.check(whole_paper(length=0.01).tables())}
    assert found['fig2-mnist-mc-below-standard'].scope == '100,000 of 10,000,000 iterations (1%)'
    assert found['table1-dsn_aug-improves'].scope == '2,000 of 200,000 iterations (1%)'
    assert found['table1-nin-improves'].scope == ''
    assert claims.check(whole_paper().tables())[0].scope == ''


# --- Figure 2 ----------------------------------------------------------------------------------

def below(standard, mc, iteration=FULL, n=10000):
    """The claim for one curve a seed, {seed: errors}."""
    made = Synthetic()
    for method, errors in (('standard', standard), ('mc', mc)):
        for seed, count in errors.items():
            made.curve('mnist', 'lenet_all', method, {iteration: count}, seed, n=n)
    return claims.mc_below_standard(made.tables(), 'mnist')


def test_one_seed_is_judged_by_the_images():
    # the standard error of 2.00 against 1.00 percent on 10,000 images is 0.172 points, times 1.96 is 0.337
    assert below({1: 200}, {1: 100}).verdict == SUPPORTED
    assert below({1: 100}, {1: 200}).verdict == CONTRADICTED
    assert below({1: 120}, {1: 100}).verdict == UNKNOWN
    assert below({1: 20}, {1: 10}, n=1000).verdict == UNKNOWN
    assert '+1.00 +- 0.34' in below({1: 200}, {1: 100}).numbers


def test_a_second_seed_on_the_same_images_is_not_more_images():
    assert '+- 0.34' in below({1: 200, 2: 200}, {1: 100, 2: 100}).numbers


def test_three_seeds_are_judged_by_their_differences():
    # differences 0.20, 0.22, 0.24: small for the images, but the same in every seed
    assert below({1: 120, 2: 132, 3: 154}, {1: 100, 2: 110, 3: 130}).verdict == SUPPORTED
    # the same mean, but seeds disagree: 0.22 +- 4.303 * 0.4 / sqrt(3)
    assert below({1: 140, 2: 120, 3: 106}, {1: 100, 2: 98, 3: 102}).verdict == UNKNOWN


def test_seeds_that_only_one_curve_has_do_not_count():
    claim = below({1: 200, 2: 5000}, {1: 100})
    assert '(+1.00' in claim.numbers


@pytest.mark.parametrize('iteration, verdict', [(99999, UNKNOWN), (100000, SUPPORTED)])
def test_below_one_percent_of_the_schedule_there_is_no_verdict(iteration, verdict):
    claim = below({1: 200}, {1: 100}, iteration)
    assert claim.verdict == verdict
    assert claim.numbers.startswith('so far for it') == (verdict == UNKNOWN)


def test_curves_are_compared_at_the_last_iteration_they_share():
    made = Synthetic()
    made.curve('mnist', 'lenet_all', 'standard', {200000: 300, 500000: 10})
    made.curve('mnist', 'lenet_all', 'mc', {200000: 100})
    claim = claims.mc_below_standard(made.tables(), 'mnist')
    assert claim.verdict == SUPPORTED and 'at iteration 200,000' in claim.numbers


def settled(standard, mc, last):
    """The claim for errors at half of the last iteration and at it."""
    made = Synthetic()
    for method, errors in (('standard', standard), ('mc', mc)):
        made.curve('mnist', 'lenet_all', method, dict(zip((last // 2, last), errors)))
    return claims.mc_below_standard(made.tables(), 'mnist')


@pytest.mark.parametrize('standard, mc, verdict', [
    ((310, 300), (110, 100), SUPPORTED), ((110, 100), (310, 300), CONTRADICTED),  # both have settled
    ((310, 300), (200, 100), UNKNOWN), ((400, 300), (110, 100), UNKNOWN),         # 1.00 points: one still falls
    ((300, 400), (100, 200), SUPPORTED)])                                         # a rise is no fall
def test_a_short_run_gives_no_verdict_while_a_curve_still_falls(standard, mc, verdict):
    claim = settled(standard, mc, 200000)
    assert claim.verdict == verdict
    assert settled(standard, mc, FULL).verdict == (CONTRADICTED if standard[1] < mc[1] else SUPPORTED)
    if verdict == UNKNOWN:
        name = 'MC' if mc[0] == 200 else 'Standard'
        assert claim.numbers.startswith('so far for it: ')
        assert claim.numbers.endswith('(still falling: lenet-all %s)' % name)


@pytest.mark.parametrize('ip, verdict', [(200, SUPPORTED), (105, UNKNOWN), (20, CONTRADICTED)])
def test_the_lowest_must_be_below_each_other(ip, verdict):
    made = Synthetic()
    for net, method, errors in (('lenet_all', 'mc', 100), ('lenet_all', 'standard', 400), ('lenet_ip', 'standard', ip),
                                ('lenet_ip', 'mc', 200), ('lenet_none', 'standard', 300)):
        made.curve('mnist', net, method, {FULL: errors})
    assert claims.mc_lowest(made.tables(), 'mnist').verdict == verdict


# --- Figure 3 ----------------------------------------------------------------------------------

@pytest.mark.parametrize('mc, verdict', [(250, SUPPORTED), (290, UNKNOWN), (360, CONTRADICTED)])
def test_who_is_ahead_on_little_data(mc, verdict):
    # 3.00 against 2.50 percent of 10,000 images: 1.96 standard errors are 0.45; the run is a tenth of the paper's
    made = Synthetic().curve('mnist_32', 'lenet_ip', 'standard', {100000: 300}, T=10)
    made.curve('mnist_32', 'lenet_all', 'mc', {100000: mc}, T=10)
    claim = claims.ahead_on_little(made.tables(), 'mnist_32')
    assert (claim.verdict, claim.experiment, claim.scope) == (verdict, 'fig3', '100,000 of 1,000,000 iterations (10%)')


def over(curves, last=1000000):
    """The claim for {seed: [errors]} at iterations that end with `last`."""
    made = Synthetic()
    for seed, errors in curves.items():
        made.curve('mnist_4', 'lenet_ip', 'standard',
                   {last >> (len(errors) - 1 - k): count for k, count in enumerate(errors)}, seed)
    return claims.over_fits(made.tables(), 'mnist_4', 'lenet_ip', 'standard')


FALLS, RISES, FLAT = [900, 400, 250, 200, 190, 188], [900, 300, 150, 160, 250, 300], [300, 200, 151, 149, 152, 150]


@pytest.mark.parametrize('curve, last, verdict', [
    (RISES, 1000000, SUPPORTED), (RISES, 50000, SUPPORTED),     # it happens: early is enough
    (FALLS, 1000000, CONTRADICTED), (FALLS, 50000, UNKNOWN),    # it does not: only the whole schedule can say so
    (FLAT, 1000000, CONTRADICTED)])
def test_over_fitting(curve, last, verdict):
    assert over({1: curve}, last).verdict == verdict


def test_a_short_run_says_whether_it_rose_at_all():
    assert '(rise +0.00' in over({1: FALLS}, 50000).numbers
    assert 'no rise so far, but the run is shorter' in over({1: FALLS}, 50000).numbers
    assert 'a rise within the noise so far' in over({1: [900, 400, 200, 190, 195, 205]}, 50000).numbers


def test_the_numbers_are_those_of_the_curve_that_is_judged():
    # lowest (150 + 160 + 250) / 3 errors of 10,000, around the fourth; (250 + 300) / 2 at the end
    said = over({1: [900, 300, 150, 160, 250, 300]}, 160000).numbers
    assert said.startswith('averaged over neighbouring measurements: lowest 1.87% at iteration 40,000, 2.75% at the '
                           'end (rise +0.88 ')
    said = over({seed: [900, 300, 150, 160, 250, 300] for seed in (1, 2, 3)}, 160000).numbers
    assert said.startswith('lowest 1.50% at iteration 20,000, 3.00% at the end (rise +1.50 ')


def test_noise_of_the_lowest_point_is_not_over_fitting():
    assert over({1: [400, 250, 200, 120, 201, 199]}).verdict == CONTRADICTED


def test_three_seeds_find_a_small_rise_that_all_share():
    shared = {seed: [900, 300, 150 + seed, 155 + seed, 165 + seed, 172 + seed + seed % 2] for seed in (1, 2, 3)}
    assert over(shared).verdict == SUPPORTED
    assert over({1: shared[1]}).verdict == CONTRADICTED  # one seed alone cannot tell it from the images' noise


def test_few_measurements_are_not_enough():
    assert over({1: [300, 200, 100]}).verdict == UNKNOWN


# --- Table 1 and Figure 4 -------------------------------------------------------------------------

def evaluated(standard, finals, net='nin', **kwargs):
    made = Synthetic().evaluation('cifar10', net, standard, [[final] * 25 for final in finals], **kwargs)
    return claims.improves(made.tables(), net)


def test_improvement_is_more_than_one_std_of_the_repetitions():
    assert evaluated(1043, [1020, 1030, 1040], p=0.9).verdict == SUPPORTED        # 0.13 against 0.10
    assert evaluated(1035, [1020, 1030, 1040], p=0.9).verdict == UNKNOWN          # 0.05
    assert evaluated(1010, [1020, 1030, 1040], p=0.9).verdict == CONTRADICTED     # -0.20


def test_the_images_noise_stands_beside_it():
    words = 'McNemar p = 0.4: the difference is within what other test images could change'
    assert words in evaluated(1043, [1027] * 5, p=0.4).numbers
    assert 'could change' not in evaluated(1043, [1027] * 5, p=0.04).numbers


@pytest.mark.parametrize('p, verdict', [(0.2, UNKNOWN), (0.01, SUPPORTED)])
def test_part_of_the_test_set_or_one_repetition_need_mcnemar(p, verdict):
    assert evaluated(104, [90, 91, 92], n=1000, p=p).verdict == verdict
    assert evaluated(1043, [1000], p=p).verdict == verdict


def test_weights_of_short_or_unknown_training_get_no_verdict():
    assert evaluated(900, [800, 801], 'dsn', weights='trained', seed=1, iterations=1999).verdict == UNKNOWN
    assert evaluated(900, [800, 801], 'dsn', weights='trained', seed=1, iterations=2000).verdict == SUPPORTED
    assert evaluated(900, [800, 801], 'dsn', weights='unknown').verdict == UNKNOWN


@pytest.mark.parametrize('at20, verdict', [(780, SUPPORTED), (793, CONTRADICTED), (800, CONTRADICTED)])
def test_twenty_passes(at20, verdict):
    curves = [[at20 + 5 * k if t == 20 else 770 + 5 * k for t in range(1, 101)] for k in (-1, 0, 1)]
    made = Synthetic().evaluation('cifar10', 'dsn_aug', 795, curves, weights='trained', seed=1, iterations=200000)
    claim = claims.twenty_passes(made.tables())
    assert claim.verdict == verdict and 'after 20 passes %.2f%% +- 0.05' % (at20 / 100.0) in claim.numbers


def test_twenty_passes_need_twenty_passes():
    made = Synthetic().evaluation('cifar10', 'dsn_aug', 795, [[700] * 19] * 5, weights='trained', seed=1,
                                  iterations=200000)
    assert claims.twenty_passes(made.tables()).verdict == UNKNOWN


# --- the interval ---------------------------------------------------------------------------------

def test_the_t_interval():
    # of 1, 2, 3: mean 2, std 1, t(2) = 4.303
    assert claims.interval([1.0, 2.0, 3.0], noise=9) == pytest.approx((2.0, 4.303 / 3 ** 0.5))
    assert claims.interval([1.0, 2.0], noise=0.5) == pytest.approx((1.5, 0.98))


@given(st.lists(st.floats(-50, 50), min_size=3, max_size=15), st.floats(-50, 50))
def test_the_interval_moves_with_the_differences(values, shift):
    mean, half = claims.interval(values, 1.0)
    moved, same = claims.interval([value + shift for value in values], 1.0)
    assert moved == pytest.approx(mean + shift, abs=1e-9) and same == pytest.approx(half, abs=1e-6)
    assert claims.sign(mean, half) == -claims.sign(-mean, half)
