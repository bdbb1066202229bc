"""Data on demand: a tool prepares the set it needs and says so; with --no-prepare it refuses in one line."""

import os

import numpy as np
import pytest
from test_prepare_data import OFFLINE

import evalhelp
import trainhelp
from bcnn import engine, nets
from bcnn.data import check, sets
from conftest import ROOT, one_clear_line
from datahelp import real

TRAIN = ('--net', 'lenet_ip', '--cpu', '--iters', 2, '--T', 1, '--test-limit', 10, '--eval-points', '2')


@pytest.fixture(scope='module')
def mnist():
    """The source files of MNIST, fetched before any test counts on them."""
    real('mnist')


def test_training_prepares_what_it_needs_and_nothing_else(tool, mnist, tmp_path):
    said = tool('train.py', *TRAIN + ('--data', tmp_path / 'data', '--out', tmp_path / 'run'))
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0] == 'mnist is not prepared yet: preparing it, 90 MB of disk (--no-prepare refuses instead)'
    assert any(line.startswith('mnist: made (train 60000 records') for line in lines)
    assert any(line.startswith('mnist: prepared in ') for line in lines)
    assert os.listdir(str(tmp_path / 'data')) == ['mnist']
    assert sets.checksum('mnist', 'train', str(tmp_path / 'data')) == check.DIGESTS['mnist', 'train']
    again = tool('train.py', *TRAIN + ('--data', tmp_path / 'data', '--out', tmp_path / 'again'))
    assert again.returncode == 0 and 'preparing' not in again.stdout


def test_a_fraction_brings_the_test_set_of_the_whole(tool, mnist, tmp_path):
    said = tool('train.py', *TRAIN + ('--fraction', 32, '--data', tmp_path / 'data', '--out', tmp_path / 'run'))
    assert said.returncode == 0, said.stderr
    assert sorted(os.listdir(str(tmp_path / 'data'))) == ['mnist', 'mnist_32']


@pytest.mark.parametrize('words, parts', [
    (('train.py',) + TRAIN, ['mnist: not ready: python tools/prepare_data.py mnist']),
    (('train.py', '--net', 'dsn_aug', '--cpu'), ['cifar10_pad4: not ready: python tools/prepare_data.py cifar10_pad4']),
    (('nin_to_dsn.py',), ['nin_weights: not ready: python tools/prepare_data.py nin_weights'])])
def test_no_prepare_refuses_in_one_line(tool, tmp_path, words, parts):
    said = tool(*words + ('--no-prepare', '--data', tmp_path / 'data', '--out', tmp_path / 'out'))
    one_clear_line(said, *parts)
    assert os.listdir(str(tmp_path)) == []


def test_what_cannot_be_fetched_is_one_line_and_leaves_nothing(tool, tmp_path):
    (tmp_path / 'bin').mkdir()
    env = dict(OFFLINE, BCNN_DOWNLOADS=str(tmp_path / 'downloads'), npm_config_cache=str(tmp_path / 'npm'))
    said = tool('train.py', *TRAIN + ('--data', tmp_path / 'data', '--out', tmp_path / 'run'), env=env)
    one_clear_line(said, 'no source of MNIST works here', '--from')
    assert not (tmp_path / 'data').exists() and not (tmp_path / 'run').exists()


# --- in a clone, whose data/ is its own

@pytest.fixture
def clone(tmp_path):
    """A clone without data, and weights for lenet_ip to name."""
    made = trainhelp.make_clone(tmp_path / 'clone', os.path.join(ROOT, 'weights'), os.path.join(ROOT, 'analysis', 'results'),
                                tmp_path / 'clone' / 'data')
    os.remove(str(made / 'data'))
    engine.load_net(nets.deploy('lenet_ip', 'mnist')).save(str(made / 'w.caffemodel'))
    return made


def test_an_evaluation_says_its_weights_first_and_then_prepares(clone, mnist):
    said = trainhelp.typed(clone, 'tools/mc_eval.py', '--net', 'lenet_ip', '--weights', 'w.caffemodel', '--T', 2, '--repeats', 1,
                           '--limit', 20)
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0] == 'weights: w.caffemodel: how far they were trained is not known'
    assert lines[1].startswith('mnist is not prepared yet: preparing it') and os.listdir(str(clone / 'data')) == ['mnist']


@pytest.mark.parametrize('tool_name', ['mc_eval.py', 'placement.py', 'sampler.py'])
def test_evaluations_refuse_with_no_prepare(clone, tool_name):
    said = trainhelp.typed(clone, 'tools/' + tool_name, '--net', 'lenet_ip', '--weights', 'w.caffemodel', '--no-prepare')
    one_clear_line(said, 'mnist: not ready: python tools/prepare_data.py mnist')
    said = trainhelp.typed(clone, 'tools/' + tool_name, '--net', 'nin', '--no-prepare')
    one_clear_line(said, 'nin_weights: not ready: python tools/prepare_data.py nin_weights')
    assert said.stdout == 'weights: data/nin_weights/cifar10_nin.caffemodel: the published ones\n'


def test_images_of_ones_own_need_no_set(clone):
    evalhelp.write_digits(clone / 'digits.npz', 5, np.random.RandomState(0))
    said = trainhelp.typed(clone, 'tools/mc_eval.py', '--net', 'lenet_ip', '--weights', 'w.caffemodel', '--T', 2, '--repeats', 1,
                           '--data', 'digits.npz', '--no-prepare')
    assert said.returncode == 0 and not (clone / 'data').exists()
