"""Dropout in other places: the nets by their layers and by what Caffe computes, the rows beside mc_eval's."""

import json

import numpy as np
import pytest

import evalhelp
from bcnn import engine, nets
from bcnn.errors import UserError
from bcnn.mc import targets
from bcnn.prototxt import facts, reading
from bcnn.results import csv_tables, schema
from bcnn.studies import placement
from conftest import one_clear_line

pytestmark = pytest.mark.caffe

POOLED = '''
name: "pooled"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 500 dim: 4 dim: 4 dim: 4 } } }
layer { name: "pool1" type: "Pooling" bottom: "data" top: "pool1" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "drop1" type: "Dropout" bottom: "pool1" top: "drop1" phase: TRAIN dropout_param { dropout_ratio: 0.5 } }
layer { name: "prob" type: "Softmax" bottom: "drop1" top: "prob" }
'''
SHARED = '''layer { name: "other" type: "ReLU" bottom: "pool1" top: "other" }'''


def kept(net, blob):
    """The share of ones that are not dropped on the way to a blob."""
    def forward():
        engine.set_seed(1)
        made = engine.load_net(net)
        made.blobs['data'].data[...] = 1
        made.forward()
        return made.blobs[blob].data.copy()
    return np.mean(engine.call(forward) > 0)


def order(net):
    return [(layer.name, list(layer.bottom), list(layer.top)) for layer in net.layer]


def test_a_mask_before_pooling_drops_a_map_only_where_all_four_fall():
    net = reading.parse(POOLED)
    moved = placement.before_pooling(net)
    assert kept(net, 'drop1') == pytest.approx(1 / 2.0, abs=0.02)
    assert kept(moved, 'pool1') == pytest.approx(15 / 16.0, abs=0.01)
    assert order(net) == order(reading.parse(POOLED))  # the argument is left alone


def test_pooled_maps_that_somebody_else_reads_stay_pooled_without_dropout():
    net = reading.parse(POOLED + SHARED)
    assert placement.before_pooling(net) == net
    assert list(placement.variants(net)) == [placement.AS_IT_IS]


def test_the_layers_of_nin_by_hand():
    moved = placement.before_pooling(nets.mc('nin', 'cifar10'))
    by_name = {name: (bottoms, tops) for name, bottoms, tops in order(moved)}
    assert by_name['drop3'] == (['cccp2'], ['drop3']) and by_name['pool1'] == (['drop3'], ['pool1'])
    assert by_name['conv2'][0] == ['pool1']
    assert by_name['drop6'] == (['cccp4'], ['drop6']) and by_name['pool2'] == (['drop6'], ['pool2'])
    assert by_name['conv3'][0] == ['pool2']
    names = [name for name, _, _ in order(moved)]
    assert names.index('drop3') == names.index('pool1') - 1 > names.index('relu_cccp2')
    assert sorted(names) == sorted(layer.name for layer in nets.mc('nin', 'cifar10').layer)


def test_variants_of_the_papers_nets():
    assert list(placement.variants(nets.mc('nin', 'cifar10'))) == ['as it is', 'before pooling', 'drop3 alone', 'drop6 alone']
    assert list(placement.variants(nets.mc('lenet_all', 'mnist'))) == ['as it is', 'dropC1 alone', 'dropC2 alone', 'drop1 alone']
    assert list(placement.variants(nets.mc('lenet_ip', 'mnist'))) == ['as it is']
    with pytest.raises(UserError, match='nothing to move'):
        placement.variants(nets.deploy('nin', 'cifar10'))


def test_alone_means_that_the_others_are_as_in_standard_dropout():
    net = placement.alone(nets.mc('nin', 'cifar10'), 'drop6')
    assert [layer.name for layer in net.layer if facts.samples_at_test(layer)] == ['drop6']
    silent = placement.alone(net, 'no layer')
    assert engine.call(probabilities, silent).tobytes() == engine.call(probabilities, nets.deploy('nin', 'cifar10')).tobytes()


def probabilities(net):
    """What a net with weights and images of a fixed seed says."""
    net.layer[0].input_param.shape[0].dim[0] = 2
    engine.set_seed(3)
    made = engine.load_net(net)
    made.blobs['data'].data[...] = np.random.RandomState(0).randn(*made.blobs['data'].data.shape)
    made.forward()
    return made.blobs['prob'].data.copy()


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp('placement')
    evalhelp.write_digits(place / 'digits.npz', 20, np.random.RandomState(0))
    engine.set_seed(2)
    engine.load_net(nets.deploy('lenet_all', 'mnist')).save(str(place / 'w.caffemodel'))
    return place


def test_the_rows_are_those_of_adaptive_evaluations(place, tool):
    what = ('--net', 'lenet_all', '--weights', place / 'w.caffemodel', '--data', place / 'digits.npz', '--T', 20,
            '--jobs', 1, '--seed', 3)
    result = tool('placement.py', *what + ('--out', place / 'moved'))
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()[1:]  # after the one on the weights
    assert [line.split()[1] for line in lines] == ['as', 'dropC1', 'dropC2', 'drop1']
    plain = tool('mc_eval.py', *what + ('--adaptive', '--repeats', 1, '--out', place / 'plain'))
    assert plain.returncode == 0, plain.stderr
    mine, theirs = [json.loads((place / name / 'result.json').read_text()) for name in ('moved/as_it_is', 'plain')]
    assert (mine['config'].pop('net'), theirs['config'].pop('net')) == ('lenet_all, as it is', 'mnist/lenet_all')
    assert mine == theirs
    assert 'MC %5.2f%%' % theirs['mc']['probs']['mean'] in lines[0]
    assert tool('placement.py', *what + ('--out', place / 'moved')).stdout == result.stdout  # from what is stored


def test_a_row_counts_what_the_evaluation_predicts(place):
    target = targets.of_paper('lenet_all', weights=str(place / 'w.caffemodel'), data=str(place / 'digits.npz'))
    rows = list(placement.measure(target, 20, 3, str(place / 'rows')))
    for row in rows:
        with np.load(str(place / 'rows' / row['placement'].replace(' ', '_') / 'images.npz')) as images:
            wrong = images['mc_probs'][0].argmax(1) != images['labels']
            standard = images['standard_probs'].argmax(1) != images['labels']
        assert (row['errors'], row['standard_errors']) == (wrong.sum(), standard.sum())
        assert (row['only_standard_right'], row['only_mc_right']) == ((wrong & ~standard).sum(), (standard & ~wrong).sum())
        assert set(row) == set(schema.TABLES['placement'].columns)
    assert len({row['config'] for row in rows}) == 4


@pytest.mark.parametrize('stored, commit', [({'commit': '0123456789abcdef'}, '0123456789'), ({'commit': None}, None),
                                            ({}, None)])
def test_the_commit_of_a_row_where_there_is_one(place, stored, commit):
    target = targets.of_paper('lenet_all', weights=str(place / 'w.caffemodel'), data=str(place / 'digits.npz'))
    next(placement.measure(target, 20, 3, str(place / 'commit')))
    (place / 'commit' / 'as_it_is' / 'provenance.json').write_text(json.dumps(stored))
    assert next(placement.measure(target, 20, 3, str(place / 'commit')))['commit'] == commit


def test_recorded_with_all_other_evaluations_they_are_nets_of_their_own(place, tool):
    target = targets.of_paper('lenet_all', weights=str(place / 'w.caffemodel'), data=str(place / 'digits.npz'))
    list(placement.measure(target, 20, 3, str(place / 'runs' / 'mc' / 'placement')))
    result = tool('record.py', place / 'runs', '--results', place / 'results')
    assert result.returncode == 0, result.stderr
    rows = csv_tables.read(str(place / 'results'), 'evaluations')
    assert {(row['dataset'], row['net']) for row in rows} == {
        ('own', 'lenet_all, ' + name) for name in ('as it is', 'dropC1 alone', 'dropC2 alone', 'drop1 alone')}


def test_refusals(place, tool):
    one_clear_line(tool('placement.py', '--net', 'lenet_none', '--weights', place / 'w.caffemodel', '--data',
                        place / 'digits.npz', '--out', place / 'none'), 'no dropout layer')
    one_clear_line(tool('placement.py', '--net', 'lenet_all', '--weights', place / 'w.caffemodel', '--jobs', 0), '--jobs is 0')
