"""Comparing two evaluations image by image, with answers worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysishelp import Synthetic
from pages.sections import same_images as section
from records import evaluations, same_images
from records.same_images import Pair, Wrong
from verdicts import comparing
from verdicts.judging import SUPPORTED, UNDECIDED

LAST = 10000000
MINE, THEIRS = ('lenet_all', 'mc'), ('lenet_ip', 'standard')


def evaluated(all_wrong, ip_wrong, iterations=LAST, n=10000, data='ab' * 32, schedule=None):
    """lenet_all's MC and lenet_ip's Standard dropout, curves and evaluations; which images each has wrong."""
    made = Synthetic()
    for (net, method), lists in ((MINE, all_wrong), (THEIRS, ip_wrong)):
        errors = len(lists[0])
        made.evaluation('mnist', net, errors, [[errors] * 20], seed=1, weights='trained', iterations=iterations, n=n,
                        schedule=schedule)
        made.wrong('mnist', net, method, lists, n=n, data=data if net == 'lenet_ip' else 'ab' * 32)
        made.curve('mnist', net, method, {LAST: errors}, n=n)
    return made.tables()


def pair_of(tables):
    sides = [same_images.of_evaluation(tables, evaluations.chosen(tables, 'mnist', net)[0], method)
             for net, method in (MINE, THEIRS)]
    return same_images.pair(*sides)


def test_images_that_only_one_has_right():
    assert pair_of(evaluated([[1, 2, 3]], [[3, 4, 5, 6, 7]])) == (10000, 4, 2)  # 4 to 7 and 1, 2


def test_repetitions_are_averaged():
    pair = pair_of(evaluated([[1, 2], [1], []], [[1, 9]]))
    assert (pair.only_first, pair.only_second) == pytest.approx(((1 + 1 + 2) / 3.0, (1 + 0 + 0) / 3.0))


def test_other_images_cannot_be_compared():
    tables = evaluated([[1]], [[2]], data='cd' * 32)
    assert pair_of(tables) is None and section.part(tables) == ''


def test_seeds_are_averaged_where_all_are_known():
    assert same_images.mean([Pair(100, 2, 4), Pair(100, 4, 4)]) == (100, 3, 4)
    assert same_images.mean([Pair(100, 2, 4), None]) is None and same_images.mean([]) is None
    assert same_images.mean([Pair(100, 2, 4), Pair(99, 4, 4)]) is None


WRONG = list(range(50)), list(range(9, 72))  # 9 and 22 images apart


def below(tables):
    return comparing.below(tables, comparing.ends(tables, 'mnist', [MINE, THEIRS]), MINE, THEIRS)


def test_a_difference_is_judged_by_the_images_on_which_the_two_disagree():
    found = below(evaluated([WRONG[0]], [WRONG[1]]))
    assert found.images.count == '22 against 9 images' and found.images.estimate == pytest.approx(0.13)
    assert found.verdict() == SUPPORTED  # p = 0.03
    # nothing known of the images: all that independent sets could do
    alone = below(evaluated([WRONG[0]], [WRONG[1]], data='cd' * 32))
    assert alone.images.count == 'not paired' and alone.verdict() == UNDECIDED


@pytest.mark.parametrize('other', [dict(iterations=LAST // 2), dict(schedule='1/20')], ids=str)
def test_other_weights_say_nothing_about_the_curve(other):
    assert below(evaluated([WRONG[0]], [WRONG[1]], **other)).images.count == 'not paired'


def test_points_of_a_curve_say_which_images_were_wrong_too():
    made = Synthetic()
    for (net, method), numbers in ((MINE, WRONG[0]), (THEIRS, WRONG[1])):
        made.curve('mnist', net, method, {LAST: len(numbers)})
        made.curve_wrong('mnist', net, method, LAST, numbers)
    assert below(made.tables()).images.count == '22 against 9 images'


def test_an_evaluation_of_standard_dropout_alone_counts():
    made = Synthetic().curve('mnist', 'lenet_none', 'standard', {LAST: 3})
    made.evaluation('mnist', 'lenet_none', 3, [[3]], seed=1, weights='trained', iterations=LAST)
    made.rows['evaluations'] = [row for row in made.rows['evaluations'] if row['method'] == 'standard']
    made.wrong('mnist', 'lenet_none', 'standard', [[1, 2, 3]])
    found = same_images.at_iteration(made.tables(), 'mnist', 'lenet_none', 'standard', 1, LAST, '')
    assert found.lists == [{'1', '2', '3'}] and found.errors() == 3
    assert evaluations.chosen(made.tables(), 'mnist', 'lenet_none') == []  # but it is no row of a table


def test_the_report_shows_the_pairs():
    text = section.part(evaluated([WRONG[0]], [WRONG[1]]))
    cells = ['lenet-all MC on MNIST', 'lenet-ip Standard on MNIST', '10,000', '22.0', '9.0',
             '+0.13 [+0.02, +0.25]', '0.029']
    assert [part for part in cells if '>%s<' % part not in text] == []


@settings(max_examples=50)
@given(st.frozensets(st.integers(0, 19)), st.frozensets(st.integers(0, 19)))
def test_a_pair_read_the_other_way_round(first, second):
    one, other = [Wrong('data', 20, [frozenset(map(str, numbers))]) for numbers in (first, second)]
    pair, swapped = same_images.pair(one, other), same_images.pair(other, one)
    assert pair == (20, swapped.only_second, swapped.only_first)
    assert pair.only_first - pair.only_second == len(second) - len(first)
