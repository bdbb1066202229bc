"""The plan of a profile: which jobs, in which folders, by which commands, and when they count as done."""

import json
import os
import subprocess
import time
from collections import OrderedDict

import pytest

from bcnn import paper
from bcnn.errors import UserError
from bcnn.results import csv_tables
from bcnn.system import places
from bcnn.workflow import cost, plan, run_all, steps
from conftest import ROOT

RESULTS = places.RESULTS

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
    assert jobs['train-mnist_4-lenet_ip-seed1'].needs == ('mnist_4', 'mnist')


# --- beyond the paper ------------------------------------------------------------------------------

def test_beyond_has_its_own_runs_seeds_and_draws():
    jobs = OrderedDict((name, job) for name, job in plan.load('beyond').jobs.items() if name.startswith('train-'))
    shared = jobs['train-mnist-lenet_all-seed1']
    assert shared.experiments == ('pooling', 'off_data', 'probability', 'less_data')
    assert (shared.iterations, shared.points, shared.T, shared.streams) == ((20000,), '10000,20000', 50, 1)
    assert [name for name in jobs if 'lenet_all_ave' in name] == ['train-mnist-lenet_all_ave-seed%d' % k for k in range(1, 6)]
    assert [name for name in jobs if 'mnist_4' in name and 'lenet_all' in name] == [
        'train-mnist_4-lenet_all-seed1', 'train-mnist_4_draw2-lenet_all-seed2', 'train-mnist_4_draw3-lenet_all-seed3']
    assert jobs['train-mnist_4_draw2-lenet_all-seed2'].needs == ('mnist_4_draw2', 'mnist')
    assert len([name for name in jobs if 'lenet_all_p' in name]) == 9 and not any('_ave' in name for name in plan.load('paper').jobs)
    assert {job.seed for job in plan.load('beyond', seeds=2).jobs.values()} == {1, 2}


def test_weights_are_studied_where_a_question_asks_for_it():
    jobs = plan.load('beyond', only='pooling').jobs
    study = jobs['study-approximation-mnist-lenet_all_ave-seed5']
    assert (study.iteration, study.T, study.passed, study.after) == (20000, 100, 1000, 'train-mnist-lenet_all_ave-seed5')
    assert plan.command(study)[2:] == ['approximation', study.run, '--iteration', '20000', '--T', '100']
    assert study.folder == os.path.join(jobs[study.after].folder, 'studies', 'approximation-20000')
    assert sorted({job.study for job in jobs.values() if isinstance(job, plan.Study)}) == ['approximation']
    found = [name for name in plan.load('beyond').jobs if name.startswith('study-off_data')]
    assert found == ['study-off_data-mnist-lenet_all-seed1', 'study-off_data-mnist-lenet_ip-seed1']
    assert sum(name.startswith('study-quality') for name in plan.load('beyond').jobs) == 4 * 3
    assert 'approximation of lenet-all, AVE pooling on MNIST, seed5' in [one.title for one in steps.of_plan(plan.load('beyond'), {})]


def test_beyond_takes_less_than_ten_core_hours():
    """Of a core that does 100 GFLOP/s."""
    measured = csv_tables.read(places.RESULTS, 'bench')
    rate, = [row['value'] for row in measured if (row['subject'], row['way']) == ('sgemm', 'OpenBLAS')]
    hours = sum(cost.seconds(job, cost.speeds(measured)) for job in plan.load('beyond').jobs.values()) / 3600
    assert 5 < hours * rate / 100 < 10
    train = plan.load('beyond').jobs['train-mnist-lenet_all-seed1']
    assert cost.points(train) == 2 and cost.points(train._replace(points='log')) == 7


def test_a_shorter_profile_studies_the_weights_that_it_has(tmp_path):
    jobs = plan.load(profile(tmp_path, table='beyond', runs={'mnist-lenet_all_ave': {'iterations': [50]}})).jobs
    assert [(job.name, job.iteration) for job in jobs.values() if isinstance(job, plan.Study)] == [
        ('study-approximation-mnist-lenet_all_ave-seed1', 50)]


def test_a_table_of_runs_that_is_none_is_refused(tmp_path):
    with pytest.raises(UserError, match='no table of runs apart; there are: paper, beyond'):
        plan.load(profile(tmp_path, table='apart'))


# --- refusals ----------------------------------------------------------------------------------

def profile(tmp_path, **changes):
    path = tmp_path / 'own.json'
    path.write_text(json.dumps(dict({'about': 'a', 'disk': 'd', 'runs': {'mnist-lenet_all': {}}}, **changes)))
    return str(path)


@pytest.mark.parametrize('runs, words', [
    ({'mnist-lenet_al': {}}, "no run of the paper is called 'mnist-lenet_al'"),
    ({'mnist-lenet_all': {'iteration': 5}}, 'unknown "iteration"; there are: iterations'),
    ({'mnist-lenet_all': {'iterations': [10000001]}}, "only shortens the paper's [10000000]"),
    ({'mnist-lenet_all': {'iterations': [5, 5]}}, 'only shortens'),
    ({'mnist-lenet_all': {'schedule': 0}}, 'it is a K of 1 to 10000000'),
    ({'mnist-lenet_all': {'schedule': '1/20'}}, 'schedule 1/20, but it is a K'),
    ({'cifar10-dsn': {'schedule': 30001}}, 'it is a K of 1 to 30000'),
    ({'mnist-lenet_all': {'schedule': 5, 'iterations': [5]}}, 'give one of them'),
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


def test_the_help_describes_every_profile_and_survives_a_damaged_file(tmp_path):
    assert [line.split()[0] for line in plan.described()] == list(plan.profiles())
    for text, words in (('{', 'not a file of profiles'), ('{"a": {}}', "'about'"), ('[1]', 'items')):
        (tmp_path / 'bad.json').write_text(text)
        line, = plan.described(str(tmp_path / 'bad.json'))
        assert 'bad.json' in line and words in line


# --- commands and state --------------------------------------------------------------------------

def test_commands_say_the_device():
    jobs = plan.load('quick').jobs
    train, evaluation = jobs['train-mnist-lenet_all-seed1'], jobs['evaluate-mnist-lenet_all-seed1']
    assert plan.command(train)[-1] == '--cpu' and '--gpu' not in plan.command(evaluation)
    assert plan.command(train, ['0', '1'])[:2] == [os.path.join(ROOT, 'workflow', 'on_gpu.sh'), '0,1']
    assert plan.command(evaluation, ['3'], on_cluster=True)[-2:] == ['--gpu', '0']


def test_a_job_says_adaptive_where_its_profile_does():
    quick, paper_ = plan.load('quick').jobs, plan.load('paper').jobs
    name = 'train-mnist-lenet_all-seed1'
    assert '--adaptive' in plan.command(quick[name]) and '--adaptive' not in plan.command(paper_[name])
    assert plan.about(quick[name]) == '1,000 iterations, adaptive T=50'
    assert not quick['train-mnist-lenet_none-seed1'].adaptive  # it has no dropout


@pytest.mark.parametrize('cores, right', [(1, 2), (2, 2)])
def test_a_training_may_measure_on_more_cores_than_it_counts_for(cores, right):
    job = plan.load('quick').jobs['train-mnist-lenet_all-seed1']
    assert (job.cores, job.processes) == (1, 2) and plan.processes(job, cores) == right


def test_an_evaluation_takes_no_more_processes_than_it_gets_cores():
    job = plan.load('quick').jobs['evaluate-mnist-lenet_all-seed1']
    assert [plan.processes(job, cores) for cores in (1, 2, 8)] == [1, 2, 2]


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


def test_a_schedule_in_proportion_is_not_done_by_one_cut_off(tmp_path):
    jobs = plan.load(profile(tmp_path, runs={'cifar10-dsn': {'schedule': 20}})).jobs
    train = jobs['train-cifar10-dsn-seed1']._replace(folder=str(tmp_path))
    assert train.iterations == (2500, 6000, 1500)
    words = plan.command(train)
    assert words[words.index('--schedule') + 1] == '1/20' and '--iters' not in words
    assert plan.about(train) == "2,500 + 6,000 + 1,500 iterations (the paper's schedule, 1/20), T=100"
    (tmp_path / 'done.json').write_text('{"iterations": [2500, 6000, 1500]}')
    assert not plan.done(train)
    (tmp_path / 'config.json').write_text('{"schedule": "1/20"}')
    assert plan.done(train)


@pytest.mark.parametrize('repetitions, right', [(0, False), (1, True), (5, True)])
def test_an_evaluation_is_done_with_as_many_repetitions(job, tmp_path, repetitions, right):
    assert not plan.done(job['evaluate'])
    (tmp_path / 'result.json').write_text(json.dumps({'standard': {}, 'mc': {'probs': {'repetitions': repetitions}}}))
    assert plan.done(job['evaluate']) == right


def test_stamps_without_their_work_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(places, 'RUNS', str(tmp_path))
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
    assert evaluation == pytest.approx(10000 * (forward + 50 * 0.0002))
    assert cost.on_clock(jobs['evaluate-mnist-lenet_all-seed1'], speeds) == pytest.approx(evaluation / 2)
    shared = cost.seconds(jobs['evaluate-mnist-lenet_all-seed1']._replace(sampler='shared'), speeds)
    assert 0.5 * evaluation < shared < 0.6 * evaluation  # what is computed once is not shared
    # measured at 100, 200, 500 and 1,000, with adaptive T
    job = jobs['train-mnist-lenet_all-seed1']
    assert cost.seconds(job, speeds) == pytest.approx(1000 * 0.03 + 4 * 10000 * (forward + cost.ADAPTIVE * 0.0002))
    assert cost.seconds(job._replace(adaptive=False), speeds) == pytest.approx(1000 * 0.03 + 4 * 10000 * (forward + 50 * 0.0002))
    assert cost.on_clock(job, speeds) == pytest.approx(1000 * 0.03 + 2 * 10000 * (forward + cost.ADAPTIVE * 0.0002))
    assert cost.seconds(jobs['train-mnist-lenet_ip-seed1'], speeds) is None
    assert cost.of_pass({('training', 'mnist/lenet_all'): 0.03}, 'mnist_4', 'lenet_all') == pytest.approx(forward)
    assert cost.of_step(speeds, 'fashion_mnist', 'lenet_all') == 0.03


def test_speeds_are_ours_in_seconds_and_only_where_measured():
    row = dict(part='MC', subject='cifar10/nin', way='stream', value=4400.0)
    others = [dict(row, way='naive', value=1.0), dict(row, subject='a/b', value=None), dict(row, subject='c/d', value=float('nan')),
              dict(row, part='training', way='driver', value=500.0)]
    assert cost.speeds([row] + others) == {('MC', 'cifar10/nin'): pytest.approx(0.0044), ('training', 'cifar10/nin'): 0.5}


def test_every_job_of_the_paper_has_an_expected_time():
    speeds = cost.speeds(csv_tables.read(places.RESULTS, 'bench'))
    assert all(cost.seconds(job, speeds) > 0 for job in plan.load('paper').jobs.values())


def test_times_on_a_gpu_are_unknown_until_somebody_has_measured():
    lines = list(run_all.listing(plan.load('paper'), {}, 'GPU'))
    assert lines[1].endswith('one GPU') and all(line.endswith('unknown') for line in lines[2:-1])
    assert 'tools/bench.py --gpu 0 --record' in lines[-1]
    known = list(run_all.listing(plan.load('paper'), cost.speeds(csv_tables.read(places.RESULTS, 'bench')), 'GPU'))
    assert not any('unknown' in line for line in known) and known[-1].endswith('of one GPU')


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


# --- the profile evidence --------------------------------------------------------------------------

def recorded(name, job):
    """The recorded rows of a job's net, seed, schedule and number of images."""
    schedule, n = getattr(job, 'schedule', None), job.limit or 10000
    rows = [row for row in csv_tables.read(RESULTS, name)
            if (row['dataset'], row['net'], row['n'], row['init']) == (job.dataset, job.net, n, None)
            and row['seed'] in (None, 1) and row['average'] != 'scores' and row['experiment'] in job.experiments]
    if schedule is not None:
        rows = [row for row in rows if row['schedule'] == ('1/%d' % schedule if schedule > 1 else None)]
    return rows


@pytest.mark.parametrize('job', plan.load('evidence').jobs.values(), ids=lambda job: job.name)
def test_the_profile_evidence_is_what_is_recorded(job):
    if isinstance(job, plan.Train):
        rows = recorded('curves', job)
        points = {(row['stage'], row['iteration']) for row in rows}
        wanted = [(stage, point) for stage, last in enumerate(job.iterations, 1)
                  for point in ([last] if job.points == 'log' else map(int, job.points.split(','))) if point <= last]
        assert points.issuperset(wanted) and max(points) == max(wanted)
        assert {row['T'] for row in rows if row['method'] == 'mc'} == ({job.T} if job.net != 'lenet_none' else set())
    else:
        rows = [row for row in recorded('evaluations', job) if row['method'] == 'mc' and row['T'] == job.T]
        assert len({(row['mc_seed'], row['repetition']) for row in rows}) == job.repeats
        assert {row['mode'] for row in rows} == {'shared' if job.sampler == 'shared' else 'stream'}


# --- random numbers ------------------------------------------------------------------------------

def test_the_evidence_is_made_with_the_random_numbers_it_is_recorded_with(tmp_path):
    for name, job in plan.load('evidence').jobs.items():
        assert '--streams 1' in ' '.join(plan.command(job)), name
    assert not any('--streams' in plan.command(job) for job in plan.load('cpu').jobs.values())
    with pytest.raises(UserError, match='streams 3 of random numbers'):
        plan.load(profile(tmp_path, streams=3))
# --- weights that are there ------------------------------------------------------------------------


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A function that fills weights/ with entries: net, iterations, init."""
    monkeypatch.setattr(plan.places, 'WEIGHTS', str(tmp_path))

    def fill(*entries):
        (tmp_path / 'index.json').write_text(json.dumps({
            '%s-%d.caffemodel' % (net, iterations): dict(dataset='cifar10', net=net, iterations=[iterations], init=init)
            for net, iterations, init in entries}))
        return tmp_path
    return fill


def test_an_evaluation_says_its_sampler_where_it_is_not_the_default():
    jobs = plan.load('evidence').jobs
    for name, sampler in (('evaluate-cifar10-dsn-seed1', ['--sampler', 'shared']), ('evaluate-cifar10-nin-published', [])):
        words = plan.command(jobs[name])
        assert [word for word in words if word in ('--sampler', 'shared')] == sampler
        assert ('shared masks' in plan.about(jobs[name])) == bool(sampler)


def test_the_tour_leaves_out_what_has_no_weights_and_says_so(shipped):
    shipped()
    what = plan.load('tour')
    assert not any('dsn' in name for name in what.jobs)
    assert what.left_out == ('DSN on CIFAR-10: there are no weights of it in weights/',
                             'Augmented-DSN on CIFAR-10: there are no weights of it in weights/')
    assert plan.load('tour', only='fig3').left_out == ()


def test_the_tour_evaluates_the_shipped_weights_of_the_longest_training(shipped):
    folder = shipped(('dsn', 300, None), ('dsn', 600, None), ('dsn', 900, 'of another net'))
    what = plan.load('tour')
    job = what.jobs['evaluate-cifar10-dsn-shipped']
    assert job.weights == str(folder / 'dsn-600.caffemodel') and job.after is None and job.needs == ('cifar10',)
    assert (job.T, job.repeats, job.limit) == (100, 3, 200)
    assert what.left_out == ('Augmented-DSN on CIFAR-10: there are no weights of it in weights/',)
    assert 'train-cifar10-dsn-seed1' not in what.jobs


def test_the_tour_has_every_experiment_of_the_paper(shipped):
    shipped(('dsn', 300, None), ('dsn_aug', 300, None))
    what = plan.load('tour')
    assert {experiment for job in what.jobs.values() for experiment in job.experiments} == set(paper.EXPERIMENTS)
    assert [job.name for job in what.jobs.values() if getattr(job, 'optional', False)] == ['evaluate-cifar10-nin-published']


@pytest.mark.parametrize('said, words', [
    ({'weights': 'mine', 'evaluate': {'T': 5, 'repeats': 1}}, 'weights mine, but they can only be "shipped"'),
    ({'weights': 'shipped'}, 'no "evaluate"')])
def test_other_weights_are_refused(tmp_path, said, words):
    with pytest.raises(UserError) as caught:
        plan.load(profile(tmp_path, runs={'mnist-lenet_all': said}))
    assert words in str(caught.value)


def test_a_set_of_data_that_only_optional_jobs_need_may_be_missing(shipped):
    shipped()
    what = plan.load('tour')
    assert run_all.is_left_out(what, 'data-nin_weights')
    for name in ('data-cifar10', 'data-mnist', 'nets', 'evaluate-cifar10-nin-published'):
        assert not run_all.is_left_out(what, name)
    told = list(run_all.ending(what, [('data-nin_weights', 'logs/x.log', 'cannot be fetched')]))
    assert 'left out: NIN on CIFAR-10, for which there is no nin_weights here: cannot be fetched' in told


def test_the_state_of_a_job_is_read_from_its_files(tmp_path):
    """A training in stages, stopped in the second; then diverged. An evaluation half done."""
    jobs = plan.load('paper').jobs
    dsn = jobs['train-cifar10-dsn-seed1']._replace(folder=str(tmp_path / 'dsn'))
    lenet = jobs['train-mnist-lenet_ip-seed1']._replace(folder=str(tmp_path / 'lenet'))
    assert run_all.state(dsn) == 'missing'
    for folder, name in (('dsn', 'stage1-00050000'), ('dsn', 'stage2-00000300'), ('lenet', 'stage1-00000700')):
        (tmp_path / folder / 'snapshots' / name).mkdir(parents=True)
        (tmp_path / folder / 'snapshots' / name / 'state.json').write_text('{}')
    assert run_all.state(dsn) == 'resumable at iteration 300 of stage 2'
    assert run_all.state(lenet) == 'resumable at iteration 700'
    (tmp_path / 'dsn' / 'diverged.json').write_text('{"iteration": 400}')
    assert run_all.state(dsn) == 'diverged'
    evaluation = jobs['evaluate-cifar10-dsn-seed1']._replace(folder=str(tmp_path / 'mc'), repeats=1)
    assert run_all.state(evaluation) == 'missing'
    (tmp_path / 'mc' / 'blocks').mkdir(parents=True)
    (tmp_path / 'mc' / 'config.json').write_text('{"count": 200, "batch": 100}')
    (tmp_path / 'mc' / 'blocks' / 'standard-00000.npz').write_text('')
    assert run_all.state(evaluation) == 'resumable at 25%'
