"""NIN beside the paper: the interval by hand, the words for each outcome, the rows from their tables."""

import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from analysishelp import Synthetic, whole_paper  # noqa: E402

import causes  # noqa: E402
import common  # noqa: E402
import report_commands  # noqa: E402
import table1  # noqa: E402


@pytest.mark.parametrize('ours, theirs, half', [
    ((0.05, 5), (0.05, 5), 2.306 * 0.001 ** 0.5),    # 8 degrees of freedom
    ((0.10, 2), (0.05, 5), 12.706 * 0.0055 ** 0.5),  # 1.2, taken as 1
    ((0.00, 5), (0.05, 5), 2.776 * 0.0005 ** 0.5),   # 4: only the paper's
    ((0.00, 2), (0.00, 5), 0.0)])
def test_the_interval_by_hand(ours, theirs, half):
    assert causes.welch(*ours + theirs) == pytest.approx(half)
    assert causes.welch(*theirs + ours) == pytest.approx(half)


def nin(*finals):
    made = Synthetic()
    for seed, final in enumerate(finals, 1):
        made.evaluation('cifar10', 'nin', 1043, [[final + 100 // t for t in range(1, 101)]], config='seed%d' % seed,
                        mc_seed=seed)
    return made


@pytest.mark.parametrize('finals, words', [
    ((1030,), 'one repetition tells nothing'), ((1027, 1034, 1029), 'the masks alone can explain it'),
    ((1041, 1042, 1041, 1042, 1042), 'more than the masks can explain')])
def test_the_words(finals, words):
    group, = common.evaluations(nin(*finals).tables(), 'cifar10', 'nin')
    said = causes.verdict(table1.measured(group))
    assert words in said and said.startswith("Standard dropout makes 10.43% errors, the paper's net 10.43%")


def test_the_rows_come_from_their_tables():
    made = nin(1027, 1031)
    for place, errors, n in (('as it is', 1029, 10000), ('before pooling', 110, 1000)):
        made.add('placement', net='cifar10/nin', placement=place, T=100, n=n, mc_seed=1, passes=13.0, standard_errors=1043,
                 errors=errors, only_standard_right=5, only_mc_right=7, config='x', commit=None)
    tables = made.tables()
    group, = common.evaluations(tables, 'cifar10', 'nin')
    # the helper's runs end one error above `final`; scores make five more
    assert causes.rows(tables, group, table1.measured(group)) == [
        ['the masks', 'other masks: 2 repetitions', '10.30 +- 0.03', '+0.03'],
        ['what is averaged', 'scores in the place of probabilities', '10.35 +- 0.03', '+0.08'],
        ['passes', 'T = 20 in the place of 100', '10.34 +- 0.03', '+0.07'],
        ['passes', 'T = 50 in the place of 100', '10.31 +- 0.03', '+0.04'],
        ['where dropout samples', 'as it is, with adaptive T', '10.29', '+0.02'],
        ['where dropout samples', 'before pooling (1,000 images)', '11.00', '+0.73']]


def test_the_section_and_its_command():
    assert causes.section(Synthetic().tables()) == ''
    tables = whole_paper().tables()
    assert 'before pooling' in causes.section(tables)
    assert report_commands.commands(tables, 'table1')[0] == (
        'python tools/placement.py --net nin --dataset cifar10 --weights data/nin_weights/cifar10_nin.caffemodel --T 100 --seed 1 --record')
