"""The rules that held before, frozen: what each of the three sets would say, by cases of their own tests of then."""

import pytest

from analysishelp import Synthetic, whole_paper
from verdicts import former, rules, statements
from verdicts.judging import CONTRADICTED, SUPPORTED, UNDECIDED

FIRST, GUARDED, PAIRED = former.FORMER
FULL = 10000000


def test_the_papers_own_outcome():
    tables = whole_paper().tables()
    for known, count in ((FIRST, 11), (GUARDED, 11), (PAIRED, 15)):
        found = former.verdicts(tables, known)
        assert set(found.values()) == {SUPPORTED} and len(found) == count


def test_nothing_recorded():
    assert set(former.verdicts(Synthetic().tables(), PAIRED).values()) == {UNDECIDED}


def below(standard, mc, last, known=PAIRED):
    """The verdict on lenet-all with MC dropout, given the errors of both at two measurements."""
    made = Synthetic()
    for method, errors in (('standard', standard), ('mc', mc)):
        made.curve('mnist', 'lenet_all', method, dict(zip((last // 2, last), errors)))
    return former.verdicts(made.tables(), known)['fig2-mnist-mc-below-standard']


@pytest.mark.parametrize('standard, mc, verdict', [
    ((310, 300), (110, 100), SUPPORTED), ((110, 100), (310, 300), CONTRADICTED),  # both have settled
    ((310, 300), (200, 100), UNDECIDED), ((400, 300), (110, 100), UNDECIDED),     # 1.00 points: one still falls
    ((130, 120), (110, 100), UNDECIDED)])                                         # 0.20 points of noise
def test_the_guard_came_second(standard, mc, verdict):
    assert below(standard, mc, 200000, GUARDED) == verdict
    judged = below(standard, mc, FULL, GUARDED)
    assert below(standard, mc, 200000, FIRST) == judged


def test_pairs_came_third():
    made = Synthetic()
    wrong = {'lenet_all': (list(range(50)), 'mc'), 'lenet_ip': (list(range(10, 72)), 'standard')}
    for net, (numbers, method) in wrong.items():
        made.evaluation('mnist_4', net, len(numbers), [[len(numbers)] * 20], seed=1, weights='trained',
                        iterations=100000)
        made.wrong('mnist_4', net, method, [numbers])
        made.curve('mnist_4', net, method, {100000: len(numbers)}, T=10)
    key, tables = 'fig3-mnist_4-mc-ahead', made.tables()
    assert former.verdicts(tables, PAIRED)[key] == SUPPORTED  # 0.12 against 0.11
    unpaired = PAIRED._replace(paired=False)
    assert former.verdicts(tables, unpaired)[key] == UNDECIDED and key not in former.verdicts(tables, FIRST)


def on_a_quarter(errors):
    """lenet-ip's curve of six measurements, to the end of the schedule."""
    at = [1000000 >> (5 - k) for k in range(6)]
    return Synthetic().curve('mnist_4', 'lenet_ip', 'standard', dict(zip(at, errors)))


@pytest.mark.parametrize('errors, verdict', [
    ([900, 300, 150, 160, 250, 300], SUPPORTED), ([900, 400, 250, 200, 190, 188], CONTRADICTED),
    ([400, 250, 200, 120, 201, 199], CONTRADICTED)])
def test_no_significant_rise_was_a_contradiction_then(errors, verdict):
    made = on_a_quarter(errors)
    assert former.verdicts(made.tables(), FIRST)['fig3-mnist_4-lenet_ip-over-fits'] == verdict


def test_one_std_of_the_repetitions_decided_table_1():
    def improves(standard, finals, **kwargs):
        made = Synthetic().evaluation('cifar10', 'nin', standard, [[final] * 25 for final in finals], **kwargs)
        return former.verdicts(made.tables(), FIRST)['table1-nin-improves']

    assert improves(1043, [1020, 1030, 1040], p=0.9) == SUPPORTED
    assert improves(1035, [1020, 1030, 1040], p=0.9) == UNDECIDED
    assert improves(1010, [1020, 1030, 1040], p=0.9) == CONTRADICTED and improves(1043, [1000], p=0.2) == UNDECIDED


# --- what is said of changes --------------------------------------------------------------------------------

def history(made):
    tables = made.tables()
    return rules.history(tables, statements.of_paper(tables), statements.of_ours(tables))


def test_a_verdict_that_a_rule_changed_stands_under_both():
    errors = [900, 400, 250, 200, 190, 200]  # +0.10 at full length: contradicted then, undecided now
    made = on_a_quarter(errors)
    line, = history(made).changed
    assert line == ['lenet-ip with Standard dropout over-fits on 1/4 of MNIST.'] + [CONTRADICTED] * 3 + [UNDECIDED]
    assert '| ' + ' | '.join(line) + ' |' in rules.markdown(made.tables())


def test_nothing_changed_is_said_of_nothing():
    assert history(Synthetic()).changed == []
    assert history(Synthetic()).counts[0] == 'aca054c: 11 statements, 0 supported'
