"""Which rows stand in the paper's: only its own protocol, in a stated order; which schedule is shown; verdicts that
nothing unrelated can change."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import table1
from analysishelp import Synthetic
from pages import commands
from pages.sections import own_nets
from records import curves, evaluations, smaller
from verdicts import comparing
from verdicts.judging import SUPPORTED
from verdicts.statements import figure2, figure4
from verdicts.statements import table1 as table1_statements


def nin(**kwargs):
    """NIN as the paper evaluated it: five repetitions of T = 100."""
    return Synthetic().evaluation('cifar10', 'nin', 1043, [[1027 + k] * 100 for k in range(5)], **kwargs)


def shown(made, net='nin'):
    """(errors of Standard, T, repetitions) of what stands in the paper's row."""
    line = evaluations.measured(evaluations.chosen(made.tables(), 'cifar10', net)[0])
    return round(100 * line['standard']), line['T'], line['repetitions']


@pytest.mark.parametrize('departure', [
    dict(crops=10), dict(init='ab' * 32), dict(mode='adaptive'), dict(mode='antithetic')], ids=str)
def test_what_departs_from_the_protocol_never_stands_in_the_papers_rows(departure):
    made = nin().evaluation('cifar10', 'nin', 900, [[800] * 200], config='other', mc_seed=9, **departure)
    assert shown(made) == (1043, 100, 5)
    assert [line['standard'] for line in table1.rows(made.tables()) if line['net'] == 'nin'] == [10.43]
    group, = evaluations.departing(made.tables())
    assert smaller.departures(group) in own_nets.departing(made.tables(), of_table1=True)
    assert smaller.departures(group) not in own_nets.section(made.tables()).body  # there only nets that are not Table 1's
    only = Synthetic().evaluation('cifar10', 'nin', 900, [[800] * 200], **departure)
    assert evaluations.chosen(only.tables(), 'cifar10', 'nin') == []


def test_another_experiment_on_the_papers_net_stays_out():
    made = nin()
    made.evaluation('cifar10', 'nin', 900, [[800] * 100] * 9, config='other', mc_seed=9)
    for row in made.rows['evaluations']:
        if row['config'] == 'other':
            row['experiment'] = 'beyond'
    made.curve('mnist', 'lenet_all', 'mc', {100: 5, 200000: 4}, seed=7, experiment='beyond')
    made.curve('mnist', 'lenet_all', 'mc', {100: 50}, seed=1)
    assert shown(made) == (1043, 100, 5)
    assert list(curves.curve(made.tables(), 'mnist', 'lenet_all', 'mc')['errors']) == [50]


@pytest.mark.parametrize('better, worse', [
    (dict(), dict(repetitions=1, T=200)),                    # the paper's T before a larger one
    (dict(T=200), dict(T=50)),                               # a larger before a smaller
    (dict(T=60), dict(T=50)),
    (dict(n=10000, T=10), dict(n=2000)),                     # most images first of all
    (dict(repetitions=5), dict(repetitions=4)),
    (dict(), dict(mode='replicate')), (dict(), dict(mode='shared')), (dict(), dict(device='gpu'))], ids=str)
def test_the_order(better, worse):
    """Whatever the names of the configurations, the first of the two is taken."""
    for names in ('ab', 'ba'):
        made = Synthetic()
        for name, errors, what in zip(names, (1000, 2000), (better, worse)):
            what = dict(dict(T=100, repetitions=5, n=10000, mode='stream', device='cpu'), **what)
            made.evaluation('cifar10', 'nin', errors, [[900] * what['T']] * what['repetitions'], n=what['n'],
                            config=name, mode=what['mode'], device=what['device'])
        found = evaluations.chosen(made.tables(), 'cifar10', 'nin')[0]
        assert set(found['config']) == {names[0]}


def test_the_longer_training_first_and_in_proportion_before_cut_off():
    made = Synthetic()
    for errors, iterations, schedule in ((800, 600, None), (700, 10000, None), (600, 10000, '1/20')):
        made.evaluation('cifar10', 'dsn', errors, [[errors] * 100] * 5, weights='trained', seed=1,
                        iterations=iterations, schedule=schedule, config='%d%s' % (iterations, schedule))
    assert shown(made, 'dsn')[0] == 600
    line, = [line for line in table1.rows(made.tables()) if line['net'] == 'dsn']
    assert line['shorter'] == "the paper's schedule, 1/20 (10,000 of 200,000 iterations)"


def test_repetitions_under_different_schedules_are_not_pooled():
    made = Synthetic()
    for schedule, mc_seed in ((None, 1), ('1/20', 2)):
        made.evaluation('cifar10', 'dsn', 800, [[790] * 100], weights='trained', seed=1, iterations=10000,
                        schedule=schedule, config='c%d' % mc_seed, mc_seed=mc_seed)
    assert shown(made, 'dsn')[2] == 1


# --- schedules -------------------------------------------------------------------------------------------

def test_a_panel_shows_one_schedule():
    made = Synthetic()
    for net in ('lenet_all', 'lenet_ip'):
        made.curve('cifar10', net, 'standard', {1000: 500}).curve('cifar10', net, 'mc', {1000: 400})
    sides = [('lenet_all', 'standard'), ('lenet_all', 'mc'), ('lenet_ip', 'standard'), ('lenet_ip', 'mc')]
    made.curve('cifar10', 'lenet_all', 'standard', {5000: 300}, schedule='1/20')
    assert curves.schedule_for(made.tables(), 'cifar10', sides) == ''  # one of the four only
    made.curve('cifar10', 'lenet_all', 'mc', {5000: 200}, schedule='1/20')
    for method in ('standard', 'mc'):
        made.curve('cifar10', 'lenet_ip', method, {5000: 250}, schedule='1/20')
    tables = made.tables()
    assert curves.schedule_for(tables, 'cifar10', sides) == '1/20'
    assert list(curves.of_paper(tables, 'fig2', 'cifar10', 'lenet_ip', 'mc')['errors']) == [250]
    assert smaller.notes(tables, 'fig2', [('cifar10', 'lenet_ip', 'mc')]) == [
        "Shorter than the paper: lenet-ip MC on CIFAR-10: the paper's schedule, 1/20 (5,000 of 100,000 iterations)."]


def test_a_run_started_from_weights_is_no_curve_of_the_paper():
    made = Synthetic().curve('mnist', 'lenet_all', 'mc', {100: 5}, init='ab' * 32)
    assert len(curves.curve(made.tables(), 'mnist', 'lenet_all', 'mc')) == 0


def test_commands_say_schedule_and_crops():
    made = Synthetic().curve('cifar10', 'lenet_ip', 'mc', {5000: 250}, schedule='1/20')
    made.evaluation('cifar10', 'dsn_aug', 795, [[770] * 100], weights='trained', seed=1, iterations=10000,
                    schedule='1/20', crops=10)
    tables = made.tables()
    assert ('python tools/train.py --net lenet_ip --dataset cifar10 --seed 1 --schedule 1/20 --T 50 --streams 1'
            in commands.commands(tables, 'fig2'))
    assert ('python tools/mc_eval.py --net dsn_aug --dataset cifar10 --T 100 --repeats 1 --training-seed 1 --crops 10 '
            '--streams 1'
            in commands.commands(tables, 'table1'))


# --- nothing unrelated changes a verdict -------------------------------------------------------------------------

SIDES = [('lenet_all', 'mc'), ('lenet_all', 'standard'), ('lenet_ip', 'standard'), ('lenet_ip', 'mc'),
         ('lenet_none', 'standard')]


@st.composite
def result_sets(draw):
    """Random curves of Figure 2 on MNIST, with or without which images are wrong, and random evaluations of NIN."""
    made = Synthetic()
    last = draw(st.sampled_from([50000, 100000, 10000000]))
    for net, method in SIDES:
        for seed in range(1, draw(st.sampled_from([1, 1, 2, 3, 4])) + 1):
            errors = draw(st.integers(0, 120))
            made.curve('mnist', net, method, {last // 2: errors + draw(st.integers(0, 20)), last: errors}, seed)
            if draw(st.booleans()):
                first = draw(st.integers(0, 60))
                made.curve_wrong('mnist', net, method, last, range(first, first + errors), seed)
    standard = draw(st.integers(900, 1100))
    finals = draw(st.lists(st.integers(900, 1100), min_size=1, max_size=5))
    made.evaluation('cifar10', 'nin', standard, [[final] * 100 for final in finals],
                    right=(draw(st.integers(0, 60)), draw(st.integers(0, 60))))
    return made


def judged(made):
    """{key: (verdict, numbers)} of statements on these sets."""
    tables = made if isinstance(made, dict) else made.tables()
    found = [figure2.ends_below(tables, 'fig2', 'mnist', 'lowest', SIDES[0], SIDES[1:], ''),
             figure2.ends_below(tables, 'fig2', 'mnist', 'suffers', SIDES[2], [SIDES[1]], ''),
             table1_statements.improves(tables, 'nin'), table1_statements.holds_on_other_images(tables, 'nin'),
             figure4.converges(tables, 'nin')]
    return {statement.key: (statement.verdict, statement.numbers) for statement in found}


FEW = settings(max_examples=8)


@FEW
@given(result_sets(), st.integers(0, 10 ** 6))
def test_the_order_of_rows_changes_no_verdict(made, seed):
    before, rng = judged(made), random.Random(seed)
    for rows in made.rows.values():
        rng.shuffle(rows)
    assert judged(made) == before


@FEW
@given(result_sets(), st.integers(1, 100))
def test_unrelated_evaluations_change_no_verdict(made, errors):
    before = judged(made)
    made.evaluation('cifar10', 'nin', errors, [[errors] * 200], config='crops', crops=10, mc_seed=7)
    made.evaluation('cifar10', 'nin', errors, [[errors] * 300], config='tuned', init='ab' * 32, mc_seed=8)
    made.evaluation('cifar10', 'nin', errors, [[errors] * 50], config='small', n=100, mc_seed=9)
    made.evaluation('own', 'net', errors, [[errors] * 50], weights='unknown', config='own')
    made.curve('mnist', 'lenet_all', 'mc', {100000: errors}, seed=9, init='ab' * 32)
    made.curve('fashion_mnist', 'lenet_all', 'mc', {100000: errors}, seed=1)
    assert judged(made) == before


@FEW
@given(result_sets())
def test_the_names_of_nets_change_no_evidence(made):
    """lenet-ip and lenet-none change names: what was said of the one is said of the other."""
    tables, swap = made.tables(), {'lenet_ip': 'lenet_none', 'lenet_none': 'lenet_ip'}
    renamed = {name: table.replace({'net': swap}) if 'net' in table else table for name, table in tables.items()}
    for first, second in ((0, 1), (0, 2), (2, 4), (0, 4)):
        sides = SIDES[first], SIDES[second]
        others = [(swap.get(net, net), method) for net, method in sides]
        at, other_at = comparing.ends(tables, 'mnist', list(sides)), comparing.ends(renamed, 'mnist', others)
        assert comparing.below(tables, at, *sides) == comparing.below(renamed, other_at, *others)
        assert comparing.falls(tables, at, sides[0]) == comparing.falls(renamed, other_at, others[0])


@FEW
@given(result_sets())
def test_the_same_errors_are_never_a_difference(made):
    for rows in (made.rows['curves'], made.rows['evaluations'], made.rows['convergence']):
        for row in rows:
            row['errors'] = 50
            if 'only_mc_right' in row and row['only_mc_right'] is not None:
                row['only_mc_right'] = row['only_standard_right']
    made.rows['curve_wrong'] = []
    found = judged(made)
    found.pop('fig4-nin-converges')  # that it does not move is what this one says
    assert SUPPORTED not in [verdict for verdict, _ in found.values()]
