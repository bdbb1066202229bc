"""Training with real Caffe on small real data: exact resume, stages, curves, what is refused."""

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

import trainhelp
from bcnn import bench_train, curve, engine, loop, mc, runs, snapshots, train
from bcnn.errors import UserError
from trainhelp import result, settings


@pytest.fixture(scope='session')
def data(tmp_path_factory):
    return trainhelp.make_data(tmp_path_factory.mktemp('data'))


@pytest.fixture(scope='session')
def lenet(data):
    return trainhelp.task(data, 'lenet_all', batch=8)


@pytest.fixture(scope='session')
def whole(lenet, tmp_path_factory):
    """The folder of an uninterrupted run of lenet_all."""
    folder = tmp_path_factory.mktemp('runs') / 'whole'
    assert train.run(lenet, settings(), str(folder)) == 0
    return folder


def weights(path):
    net = engine.caffe_pb2.NetParameter()
    with open(str(path), 'rb') as file:
        net.ParseFromString(file.read())
    return {layer.name: [np.array(blob.data, np.float32) for blob in layer.blobs] for layer in net.layer if layer.blobs}


def same(first, second):
    return sorted(first) == sorted(second) and all(
        np.array_equal(a, b) for name in first for a, b in zip(first[name], second[name]))


# --- exact resume

@pytest.mark.slow
def test_twenty_kills_leave_the_same_bytes(lenet, whole, tmp_path):
    begin = time.time()
    assert train.run(lenet, settings(), str(tmp_path / 'again')) == 0
    most = 0.35 * (time.time() - begin)
    assert result(tmp_path / 'again') == result(whole)
    used = trainhelp.kill_until(20, lambda folder: trainhelp.start(lenet, settings(), folder),
                                (tmp_path / str(k) for k in itertools.count()), random.Random(5), most)
    assert [result(folder) == result(whole) for folder in used] == [True] * len(used)


@pytest.mark.slow
def test_twenty_kills_of_dsn_on_padded_data(data, tmp_path):
    """Three stages, companions, random crops and mirrors; 20 records at batch 4: a segment has 5 iterations."""
    task = trainhelp.task(data, 'dsn_aug', batch=4)
    assert [loop.segment_length(task, stage) for stage in (1, 2, 3)] == [5, 5, 5]
    how = settings(iterations=(8, 7, 6), points='4', T=2, snapshot_every=3)
    begin = time.time()
    assert train.run(task, how, str(tmp_path / 'whole')) == 0
    most = 0.35 * (time.time() - begin)
    used = trainhelp.kill_until(20, lambda folder: trainhelp.start(task, how, folder),
                                (tmp_path / str(k) for k in itertools.count()), random.Random(5), most)
    assert [result(folder) == result(tmp_path / 'whole') for folder in used] == [True] * len(used)
    assert [row.stage for row in curve.read(str(tmp_path / 'whole' / 'curve.csv'))] == [1, 2, 3]


@pytest.mark.parametrize('net, batch, iterations', [('lenet_ip', 8, (20,)), ('dsn_aug', 4, (1, 1, 1))])
def test_the_seed_decides(data, tmp_path, net, batch, iterations):
    """A test of the tests above: another seed, or crops not repeated, would be seen."""
    task = trainhelp.task(data, net, batch=batch)
    for seed in (1, 2):
        how = settings(seed=seed, iterations=iterations, points='none')
        assert train.run(task, how, str(tmp_path / str(seed))) == 0
    assert result(tmp_path / '1') != result(tmp_path / '2')


def stop_at(task, how, folder, iteration, number):
    """Starts a run, sends it a signal after an iteration, and gives its exit code."""
    process = trainhelp.start(task, how, folder)
    trainhelp.wait_for(lambda: runs.stored(str(folder)) and runs.stored(str(folder))[-1][1] >= iteration)
    os.kill(process.pid, number)
    process.join()
    return process.exitcode


@pytest.mark.parametrize('number, code', [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_after_the_step_and_loses_nothing(lenet, whole, tmp_path, number, code):
    assert stop_at(lenet, settings(), tmp_path / 'run', 7, number) == code
    reached = runs.stored(str(tmp_path / 'run'))[-1][1]
    status = json.loads((tmp_path / 'run' / 'status.json').read_text())
    assert status['iteration'] == reached  # nothing after the snapshot
    assert not (tmp_path / 'run' / 'done.json').exists()
    assert train.run(lenet, settings(), str(tmp_path / 'run')) == 0
    assert result(tmp_path / 'run') == result(whole)


@pytest.mark.parametrize('delay', [0, 0.02, 1])
def test_a_signal_while_measuring(data, lenet, tmp_path, delay):
    """The evaluation is given up, and done after the resume."""
    how = settings(iterations=(30,), points='20', T=3000)
    process = trainhelp.start(lenet, how, tmp_path / 'run')
    trainhelp.wait_for(lambda: (runs.read_json(str(tmp_path / 'run' / 'status.json')) or {}).get('measuring'))
    time.sleep(delay)
    os.kill(process.pid, signal.SIGTERM)
    process.join(20)
    assert process.exitcode == 143
    assert runs.stored(str(tmp_path / 'run'))[-1][1] == 20
    assert curve.read(str(tmp_path / 'run' / 'curve.csv')) == []


def test_a_moved_folder_goes_on(lenet, whole, tmp_path):
    assert stop_at(lenet, settings(), tmp_path / 'before', 14, signal.SIGTERM) == 143
    shutil.move(str(tmp_path / 'before'), str(tmp_path / 'else' / 'where'))
    assert train.run(lenet, settings(), str(tmp_path / 'else' / 'where')) == 0
    assert result(tmp_path / 'else' / 'where') == result(whole)
    assert not (tmp_path / 'before').exists()


@pytest.mark.parametrize('name', [snapshots.WEIGHTS, snapshots.SOLVER, runs.STATE])
def test_a_damaged_snapshot_is_passed_over(lenet, whole, tmp_path, capfd, name):
    assert stop_at(lenet, settings(), tmp_path / 'run', 14, signal.SIGTERM) == 143
    path = os.path.join(runs.stored(str(tmp_path / 'run'))[-1][2], name)
    with open(path, 'r+b') as file:
        file.seek(os.path.getsize(path) // 2)
        file.write(b'\xff\xff')
    assert train.run(lenet, settings(), str(tmp_path / 'run')) == 0
    assert 'damaged' in capfd.readouterr().out
    assert result(tmp_path / 'run') == result(whole)


def test_a_longer_run_is_the_run_asked_for_at_once(lenet, whole, tmp_path):
    """With `log` the old end is no evaluation point of the longer run."""
    for iterations in ((33,), (60,)):
        assert train.run(lenet, settings(iterations=iterations), str(tmp_path / 'list')) == 0
    assert result(tmp_path / 'list') == result(whole)
    for iterations, folder in (((33,), 'grown'), ((120,), 'grown'), ((120,), 'at once')):
        assert train.run(lenet, settings(iterations=iterations, points='log'), str(tmp_path / folder)) == 0
    assert result(tmp_path / 'grown') == result(tmp_path / 'at once')
    assert [row.iteration for row in curve.read(str(tmp_path / 'grown' / 'curve.csv'))] == [100, 120]
    with pytest.raises(UserError, match='has reached iteration 120 of 120: --iters 60 is not possible'):
        train.run(lenet, settings(points='log'), str(tmp_path / 'grown'))


def test_measuring_changes_nothing_in_the_training(lenet, whole, tmp_path):
    how = settings(points='none', snapshot_every=None)
    assert train.run(lenet, how, str(tmp_path / 'run')) == 0
    assert result(tmp_path / 'run')['final.caffemodel'] == result(whole)['final.caffemodel']
    assert result(tmp_path / 'run')['curve.csv'] != result(whole)['curve.csv']


def test_the_curve_does_not_depend_on_jobs(data, tmp_path):
    task = trainhelp.task(data, 'lenet_ip', batch=8)
    for jobs in (1, 3):
        assert train.run(task, settings(iterations=(20,), jobs=jobs), str(tmp_path / str(jobs))) == 0
    assert result(tmp_path / '1') == result(tmp_path / '3')


# --- against Caffe itself

def caffe_train(solver, folder):
    """The weights that the `caffe` command ends with, of a SolverParameter, and what it logs."""
    solver.snapshot_after_train, solver.snapshot_prefix = True, str(folder / 'caffe')
    (folder / 'solver.prototxt').write_text(engine.text_format.MessageToString(solver))
    ended = subprocess.run([bench_train.caffe_command(), 'train', '--solver=%s' % (folder / 'solver.prototxt')],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                           env=dict(os.environ, GLOG_minloglevel='0'))
    assert ended.returncode == 0, ended.stderr
    return weights(folder / ('caffe_iter_%d.caffemodel' % solver.max_iter)), ended.stderr


@pytest.mark.parametrize('net, iterations, equal', [
    ('lenet_none', 25, True),   # past two cycles of the data
    ('lenet_all', 1, True),     # initial weights and the first masks
    ('lenet_all', 2, False),    # then ours are seeded at each iteration
])
def test_caffe_train_gives_the_same_weights(data, tmp_path, net, iterations, equal):
    task = trainhelp.task(data, net)
    how = settings(iterations=(iterations,), points='none')
    assert train.run(task, how, str(tmp_path / 'run')) == 0
    text = (tmp_path / 'run' / 'solver.prototxt').read_text()
    solver = engine.text_format.Parse(text, engine.caffe_pb2.SolverParameter())
    theirs, _ = caffe_train(solver, tmp_path)
    assert same(theirs, weights(tmp_path / 'run' / 'final.caffemodel')) is equal


def test_the_learning_rate_is_what_caffe_prints(data, tmp_path):
    how = settings(iterations=(3,), points='none')
    for policy, changes in (('inv', dict(gamma=0.3)), ('step', dict(gamma=0.1, stepsize=2)), ('fixed', {})):
        task = trainhelp.task(data, 'lenet_none', batch=8)
        (tmp_path / policy).mkdir()
        solver = task.stages[0].solver
        solver.lr_policy, solver.display = policy, 1
        for name, value in changes.items():
            setattr(solver, name, value)
        message = loop.stage_message(task, how, 1, str(tmp_path / policy))
        message.display = 1
        train._write_prototxts(task, how, str(tmp_path / policy))
        _, log = caffe_train(message, tmp_path / policy)
        printed = [line.rsplit('lr = ', 1)[1] for line in log.splitlines() if 'lr = ' in line]
        assert printed == ['%.6g' % curve.learning_rate(solver, iteration) for iteration in range(3)]


# --- DSN

def test_stages_hand_on_weights_but_not_companions(data, tmp_path):
    task = trainhelp.task(data, 'dsn', batch=2)
    assert train.run(task, settings(iterations=(3, 1, 1), points='none'), str(tmp_path / 'run')) == 0
    first, second, last = (weights(tmp_path / 'run' / (name + '.caffemodel')) for name in ('stage1', 'stage2', 'final'))
    assert {'ip_svm1', 'ip_svm2', 'ip_svm3'} <= set(first)
    assert set(second) == set(last) == set(first) - {'ip_svm1', 'ip_svm2', 'ip_svm3'}
    # Stage 3 has learning rate 0.0001 and a fresh momentum, so one step of it changes next to nothing.
    assert 0 < np.abs(last['conv2'][0] - second['conv2'][0]).max() < 1e-2 * np.abs(second['conv2'][0]).max()
    config = json.loads((tmp_path / 'run' / 'config.json').read_text())
    assert sorted(config['prototxt']) == ['solver_stage1', 'solver_stage2', 'solver_stage3']
    assert os.path.exists(str(tmp_path / 'run' / 'train_test_stage1.prototxt'))


@pytest.mark.slow
def test_a_solver_is_freed_with_its_companions_callback(data, tmp_path):
    """A new one is made at each segment: any that stay would fill the memory."""
    task = trainhelp.task(data, 'dsn_aug', batch=4)
    how = settings(iterations=(40, 1, 1), points='none', snapshot_every=1000)

    def growth():
        (tmp_path / 'run').mkdir()
        train._write_prototxts(task, how, str(tmp_path / 'run'))
        made = loop._Loop(task, how, str(tmp_path / 'run'))
        made._settle_curve(None)
        sizes = []
        old = made._snapshot

        def snapshot(*args):
            sizes.append(int(open('/proc/self/statm').read().split()[1]) * 4096)
            return old(*args)

        made._snapshot = snapshot
        made._train_stage(1, None)
        return sizes

    sizes = engine.call(growth)
    assert len(sizes) == 8
    assert sizes[-1] - sizes[2] < 60e6, sizes  # a solver of this net takes 100 MB


# --- snapshots

def test_old_snapshots_are_thinned(data, tmp_path):
    task = trainhelp.task(data, 'lenet_none', batch=1)
    task.stages[0].solver.base_lr = 0.001
    assert train.run(task, settings(iterations=(260,), points='none', snapshot_every=10), str(tmp_path / 'run')) == 0
    assert [iteration for _, iteration, _ in runs.stored(str(tmp_path / 'run'))] == [100, 200, 250, 260]


def test_time_based_snapshots_are_the_default(data, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, 'SNAPSHOT_SECONDS', 0.05)
    monkeypatch.setattr(loop, 'SNAPSHOT_SHARE', 0.5)
    task = trainhelp.task(data, 'lenet_none', batch=8)
    assert train.run(task, settings(iterations=(80,), points='none', snapshot_every=None), str(tmp_path / 'run')) == 0
    assert len(runs.stored(str(tmp_path / 'run'))) == 2  # the last two; without any there would be only the end


# --- what is refused

def test_another_run_in_the_folder_is_refused(data, lenet, whole):
    for how, difference in ((settings(seed=2), 'seed 1, here 2'), (settings(T=4), 'T 3, here 4'),
                            (settings(points='log'), 'eval_points 20,50, here log')):
        with pytest.raises(UserError, match=difference):
            train.run(lenet, how, str(whole))
    other = lenet._replace(checksums=dict(lenet.checksums, train='0'))
    with pytest.raises(UserError, match=r'data\.train \w+\.\.\., here 0'):
        train.run(other, settings(), str(whole))
    changed = trainhelp.task(data, 'lenet_all', batch=8)
    changed.stages[0].solver.base_lr = 0.02
    with pytest.raises(UserError, match=r'prototxt\.solver\.solver'):
        train.run(changed, settings(), str(whole))


def test_a_folder_of_something_else_is_refused(lenet, tmp_path):
    (tmp_path / 'thesis.tex').write_text('')
    with pytest.raises(UserError, match='not the folder of a run'):
        train.run(lenet, settings(), str(tmp_path))
    assert (tmp_path / 'thesis.tex').exists()


def test_a_finished_run_does_nothing(lenet, whole, capfd):
    before = {name: os.stat(str(whole / name)).st_mtime_ns for name in ('final.caffemodel', 'curve.csv', 'done.json')}
    assert train.run(lenet, settings(), str(whole)) == 0
    assert 'complete already, at iteration 50: Standard' in capfd.readouterr().out
    assert before == {name: os.stat(str(whole / name)).st_mtime_ns for name in before}


def test_two_processes_do_not_share_a_run(lenet, tmp_path):
    how = settings(iterations=(1000,), points='none')
    process = trainhelp.start(lenet, how, tmp_path / 'run')
    trainhelp.wait_for(lambda: runs.stored(str(tmp_path / 'run')))
    try:
        assert runs.holder(str(tmp_path / 'run'))[0] == process.pid
        begin = time.time()
        with pytest.raises(UserError, match='being trained by process %d on' % process.pid):
            train.run(lenet, how, str(tmp_path / 'run'))
        assert time.time() - begin < 1
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.join()
    assert runs.holder(str(tmp_path / 'run')) is None


@pytest.mark.parametrize('lr, scale', [(100.0, 1 / 256.0), (0.01, 100.0)])
def test_divergence_stops_with_its_cause(data, tmp_path, lr, scale):
    task = trainhelp.task(data, 'lenet_none', batch=8)
    task.stages[0].solver.base_lr = lr
    for layer in task.stages[0].net.layer:
        if layer.type == 'Data':
            layer.transform_param.scale = scale
    for _ in range(2):  # it would do the same again
        with pytest.raises(loop.Diverged, match=r'diverged at iteration \d+ \(loss .*raw CIFAR-10') as caught:
            train.run(task, settings(iterations=(400,), snapshot_every=1, points='none'), str(tmp_path / 'run'))
        assert caught.value.exit_code == 1
    assert json.loads((tmp_path / 'run' / 'diverged.json').read_text())['iteration'] < 100
    for _, _, path in runs.stored(str(tmp_path / 'run')):
        for blobs in weights(os.path.join(path, snapshots.WEIGHTS)).values():
            assert all(np.isfinite(blob).all() for blob in blobs)


def test_a_loss_that_sticks_is_divergence(data, tmp_path):
    """-ln(FLT_MIN): a net that is certain of a wrong class and cannot learn. One image: all are wrong, or none."""
    image = trainhelp.mnist('train', 1)[0].repeat(8, axis=0)
    stuck = []
    for label in (0, 1):
        trainhelp.make_set(tmp_path / str(label), 'mnist', train=(image, [label] * 8), test=(image, [label] * 8))
        task = trainhelp.task(str(tmp_path / str(label)), 'lenet_none', batch=4)
        task.stages[0].solver.base_lr = 1e-30
        for layer in task.stages[0].net.layer:
            if layer.type == 'Data':
                layer.transform_param.scale = 1e4
        try:
            train.run(task, settings(iterations=(150,), points='none'), str(tmp_path / str(label) / 'run'))
        except loop.Diverged as error:
            stuck.append(str(error))
    assert stuck and all('diverged at iteration 20 (loss 87.336' in line for line in stuck)


def test_what_is_not_prepared_names_the_command(tmp_path):
    with pytest.raises(UserError, match=r'mnist: not ready: python tools/prepare_data.py mnist'):
        train.of_paper('lenet_all', data=str(tmp_path))
    with pytest.raises(UserError, match=r'prepare_data.py cifar10'):
        train.of_paper('dsn', data=str(tmp_path))


def test_evaluation_seeds_differ_between_points():
    assert len({mc.seed_for(1, 1, iteration, block) for iteration in (100, 200) for block in (0, 1)}) == 4
