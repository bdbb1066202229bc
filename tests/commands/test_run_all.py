"""tools/run_all.sh in a project with small data: to the end, again, killed, failing, twice at once."""

import glob
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

import trainhelp
from conftest import ROOT, one_clear_line

RUNS = ['mnist-lenet_all-seed1', 'mnist-lenet_ip-seed1', 'mnist-lenet_none-seed1']
PROFILE = {'about': 'small', 'disk': 'little', 'runs': {
    # long enough for a signal to find it at work
    'mnist-lenet_all': {'iterations': [150], 'eval_points': '10,150', 'T': 4, 'processes': 2,
                        'evaluate': {'T': 4, 'repeats': 2}},
    'mnist-lenet_*': {'iterations': [30], 'eval_points': '10,30', 'T': 4}}}


def make_project(folder):
    """A project of its own: this one's code, small data of real digits, no runs."""
    for name in ('bcnn', 'tools', 'workflow', 'analysis', 'prototxt'):
        shutil.copytree(os.path.join(ROOT, name), str(folder / name), ignore=shutil.ignore_patterns('__pycache__', '*.csv'))
    (folder / 'runs').mkdir()
    (folder / 'data').mkdir()
    trainhelp.make_data(folder / 'data')
    (folder / 'small.json').write_text(json.dumps(PROFILE))
    return folder


def call(project, *options):
    return [str(project / 'tools' / 'run_all.sh'), '--profile', 'small.json', '--jobs', '2'] + list(options)


ENVIRONMENT = dict(os.environ, CAFFE_PREFIX=os.environ.get('CAFFE_PREFIX') or os.path.join(ROOT, '.caffe'))


def run(project, *options, env=ENVIRONMENT):
    return subprocess.run(call(project, *options), cwd=str(project), env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=600)


def results(project):
    """What must be the same however often a run was interrupted."""
    names = [run + '/' + name for run in RUNS for name in ('final.caffemodel', 'curve.csv', 'done.json')]
    names += ['mnist-lenet_all-seed1/mc/T4/' + name for name in ('result.json', 'images.npz', 'images.csv')]
    names += ['report/results/curves.csv', 'report/results/evaluations.csv', 'report/report.html']
    return {name: (project / 'runs' / 'small' / name).read_bytes() for name in names}


@pytest.fixture(scope='module')
def finished(tmp_path_factory):
    """A project after an undisturbed run, and what the run said."""
    project = make_project(tmp_path_factory.mktemp('finished'))
    return project, run(project)


def test_from_nothing_to_a_report(finished):
    project, said = finished
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[-1] == 'report: %s' % (project / 'runs' / 'small' / 'report' / 'report.html')
    assert said.stderr == '' and len(lines) <= 60 and 'rule ' not in said.stdout
    assert any('Snakemake' in line and 'snakemake.log' in line for line in lines)
    assert 'job counts' in (project / 'runs' / 'small' / 'logs' / 'snakemake.log').read_text().lower()
    for title in ('train lenet-all on MNIST', 'evaluate lenet-all on MNIST'):
        told = [line for line in lines if title + ': ' in line]
        assert ': begins' in told[0] and ': done after ' in told[-1] and 'Standard ' in told[-1], told
    gallery = project / 'runs' / 'small' / 'mnist-lenet_all-seed1' / 'mc' / 'T4' / 'gallery.html'
    assert lines[-2] == 'gallery: %s' % gallery and gallery.exists()
    said = (project / 'runs' / 'small' / 'logs' / 'evaluate-mnist-lenet_all-seed1.log').read_text().splitlines()
    assert said[-1].endswith('T4/gallery.html: 200 images')
    assert lines[-3] == 'agreement: of 4 results 4 with nothing recorded to compare with'
    headlines = [line for line in lines if re.match(r'lenet-\w+ on MNIST, ', line)]
    assert len(headlines) == 4 and all('Standard' in line for line in headlines)
    assert 'MC' in headlines[1] and 'T=4, 2 repetitions' in headlines[1]
    assert 'fig2' in results(project)['report/results/curves.csv'].decode()


def made(project):
    """{path: when it was written} of what a profile makes; not what only says how far it is."""
    return {path: os.stat(path).st_mtime_ns for path in glob.glob(str(project / 'runs' / 'small' / '*' / '*'))
            if not path.endswith(('.begun', 'snakemake.log'))}


def test_a_second_run_has_nothing_to_do(finished):
    project, _ = finished
    before = made(project)
    said = run(project)
    assert said.returncode == 0 and said.stderr == '' and said.stdout.count('done before') == 7
    assert 'Nothing to be done' in (project / 'runs' / 'small' / 'logs' / 'snakemake.log').read_text()
    assert made(project) == before
    listed = run(project, '--list').stdout
    assert listed.count(' done ') == 4 and 'missing' not in listed


def test_what_vanished_is_made_again(finished):
    project, _ = finished
    before = results(project)
    for path in glob.glob(str(project / 'runs' / 'small' / 'mnist-lenet_all-seed1' / 'mc' / 'T4' / '*.*')):
        os.remove(path)
    assert 'evaluate-mnist-lenet_all-seed1' in run(project, '--dry-run').stdout
    assert run(project).returncode == 0
    assert results(project) == before


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_in_the_same_bytes(finished, tmp_path):
    right = results(finished[0])
    project, luck, kills = make_project(tmp_path), random.Random(5), 0
    for _ in range(5):
        process = subprocess.Popen(call(project), cwd=str(project), env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(luck.uniform(0.5, 4))
        kills += process.poll() is None
        # only the command itself: Snakemake and its jobs are met again as orphans
        process.kill()
        process.wait()
    assert kills >= 2
    said = run(project)
    assert said.returncode == 0, said.stderr
    assert results(project) == right


def test_a_signal_stops_all_jobs_and_the_same_command_goes_on(finished, tmp_path):
    project = make_project(tmp_path)
    process = subprocess.Popen(call(project), cwd=str(project), env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    folder = project / 'runs' / 'small' / RUNS[0]
    for _ in range(600):
        if (folder / 'config.json').exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert 'stopping: what runs keeps what it has' in stdout and 'failed' not in stdout
    assert stderr.splitlines()[-1] == 'stopped: the same command goes on from here'
    assert not (folder / 'done.json').exists()
    assert not [pid for pid in glob.glob('/proc/[0-9]*/cmdline') if str(project).encode() in _read(pid)]
    assert run(project).returncode == 0
    assert results(project) == results(finished[0])


def _read(path):
    try:
        with open(path, 'rb') as file:
            return file.read()
    except OSError:
        return b''


def test_one_failed_branch_does_not_stop_the_others(tmp_path):
    project = make_project(tmp_path)
    broken = project / 'runs' / 'small' / RUNS[0]
    broken.mkdir(parents=True)
    (broken / 'thesis.txt').write_text('not a run')
    said = run(project)
    assert said.returncode == 1
    lines = said.stdout.splitlines()
    where = next(k for k, line in enumerate(lines) if line.startswith('FAILED'))
    assert lines[where].startswith('FAILED train-mnist-lenet_all-seed1: ') and 'thesis.txt' in lines[where]
    assert lines[where + 1].endswith('logs/train-mnist-lenet_all-seed1.log')
    assert '1 more jobs are not done' in said.stdout  # its evaluation
    assert lines[-1].startswith('report of what is done: ')
    text = (project / 'runs' / 'small' / 'report' / 'results' / 'curves.csv').read_text()
    assert 'lenet_ip' in text and 'lenet_none' in text and 'lenet_all' not in text
    assert (broken / 'thesis.txt').read_text() == 'not a run'
    (broken / 'thesis.txt').unlink()
    assert run(project).returncode == 0  # goes on with what is missing


def test_where_mnist_cannot_be_fetched_it_says_what_to_do(tmp_path):
    project = make_project(tmp_path)
    shutil.rmtree(str(project / 'data'))
    nowhere = 'http://127.0.0.1:1'
    said = run(project, env=dict(ENVIRONMENT, BCNN_DOWNLOADS=str(tmp_path / 'downloads'), http_proxy=nowhere,
                                 https_proxy=nowhere, npm_config_registry=nowhere, npm_config_fetch_retries='0'))
    assert said.returncode == 1
    lines = said.stdout.splitlines()
    where = next(k for k, line in enumerate(lines) if line.startswith('FAILED'))
    assert lines[where].startswith('FAILED data-mnist: prepare_data.py: ')
    assert lines[where + 1].endswith('logs/data-mnist.log')
    assert '--from PATH' in lines[where + 2] and '--dataset fashion_mnist' in lines[where + 2]
    assert '4 more jobs are not done' in said.stdout


def test_two_at_once_are_refused(tmp_path):
    project = make_project(tmp_path)
    first = subprocess.Popen(call(project), cwd=str(project), env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        lock = project / 'runs' / 'small' / 'lock'
        for _ in range(600):
            if lock.exists() and lock.read_text():
                break
            time.sleep(0.05)
        one_clear_line(run(project), 'run_all.sh: ', 'in work by process', 'wait for it')
    finally:
        first.send_signal(signal.SIGINT)
        assert first.wait(timeout=60) == 130


def test_dry_run_lists_every_run_of_the_paper_and_writes_no_result(tmp_path):
    project = make_project(tmp_path)
    said = run(project, '--profile', 'paper', '--dry-run')
    assert said.returncode == 0, said.stderr
    for line in ('train-mnist-lenet_all-seed1: 10,000,000 iterations, T=50',
                 'train-cifar10-lenet_none-seed1: 100,000 iterations',
                 'train-mnist_32-lenet_all-seed1: 1,000,000 iterations, T=10',
                 'train-cifar10-dsn_aug-seed1: 50,000 + 120,000 + 30,000 iterations, T=100',
                 'evaluate-cifar10-dsn_aug-seed1: T=100, 5 repetitions',
                 'evaluate-cifar10-nin-published: T=100, 5 repetitions'):
        assert line in said.stderr + said.stdout, line
    assert [os.path.basename(path) for path in glob.glob(str(project / 'runs' / 'paper' / '*'))] in ([], ['logs'])


@pytest.mark.parametrize('options, parts', [
    (['--profile', 'quik'], ["no profile 'quik'", 'quick, tour, evidence, beyond, cpu, paper']),
    (['--only', 'zzz'], ["'zzz'", 'mnist-lenet_all-seed1']),
    (['--seeds', '0'], ['--seeds is 0']),
    (['--jobs', '0'], ['--jobs is 0']),
    (['--gpus', 'zero'], ['--gpus zero']),
    (['--gpus', '0,1,0'], ['each once']),
    (['--gpus', '0'], ['GPU 0 asked for']),
    (['--cluster', 'abacus'], ['--cluster abacus: not known'])])
def test_refusals_are_one_line(finished, options, parts):
    one_clear_line(run(finished[0], *options), 'run_all.sh: ', *parts)


@pytest.mark.skipif('BCNN_SNAKEMAKE' not in os.environ, reason='BCNN_SNAKEMAKE names no other Snakemake')
def test_another_snakemake_gives_the_same_results(finished, tmp_path):
    project = make_project(tmp_path)
    said = subprocess.run([os.environ['BCNN_SNAKEMAKE'], '-s', 'workflow/Snakefile', '--cores', '2', '--config',
                           'profile=' + str(project / 'small.json')], cwd=str(project), env=ENVIRONMENT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    assert said.returncode == 0, said.stdout
    assert results(project) == results(finished[0])


def test_help_needs_no_set_up(tmp_path):
    said = subprocess.run([os.path.join(ROOT, 'tools', 'run_all.sh'), '--help'], stdout=subprocess.PIPE,
                          env=dict(os.environ, CAFFE_PREFIX=str(tmp_path / 'nowhere')), universal_newlines=True)
    assert said.returncode == 0 and '--profile' in said.stdout and not os.listdir(str(tmp_path))
