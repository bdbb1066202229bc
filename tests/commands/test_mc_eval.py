"""tools/mc_eval.py as people type it, on nets of the paper and on foreign ones; every refusal is one line."""

import json
import os
import signal
import subprocess
import sys
import time

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import evalhelp
from bcnn import engine, nets
from bcnn.studies import adaptive_agreement
from conftest import ROOT, one_clear_line

NET = '''
name: "mine"
layers { name: "data" type: DATA top: "data" top: "label" data_param { source: "x" batch_size: 4 backend: LMDB } }
layers { name: "ip1" type: INNER_PRODUCT bottom: "data" top: "ip1" blobs_lr: 1 blobs_lr: 2
         inner_product_param { num_output: 6 weight_filler { type: "xavier" } } }
layers { name: "drop1" type: DROPOUT bottom: "ip1" top: "ip1" }
layers { name: "ip2" type: INNER_PRODUCT bottom: "ip1" top: "ip2"
         inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
layers { name: "loss" type: SOFTMAX_LOSS bottom: "ip2" bottom: "label" }
'''


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """A folder with images, a foreign net of the old format, and weights for it and for two LeNets."""
    place = tmp_path_factory.mktemp('my files')
    rng = np.random.RandomState(0)
    evalhelp.write_digits(place / 'digits.npz', 30, rng)
    with np.load(str(place / 'digits.npz')) as digits:  # not bytes, which CIFAR-10's nets would want whitened first
        np.savez(str(place / 'floats.npz'), images=digits['images'].astype(np.float32), labels=digits['labels'])
    np.savez(str(place / 'mine.npz'), images=rng.randn(30, 1, 2, 2), labels=rng.randint(0, 4, 30))
    np.savez(str(place / 'bad_label.npz'), images=rng.randn(3, 1, 2, 2), labels=np.array([0, 4, 1]))
    np.savez(str(place / 'bad_shape.npz'), images=rng.randn(3, 3, 2, 2), labels=np.array([0, 3, 1]))
    (place / 'mine.prototxt').write_text(NET)
    (place / 'nodrop.prototxt').write_text('\n'.join(line for line in NET.splitlines() if 'DROPOUT' not in line))
    (place / 'broken.prototxt').write_text(NET.replace('top: "ip2"', 'tip: "ip2"'))
    (place / 'noise.caffemodel').write_bytes(bytes(rng.randint(0, 256, 500).astype(np.uint8)))
    for name in ('lenet_ip', 'lenet_none'):
        engine.load_net(nets.deploy(name, 'mnist')).save(str(place / (name + '.caffemodel')))
    from bcnn.prototxt import reading, rewriting
    net = rewriting.to_deploy(reading.read(str(place / 'mine.prototxt')), (1, 2, 2), 1)
    engine.load_net(net).save(str(place / 'mine.caffemodel'))
    return place


@pytest.fixture
def mc_eval(tool, place, tmp_path):
    def run(*args, out=tmp_path / 'out', **options):
        words = [str(place / arg) if isinstance(arg, str) and (place / arg).exists() else arg for arg in args]
        return tool('mc_eval.py', *(words + ['--out', out]), **options)
    return run


MINE = ('--prototxt', 'mine.prototxt', '--weights', 'mine.caffemodel', '--data', 'mine.npz')
LENET = ('--net', 'lenet_ip', '--weights', 'lenet_ip.caffemodel', '--data', 'digits.npz')


def test_a_net_of_the_paper(mc_eval, tmp_path):
    result = mc_eval(*LENET + ('--T', 7, '--repeats', 2, '--jobs', 2))
    assert result.returncode == 0, result.stderr
    assert 'Standard dropout' in result.stdout and 'MC dropout T=7, probs' in result.stdout
    assert 'McNemar' in result.stdout and 'mutual information' in result.stdout
    stored = json.loads((tmp_path / 'out' / 'result.json').read_text())
    assert '%.2f' % stored['standard']['error'] in result.stdout
    assert len(stored['mc']['probs']['curve']) == 2 and len(stored['mc']['scores']['curve'][0]) == 7


def test_the_defaults_are_those_of_table_1(mc_eval, tmp_path):
    """The paper: T = 100, five repetitions."""
    assert mc_eval(*MINE).returncode == 0
    stored = json.loads((tmp_path / 'out' / 'result.json').read_text())
    assert (stored['config']['T'], stored['mc']['probs']['repetitions']) == (100, 5)


def test_a_foreign_net_of_the_old_format(mc_eval):
    result = mc_eval(*MINE + ('--T', 5, '--repeats', 1))
    assert result.returncode == 0, result.stderr
    assert 'mine on 30 images' in result.stdout


def test_it_works_from_another_folder(mc_eval, tmp_path):
    (tmp_path / 'elsewhere').mkdir()
    assert mc_eval(*MINE + ('--T', 3), cwd=tmp_path / 'elsewhere').returncode == 0


def test_a_net_without_dropout(mc_eval):
    words = ('--weights', 'lenet_none.caffemodel', '--data', 'digits.npz', '--net', 'lenet_none')
    result = mc_eval(*words)
    assert result.returncode == 0, result.stderr
    assert 'the net has no dropout layer' in result.stdout and 'MC dropout T' not in result.stdout
    one_clear_line(mc_eval(*words + ('--T', 50)), 'lenet_none has no dropout layer')


def test_adaptive(mc_eval, tmp_path):
    result = mc_eval(*LENET + ('--T', 60, '--repeats', 1, '--adaptive', '--adaptive-error', 0.1))
    assert result.returncode == 0, result.stderr
    stored = json.loads((tmp_path / 'out' / 'result.json').read_text())['adaptive']
    assert stored['error'] == 0.1 and 'check' not in stored['passes'][0]
    assert 'repetition 1: %.2f passes an image' % stored['passes'][0]['mean'] in result.stdout
    assert 'with a probability of at least 90%' in result.stdout


def test_adaptive_check(mc_eval, tmp_path):
    result = mc_eval(*LENET + ('--T', 60, '--repeats', 1, '--adaptive-check'))
    assert result.returncode == 0, result.stderr
    stored = json.loads((tmp_path / 'out' / 'result.json').read_text())['adaptive']
    assert stored['error'] == 0.01
    assert 'repetition 1: %.2f passes an image' % stored['passes'][0]['mean'] in result.stdout
    assert '%d of 30 predictions differ' % stored['passes'][0]['check']['different'] in result.stdout


def test_antithetic(mc_eval, tmp_path):
    result = mc_eval(*LENET + ('--T', 8, '--repeats', 1, '--sampler', 'antithetic'))
    assert result.returncode == 0, result.stderr
    about = json.loads((tmp_path / 'out' / 'config.json').read_text())
    assert about['mode'] == 'antithetic' and about['groups'] == 2


def test_shared(mc_eval, tmp_path):
    result = mc_eval(*LENET + ('--T', 6, '--repeats', 5, '--sampler', 'shared'))
    assert result.returncode == 0, result.stderr
    assert [line.partition(':')[0] for line in result.stdout.splitlines() if line.startswith('repetition')] == [
        'repetition %d of 5' % k for k in range(1, 6)]
    stored = json.loads((tmp_path / 'out' / 'result.json').read_text())
    assert (stored['config']['mode'], stored['config']['groups'], stored['config']['repeats']) == ('shared', 2, 5)
    assert [len(errors) for errors in stored['mc']['probs']['curve']] == [6] * 5


def test_adaptive_in_pairs(mc_eval, tmp_path):
    result = mc_eval(*LENET + ('--T', 40, '--repeats', 1, '--adaptive', '--sampler', 'antithetic'))
    assert result.returncode == 0, result.stderr
    about = json.loads((tmp_path / 'out' / 'config.json').read_text())
    assert about['mode'] == 'adaptive' and about['groups'] == 1
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        assert set(stored['passes'].ravel() % 2) == {0} and stored['passes'].min() >= 10
    row, = adaptive_agreement.rows(str(tmp_path / 'out'))
    assert row['groups'] == 1


def test_standard_only(mc_eval, tmp_path):
    result = mc_eval(*LENET + ('--standard-only',))
    assert result.returncode == 0 and 'not asked for' in result.stdout
    nodrop = ('--prototxt', 'nodrop.prototxt', '--weights', 'mine.caffemodel', '--data', 'mine.npz')
    result = mc_eval(*nodrop + ('--standard-only',), out=tmp_path / 'nodrop')
    assert result.returncode == 0 and 'the net has no dropout layer' in result.stdout


@pytest.mark.parametrize('more', [(), ('--adaptive',)], ids=['plain', 'adaptive'])
def test_killed_and_run_again_ends_in_the_same_bytes(place, mc_eval, tmp_path, more):
    """kill -9 of the whole command at random moments, then to the end; against an undisturbed run."""
    size = (60, '--batch', 1, '--repeats', 2) if more else (400, '--batch', 3, '--repeats', 4)
    words = LENET + ('--T',) + size + ('--jobs', 2) + more
    assert mc_eval(*words, out=tmp_path / 'calm').returncode == 0
    command = [sys.executable, os.path.join(ROOT, 'tools', 'mc_eval.py')]
    command += [str(place / word) if isinstance(word, str) and (place / word).exists() else str(word) for word in words]
    blocks = tmp_path / 'stormy' / 'blocks'
    for wanted in (1, 8, 15) if more else (1, 12, 30):
        process = subprocess.Popen(command + ['--out', str(tmp_path / 'stormy')], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        deadline = time.time() + 30
        while process.poll() is None and (not blocks.exists() or len(list(blocks.glob('*.npz'))) < wanted):
            assert time.time() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / 'stormy' / 'result.json').exists() or process.returncode == 0
    assert mc_eval(*words, out=tmp_path / 'stormy').returncode == 0
    for name in ('result.json', 'images.npz', 'images.csv'):
        assert (tmp_path / 'calm' / name).read_bytes() == (tmp_path / 'stormy' / name).read_bytes()
    leftovers = [path.name for path in (tmp_path / 'stormy').rglob('.*tmp*')]
    assert leftovers == []


@pytest.mark.parametrize('words, parts', [
    (('--net', 'lenet_al'), ['lenet_al', 'lenet_all']),
    (('--net', 'lenet_all', '--dataset', 'minst'), ['minst', 'mnist']),
    (('--net', 'nin', '--dataset', 'mnist'), ['nin', 'mnist']),
    (('--net', 'dsn_aug', '--training-seed', 77), ['not trained yet', 'tools/train.py --net dsn_aug', '--weights']),
    (('--net', 'nin', '--training-seed', 77), ['not trained yet', 'tools/train.py --net nin', '--seed 77']),
    (LENET + ('--T', 0), ['T is 0']),
    (LENET + ('--T', -5), ['T is -5']),
    (LENET + ('--repeats', 0), ['repeats is 0']),
    (LENET + ('--batch', 0), ['batch is 0']),
    (LENET + ('--jobs', 0), ['--jobs']),
    (LENET + ('--limit', 31), ['30 images', '--limit 31']),
    (LENET + ('--limit', 0), ['--limit 0']),
    (LENET + ('--crops', 5), ['nothing to crop']),
    (LENET + ('--gpu', 77), ['GPU 77 asked for']),
    (LENET + ('--adaptive', '--mode', 'replicate'), ['--adaptive does not go with --mode replicate']),
    (LENET + ('--mode', 'replicate', '--sampler', 'antithetic'), ['--mode replicate does not go with --sampler antithetic']),
    (LENET + ('--adaptive', '--sampler', 'shared'), ['--adaptive does not go with --sampler shared']),
    (LENET + ('--mode', 'replicate', '--sampler', 'shared'), ['--mode replicate does not go with --sampler shared']),
    (LENET + ('--repeats', 1, '--sampler', 'shared'), ['share masks in groups of 2: give --repeats 2 or more, not 1']),
    (LENET + ('--groups', 2), ['--groups says nothing without --sampler antithetic']),
    (LENET + ('--groups', 0, '--sampler', 'antithetic'), ['--groups is 0']),
    (LENET + ('--adaptive-error', 0.1), ['--adaptive-error says nothing without --adaptive']),
    (LENET + ('--adaptive', '--adaptive-check'), ['--adaptive does not go with --adaptive-check']),
    (LENET + ('--adaptive', '--adaptive-error', 0), ['error probability of 0', 'above 0']),
    (LENET + ('--adaptive', '--adaptive-error', 'nan'), ['error probability of nan']),
    (LENET + ('--T', 7, '--sampler', 'antithetic'), ['T is 7', 'groups of 2 passes', 'nearest is 6 or 8']),
    (LENET + ('--T', 6, '--sampler', 'antithetic', '--groups', 2), ['T is 6', 'groups of 4 passes', 'nearest is 4 or 8']),
    (LENET[:2] + ('--weights', 'none.caffemodel', '--data', 'digits.npz'), ['none.caffemodel', 'no such file']),
    (LENET[:2] + ('--weights', 'noise.caffemodel', '--data', 'digits.npz'), ['noise.caffemodel', 'not a caffemodel']),
    (LENET[:2] + ('--weights', 'mine.caffemodel', '--data', 'digits.npz'), ['mine.caffemodel', 'no weights for conv1, conv2']),
    (('--net', 'lenet_ip', '--dataset', 'cifar10', '--weights', 'lenet_ip.caffemodel', '--data', 'floats.npz'),
     ['1x28x28', '3x32x32', '--resize']),
    (LENET[:4] + ('--data', 'mine.npz'), ['1x2x2', '1x28x28']),
    (LENET[:4] + ('--data', 'nowhere'), ['nowhere', 'no images']),
    (MINE[:4] + ('--data', 'bad_label.npz'), ['image 1 has label 4', '0 to 3']),
    (MINE[:4] + ('--data', 'bad_shape.npz'), ['layer ip1', '6x4', '6x12']),
    (MINE[:2] + ('--data', 'mine.npz'), ['--weights']),
    (MINE[:4], ['--data']),
    (MINE + ('--output', 'nothing'), ['nothing']),
    (MINE + ('--shape', '1,2'), ['--shape']),
    (('--prototxt', 'broken.prototxt') + MINE[2:], ['broken.prototxt:', 'tip']),
    (('--prototxt', 'nodrop.prototxt') + MINE[2:], ['nodrop.prototxt', 'no dropout layer']),
    (('--prototxt', 'noise.caffemodel') + MINE[2:], ['noise.caffemodel']),
    (('--prototxt', 'none.prototxt') + MINE[2:], ['none.prototxt']),
])
def test_refusals_are_one_clear_line(mc_eval, tmp_path, words, parts):
    result = mc_eval(*words)
    one_clear_line(result, *parts)
    assert result.returncode == 2
    assert not (tmp_path / 'out').exists()


def test_a_folder_of_another_evaluation_is_refused(mc_eval):
    assert mc_eval(*MINE + ('--T', 3)).returncode == 0
    one_clear_line(mc_eval(*MINE + ('--T', 4)), 'another evaluation', 'T 3, here 4')


def test_an_unwritable_place_is_one_line(mc_eval, tmp_path):
    (tmp_path / 'file').write_text('')
    one_clear_line(mc_eval(*MINE, out=tmp_path / 'file' / 'out'), 'file')


WORDS = st.sampled_from(['--net', 'lenet_ip', 'nin', '--prototxt', 'mine.prototxt', 'noise.caffemodel', '--weights',
                         'mine.caffemodel', 'lenet_ip.caffemodel', '--data', 'mine.npz', 'digits.npz', '--T', '3', '0', '-1', '--adaptive',
                         '--repeats', '1', '--limit', '2', 'x', '', '--mode', 'replicate', '--jobs', '--crops', '2', '--shape',
                         '1,2,2', '9' * 30, '--out'])


@settings(max_examples=25)
@given(st.lists(WORDS, max_size=10))
def test_no_command_line_gives_a_traceback(place, tool, tmp_path_factory, words):
    folder = tmp_path_factory.mktemp('fuzz')
    words = [str(place / word) if word and (place / word).exists() else word for word in words]
    result = tool('mc_eval.py', *(words + ['--out', folder / 'out']), cwd=folder)
    assert 'Traceback' not in result.stderr, result.stderr
    assert result.returncode in (0, 1, 2)
