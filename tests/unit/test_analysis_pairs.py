"""Comparing two evaluations image by image, with answers worked out by hand."""

import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from analysishelp import Synthetic  # noqa: E402

import claims  # noqa: E402
import common  # noqa: E402
import pairs  # noqa: E402

LAST = 10000000


def evaluated(all_wrong, ip_wrong, iterations=LAST, n=10000, data='ab' * 32):
    """lenet_all's MC and lenet_ip's Standard dropout, curves and evaluations; which images each has wrong."""
    made = Synthetic()
    for net, method, lists in (('lenet_all', 'mc', all_wrong), ('lenet_ip', 'standard', ip_wrong)):
        errors = len(lists[0])
        made.evaluation('mnist', net, errors, [[errors] * 20], seed=1, weights='trained', iterations=iterations, n=n)
        made.wrong('mnist', net, method, lists, n=n, data=data if net == 'lenet_ip' else 'ab' * 32)
        made.curve('mnist', net, method, {LAST: errors}, n=n)
    return made.tables()


def side(tables, net, method):
    return common.evaluations(tables, 'mnist', net)[0], method


def test_images_that_only_one_has_right():
    tables = evaluated([[1, 2, 3]], [[3, 4, 5, 6, 7]])
    pair = pairs.compare(tables, side(tables, 'lenet_all', 'mc'), side(tables, 'lenet_ip', 'standard'))
    assert pair == (10000, 4, 2)  # 4 to 7 and 1, 2
    assert pairs.points(pair)[0] == pytest.approx(0.02)  # five errors less three, of 10,000
    # McNemar's variance of the difference: (4 + 2 - (4 - 2)^2 / 10000) / 10000^2
    assert pairs.points(pair)[1] == pytest.approx(100 * (6 - 4e-4) ** 0.5 / 10000)


def test_repetitions_are_averaged():
    tables = evaluated([[1, 2], [1], []], [[1, 9]])
    pair = pairs.compare(tables, side(tables, 'lenet_all', 'mc'), side(tables, 'lenet_ip', 'standard'))
    assert (pair.only_first, pair.only_second) == pytest.approx(((1 + 1 + 2) / 3.0, (1 + 0 + 0) / 3.0))


def test_other_images_cannot_be_compared():
    tables = evaluated([[1]], [[2]], data='cd' * 32)
    assert pairs.compare(tables, side(tables, 'lenet_all', 'mc'), side(tables, 'lenet_ip', 'standard')) is None
    assert pairs.section(tables) == ''


WRONG = list(range(50)), list(range(10, 72))  # 10 and 22 images apart, 12 errors between them


def gap(tables):
    at = claims.final_errors(tables, 'mnist', [('lenet_all', 'mc'), ('lenet_ip', 'standard')])
    return claims.compare(tables, 'mnist', at, ('lenet_all', 'mc'), ('lenet_ip', 'standard'))


def test_a_difference_is_judged_by_the_images_on_which_the_two_disagree():
    paired = gap(evaluated([WRONG[0]], [WRONG[1]]))
    assert paired == pytest.approx((0.12, 1.96 * 100 * (32 - 144e-4) ** 0.5 / 10000)) and claims.sign(*paired) == 1
    # nothing known of the images: 1.96 * sqrt(0.50 * 99.50 + 0.62 * 99.38) / 100, all that independent sets could do
    alone = gap(evaluated([WRONG[0]], [WRONG[1]], data='cd' * 32))
    assert alone == pytest.approx((0.12, 0.207), abs=1e-3) and claims.sign(*alone) == 0


def test_weights_of_another_iteration_say_nothing_about_the_curve():
    assert gap(evaluated([WRONG[0]], [WRONG[1]], iterations=LAST // 2))[1] == pytest.approx(0.207, abs=1e-3)


def test_the_report_shows_the_pairs():
    text = pairs.section(evaluated([WRONG[0]], [WRONG[1]]))
    cells = ['lenet-all MC on MNIST', 'lenet-ip Standard on MNIST', '10,000', '22.0', '10.0', u'+0.12 \u00b1 0.11']
    assert [part for part in cells if '>%s<' % part not in text] == []


@settings(deadline=None, max_examples=30)
@given(st.sets(st.integers(0, 19)), st.sets(st.integers(0, 19)))
def test_a_pair_read_the_other_way_round(one, other):
    tables = evaluated([sorted(one)], [sorted(other)], n=20)
    sides = side(tables, 'lenet_all', 'mc'), side(tables, 'lenet_ip', 'standard')
    pair, swapped = pairs.compare(tables, *sides), pairs.compare(tables, *reversed(sides))
    assert pair == (20, swapped.only_second, swapped.only_first)
    assert pairs.points(pair)[0] == pytest.approx(5.0 * (len(other) - len(one)))
    assert pairs.points(pair)[1] == pytest.approx(pairs.points(swapped)[1])
