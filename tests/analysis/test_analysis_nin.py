"""NIN beside the paper: the words for each outcome, the rows from their tables; and where weight averaging departs."""


import pytest

from analysishelp import Synthetic, whole_paper
from pages import commands
from pages.sections import averaging
from pages.sections import nin as nin_section
from records import evaluations


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
    group, = evaluations.chosen(nin(*finals).tables(), 'cifar10', 'nin')
    said = nin_section.verdict(evaluations.measured(group))
    assert words in said and said.startswith("Standard dropout makes 10.43% errors, the paper's net 10.43%")


def test_the_rows_come_from_their_tables():
    made = nin(1027, 1031)
    for place, errors, n in (('as it is', 1029, 10000), ('before pooling', 110, 1000)):
        made.add('placement', net='cifar10/nin', placement=place, T=100, n=n, mc_seed=1, passes=13.0, standard_errors=1043,
                 errors=errors, only_standard_right=5, only_mc_right=7, config='x', commit=None)
    tables = made.tables()
    group, = evaluations.chosen(tables, 'cifar10', 'nin')
    # the helper's runs end one error above `final`; scores make five more
    assert nin_section.rows(tables, group, evaluations.measured(group)) == [
        ['the masks', 'other masks: 2 repetitions', '10.30 +- 0.03', '+0.03'],
        ['what is averaged', 'scores in the place of probabilities', '10.35 +- 0.03', '+0.08'],
        ['passes', 'T = 20 in the place of 100', '10.34 +- 0.03', '+0.07'],
        ['passes', 'T = 50 in the place of 100', '10.31 +- 0.03', '+0.04'],
        ['where dropout samples', 'as it is, with adaptive T', '10.29', '+0.02'],
        ['where dropout samples', 'before pooling (1,000 images)', '11.00', '+0.73']]


def test_the_section_and_its_command():
    assert nin_section.part(Synthetic().tables()) == ''
    tables = whole_paper().tables()
    assert 'before pooling' in nin_section.part(tables)
    assert commands.commands(tables, 'table1')[0] == (
        'python tools/placement.py --net nin --dataset cifar10 --weights data/nin_weights/cifar10_nin.caffemodel --T 100 --seed 1 --record')


def test_the_interval_of_few_images_is_wilsons():
    """10 of 100: 5.5 to 17.4, as in tables of it; none of 200: not below zero."""
    from records import few_images
    assert few_images.interval(10, 100) == (pytest.approx(5.52, abs=0.01), pytest.approx(17.44, abs=0.01))
    low, high = few_images.interval(0, 200)
    assert abs(low) < 1e-9 and 1.8 < high < 2.0


# --- where weight averaging departs

LAYERS = [('drop3', 'Dropout', 0.0, None), ('conv2', 'Convolution', 0.0, None), ('relu2', 'ReLU', 0.04, 0.25), ('cccp5', 'Convolution', 0.09, 0.25),
          ('relu_cccp5', 'ReLU', 0.09, 0.25), ('cccp6', 'Convolution', 0.01, 0.5), ('prob', 'Softmax', 0.0225, 0.75)]


def departing(n, config, iterations=2500):
    made, before = Synthetic(), 0.0
    for index, (layer, kind, distance, common) in enumerate(LAYERS):
        made.add('approximation', dataset='cifar10', net='dsn', seed=1, iterations=iterations, index=index, layer=layer, type=kind, T=100, n=n,
                 mc_seed=1, distance=distance, distance_se=0.001, growth=distance - before, growth_se=0.001, common=common, config=config)
        before = distance
    return made


def test_the_layers_where_it_departs_and_the_scores():
    assert averaging.part(Synthetic().tables()) == ''
    made = departing(200, 'b')
    made.rows['approximation'] += departing(100, 'c').rows['approximation']  # of fewer images: not shown
    layers, = averaging.measured(made.tables(), 'dsn')
    assert averaging.rows('dsn', layers) == [['DSN, 2,500 iterations'] + cells for cells in [
        ['relu2', 'ReLU', '20.0', '25', '200', '100'], ['cccp5', 'Convolution and ReLU', '30.0', '25', '200', '100'],
        ['cccp6', 'Convolution', '10.0', '50', '200', '100'], ['prob', 'Softmax', '15.0', '75', '200', '100']]]
    made.rows['approximation'] += departing(100, 'd', iterations=750).rows['approximation']  # of another training: shown
    words = averaging.part(made.tables())
    assert words.index('DSN, 2,500 iterations') < words.index('DSN, 750 iterations') and words.count('relu2') == 2
