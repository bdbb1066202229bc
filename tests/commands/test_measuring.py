"""Commands that measure: check_adaptive.py, sampler.py, profile_net.py; what they print, write and refuse."""

import json

import numpy as np
import pytest

import evalhelp
from bcnn import engine, nets
from bcnn.bench import layer_times
from bcnn.results import csv_tables, writing
from bcnn.studies import adaptive_agreement
from conftest import one_clear_line


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """Weights of a LeNet, images, and of both an adaptive and a full evaluation."""
    place = tmp_path_factory.mktemp('measuring')
    rng = np.random.RandomState(0)
    evalhelp.write_digits(place / 'digits.npz', 24, rng)
    engine.set_seed(2)
    engine.load_net(nets.deploy('lenet_ip', 'mnist')).save(str(place / 'w.caffemodel'))
    return place


@pytest.fixture(scope='module')
def evaluated(place, tool):
    def run(name, *more):
        result = tool('mc_eval.py', '--net', 'lenet_ip', '--weights', place / 'w.caffemodel', '--data', place / 'digits.npz',
                      '--T', 30, '--repeats', 1, '--jobs', 1, '--out', place / name, *more)
        assert result.returncode == 0, result.stderr
        return place / name
    return (run('adaptive', '--adaptive-check', '--adaptive-error', 0.2),
            run('full', '--seed', 2), run('fewer', '--T', 20))


def test_an_adaptive_evaluation_beside_a_full_one(tool, evaluated):
    adaptive, full, _ = evaluated
    result = tool('check_adaptive.py', adaptive, '--full', full)
    assert result.returncode == 0, result.stderr
    row, = adaptive_agreement.rows(str(adaptive), str(full))
    found = json.loads((adaptive / 'result.json').read_text())['adaptive']['passes'][0]
    assert row['passes'] == found['mean'] and row['different'] == found['check']['different']
    with np.load(str(adaptive / 'images.npz')) as ours, np.load(str(full / 'images.npz')) as theirs:
        mine, other, labels = ours['decided'][0], theirs['mc_probs'][0].argmax(1), ours['labels']
        assert row['full_errors'] == (ours['mc_probs'][0].argmax(1) != labels).sum()
    assert row['other_different'] == (mine != other).sum()
    assert (row['errors'], row['other_errors']) == ((mine != labels).sum(), (other != labels).sum())
    assert abs(row['noise'] - row['other_different']) <= row['different']
    assert '%d of %d predictions differ' % (row['different'], row['n']) in result.stdout
    one_clear_line(tool('check_adaptive.py', full), 'not an adaptive evaluation')
    one_clear_line(tool('check_adaptive.py', adaptive, '--full', evaluated[2]), 'another T')
    one_clear_line(tool('check_adaptive.py', adaptive / 'blocks'), 'no result.json')


def test_one_that_was_not_checked(tool, place, evaluated):
    result = tool('mc_eval.py', '--net', 'lenet_ip', '--weights', place / 'w.caffemodel', '--data', place / 'digits.npz',
                  '--T', 30, '--repeats', 1, '--adaptive', '--adaptive-error', 0.2, '--out', place / 'unchecked')
    assert result.returncode == 0, result.stderr
    row, = adaptive_agreement.rows(str(place / 'unchecked'), str(evaluated[1]))
    with np.load(str(place / 'unchecked' / 'images.npz')) as ours:
        assert row['errors'] == (ours['mc_probs'][0].argmax(1) != ours['labels']).sum()
        assert row['passes'] == ours['passes'][0].mean() < 30
    assert row['different'] is row['full_errors'] is row['noise'] is None and row['other_errors'] is not None
    one_clear_line(tool('check_adaptive.py', evaluated[0], '--full', place / 'unchecked'), 'T passes for all')


def test_rows_are_added_and_replaced(tmp_path, evaluated):
    row, = adaptive_agreement.rows(str(evaluated[0]))
    assert row['other_errors'] is None and row['noise'] is None
    writing.record('adaptive', [row], str(tmp_path))
    writing.record('adaptive', [dict(row, repetition=2)], str(tmp_path))
    writing.record('adaptive', [dict(row, passes=7.5)], str(tmp_path))
    assert [(one['repetition'], one['passes']) for one in csv_tables.read(str(tmp_path), 'adaptive')] == [
        (1, 7.5), (2, float('%.6g' % row['passes']))]


def test_one_group_is_too_few(tool, place):
    result = tool('sampler.py', '--net', 'lenet_ip', '--weights', place / 'w.caffemodel', '--draws', 1)
    one_clear_line(result, '--draws is 1')


def test_layers_of_a_net(tool):
    result = tool('profile_net.py', '--net', 'lenet_ip', '--batch', 5, '--rounds', 1)
    assert result.returncode == 0, result.stderr
    assert 'drop1' in result.stdout and 'sampled part' in result.stdout
    one_clear_line(tool('profile_net.py', '--batch', 0), '--batch')
    one_clear_line(tool('profile_net.py', '--net', 'lenet_none'), 'no dropout layer')


def test_shares_and_operations_by_hand():
    rows = layer_times.rows('lenet_all', 'mnist', batch=3, rounds=2)
    sampled = [row for row in rows if row['part'] == 'sampled']
    assert sampled[0]['layer'] == 'dropC1' and sum(row['share'] for row in sampled) == pytest.approx(100)
    conv2 = next(row for row in rows if row['layer'] == 'conv2')
    assert conv2['gflops'] * conv2['time'] * 1e3 == pytest.approx(2 * 50 * 20 * 25 * 8 * 8)
    assert conv2['product_time'] > 0 and next(row for row in rows if row['layer'] == 'pool2')['product_time'] is None
