"""Whether results are those that are recorded: by hand, with made-up records of known spread."""

import csv
import json
import os
import random

import pytest

from bcnn.errors import UserError
from bcnn.results import csv_tables
from bcnn.system import places
from bcnn.training import curve
from bcnn.workflow import agreement, plan
from conftest import ROOT


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder for runs and one for records, both empty."""
    monkeypatch.setattr(places, 'RUNS', str(tmp_path / 'runs'))
    (tmp_path / 'results').mkdir()
    return tmp_path


def jobs():
    return plan.load('quick').jobs


def train(errors, kernel='Haswell', net='lenet_ip', device='cpu', **config):
    """The finished training of quick with these (Standard, MC) errors at its last two points."""
    job = jobs()['train-mnist-%s-seed1' % net]
    os.makedirs(job.folder, exist_ok=True)
    for name, value in (('provenance', {'blas': 'openblas', 'blas_kernel': kernel, 'caffe': '1.0.0', 'commit': 'ab' * 20}),
                        ('config', dict(config, device=device)), ('done', {'iterations': [1000]})):
        with open(os.path.join(job.folder, name + '.json'), 'w') as file:
            json.dump(value, file)
    curve.write(os.path.join(job.folder, 'curve.csv'), [
        curve.row(1, n, 0.01, [1], (standard, mc, None), 10000, 50, (0.01, 7)) for n, (standard, mc) in
        zip((500, 1000), errors)])
    return job


def evaluate(standard, mc, kernel='Haswell', weights='w1'):
    """The finished evaluation of quick, of these weights."""
    job = jobs()['evaluate-mnist-lenet_all-seed1']
    os.makedirs(job.folder, exist_ok=True)
    for name, value in (
            ('provenance', {'blas': 'openblas', 'blas_kernel': kernel}),
            ('config', {'device': 'cpu', 'weights': weights, 'count': 10000, 'T': 50}),
            ('result', {'standard': {'errors': standard}, 'mc': {'probs': {'curve': [[9.0, mc / 100.0]], 'repetitions': 1}}})):
        with open(os.path.join(job.folder, name + '.json'), 'w') as file:
            json.dump(value, file)
    return job


def record(project, *finished):
    agreement.record(finished, str(project / 'results'))


def finding(project, job):
    return agreement.compare(job, agreement.records(str(project / 'results')))


# kernel: errors at 500 and at 1,000; variances of 2 times the mean at the end
KERNELS = {'Haswell': ((300, 290), (200, 150)), 'Nehalem': ((310, 280), (220, 160)), 'Core2': ((290, 285), (180, 140))}


@pytest.fixture
def recorded(project):
    for kernel, errors in KERNELS.items():
        record(project, train(errors, kernel))
    return project


def test_without_records_there_is_nothing_to_say(project):
    assert finding(project, train(((300, 290), (200, 150)))).verdict == agreement.UNKNOWN
    with pytest.raises(UserError, match='nothing to record'):
        record(project)


def test_the_same_kernels_and_numbers_are_the_same(recorded):
    for kernel, errors in KERNELS.items():
        assert finding(recorded, train(errors, kernel)) == (agreement.SAME, 'the same as recorded with %s' % kernel)


def test_the_same_kernels_with_other_numbers_are_called_out(recorded):
    for errors in (((301, 290), (200, 150)), ((300, 290), (200, 151))):
        found = finding(recorded, train(errors, 'Haswell'))
        assert found.verdict == agreement.OFF and found.text.startswith('NOT THE SAME as recorded with Haswell')


def test_the_spread_by_hand(recorded):
    known = agreement.records(str(recorded / 'results'))
    # of 200, 220, 180 the squares are 800; of 150, 160, 140 they are 200
    assert agreement.spread(known) == (pytest.approx((800 / 200.0 + 200 / 150.0) / 4), 4)
    low, high = agreement.interval([200, 220, 180], known)
    half = 4.604 * (((800 / 200.0 + 200 / 150.0) / 4) * 200 * (1 + 1 / 3.0)) ** 0.5  # t of 4 degrees of freedom, 99%
    assert (low, high) == (pytest.approx(200 - half, abs=0.1), pytest.approx(200 + half, abs=0.1))


def test_other_kernels_explain_what_is_inside_the_interval(recorded):
    near = finding(recorded, train(((500, 500), (230, 165)), 'Zen'))  # only the end is judged
    assert near.verdict == agreement.EXPLAINED
    assert 'Standard 2.30% (recorded 1.80, 2.00, 2.20 with Core2, Haswell, Nehalem, explained 1.13 to 2.87)' in near.text
    far = finding(recorded, train(((300, 290), (300, 150)), 'Zen'))
    assert far.verdict == agreement.OFF and 'NOT EXPLAINED' in far.text and 'Standard 3.00%' in far.text
    assert 'MC' not in far.text  # which is explained


def test_other_random_numbers_are_another_training(recorded):
    other = ((600, 600), (600, 600))
    assert finding(recorded, train(other, streams=2)).verdict == agreement.UNKNOWN
    record(recorded, train(other, streams=2))
    assert finding(recorded, train(other, streams=2)).verdict == agreement.SAME
    assert finding(recorded, train(KERNELS['Haswell'])).verdict == agreement.SAME


def test_a_gpu_is_not_the_cpu_that_was_recorded(recorded):
    found = finding(recorded, train(KERNELS['Haswell'], 'Haswell', device='gpu'))
    assert found.verdict == agreement.EXPLAINED


def test_evaluations_of_the_same_weights_differ_by_rounding_alone(recorded):
    record(recorded, evaluate(266, 191))
    assert finding(recorded, evaluate(266, 191)).verdict == agreement.SAME
    assert finding(recorded, evaluate(267, 190, 'Zen')).verdict == agreement.EXPLAINED
    assert finding(recorded, evaluate(276, 191, 'Zen')).verdict == agreement.OFF
    assert finding(recorded, evaluate(276, 191, 'Zen', weights='w2')).verdict == agreement.EXPLAINED


def test_runs_in_the_recorded_tables_count_too():
    """lenet-all after 1,000 iterations is in curves.csv."""
    point = agreement.Point('mnist', 'lenet_all', 1, None, 'curve', 1000, 'standard', 0, None, 0, 10000)
    with open(os.path.join(ROOT, 'analysis', 'results', 'curves.csv'), newline='') as file:
        errors, = [int(row['errors']) for row in csv.DictReader(file) if (
            row['dataset'], row['net'], row['seed'], row['iteration'], row['method']
        ) == ('mnist', 'lenet_all', '1', '1000', 'standard')]
    assert errors in [one.errors for one in agreement.records()[point] if one.where == 'curves.csv']


def test_the_interval_holds_what_it_promises():
    """Kernels drawn at random with a variance of twice the mean: 99 of 100 new ones are inside."""
    luck, inside = random.Random(1), 0
    for _ in range(300):
        known = {}
        for net in range(5):
            point = agreement.Point('mnist', 'net%d' % net, 1, None, 'curve', 1000, 'standard', 0, None, 0, 10000)
            known[point] = [agreement.Recorded(luck.gauss(200, 20), 'openblas', 'k%d' % k, 'cpu', None, 'reference.csv')
                            for k in range(4)]
        low, high = agreement.interval([one.errors for one in known[point]], known)
        inside += low <= luck.gauss(200, 20) <= high
    assert 291 <= inside <= 300


def test_the_summary_counts():
    def of(*verdicts):
        return agreement.summary([agreement.Finding(verdict, '') for verdict in verdicts])
    assert of('same', 'same') == 'agreement: of 2 results 2 the same as recorded'
    assert of('same', 'explained', 'unknown') == ('agreement: of 3 results 1 the same as recorded, 1 within what other '
                                                  'kernels of the CPU explain, 1 with nothing recorded to compare with')
    assert of('same', 'off').startswith('AGREEMENT: look at 1 of 2 results')


def test_what_the_repository_records_is_of_quick_as_it_is_now():
    """reference.csv has every point of the profile, under several kernels."""
    rows = csv_tables.read(os.path.join(ROOT, 'analysis', 'results'), 'reference')
    kernels = {row['blas_kernel'] for row in rows}
    assert len(kernels) >= 2
    for job in jobs().values():
        mine = [row for row in rows if (row['dataset'], row['net'], row['seed']) == (job.dataset, job.net, 1)]
        iterations = {row['iteration'] for row in mine if row['kind'] == 'curve'}
        if isinstance(job, plan.Train):
            assert iterations == {100, 200, 500, 1000} and {row['blas_kernel'] for row in mine} == kernels
            assert any(row['method'] == 'mc' for row in mine) == (job.net != 'lenet_none')
        else:
            assert {row['T'] for row in mine if row['kind'] == 'evaluation'} == {0, job.T}
