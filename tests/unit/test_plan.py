"""The plan of a profile: which jobs, in which folders, by which commands, and when they count as done."""

import json
import os
import subprocess
import time

import pytest

from bcnn import cost, paper, plan, results
from bcnn.errors import UserError
from conftest import ROOT

# The paper, by hand from its experiments section: experiment, run, iterations, T, repetitions.
PAPER = [
    ('fig2', 'mnist-lenet_all', [10000000], 50, 0), ('fig2', 'mnist-lenet_ip', [10000000], 50, 0),
    ('fig2', 'mnist-lenet_none', [10000000], 50, 0), ('fig2', 'cifar10-lenet_all', [100000], 50, 0),
    ('fig2', 'cifar10-lenet_ip', [100000], 50, 0), ('fig2', 'cifar10-lenet_none', [100000], 50, 0),
    ('fig3', 'mnist_4-lenet_ip', [1000000], 10, 0), ('fig3', 'mnist_4-lenet_all', [1000000], 10, 0),
    ('fig3', 'mnist_32-lenet_ip', [1000000], 10, 0), ('fig3', 'mnist_32-lenet_all', [1000000], 10, 0),
    ('table1', 'cifar10-dsn', [50000, 120000, 30000], 100, 5),
    ('table1', 'cifar10-dsn_aug', [50000, 120000, 30000], 100, 5),
    ('fig4', 'cifar10-dsn_aug', [50000, 120000, 30000], 100, 5)]


@pytest.mark.parametrize('experiment, run, iterations, T, repetitions', PAPER)
def test_the_paper_profile_has_every_trained_run_as_in_the_paper(experiment, run, iterations, T, repetitions):
    jobs = plan.load('paper').jobs
    train = jobs['train-%s-seed1' % run]
    assert experiment in train.experiments
    assert (list(train.iterations), train.T, train.limit) == (iterations, T, None)
    evaluation = jobs.get('evaluate-%s-seed1' % run)
    assert (evaluation.repeats if evaluation else 0) == repetitions
    if evaluation:
        assert (evaluation.T, evaluation.limit, evaluation.after) == (100, None, train.name)


def test_the_paper_profile_evaluates_the_published_nin_and_has_nothing_else():
    jobs = plan.load('paper').jobs
    nin = jobs['evaluate-cifar10-nin-published']
    assert (nin.T, nin.repeats, nin.after, nin.needs) == (100, 5, None, ('cifar10', 'nin_weights'))
    trained = {'train-%s-seed1' % run for _, run, _, _, _ in PAPER}
    assert set(jobs) == trained | {nin.name, 'evaluate-cifar10-dsn-seed1', 'evaluate-cifar10-dsn_aug-seed1'}
    served = {experiment for job in jobs.values() for experiment in job.experiments}
    assert served == set(paper.EXPERIMENTS)


@pytest.mark.parametrize('profile', ['quick', 'evidence', 'cpu'])
def test_other_profiles_only_shorten(profile):
    whole = plan.load('paper').jobs
    for name, job in plan.load(profile).jobs.items():
        if isinstance(job, plan.Train):
            assert all(mine <= theirs for mine, theirs in zip(job.iterations, whole[name].iterations))


def test_quick_is_the_three_lenets_on_mnist_and_one_evaluation():
    assert list(plan.load('quick').jobs) == [
        'train-mnist-lenet_all-seed1', 'evaluate-mnist-lenet_all-seed1', 'train-mnist-lenet_ip-seed1',
        'train-mnist-lenet_none-seed1']


@pytest.mark.parametrize('only, right', [
    ('fig3', {'train-mnist-lenet_all-seed1', 'train-mnist-lenet_ip-seed1', 'evaluate-mnist-lenet_all-seed1'}),
    ('*lenet_none*', {'train-mnist-lenet_none-seed1'}),
    ('fig2/mnist-lenet_ip-*', {'train-mnist-lenet_ip-seed1'}),
    # an evaluation brings the training that it needs
    ('evaluate-*', {'train-mnist-lenet_all-seed1', 'evaluate-mnist-lenet_all-seed1'}),
    ('train-mnist-lenet_all*', {'train-mnist-lenet_all-seed1'})])
def test_only_takes_experiments_runs_and_jobs(only, right):
    assert set(plan.load('quick', only=only).jobs) == right


def test_seeds_are_runs_of_their_own_but_published_weights_are_not_trained():
    jobs = plan.load('cpu', seeds=3).jobs
    assert [job.seed for name, job in jobs.items() if name.startswith('train-mnist_4-lenet_ip')] == [1, 2, 3]
    assert sum('nin' in name for name in jobs) == 1
    assert len({job.folder for job in jobs.values() if isinstance(job, plan.Train)}) == sum(
        isinstance(job, plan.Train) for job in jobs.values())


def test_another_data_set_takes_the_place_of_mnist_alone():
    jobs = plan.load('cpu', dataset='fashion_mnist').jobs
    assert 'train-fashion_mnist-lenet_all-seed1' in jobs and 'train-mnist-lenet_all-seed1' not in jobs
    assert jobs['train-fashion_mnist-lenet_all-seed1'].needs == ('fashion_mnist',)
    assert jobs['train-mnist_4-lenet_ip-seed1'].needs == ('mnist',)


# --- refusals ----------------------------------------------------------------------------------

def profile(tmp_path, **changes):
    path = tmp_path / 'own.json'
    path.write_text(json.dumps(dict({'about': 'a', 'time': 't', 'disk': 'd', 'runs': {'mnist-lenet_all': {}}}, **changes)))
    return str(path)


@pytest.mark.parametrize('runs, words', [
    ({'mnist-lenet_al': {}}, "no run of the paper is called 'mnist-lenet_al'"),
    ({'mnist-lenet_all': {'iteration': 5}}, 'unknown "iteration"; there are: iterations'),
    ({'mnist-lenet_all': {'iterations': [10000001]}}, "only shortens the paper's [10000000]"),
    ({'mnist-lenet_all': {'iterations': [5, 5]}}, 'only shortens'),
    ({'mnist-lenet_all': {'evaluate': {'t': 5}}}, 'unknown "t" in "evaluate"')])
def test_a_profile_that_cannot_be_meant_is_refused(tmp_path, runs, words):
    with pytest.raises(UserError) as caught:
        plan.load(profile(tmp_path, runs=runs))
    assert words in str(caught.value)


def test_files_that_are_no_profile_are_refused(tmp_path):
    for text in ('', '[1]', '{"about": "a"}', '{'):
        path = tmp_path / 'bad.json'
        path.write_text(text)
        with pytest.raises(UserError):
            plan.load(str(path))
    with pytest.raises(UserError):
        plan.load(str(tmp_path / 'absent.json'))
    for wrong in (dict(profile='quik'), dict(only='zzz'), dict(seeds=0)):
        with pytest.raises(UserError):
            plan.load(**wrong)


# --- commands and state --------------------------------------------------------------------------

def test_commands_say_the_device():
    jobs = plan.load('quick').jobs
    train, evaluation = jobs['train-mnist-lenet_all-seed1'], jobs['evaluate-mnist-lenet_all-seed1']
    assert plan.command(train)[-1] == '--cpu' and '--gpu' not in plan.command(evaluation)
    assert plan.command(train, ['0', '1'])[:2] == [os.path.join(ROOT, 'workflow', 'on_gpu.sh'), '0,1']
    assert plan.command(evaluation, ['3'], on_cluster=True)[-2:] == ['--gpu', '0']


@pytest.fixture
def job(tmp_path):
    jobs = plan.load('quick').jobs
    return {kind: jobs['%s-mnist-lenet_all-seed1' % kind]._replace(folder=str(tmp_path)) for kind in ('train', 'evaluate')}


@pytest.mark.parametrize('text, right', [
    ('{"iterations": [1000]}', True), ('{"iterations": [999]}', False), ('{"iterations": [1000', False), ('[]', False)])
def test_a_training_is_done_with_its_own_iterations(job, tmp_path, text, right):
    assert not plan.done(job['train'])
    (tmp_path / 'done.json').write_text(text)
    assert plan.done(job['train']) == right


@pytest.mark.parametrize('repetitions, right', [(1, False), (2, True), (5, True)])
def test_an_evaluation_is_done_with_as_many_repetitions(job, tmp_path, repetitions, right):
    assert not plan.done(job['evaluate'])
    (tmp_path / 'result.json').write_text(json.dumps({'standard': {}, 'mc': {'probs': {'repetitions': repetitions}}}))
    assert plan.done(job['evaluate']) == right


def test_stamps_without_their_work_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, 'RUNS', str(tmp_path))
    what = plan.load('quick')
    os.makedirs(os.path.join(what.folder, 'stamps'))
    paths = {name: os.path.join(what.folder, plan.stamp(name)) for name in what.jobs}
    for path in paths.values():
        open(path, 'w').close()
    kept = what.jobs['train-mnist-lenet_ip-seed1']
    os.makedirs(kept.folder)
    with open(os.path.join(kept.folder, 'done.json'), 'w') as file:
        json.dump({'iterations': [1000]}, file)
    plan.forget_vanished(what)
    assert [name for name, path in paths.items() if os.path.exists(path)] == [kept.name]


# --- what jobs take ------------------------------------------------------------------------------

def test_expected_time_by_hand():
    speeds = {('training', 'mnist/lenet_all'): 0.03, ('MC', 'mnist/lenet_all'): 0.0002}
    jobs = plan.load('quick').jobs
    forward = 0.03 / 3 / 64
    evaluation = cost.seconds(jobs['evaluate-mnist-lenet_all-seed1'], speeds)
    assert evaluation == pytest.approx(10000 * (forward + 2 * 50 * 0.0002))
    # measured at 100, 200, 500 and 1,000
    train = cost.seconds(jobs['train-mnist-lenet_all-seed1'], speeds)
    assert train == pytest.approx(1000 * 0.03 + 4 * 10000 * (forward + 50 * 0.0002))
    assert cost.seconds(jobs['train-mnist-lenet_ip-seed1'], speeds) is None
    assert cost.of_pass({('training', 'mnist/lenet_all'): 0.03}, 'mnist_4', 'lenet_all') == pytest.approx(forward)
    assert cost.of_step(speeds, 'fashion_mnist', 'lenet_all') == 0.03


def test_speeds_are_ours_in_seconds_and_only_where_measured():
    row = dict(part='MC', subject='cifar10/nin', way='stream', value=4400.0)
    others = [dict(row, way='naive', value=1.0), dict(row, subject='a/b', value=None), dict(row, subject='c/d', value=float('nan')),
              dict(row, part='training', way='driver', value=500.0)]
    assert cost.speeds([row] + others) == {('MC', 'cifar10/nin'): pytest.approx(0.0044), ('training', 'cifar10/nin'): 0.5}


def test_every_job_of_the_paper_has_an_expected_time():
    speeds = cost.speeds(results.read(results.FOLDER, 'bench'))
    assert all(cost.seconds(job, speeds) > 0 for job in plan.load('paper').jobs.values())


@pytest.mark.parametrize('seconds, text', [
    (None, 'unknown'), (5, '5 s'), (119, '119 s'), (180, '3 min'), (7200, '2 h'), (86400 * 5, '5 days')])
def test_times_are_read_easily(seconds, text):
    assert cost.clock(seconds) == text


# --- GPUs ------------------------------------------------------------------------------------------

def test_each_job_gets_a_gpu_of_its_own_and_gives_it_back(tmp_path):
    script = os.path.join(ROOT, 'workflow', 'on_gpu.sh')
    environment = dict(os.environ, BCNN_GPU_LOCKS=str(tmp_path))

    def job(number, seconds):
        out = tmp_path / ('out%d' % number)
        return subprocess.Popen([script, '0,1', 'sh', '-c', 'echo "$1 $2" > "$0"; exec sleep %s' % seconds, str(out)],
                                env=environment)

    def gpu(number):
        path = tmp_path / ('out%d' % number)
        for _ in range(200):
            if path.exists() and path.read_text():
                return path.read_text().strip()
            time.sleep(0.05)

    first = job(1, 60)
    assert gpu(1) == '--gpu 0'
    second = job(2, 60)
    assert gpu(2) == '--gpu 1'
    third = job(3, 0)
    time.sleep(0.5)
    assert not (tmp_path / 'out3').exists()  # none is free
    first.kill()
    assert gpu(3) == '--gpu 0'
    second.kill()
    assert third.wait(timeout=10) == 0
    for process in (first, second):
        process.wait()
