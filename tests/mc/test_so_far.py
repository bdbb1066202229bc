"""What an evaluation says on the way: how long it takes, each repetition, and what its blocks say when it is stopped."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import evalhelp
from bcnn import engine, nets
from bcnn.mc import evaluation, metrics, sampling, so_far
from conftest import ROOT

pytestmark = pytest.mark.caffe

HOW = evaluation.Settings(T=4, repeats=3, seed=1, mode='stream', batch=5)


@pytest.fixture(scope='module')
def small(tmp_path_factory):
    return evalhelp.small_target(tmp_path_factory.mktemp('small'), 20)


def test_a_line_after_each_repetition(small, tmp_path, capsys):
    result = evaluation.run(small, HOW, str(tmp_path))
    errors = result['mc']['probs']['error']
    assert capsys.readouterr().out.splitlines() == [
        'repetition 1 of 3: MC error %.2f%%' % errors[0],
        'repetition 2 of 3: MC error %.2f%%, so far %.2f +- %.2f%% of 2' % (errors[1], np.mean(errors[:2]), np.std(errors[:2], ddof=1)),
        'repetition 3 of 3: MC error %.2f%%, so far %.2f +- %.2f%% of 3' % (errors[2], np.mean(errors), np.std(errors, ddof=1))]
    more = evaluation.run(small, HOW._replace(repeats=4), str(tmp_path))['mc']['probs']
    line, = capsys.readouterr().out.splitlines()  # of what is new, with what was there
    assert line.startswith('repetition 4 of 4: ') and line.endswith('so far %.2f +- %.2f%% of 4' % (more['mean'], more['std']))


def test_one_repetition_is_its_own_result(small, tmp_path, capsys):
    evaluation.run(small, HOW._replace(repeats=1), str(tmp_path))
    assert capsys.readouterr().out == ''


# --- stopped

@pytest.mark.parametrize('mode', ['stream', 'adaptive'])
def test_what_the_finished_blocks_say(small, tmp_path, mode):
    how = HOW._replace(batch=2, mode=mode, T=20, rule=evaluation.adaptive.Rule() if mode == 'adaptive' else None)
    evaluation.run(small, how, str(tmp_path))
    size = sampling.block_size(how)
    for name in ('mc1-00000', 'mc2-00000', 'mc2-00001', 'standard-00001') if mode == 'stream' else ('mc1-00001', 'mc2-00001', 'mc2-00000'):
        os.remove(str(tmp_path / 'blocks' / (name + '.npz')))
    lines = list(so_far.lines(str(tmp_path), how.repeats))
    with np.load(str(tmp_path / 'images.npz')) as stored:
        wrong = ~metrics.correct(stored['standard_probs'], stored['labels'])
        mc = ~metrics.correct(stored['mc_probs'].reshape(-1, 3), np.tile(stored['labels'], 3)).reshape(3, -1)
        passes = stored['passes']
    assert lines[0] == 'stopped; what the finished blocks say:' and lines[-1] == 'the same command goes on from here'
    if mode == 'stream':
        assert lines[1] == '  Standard dropout: error %.2f%% of 18 images' % (100.0 * np.delete(wrong, [2, 3]).mean())
        assert lines[2] == '  MC dropout T=20, repetition 1: error %.2f%% of 18 images, 360 passes' % (100.0 * mc[0, 2:].mean())
        assert lines[3] == ('  MC dropout T=20, repetition 2: error %.2f%% of 16 images, 320 passes; Standard on these: %.2f%%'
                            % (100.0 * mc[1, 4:].mean(), 100.0 * wrong[4:].mean()))
    else:  # fewer passes than T an image, as they were
        assert lines[2] == '  MC dropout T=20, repetition 1: error %.2f%% of %d images, %d passes; Standard on these: %.2f%%' % (
            100.0 * mc[0, :size].mean(), size, passes[0, :size].sum(), 100.0 * wrong[:size].mean())
    assert len(lines) == (6 if mode == 'stream' else 5)


def test_before_the_first_block(small, tmp_path):
    assert list(so_far.lines(str(tmp_path), 3)) == ['stopped before a block was finished']


@pytest.mark.parametrize('number, code', [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_command_prints_it(tmp_path, number, code):
    evalhelp.write_digits(tmp_path / 'digits.npz', 40, np.random.RandomState(0))
    engine.load_net(nets.deploy('lenet_all', 'mnist')).save(str(tmp_path / 'w.caffemodel'))
    words = ['--net', 'lenet_all', '--weights', 'w.caffemodel', '--data', 'digits.npz', '--T', '2000', '--repeats', '50',
             '--batch', '2', '--jobs', '2', '--out', 'out']
    process = subprocess.Popen([sys.executable, os.path.join(ROOT, 'tools', 'mc_eval.py')] + words, cwd=str(tmp_path),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    blocks, deadline = tmp_path / 'out' / 'blocks', time.time() + 300
    while process.poll() is None and not list(blocks.glob('mc1-*.npz')):
        assert time.time() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code and 'Traceback' not in err
    lines = out.splitlines()
    assert lines[0].startswith('weights: w.caffemodel: how far they were trained is not known')
    told = next(line for line in lines if line.startswith('this takes'))
    assert re.match(r'this takes about [\d.]+ (s|min|hours|days) here, with 2 processes; quicker: --repeats 1 '
                    r'\(about [\d.]+ \w+\), --adaptive', told)
    images = 2 * len(list(blocks.glob('mc1-*.npz')))
    line = next(line for line in lines if 'repetition 1: error' in line)
    assert 'of %d images, %s passes' % (images, '{:,}'.format(images * 2000)) in line
    assert lines[-1] == 'the same command goes on from here'


# --- how long

@pytest.mark.parametrize('how', [HOW, HOW._replace(mode='shared', groups=1)], ids=['stream', 'shared'])
def test_the_speed_is_that_of_passes(small, how):
    once, a_pass = engine.call(so_far.speed, small, how)
    assert 0 <= once < 1 and 0 < a_pass < 1


def test_the_speed_of_a_net_without_dropout(small):
    once, a_pass = engine.call(so_far.speed, small._replace(sampling=None), HOW)
    assert once == 0 and 0 < a_pass < 1


def test_a_pass_of_a_group_is_a_share_of_it(small, monkeypatch):
    """A clock that ticks once a look: a second for what is computed once, one for each group of two passes."""
    ticks = iter(range(100))
    monkeypatch.setattr(so_far.time, 'monotonic', lambda: float(next(ticks)))
    once, a_pass = engine.call(so_far.speed, small, HOW._replace(mode='shared', groups=1))
    assert (once, a_pass) == (1.0 / HOW.batch, 0.5 / HOW.batch)


def test_long_evaluations_say_so_before_they_start(small, monkeypatch, capsys):
    monkeypatch.setattr(so_far, 'speed', lambda target, settings: (0.1, 0.5))
    tasks = [(repetition, block) for repetition in range(4) for block in range(4)]
    many = HOW._replace(T=100)
    so_far.say_duration(small, many, tasks, 2, so_far.quicker)  # 80 images once, 20 + 3 * 2,000 passes
    assert capsys.readouterr().out == ('this takes about 25 min here, with 2 processes; quicker: --repeats 1 (about 8.4 min), '
                                       '--adaptive (passes only until the class of an image is settled), --sampler shared '
                                       '(repetitions share convolutions), --limit N (the first N images)\n')
    so_far.say_duration(small, many._replace(mode='adaptive', repeats=1), [(k, 0) for k in (1, 2, 3)], 1, so_far.quicker)
    assert capsys.readouterr().out == 'this takes at most 50 min here, with 1 process; quicker: --limit N (the first N images)\n'
    so_far.say_duration(small, many._replace(mode='shared', groups=1), [(sampling.EVERY, block) for block in range(4)], 1, so_far.quicker)
    assert capsys.readouterr().out == 'this takes about 50 min here, with 1 process; quicker: --limit N (the first N images)\n'
    so_far.say_duration(small, many, tasks, 2, so_far.fewer_images)  # of tools/study.py, which has no --adaptive
    assert capsys.readouterr().out == 'this takes about 25 min here, with 2 processes; quicker: --limit N (the first N images)\n'
    monkeypatch.setattr(so_far, 'speed', lambda target, settings: (0.0, 0.001))
    so_far.say_duration(small, many, tasks, 1, so_far.quicker)
    assert capsys.readouterr().out == ''  # soon done


def test_few_passes_are_not_measured_first(small, monkeypatch):
    monkeypatch.setattr(so_far, 'speed', lambda target, settings: pytest.fail('measured'))
    so_far.say_duration(small, HOW, [(1, 0)], 1, so_far.quicker)
