"""Which weights a net's name means, and what is said of them."""

import json
import os

import pytest

from bcnn import nets, weights
from bcnn.data import catalogue, sets
from bcnn.errors import UserError

pytestmark = pytest.mark.caffe

ENTRY = dict(dataset='cifar10', net='dsn_aug', seed=1, schedule='1/20', init=None, iterations=[2500, 6000, 1500], sha256='',
             commit=None, config='', evaluation='', images=10000, T=100, standard_errors=900, mc_errors=[880])


@pytest.fixture
def place(tmp_path):
    """runs/ and weights/, both empty."""
    for name in ('runs', 'weights'):
        (tmp_path / name).mkdir()
    return tmp_path


def run(place, name, iterations, **config):
    folder = place / 'runs' / name
    folder.mkdir(parents=True)
    (folder / 'config.json').write_text(json.dumps(dict({'dataset': 'cifar10', 'net': 'dsn_aug', 'seed': 1}, **config)))
    (folder / 'done.json').write_text(json.dumps({'iterations': iterations}))
    (folder / 'final.caffemodel').write_bytes(b'')
    return str(folder / 'final.caffemodel')


def ship(place, name, **changes):
    path = place / 'weights' / name
    path.write_bytes(name.encode())
    entries = weights.index(str(place / 'weights'))
    made = weights.Entry(file=name, **dict(ENTRY, sha256=weights.store.sha256(str(path)), **changes))
    weights.write_index(entries + [made], str(place / 'weights'))
    return str(path)


def choose(place, net='dsn_aug', dataset='cifar10', **options):
    return weights.choose(nets.find(dataset, net), runs=str(place / 'runs'), folder=str(place / 'weights'), **options)


def test_the_order(place):
    with pytest.raises(weights.NotTrained, match=r'not trained yet, .*tools/train.py --net dsn_aug --dataset cifar10 --seed 1; or'):
        choose(place)
    short = ship(place, 'a.caffemodel', iterations=[250, 600, 150], schedule='1/200')
    assert choose(place).path == short
    shipped = ship(place, 'b.caffemodel')
    ship(place, 'c.caffemodel', iterations=[50000, 120000, 30000], schedule=None, init='0' * 64)  # not the paper's
    ship(place, 'd.caffemodel', seed=2)
    found = choose(place)
    assert found.path == shipped
    assert found.about == "this project's own, 2,500 + 6,000 + 1,500 iterations (the paper's schedule, 1/20), seed 1"
    trained = run(place, 'cifar10-dsn_aug-seed1', [5, 5, 5])
    found = choose(place)
    assert found.path == trained and found.about.startswith('trained here, 5 + 5 + 5 iterations (the stages of')
    further = run(place, 'evidence/cifar10-dsn_aug-seed1', [50000, 120000, 30000])
    assert choose(place).path == further and "(the paper's schedule), seed 1" in choose(place).about
    assert choose(place, given=shipped).path == shipped
    assert choose(place, given=shipped).line().endswith("b.caffemodel: this project's own, 2,500 + 6,000 + 1,500 iterations "
                                                        "(the paper's schedule, 1/20), seed 1")


def test_a_training_seed_is_never_another(place):
    assert choose(place, 'nin').needs == 'nin_weights'
    with pytest.raises(weights.NotTrained, match='--net nin --dataset cifar10 --seed 1; or'):
        choose(place, 'nin', seed=1)
    ship(place, 'a.caffemodel')
    with pytest.raises(weights.NotTrained, match='seed 2'):
        choose(place, seed=2)
    second = ship(place, 'b.caffemodel', seed=2)
    assert choose(place, seed=2).path == second


def test_published_weights_are_for_nin_where_nothing_else_is(place):
    found = choose(place, 'nin')
    assert found == weights.Weights(os.path.join(sets.DATA, 'nin_weights', 'cifar10_nin.caffemodel'), 'the published ones', 'nin_weights')
    trained = run(place, 'cifar10-nin-seed1', [7], net='nin')
    assert choose(place, 'nin').path == trained


def test_what_is_known_of_weights_that_somebody_names(place, monkeypatch):
    (place / 'mine.caffemodel').write_bytes(b'x')
    assert choose(place, given=str(place / 'mine.caffemodel')).about == 'how far they were trained is not known'
    named = run(place, 'x', [600, 0, 0], init='ab' * 32)
    assert choose(place, given=named).about.endswith('seed 1, from the weights abababab...')
    file, = catalogue.NIN_WEIGHTS.files
    monkeypatch.setattr(weights.store, 'sha256', lambda path: file.sha256)
    assert choose(place, given=str(place / 'mine.caffemodel')).about == 'the published ones'
    with pytest.raises(UserError, match='none.caffemodel: no such file'):
        choose(place, given=str(place / 'none.caffemodel'))


@pytest.mark.parametrize('dataset, net, iterations, schedule, right', [
    ('mnist', 'lenet_all', [10000000], None, "the paper's schedule"),
    ('mnist', 'lenet_all', [100000], None, "the first 1% of the paper's schedule"),
    ('mnist_4', 'lenet_ip', [100000], None, "the first 10% of the paper's schedule"),
    ('fashion_mnist', 'lenet_ip', [10000], None, "the first 0.1% of the paper's schedule"),
    ('cifar10', 'dsn', [2500, 6000, 1500], '1/20', "the paper's schedule, 1/20"),
    ('cifar10', 'dsn', [2500, 6000, 1500], None, "the stages of the paper's schedule cut off, 5% of it")])
def test_how_far(dataset, net, iterations, schedule, right):
    assert weights.how_far(dataset, net, iterations, schedule) == right


def test_what_is_at_hand(place, monkeypatch):
    monkeypatch.setattr(sets, 'manifest', lambda name: None)
    monkeypatch.setattr(weights, 'choose', lambda net, given, seed: weights.Weights('x', 'y', 'nin_weights'))
    assert weights.at_hand(nets.find('cifar10', 'nin')) is None
    monkeypatch.setattr(weights, 'choose', lambda net, given, seed: weights.Weights('x', 'y', None))
    assert weights.at_hand(nets.find('cifar10', 'nin')).path == 'x'
