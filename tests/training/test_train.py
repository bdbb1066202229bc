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
from bcnn import batches, engine, seeds
from bcnn.bench import train_steps
from bcnn.errors import CaffeError, UserError
from bcnn.mc import adaptive, evaluation, metrics, targets
from bcnn.system import npz, places, store
from bcnn.training import curve, driver, snapshots, solver_loop, trainees
from trainhelp import result, settings

pytestmark = pytest.mark.caffe


@pytest.fixture(scope='session')
def data(tmp_path_factory):
    return trainhelp.make_data(tmp_path_factory.mktemp('data'))


@pytest.fixture(scope='session')
def lenet(data):
    return trainhelp.trainee(data, 'lenet_all', batch=8)


@pytest.fixture(scope='session')
def whole(lenet, tmp_path_factory):
    """The folder of an uninterrupted run of lenet_all."""
    folder = tmp_path_factory.mktemp('runs') / 'whole'
    assert driver.run(lenet, settings(), str(folder)) == 0
    return folder


def weights(path):
    net = engine.caffe_pb2.NetParameter()
    with open(str(path), 'rb') as file:
        net.ParseFromString(file.read())
    return {layer.name: [np.array(blob.data, np.float32) for blob in layer.blobs] for layer in net.layer if layer.blobs}


def same(first, second):
    return sorted(first) == sorted(second) and all(
        np.array_equal(a, b) for name in first for a, b in zip(first[name], second[name]))


# --- the ways that training has on a GPU, walked on the CPU

def test_what_is_done_otherwise_on_a_gpu(lenet, tmp_path, monkeypatch):
    """No fork to measure, no seed before each step, and the loss read now and then: on the CPU here, as if it were one."""
    seeded = tmp_path / 'seeded'
    monkeypatch.setattr(engine, 'use_device', lambda gpu: None)
    monkeypatch.setattr(engine, 'set_seed', lambda seed, old=engine.set_seed: (seeded.open('a').write('%d\n' % seed), old(seed)))
    how = settings(gpu=0, iterations=(60,), points='20,50', snapshot_every=15)
    assert driver.run(lenet, how, str(tmp_path / 'run')) == 0
    rows = curve.read(str(tmp_path / 'run' / 'curve.csv'))
    assert [row.iteration for row in rows] == [20, 50]
    assert json.loads((tmp_path / 'run' / 'config.json').read_text())['device'] == 'gpu'
    # each measurement seeds for its one block, and once more for the training to go on
    assert seeded.read_text().split() == [str(seeds.seed_for(*parts)) for iteration in (20, 50) for parts in (
        ('measurement', 1, 1, iteration, 0), ('step', 1, 1, iteration))]
    # the first, then every tenth; of 60 iterations
    last = store.read_json(os.path.join(places.stored(str(tmp_path / 'run'))[-1][2], 'state.json'))
    assert len(last['losses']) == 7


def test_a_run_on_a_gpu_goes_on(lenet, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, 'use_device', lambda gpu: None)
    for iterations in ((15,), (30,)):
        assert driver.run(lenet, settings(gpu=0, iterations=iterations, points='none'), str(tmp_path / 'run')) == 0
    assert places.stored(str(tmp_path / 'run'))[-1][1] == 30


def test_training_that_a_gpu_has_no_memory_for_ends_with_a_line(lenet, tmp_path, monkeypatch):
    def dies(*_):
        raise CaffeError('Check failed: error == cudaSuccess (2 vs. 0)  out of memory')

    monkeypatch.setattr(solver_loop, 'train', dies)
    monkeypatch.setattr(batches, 'free_on', lambda gpu: 5e6)
    with pytest.raises(UserError, match="GPU 0 has not enough memory to train lenet_all with the paper's batch; 5 MB"):
        driver.run(lenet, settings(gpu=0), str(tmp_path / 'run'))
    with pytest.raises(CaffeError, match='cudaSuccess'):
        driver.run(lenet, settings(), str(tmp_path / 'other'))


# --- exact resume

@pytest.mark.slow
def test_twenty_kills_leave_the_same_bytes(lenet, whole, tmp_path):
    begin = time.time()
    assert driver.run(lenet, settings(), str(tmp_path / 'again')) == 0
    most = 0.35 * (time.time() - begin)
    assert result(tmp_path / 'again') == result(whole)
    used = trainhelp.kill_until(20, lambda folder: trainhelp.start(lenet, settings(), folder),
                                (tmp_path / str(k) for k in itertools.count()), random.Random(5), most)
    assert [result(folder) == result(whole) for folder in used] == [True] * len(used)


@pytest.mark.slow
def test_ten_kills_of_dsn_on_padded_data(data, tmp_path):
    """Three stages, companions, random crops and mirrors; 20 records at batch 4: a segment has 5 iterations."""
    trainee = trainhelp.trainee(data, 'dsn_aug', batch=4)
    assert [solver_loop.segment_length(trainee, stage) for stage in (1, 2, 3)] == [5, 5, 5]
    how = settings(iterations=(8, 7, 6), points='4', T=2, snapshot_every=3)
    begin = time.time()
    assert driver.run(trainee, how, str(tmp_path / 'whole')) == 0
    most = 0.35 * (time.time() - begin)
    used = trainhelp.kill_until(10, lambda folder: trainhelp.start(trainee, how, folder),
                                (tmp_path / str(k) for k in itertools.count()), random.Random(5), most)
    assert [result(folder) == result(tmp_path / 'whole') for folder in used] == [True] * len(used)
    assert [row.stage for row in curve.read(str(tmp_path / 'whole' / 'curve.csv'))] == [1, 2, 3]


@pytest.mark.parametrize('net, batch, iterations', [('lenet_ip', 8, (20,)), ('dsn_aug', 4, (1, 1, 1))])
def test_the_seed_decides(data, tmp_path, net, batch, iterations):
    """A test of the tests above: another seed, or crops not repeated, would be seen."""
    trainee = trainhelp.trainee(data, net, batch=batch)
    for seed in (1, 2):
        how = settings(seed=seed, iterations=iterations, points='none')
        assert driver.run(trainee, how, str(tmp_path / str(seed))) == 0
    assert result(tmp_path / '1') != result(tmp_path / '2')


def stop_at(trainee, how, folder, iteration, number):
    """Starts a run, sends it a signal after an iteration, and gives its exit code."""
    process = trainhelp.start(trainee, how, folder)
    trainhelp.wait_for(lambda: places.stored(str(folder)) and places.stored(str(folder))[-1][1] >= iteration)
    os.kill(process.pid, number)
    process.join()
    return process.exitcode


@pytest.mark.parametrize('number, code', [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_after_the_step_and_loses_nothing(lenet, whole, tmp_path, number, code):
    assert stop_at(lenet, settings(), tmp_path / 'run', 7, number) == code
    reached = places.stored(str(tmp_path / 'run'))[-1][1]
    status = json.loads((tmp_path / 'run' / 'status.json').read_text())
    assert status['iteration'] == reached  # nothing after the snapshot
    assert not (tmp_path / 'run' / 'done.json').exists()
    assert driver.run(lenet, settings(), str(tmp_path / 'run')) == 0
    assert result(tmp_path / 'run') == result(whole)


@pytest.mark.parametrize('delay', [0, 0.02, 1])
def test_a_signal_while_measuring(data, lenet, tmp_path, delay):
    """The evaluation is given up, and done after the resume."""
    how = settings(iterations=(30,), points='20', T=3000)
    process = trainhelp.start(lenet, how, tmp_path / 'run')
    trainhelp.wait_for(lambda: (store.read_json(str(tmp_path / 'run' / 'status.json')) or {}).get('measuring'))
    time.sleep(delay)
    os.kill(process.pid, signal.SIGTERM)
    process.join(20)
    assert process.exitcode == 143
    assert places.stored(str(tmp_path / 'run'))[-1][1] == 20
    assert curve.read(str(tmp_path / 'run' / 'curve.csv')) == []


def test_a_moved_folder_goes_on(lenet, whole, tmp_path):
    assert stop_at(lenet, settings(), tmp_path / 'before', 14, signal.SIGTERM) == 143
    shutil.move(str(tmp_path / 'before'), str(tmp_path / 'else' / 'where'))
    assert driver.run(lenet, settings(), str(tmp_path / 'else' / 'where')) == 0
    assert result(tmp_path / 'else' / 'where') == result(whole)
    assert not (tmp_path / 'before').exists()


@pytest.mark.parametrize('name', [snapshots.WEIGHTS, snapshots.SOLVER, places.STATE])
def test_a_damaged_snapshot_is_passed_over(lenet, whole, tmp_path, capfd, name):
    assert stop_at(lenet, settings(), tmp_path / 'run', 14, signal.SIGTERM) == 143
    path = os.path.join(places.stored(str(tmp_path / 'run'))[-1][2], name)
    with open(path, 'r+b') as file:
        file.seek(os.path.getsize(path) // 2)
        file.write(b'\xff\xff')
    assert driver.run(lenet, settings(), str(tmp_path / 'run')) == 0
    assert 'damaged' in capfd.readouterr().out
    assert result(tmp_path / 'run') == result(whole)


def test_a_longer_run_is_the_run_asked_for_at_once(lenet, whole, tmp_path):
    """With `log` the old end is no evaluation point of the longer run."""
    for iterations in ((33,), (60,)):
        assert driver.run(lenet, settings(iterations=iterations), str(tmp_path / 'list')) == 0
    assert result(tmp_path / 'list') == result(whole)
    for iterations, folder in (((33,), 'grown'), ((120,), 'grown'), ((120,), 'at once')):
        assert driver.run(lenet, settings(iterations=iterations, points='log'), str(tmp_path / folder)) == 0
    assert result(tmp_path / 'grown') == result(tmp_path / 'at once')
    assert [row.iteration for row in curve.read(str(tmp_path / 'grown' / 'curve.csv'))] == [100, 120]
    with pytest.raises(UserError, match='has reached iteration 120 of 120: --iters 60 is not possible'):
        driver.run(lenet, settings(points='log'), str(tmp_path / 'grown'))


def test_measuring_changes_nothing_in_the_training(lenet, whole, tmp_path):
    how = settings(points='none', snapshot_every=None)
    assert driver.run(lenet, how, str(tmp_path / 'run')) == 0
    assert result(tmp_path / 'run')['final.caffemodel'] == result(whole)['final.caffemodel']
    assert result(tmp_path / 'run')['curve.csv'] != result(whole)['curve.csv']


def test_the_curve_does_not_depend_on_jobs(data, tmp_path):
    trainee = trainhelp.trainee(data, 'lenet_ip', batch=8)
    for jobs in (1, 3):
        assert driver.run(trainee, settings(iterations=(20,), jobs=jobs), str(tmp_path / str(jobs))) == 0
    assert result(tmp_path / '1') == result(tmp_path / '3')


# --- adaptive T in the measurements

ADAPTIVE = dict(iterations=(20,), points='10,20', T=40, rule=adaptive.Rule())


def test_adaptive_points_leave_the_training_as_it_is_and_settle_on_the_classes_of_all_passes(data, tmp_path):
    trainee = trainhelp.trainee(data, 'lenet_all', batch=8)
    for name, how in (('adaptive', settings(**ADAPTIVE)), ('all', settings(**dict(ADAPTIVE, rule=None)))):
        assert driver.run(trainee, how, str(tmp_path / name)) == 0
    some, all_ = (curve.read(str(tmp_path / name / 'curve.csv')) for name in ('adaptive', 'all'))
    assert result(tmp_path / 'adaptive')['final.caffemodel'] == result(tmp_path / 'all')['final.caffemodel']
    for mine, theirs in zip(some, all_):
        assert mine[:5] == theirs[:5]  # Standard errors among them
        assert (mine.T, mine.adaptive, mine.mc_errors_scores) == ('40', '0.01', '')
        assert adaptive.MINIMUM <= float(mine.passes) < 40 and not theirs.passes
        # other masks: of 200 images some change sides, by MC noise; a wrong rule would change many
        assert abs(int(mine.mc_errors) - int(theirs.mc_errors)) <= 20
    assert (tmp_path / 'adaptive' / 'curve.csv').read_text().startswith(','.join(curve.COLUMNS) + ',adaptive,passes\n')
    with pytest.raises(UserError, match='holds another run .adaptive'):
        driver.run(trainee, settings(**dict(ADAPTIVE, rule=None)), str(tmp_path / 'adaptive'))


def test_adaptive_points_do_not_depend_on_jobs_nor_on_a_kill(data, tmp_path, monkeypatch):
    monkeypatch.setattr(adaptive, 'LARGEST', 20)  # two blocks
    trainee = trainhelp.trainee(data, 'lenet_ip', batch=8)
    for jobs in (1, 2):
        assert driver.run(trainee, settings(jobs=jobs, **ADAPTIVE), str(tmp_path / str(jobs))) == 0
    assert result(tmp_path / '1') == result(tmp_path / '2')
    process = trainhelp.start(trainee, settings(**ADAPTIVE), tmp_path / 'killed')
    trainhelp.wait_for(lambda: (tmp_path / 'killed' / 'snapshots').exists())
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert driver.run(trainee, settings(**ADAPTIVE), str(tmp_path / 'killed')) == 0
    assert result(tmp_path / 'killed') == result(tmp_path / '1')


def test_a_net_without_dropout_has_no_adaptive_points(data, tmp_path):
    trainee = trainhelp.trainee(data, 'lenet_none', batch=8)
    for name, rule in (('plain', None), ('adaptive', adaptive.Rule())):
        assert driver.run(trainee, settings(iterations=(20,), rule=rule), str(tmp_path / name)) == 0
    assert result(tmp_path / 'plain') == result(tmp_path / 'adaptive')
    assert store.read_json(str(tmp_path / 'plain' / 'config.json')) == store.read_json(str(tmp_path / 'adaptive' / 'config.json'))


# --- against Caffe itself

def caffe_train(solver, folder):
    """The weights that the `caffe` command ends with, of a SolverParameter, and what it logs."""
    solver.snapshot_after_train, solver.snapshot_prefix = True, str(folder / 'caffe')
    (folder / 'solver.prototxt').write_text(engine.text_format.MessageToString(solver))
    ended = subprocess.run([train_steps.caffe_command(), 'train', '--solver=%s' % (folder / 'solver.prototxt')],
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
    trainee = trainhelp.trainee(data, net)
    how = settings(iterations=(iterations,), points='none')
    assert driver.run(trainee, how, str(tmp_path / 'run')) == 0
    text = (tmp_path / 'run' / 'solver.prototxt').read_text()
    solver = engine.text_format.Parse(text, engine.caffe_pb2.SolverParameter())
    theirs, _ = caffe_train(solver, tmp_path)
    assert same(theirs, weights(tmp_path / 'run' / 'final.caffemodel')) is equal


def test_the_learning_rate_is_what_caffe_prints(data, tmp_path):
    how = settings(iterations=(3,), points='none')
    for policy, changes in (('inv', dict(gamma=0.3)), ('step', dict(gamma=0.1, stepsize=2)), ('fixed', {})):
        trainee = trainhelp.trainee(data, 'lenet_none', batch=8)
        (tmp_path / policy).mkdir()
        solver = trainee.stages[0].solver
        solver.lr_policy, solver.display = policy, 1
        for name, value in changes.items():
            setattr(solver, name, value)
        message = solver_loop.stage_message(trainee, how, 1, str(tmp_path / policy))
        message.display = 1
        driver._write_prototxts(trainee, how, str(tmp_path / policy))
        _, log = caffe_train(message, tmp_path / policy)
        printed = [line.rsplit('lr = ', 1)[1] for line in log.splitlines() if 'lr = ' in line]
        assert printed == ['%.6g' % curve.learning_rate(solver, iteration) for iteration in range(3)]


# --- DSN

def test_stages_hand_on_weights_but_not_companions(data, tmp_path):
    trainee = trainhelp.trainee(data, 'dsn', batch=2)
    assert driver.run(trainee, settings(iterations=(3, 1, 1), points='none'), str(tmp_path / 'run')) == 0
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
    trainee = trainhelp.trainee(data, 'dsn_aug', batch=4)
    trainee.stages[0].solver.base_lr = 1e-5  # on digits that are not whitened the paper's diverges, with some kernels
    how = settings(iterations=(40, 1, 1), points='none', snapshot_every=1000)

    def growth():
        (tmp_path / 'run').mkdir()
        driver._write_prototxts(trainee, how, str(tmp_path / 'run'))
        made = solver_loop._Loop(trainee, how, str(tmp_path / 'run'))
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
    trainee = trainhelp.trainee(data, 'lenet_none', batch=1)
    trainee.stages[0].solver.base_lr = 0.001
    assert driver.run(trainee, settings(iterations=(260,), points='none', snapshot_every=10), str(tmp_path / 'run')) == 0
    assert [iteration for _, iteration, _ in places.stored(str(tmp_path / 'run'))] == [100, 200, 250, 260]


def test_time_based_snapshots_are_the_default(data, tmp_path, monkeypatch):
    monkeypatch.setattr(solver_loop, 'SNAPSHOT_SECONDS', 0.05)
    monkeypatch.setattr(solver_loop, 'SNAPSHOT_SHARE', 0.5)
    trainee = trainhelp.trainee(data, 'lenet_none', batch=8)
    assert driver.run(trainee, settings(iterations=(80,), points='none', snapshot_every=None), str(tmp_path / 'run')) == 0
    assert len(places.stored(str(tmp_path / 'run'))) == 2  # the last two; without any there would be only the end


# --- what is refused

def test_another_run_in_the_folder_is_refused(data, lenet, whole):
    for how, difference in ((settings(seed=2), 'seed 1, here 2'), (settings(T=4), 'T 3, here 4'),
                            (settings(points='log'), 'eval_points 20,50, here log')):
        with pytest.raises(UserError, match=difference):
            driver.run(lenet, how, str(whole))
    other = lenet._replace(checksums=dict(lenet.checksums, train='0'))
    with pytest.raises(UserError, match=r'data\.train \w+\.\.\., here 0'):
        driver.run(other, settings(), str(whole))
    changed = trainhelp.trainee(data, 'lenet_all', batch=8)
    changed.stages[0].solver.base_lr = 0.02
    with pytest.raises(UserError, match=r'prototxt\.solver\.solver'):
        driver.run(changed, settings(), str(whole))


def test_a_folder_of_something_else_is_refused(lenet, tmp_path):
    (tmp_path / 'thesis.tex').write_text('')
    with pytest.raises(UserError, match='not the folder of a run'):
        driver.run(lenet, settings(), str(tmp_path))
    assert (tmp_path / 'thesis.tex').exists()


def test_a_finished_run_does_nothing(lenet, whole, capfd):
    before = {name: os.stat(str(whole / name)).st_mtime_ns for name in ('final.caffemodel', 'curve.csv', 'done.json')}
    assert driver.run(lenet, settings(), str(whole)) == 0
    assert 'complete already, at iteration 50: Standard' in capfd.readouterr().out
    assert before == {name: os.stat(str(whole / name)).st_mtime_ns for name in before}


def test_two_processes_do_not_share_a_run(lenet, tmp_path):
    how = settings(iterations=(1000,), points='none')
    process = trainhelp.start(lenet, how, tmp_path / 'run')
    trainhelp.wait_for(lambda: places.stored(str(tmp_path / 'run')))
    try:
        assert places.holder(str(tmp_path / 'run'))[0] == process.pid
        begin = time.time()
        with pytest.raises(UserError, match='being trained by process %d on' % process.pid):
            driver.run(lenet, how, str(tmp_path / 'run'))
        assert time.time() - begin < 1
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.join()
    assert places.holder(str(tmp_path / 'run')) is None


@pytest.mark.parametrize('lr, scale', [(100.0, 1 / 256.0), (0.01, 100.0)])
def test_divergence_stops_with_its_cause(data, tmp_path, lr, scale):
    trainee = trainhelp.trainee(data, 'lenet_none', batch=8)
    trainee.stages[0].solver.base_lr = lr
    for layer in trainee.stages[0].net.layer:
        if layer.type == 'Data':
            layer.transform_param.scale = scale
    for _ in range(2):  # it would do the same again
        with pytest.raises(solver_loop.Diverged, match=r'diverged at iteration \d+ \(loss .*raw CIFAR-10') as caught:
            driver.run(trainee, settings(iterations=(400,), snapshot_every=1, points='none'), str(tmp_path / 'run'))
        assert caught.value.exit_code == 1
    assert json.loads((tmp_path / 'run' / 'diverged.json').read_text())['iteration'] < 100
    for _, _, path in places.stored(str(tmp_path / 'run')):
        for blobs in weights(os.path.join(path, snapshots.WEIGHTS)).values():
            assert all(np.isfinite(blob).all() for blob in blobs)


def test_a_loss_that_sticks_is_divergence(data, tmp_path):
    """-ln(FLT_MIN): a net that is certain of a wrong class and cannot learn. One image: all are wrong, or none."""
    image = trainhelp.mnist('train', 1)[0].repeat(8, axis=0)
    stuck = []
    for label in (0, 1):
        trainhelp.make_set(tmp_path / str(label), 'mnist', train=(image, [label] * 8), test=(image, [label] * 8))
        trainee = trainhelp.trainee(str(tmp_path / str(label)), 'lenet_none', batch=4)
        trainee.stages[0].solver.base_lr = 1e-30
        for layer in trainee.stages[0].net.layer:
            if layer.type == 'Data':
                layer.transform_param.scale = 1e4
        try:
            driver.run(trainee, settings(iterations=(150,), points='none'), str(tmp_path / str(label) / 'run'))
        except solver_loop.Diverged as error:
            stuck.append(str(error))
    assert stuck and all('diverged at iteration 20 (loss 87.336' in line for line in stuck)


# --- a schedule in proportion, and weights to start from

@pytest.mark.parametrize('text, right', [(None, 1), ('1/1', 1), ('1/20', 20)])
def test_a_schedule_is_one_part_of_the_papers(text, right):
    assert trainees.schedule(text) == right


@pytest.mark.parametrize('text', ['20', '2/20', '1/0', '1/-3', '1/', '1/x', '', '1/99999999999'])
def test_other_schedules_are_refused(text):
    with pytest.raises(UserError, match='it is 1/K'):
        trainees.schedule(text)


def test_a_run_in_proportion_is_another_run(data, tmp_path):
    short, cut = (trainhelp.trainee(data, 'lenet_ip', batch=8, schedule=k) for k in (2000000, 1))
    how = settings(iterations=(5,), points='5')
    assert trainees.iterations(None, short) == (5,)
    assert driver.run(short, how, str(tmp_path / 'short')) == 0
    assert store.read_json(str(tmp_path / 'short' / 'config.json'))['schedule'] == '1/2000000'
    with pytest.raises(UserError, match='holds another run .*schedule 1/2000000, here none'):
        driver.run(cut, how, str(tmp_path / 'short'))
    assert curve.read(str(tmp_path / 'short' / 'curve.csv'))[-1].lr == '5.6192e-05'  # 0.01 (1 + 0.0001 * 1e7)^-0.75


def test_a_run_starts_from_given_weights(data, whole, tmp_path):
    """With a learning rate of nothing, what comes out is what went in; layers it does not have start at random."""
    given = str(whole / 'final.caffemodel')
    trainee = trainhelp.trainee(data, 'lenet_all', batch=8, init=given)
    trainee.stages[0].solver.base_lr = 1e-30
    assert driver.run(trainee, settings(iterations=(2,), points='none'), str(tmp_path / 'run')) == 0
    assert same(weights(tmp_path / 'run' / 'final.caffemodel'), weights(given))
    assert store.read_json(str(tmp_path / 'run' / 'config.json'))['init'] == store.sha256(given)


def test_a_killed_run_from_given_weights_ends_in_the_same_bytes(data, whole, tmp_path):
    trainee = trainhelp.trainee(data, 'lenet_all', batch=8, init=str(whole / 'final.caffemodel'))
    how = settings(iterations=(30,), points='20')
    assert driver.run(trainee, how, str(tmp_path / 'whole')) == 0
    assert result(tmp_path / 'whole') != result(whole)
    used = trainhelp.kill_until(4, lambda folder: trainhelp.start(trainee, how, folder),
                                (tmp_path / str(k) for k in itertools.count()), random.Random(7), 1.5)
    assert [result(folder) == result(tmp_path / 'whole') for folder in used] == [True] * len(used)


def test_stages_that_are_left_out(data, tmp_path, capfd):
    """The weights after stage 2, given to a run of stage 3 alone, end in the bytes of the whole run, killed or not."""
    lengths = (2, 2, 7)
    how = settings(iterations=lengths, points='4', T=2, snapshot_every=3)
    assert driver.run(trainhelp.trainee(data, 'dsn_aug', batch=4), how, str(tmp_path / 'whole')) == 0
    given = str(tmp_path / 'whole' / solver_loop.weights_name(2, 3))
    trainee = trainhelp.trainee(data, 'dsn_aug', batch=4, init=given)
    how = how._replace(iterations=trainees.iterations('0,0,7', trainee))
    capfd.readouterr()
    assert driver.run(trainee, how, str(tmp_path / 'last')) == 0
    assert 'weights for 9 of 9 layers' in capfd.readouterr().out  # no companions in stage 3
    used = trainhelp.kill_until(3, lambda folder: trainhelp.start(trainee, how, folder),
                                (tmp_path / str(k) for k in itertools.count()), random.Random(3), 1.5)
    final = weights(tmp_path / 'whole' / 'final.caffemodel')
    assert [same(weights(folder / 'final.caffemodel'), final) for folder in [tmp_path / 'last'] + used] == [True] * (
        len(used) + 1)
    assert [(row.stage, row.iteration) for row in curve.read(str(tmp_path / 'last' / 'curve.csv'))] == [(3, 4)]


@pytest.mark.parametrize('given, text', [(False, '0,0,5'), (True, '0,0,0'), (True, '0,5,0'), (True, '0'), (True, '5,0,5'),
                                         (True, '0,0,-1')])
def test_a_stage_that_cannot_be_left_out(data, given, text):
    trainee = trainhelp.trainee(data, 'dsn_aug', init='some.caffemodel' if given else None)
    with pytest.raises(UserError, match='--iters %s: .*one a stage; 0 leaves out a first stage, with --init' % text):
        trainees.iterations(text, trainee)


def test_layers_that_the_given_weights_lack_are_named(data, whole, tmp_path, capfd):
    model = engine.caffe_pb2.NetParameter()
    model.ParseFromString((whole / 'final.caffemodel').read_bytes())
    kept = [layer for layer in model.layer if layer.name != 'ip2']
    partial = engine.caffe_pb2.NetParameter(layer=kept)
    (tmp_path / 'partial.caffemodel').write_bytes(partial.SerializeToString())
    trainee = trainhelp.trainee(data, 'lenet_all', batch=8, init=str(tmp_path / 'partial.caffemodel'))
    assert driver.run(trainee, settings(iterations=(1,), points='none'), str(tmp_path / 'run')) == 0
    assert 'partial.caffemodel: weights for 3 of 4 layers, not for ip2' in capfd.readouterr().out


@pytest.mark.parametrize('net, words', [
    ('cifar10-lenet', 'layer conv1 has weights of shape 20x1x5x5 and 20, the net needs 192x3x5x5 and 192'),
    ('nin', 'weights for alien, none of which the net has'), ('absent', 'no such file')])
def test_weights_of_another_net_are_refused_and_nothing_is_written(data, whole, tmp_path, net, words):
    given = str(whole / 'final.caffemodel')
    if net != 'cifar10-lenet':
        given = str(tmp_path / 'given.caffemodel')
    if net == 'nin':
        layer = engine.caffe_pb2.LayerParameter(name='alien', blobs=[engine.caffe_pb2.BlobProto(data=[1.0])])
        with open(given, 'wb') as file:
            file.write(engine.caffe_pb2.NetParameter(layer=[layer]).SerializeToString())
    trainee = trainhelp.trainee(data, 'lenet_ip', dataset='cifar10', batch=4, init=given)
    with pytest.raises(UserError, match=words):
        driver.run(trainee, settings(iterations=(1,)), str(tmp_path / 'run'))
    assert not (tmp_path / 'run').exists()


def test_the_furthest_run_is_never_one_from_given_weights(tmp_path):
    def run(name, iterations, **config):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / 'config.json').write_text(json.dumps(dict(config, seed=config.get('seed', 1))))
        (folder / 'done.json').write_text(json.dumps({'iterations': iterations}))
        return str(folder)

    assert places.furthest('cifar10', 'dsn', 1, str(tmp_path)) is None
    run('cifar10-dsn-seed1', [5, 5, 5])
    short = run('evidence/cifar10-dsn-seed1-1of20', [2500, 6000, 1500], schedule='1/20')
    run('cifar10-dsn-seed1-from-nin', [50000, 120000, 30000], init='0' * 64)
    run('cifar10-dsn-seed10', [50000, 120000, 30000], seed=10)
    run('cifar10-dsn_aug-seed1', [50000, 120000, 30000])
    assert places.furthest('cifar10', 'dsn', 1, str(tmp_path)) == short


def test_the_wrong_images_of_each_point_are_stored(whole):
    rows = curve.read(str(whole / 'curve.csv'))
    wrong = {(row.iteration, row.method): row for row in curve.read_wrong(str(whole / 'wrong.csv'))}
    assert sorted(wrong) == sorted((row.iteration, method) for row in rows for method in ('standard', 'mc'))
    for row in rows:
        for method, errors in (('standard', row.standard_errors), ('mc', row.mc_errors)):
            listed = wrong[row.iteration, method]
            assert len(listed.wrong.split()) == int(errors) and listed.n == row.n and len(listed.images) == 64


def test_which_images_are_wrong_is_what_the_evaluator_says(lenet, whole, tmp_path):
    """Standard dropout draws nothing, so that the final weights, evaluated anew, have the same images wrong."""
    target = targets.Target(name='mnist/lenet_all', standard=lenet.standard, sampling=None,
                            weights=str(whole / 'final.caffemodel'), extra_weights=False, source=lenet.source,
                            count=lenet.count)
    how = evaluation.prepare(target, evaluation.Settings(T=1, repeats=1, seed=1, mode='stream'))
    evaluation.run(target, how, str(tmp_path / 'mc'))
    images = npz.read(str(tmp_path / 'mc' / 'images.npz'), '')
    numbers = np.flatnonzero(~metrics.correct(images['standard_probs'], images['labels']))
    assert driver.run(lenet, settings(iterations=(60,), points='60'), str(tmp_path / 'run')) == 0
    last = [row for row in curve.read_wrong(str(tmp_path / 'run' / 'wrong.csv')) if row.method == 'standard'][-1]
    assert last.wrong == ' '.join(map(str, numbers))
    assert last.images == store.read_json(str(tmp_path / 'mc' / 'config.json'))['images']


def test_what_is_not_prepared_names_the_command(tmp_path):
    with pytest.raises(UserError, match=r'mnist: not ready: python tools/prepare_data.py mnist'):
        trainees.of_paper('lenet_all', data=str(tmp_path))
    with pytest.raises(UserError, match=r'prepare_data.py cifar10'):
        trainees.of_paper('dsn', data=str(tmp_path))
