"""From run folders to tables: nothing lost, nothing twice, contradictions refused."""

import base64
import hashlib
import itertools
import json
import os
import subprocess
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcnn.data import records, sets
from bcnn.data.catalogue import NIN_WEIGHTS
from bcnn.errors import UserError
from bcnn.mc import identity, metrics
from bcnn.results import csv_tables, gather, record, schema
from bcnn.system import store

COLUMNS = 'stage,iteration,lr,train_loss,standard_errors,mc_errors,mc_errors_scores,n,T'


def write_json(path, value):
    path.write_text(json.dumps(value))


def training(runs, name='mnist-lenet_all-seed1', net='lenet_all', dataset='mnist', seed=1, iterations=(200,), done=True,
             curve=('1,100,0.0099,0.75,33,28,29,500,5', '1,200,0.0098,0.30,33,37,35,500,5')):
    """A run folder as tools/train.py leaves it."""
    run = runs / name
    run.mkdir(parents=True, exist_ok=True)
    write_json(run / 'config.json',
               {'net': net, 'dataset': dataset, 'seed': seed, 'iterations': list(iterations), 'T': 5, 'device': 'cpu'})
    write_json(run / 'provenance.json', {'caffe': '1.0.0', 'commit': '0123456789abcdef'})
    (run / 'curve.csv').write_text('\n'.join((COLUMNS,) + tuple(curve)) + '\n')
    if done:
        write_json(run / 'done.json', {'iterations': list(iterations), 'final.caffemodel': 'f' * 64})
    return run


def digests(net):
    """What the config of an evaluation of a net of the paper on its whole test set has."""
    place = tuple(net.split('/'))
    standard, sampling = next((found[1:] for found in identity._paper_nets() if found[0] == place), ('s', 'x'))
    return dict(standard_net=standard, mc_net=sampling, images=identity.TEST_SETS.get(place[0], 'ab' * 32))


def evaluation(folder, net='cifar10/nin', weights=NIN_WEIGHTS.files[0].sha256, n=40, T=3, repeats=2, seed=0, **changes):
    """A folder as tools/mc_eval.py leaves it, of random predictions; changes: of the config."""
    folder.mkdir(parents=True)
    rng = np.random.RandomState(seed)
    labels = rng.randint(10, size=n)
    samples = rng.dirichlet(np.ones(10) / 3, size=(repeats, T, n))
    samples[..., np.arange(n), labels] += 0.3
    samples /= samples.sum(axis=-1, keepdims=True)
    sums = samples.cumsum(axis=1)
    probs, scores = sums[:, -1] / T, np.log(samples).mean(axis=1)
    standard = samples[0, 0].astype(np.float32)
    config = {'net': net, 'weights': weights, 'count': n, 'T': T, 'seed': 1, 'mode': 'stream', 'crops': None,
              'device': 'cpu'}
    config.update(digests(net), **changes)
    curves = {
        'probs': [[100.0 * (~metrics.correct(sums[k, t], labels)).mean() for t in range(T)] for k in range(repeats)],
        'scores': [[100.0 * (~metrics.correct(np.log(samples[k, :t + 1]).sum(axis=0), labels)).mean() for t in range(T)]
                   for k in range(repeats)]}
    write_json(folder / 'config.json', config)
    write_json(folder / 'provenance.json', {'caffe': '1.0.0'})
    write_json(folder / 'result.json', {'standard': {'errors': int((~metrics.correct(standard, labels)).sum())},
                                        'mc': {average: {'curve': found} for average, found in curves.items()}})
    entropy = metrics.entropy(probs)
    expected = metrics.entropy(samples).mean(axis=1)
    np.savez(str(folder / 'images.npz'), labels=labels, standard_probs=standard, mc_probs=probs.astype(np.float32),
             mc_scores=scores.astype(np.float32), entropy=entropy, expected_entropy=expected,
             mutual_information=np.maximum(entropy - expected, 0),
             variation_ratio=rng.randint(T, size=(repeats, n)) / float(T))
    return folder


def go(runs, out, capsys, replace=False, unfinished=False, profile=None, data=None):
    """(exit code, stdout, lines of stderr)"""
    args = types.SimpleNamespace(folders=[str(runs)], results=str(out), data=str(data or out), profile=profile,
                                 unfinished=unfinished, replace=replace, forget=None, no_prepare=True)
    code = record.command(args)
    text = capsys.readouterr()
    return code, text.out, text.err.splitlines()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def runs(tmp_path):
    training(tmp_path / 'runs')
    return tmp_path / 'runs'


@pytest.fixture
def out(tmp_path):
    (tmp_path / 'results').mkdir()
    return tmp_path / 'results'


# --- what is recorded ---------------------------------------------------------------------------

def test_a_curve_becomes_rows(runs, out, capsys):
    code, text, errors = go(runs, out, capsys)
    assert (code, text, errors) == (0, '1 runs and evaluations found; new rows: curves 6, provenance 1\n', [])
    rows = csv_tables.read(str(out), 'curves')
    assert [(row['iteration'], row['method'], row['average'], row['T'], row['errors'], row['n']) for row in rows] == [
        (100, 'mc', 'probs', 5, 28, 500), (100, 'mc', 'scores', 5, 29, 500), (100, 'standard', None, 0, 33, 500),
        (200, 'mc', 'probs', 5, 37, 500), (200, 'mc', 'scores', 5, 35, 500), (200, 'standard', None, 0, 33, 500)]
    assert all((row['experiment'], row['fraction'], row['seed'], row['caffe'], row['device'], row['commit'],
                row['profile'])
               == ('fig2', '1', 1, '1.0.0', 'cpu', '0123456789', None) for row in rows)


def test_wrong_images_are_recorded_at_the_lowest_and_the_last_two_points(tmp_path, out, capsys):
    run = training(tmp_path / 'runs', curve=[
        '1,%d,0.01,0.7,%d,%d,%d,500,5' % point
        for point in ((100, 9, 3, 3), (200, 5, 4, 4), (500, 6, 4, 4), (1000, 7, 4, 4))])
    (run / 'wrong.csv').write_text('stage,iteration,method,images,n,wrong\n' + ''.join(
        '1,%d,%s,%s,500,%s\n' % (iteration, method, 'ab' * 32, ' '.join(map(str, range(count))))
        for iteration, standard, mc in ((200, 5, 4), (500, 6, 4), (1000, 7, 4))  # 100: made by an older version
        for method, count in (('standard', standard), ('mc', mc))))
    code, text, errors = go(tmp_path / 'runs', out, capsys)
    assert (code, errors) == (0, []) and 'curve_wrong 5' in text
    rows = csv_tables.read(str(out), 'curve_wrong')
    assert [(row['iteration'], row['method'], len(row['wrong'].split())) for row in rows] == [
        (200, 'standard', 5), (500, 'mc', 4), (500, 'standard', 6), (1000, 'mc', 4), (1000, 'standard', 7)]
    assert {row['data'] for row in rows} == {'ab' * 32}


def test_a_net_without_dropout_has_no_mc_rows(runs, out, capsys):
    training(runs, 'mnist-lenet_none-seed1', 'lenet_none', curve=('1,100,0.01,0.7,33,,,500,',))
    go(runs, out, capsys)
    rows = [row for row in csv_tables.read(str(out), 'curves') if row['net'] == 'lenet_none']
    assert [(row['method'], row['T']) for row in rows] == [('standard', 0)]


def test_an_evaluation_becomes_rows_of_every_kind(runs, out, capsys):
    evaluation(runs / 'cifar10-nin-cifar10_nin' / 'mc' / 'T3-a')
    code, text, _ = go(runs, out, capsys)
    assert code == 1  # for the pictures: no data set here
    assert 'evaluations 5, convergence 12, calibration 75' in text
    found = {name: csv_tables.read(str(out), name) for name in schema.TABLES}
    arrays = np.load(str(runs / 'cifar10-nin-cifar10_nin' / 'mc' / 'T3-a' / 'images.npz'))
    labels = arrays['labels']
    for row in found['evaluations']:
        assert (row['dataset'], row['net'], row['weights']) == ('cifar10', 'nin', 'published')
        assert row['seed'] is None and row['iterations'] is None
        if row['method'] == 'mc' and row['average'] == 'probs':
            probs = arrays['mc_probs'][row['repetition'] - 1]
            assert row['errors'] == (~metrics.correct(probs, labels)).sum()
            assert row['nll'] == pytest.approx(metrics.nll(probs, labels), rel=1e-5)
            a, b, p = metrics.mcnemar(metrics.correct(arrays['standard_probs'], labels), metrics.correct(probs, labels))
            assert (row['only_standard_right'],
                    row['only_mc_right']) == (a, b) and row['mcnemar_p'] == pytest.approx(p, rel=1e-5)
    last = {(row['average'], row['repetition']): row['errors'] for row in found['convergence'] if row['t'] == 3}
    assert last == {(row['average'], row['repetition']): row['errors'] for row in found['evaluations']
                    if row['method'] == 'mc'}
    assert sum(row['count'] for row in found['calibration']) == 5 * 40
    most = [row for row in found['images'] if (row['measure'], row['end']) == ('entropy', 'most')]
    assert [row['image'] for row in most] == list(np.argsort(-arrays['entropy'][0])[:8])
    assert [row['label'] for row in most] == [labels[row['image']] for row in most]
    whole = [row for row in found['risk'] if row['rejected'] == 0]
    assert all(row['kept'] == 40 for row in whole) and len(whole) == 2 + 2 * 4
    wrong = {row['repetition']: (row['method'], row['data'], row['n'], row['wrong']) for row in found['wrong']}
    for k, probs in enumerate([arrays['standard_probs']] + list(arrays['mc_probs'])):
        numbers = [str(i) for i in range(40) if probs[i].argmax() != labels[i]]
        assert wrong.pop(k) == ('mc' if k else 'standard', identity.TEST_SETS['cifar10'], 40, ' '.join(numbers) or None)
    assert not wrong and any(row['wrong'] for row in found['wrong'])


def test_where_weights_come_from(runs, out, capsys):
    evaluation(runs / 'mnist-lenet_all-seed1' / 'mc' / 'T3-a', 'mnist/lenet_all', weights='f' * 64, seed=1)
    evaluation(runs / 'mnist-lenet_all-seed1' / 'mc' / 'T3-b', 'mnist/lenet_all', weights='e' * 64, seed=2)
    evaluation(runs / 'mine' / 'mc' / 'T3-c', 'my_net', weights='d' * 64, seed=3)
    go(runs, out, capsys)
    found = {(row['dataset'], row['net'], row['seed'], row['iterations'], row['weights'], row['experiment'])
             for row in csv_tables.read(str(out), 'evaluations')}
    assert found == {('mnist', 'lenet_all', 1, 200, 'trained', 'fig2'),
                     ('own', 'lenet_all', None, None, 'unknown', 'other'),
                     ('own', 'my_net', None, None, 'unknown', 'other')}


# --- of the paper, or a user's own ----------------------------------------------------------------

def recorded(out):
    return {(row['dataset'], row['net'], row['weights']) for row in csv_tables.read(str(out), 'evaluations')}


@pytest.mark.parametrize('changes', [
    pytest.param({'images': 'cd' * 32}, marks=pytest.mark.caffe), {'standard_net': 'another'}, {'mc_net': 'another'},
    {'weights': 'e' * 64}], ids=['images', 'standard_net', 'mc_net', 'weights'])
def test_a_name_makes_nothing_the_papers(runs, out, capsys, changes):
    """The paper's net by name, trained weights beside it: own images, another net or other weights are a user's own."""
    weights = dict({'weights': 'f' * 64}, **changes)
    evaluation(runs / 'mnist-lenet_all-seed1' / 'mc' / 'T3-a', 'mnist/lenet_all', **weights)
    code, _, errors = go(runs, out, capsys)
    assert code == 0 and {row[:2] for row in recorded(out)} == {('own', 'lenet_all')}
    tables = {name: csv_tables.read(str(out), name) for name in ('calibration', 'convergence', 'risk', 'wrong', 'images')}
    assert all({row['dataset'] for row in rows} == {'own'} for rows in tables.values())
    assert any('note: ' in line for line in errors) == ('weights' in changes or 'images' in changes)


def test_another_nets_weights_are_not_the_papers(runs, out, capsys):
    """lenet_ip's file has the layers of lenet_all: evaluated with the net of the one, it is not the paper's."""
    evaluation(runs / 'mnist-lenet_all-seed1' / 'mc' / 'T3-a', 'mnist/lenet_ip', weights='f' * 64)
    go(runs, out, capsys)
    assert recorded(out) == {('own', 'lenet_ip', 'trained')}


def test_a_fraction_of_mnist_is_told_by_its_training(runs, out, capsys):
    training(runs, 'mnist_4-lenet_all-seed1', dataset='mnist_4')
    evaluation(runs / 'mnist_4-lenet_all-seed1' / 'mc' / 'T3-a', 'mnist/lenet_all', weights='f' * 64)
    go(runs, out, capsys)
    assert recorded(out) == {('mnist_4', 'lenet_all', 'trained')}


def test_a_user_names_what_is_theirs(runs, out, capsys):
    folder = evaluation(runs / 'x' / 'mc' / 'T3-a', 'deploy')
    write_json(folder / 'source.json', {'name': 'cats, large'})
    go(runs, out, capsys)
    assert recorded(out) == {('own', 'cats, large', 'published')}


def test_rows_recorded_under_the_papers_name_before_are_contradicted(runs, out, capsys):
    """As an earlier version recorded it: own images under the name of the paper's."""
    folder = evaluation(runs / 'mnist-lenet_all-seed1' / 'mc' / 'T3-a', 'mnist/lenet_all', weights='f' * 64)
    go(runs, out, capsys)
    assert recorded(out) == {('mnist', 'lenet_all', 'trained')}
    before = contents(out)
    config = json.loads((folder / 'config.json').read_text())
    old = store.identity(config)[:8]
    config['standard_net'] = 'another'  # so that it is known not to be the paper's
    write_json(folder / 'config.json', config)
    new = store.identity(config)[:8]
    for name, text in before.items():
        (out / name).write_bytes(text.replace(old.encode(), new.encode()))
    code, _, errors = go(runs, out, capsys)
    assert code == 1 and 'dataset is own, recorded mnist' in errors[0] and '--replace' in errors[0]
    go(runs, out, capsys, replace=True)
    assert recorded(out) == {('own', 'lenet_all', 'trained')}


# --- numbers that are none ------------------------------------------------------------------------

def test_an_evaluation_that_is_not_finite_is_refused_by_name(runs, out, capsys):
    folder = evaluation(runs / 'cifar10-nin-x' / 'mc' / 'T3-a')
    with np.load(str(folder / 'images.npz')) as stored:
        arrays = dict(stored)
    arrays['mc_probs'][0, 3, 4] = np.nan
    np.savez(str(folder / 'images.npz'), **arrays)
    code, _, errors = go(runs, out, capsys)
    assert code == 1 and len(errors) == 1 and 'mc_probs has numbers that are not finite' in errors[0] and str(folder) in errors[0]
    assert recorded(out) == set()


def test_a_curve_that_is_not_finite_is_refused(runs, out, capsys):
    training(runs, curve=('1,100,0.01,nan,33,28,29,500,5',))
    code, _, errors = go(runs, out, capsys)
    assert code == 1 and 'train_loss is nan' in errors[0]
    assert csv_tables.read(str(out), 'curves') == []


def test_a_table_that_is_spoilt_is_named_with_its_cure_and_the_cure_works(runs, out, capsys):
    evaluation(runs / 'cifar10-nin-x' / 'mc' / 'T3-a')
    go(runs, out, capsys)
    config = csv_tables.read(str(out), 'evaluations')[0]['config']
    lines = (out / 'evaluations.csv').read_text().splitlines()
    cells = lines[2].split(',')
    cells[lines[0].split(',').index('nll')] = 'nan'
    (out / 'evaluations.csv').write_text('\n'.join(lines[:2] + [','.join(cells)] + lines[3:]) + '\n')
    with pytest.raises(gather.UserError) as error:
        go(runs, out, capsys)
    assert "evaluations.csv, line 3: nll is 'nan', not a number" in str(error.value)
    command = str(error.value).partition('lines out: ')[2]
    assert config in command and subprocess.call(command, shell=True) == 0
    assert 'evaluations 5' in go(runs, out, capsys)[1]


def test_a_profile_is_noted(runs, out, capsys):
    go(runs, out, capsys, profile='cpu')
    assert {row['profile'] for row in csv_tables.read(str(out), 'curves')} == {'cpu'}


# --- again, and more ------------------------------------------------------------------------------

def test_the_second_time_changes_no_byte(runs, out, capsys):
    evaluation(runs / 'cifar10-nin-cifar10_nin' / 'mc' / 'T3-a')
    go(runs, out, capsys)
    before = contents(out)
    assert 'new rows: none' in go(runs, out, capsys)[1]
    go(runs, out, capsys, replace=True)
    assert contents(out) == before and len(before) == 8


def test_what_is_recorded_stays_when_its_run_is_gone(runs, out, tmp_path, capsys):
    go(runs, out, capsys)
    training(tmp_path / 'others', 'mnist-lenet_all-seed2', seed=2)
    go(tmp_path / 'others', out, capsys)
    assert {row['seed'] for row in csv_tables.read(str(out), 'curves')} == {1, 2}


def test_a_run_that_went_on_adds_rows_of_the_same_config(runs, out, capsys):
    go(runs, out, capsys)
    training(runs, iterations=(500,), curve=('1,100,0.0099,0.75,33,28,29,500,5', '1,200,0.0098,0.30,33,37,35,500,5',
                                             '1,500,0.0095,0.20,20,18,19,500,5'))
    assert go(runs, out, capsys)[1].endswith('new rows: curves 3\n')
    assert len({row['config'] for row in csv_tables.read(str(out), 'curves')}) == 1


def test_an_evaluation_of_weights_that_were_trained_on_is_still_the_same(runs, out, capsys):
    evaluation(runs / 'mnist-lenet_all-seed1' / 'mc' / 'T3-a', 'mnist/lenet_all', weights='f' * 64)
    go(runs, out, capsys)
    write_json(runs / 'mnist-lenet_all-seed1' / 'done.json', {'iterations': [500], 'final.caffemodel': 'a' * 64})
    code, text, errors = go(runs, out, capsys)
    assert 'new rows: none' in text and not [line for line in errors if 'contradicts' in line]
    assert {row['weights'] for row in csv_tables.read(str(out), 'evaluations')} == {'trained'}


def test_unfinished_runs_wait_or_are_asked_for(runs, out, capsys):
    training(runs, 'mnist-lenet_ip-seed1', 'lenet_ip', done=False)
    assert 'curves 6' in go(runs, out, capsys)[1]
    assert 'curves 6' in go(runs, out, capsys, unfinished=True)[1]
    assert {row['net'] for row in csv_tables.read(str(out), 'curves')} == {'lenet_all', 'lenet_ip'}


# --- contradictions ---------------------------------------------------------------------------------

def test_a_contradiction_is_refused_by_name_and_the_rest_recorded(runs, out, capsys):
    go(runs, out, capsys)
    before = csv_tables.read(str(out), 'curves')
    training(runs, curve=('1,100,0.0099,0.75,33,28,29,500,5', '1,200,0.0098,0.30,34,37,35,500,5',
                          '1,300,0.0097,0.2,1,1,1,500,5'))
    training(runs, 'mnist-lenet_ip-seed1', 'lenet_ip')
    code, text, errors = go(runs, out, capsys)
    assert code == 1 and 'curves 6' in text and len(errors) == 1
    assert ('curves.csv dataset=mnist net=lenet_all seed=1 stage=1 iteration=200 method=standard T=0 n=500: '
            'errors is 34, recorded 33; --replace') in errors[0]
    after = csv_tables.read(str(out), 'curves')
    assert [row for row in after if row['net'] == 'lenet_all'] == before


def test_replace_takes_the_new_rows(runs, out, capsys):
    go(runs, out, capsys)
    training(runs, curve=('1,200,0.0098,0.30,34,37,35,500,5',))
    code, _, errors = go(runs, out, capsys, replace=True)
    found = {(row['iteration'], row['method'], row['average']): row['errors']
             for row in csv_tables.read(str(out), 'curves')}
    assert (code, errors) == (0, [])
    assert found[200, 'standard', None] == 34
    assert {iteration for iteration, _, _ in found} == {200}  # no curve is of two runs


def test_replacing_takes_the_new_software_too_and_leaves_other_runs(runs, out, capsys):
    training(runs, 'mnist-lenet_ip-seed1', 'lenet_ip')
    go(runs, out, capsys)
    run = training(runs, curve=('1,200,0.0098,0.30,34,37,35,500,5',))
    write_json(run / 'provenance.json', {'caffe': '1.0.0', 'blas_kernel': 'Haswell'})
    go(runs, out, capsys, replace=True)
    kernels = {row['net']: row['blas_kernel'] for row in csv_tables.read(str(out), 'provenance')
               if row['kind'] == 'training'}
    assert kernels == {'lenet_all': 'Haswell', 'lenet_ip': None}


@pytest.mark.parametrize('config, software, reason', [
    ({'streams': 2}, {}, 'another training of this net and seed is recorded'),
    ({}, {'blas_kernel': 'Haswell'}, 'recorded with other software (blas_kernel SkylakeX, here Haswell)')])
def test_a_run_that_may_well_differ_is_a_note_and_left_out(runs, out, capsys, config, software, reason):
    run = runs / 'mnist-lenet_all-seed1'
    write_json(run / 'provenance.json', {'caffe': '1.0.0', 'blas_kernel': 'SkylakeX'})
    go(runs, out, capsys)
    before = contents(out)
    training(runs, curve=('1,200,0.0098,0.30,34,37,35,500,5',))
    write_json(run / 'config.json', dict(json.loads((run / 'config.json').read_text()), **config))
    write_json(run / 'provenance.json', dict({'caffe': '1.0.0', 'blas_kernel': 'SkylakeX'}, **software))
    code, _, (line,) = go(runs, out, capsys)
    assert code == 0 and reason in line and 'errors is 34, recorded 33' in line and '--replace' in line
    assert contents(out) == before


def test_what_is_forgotten_leaves_every_table_and_the_rest_stays(runs, out, capsys):
    training(runs, 'mnist-lenet_ip-seed1', 'lenet_ip')
    go(runs, out, capsys)
    provenance = {row['net']: row['config'] for row in csv_tables.read(str(out), 'provenance')
                  if row['kind'] == 'training'}
    with pytest.raises(UserError, match='--forget 12345678: no row'):
        record.forget(str(out), [provenance['lenet_all'], '12345678'])
    assert record.forget(str(out), [provenance['lenet_all']]) == 0
    assert 'curves.csv: 6 rows fewer' in capsys.readouterr().out
    for name in ('curves', 'provenance'):
        left = [row['config'] for row in csv_tables.read(str(out), name)]
        assert provenance['lenet_all'] not in left and provenance['lenet_ip'] in left


# --- damaged things ----------------------------------------------------------------------------------

def damage_json(run):
    (run / 'config.json').write_text('{"net": ')


def damage_keys(run):
    (run / 'config.json').write_text('{"net": "lenet_ip"}')


def damage_curve(run):
    (run / 'curve.csv').write_text((run / 'curve.csv').read_text() + '1,500,0.0\n')


@pytest.mark.parametrize('damage, words', [
    (damage_json, 'config.json: damaged'), (damage_keys, "not a result of this version (KeyError: 'dataset')"),
    (damage_curve, 'curve.csv: not a curve of this version')])
def test_a_damaged_run_is_one_line_and_the_others_are_recorded(runs, out, capsys, damage, words):
    damage(training(runs, 'mnist-lenet_ip-seed1', 'lenet_ip'))
    code, text, errors = go(runs, out, capsys)
    assert code == 1 and 'curves 6' in text
    assert len(errors) == 1 and words in errors[0] and 'mnist-lenet_ip-seed1' in errors[0]


def test_a_damaged_npz_is_one_line(runs, out, capsys):
    folder = evaluation(runs / 'cifar10-nin-x' / 'mc' / 'T3-a')
    (folder / 'images.npz').write_bytes(b'PK\x03\x04 not a zip')
    code, _, errors = go(runs, out, capsys)
    assert code == 1 and len(errors) == 1 and 'images.npz: not readable' in errors[0]


def test_a_malformed_table_stops_it_and_loses_nothing(runs, out, capsys):
    go(runs, out, capsys)
    path = out / 'curves.csv'
    path.write_text(path.read_text() + 'half a line\n')
    before = contents(out)
    with pytest.raises(gather.UserError, match='curves.csv, line 8: 1 values, there are 23 columns'):
        go(runs, out, capsys)
    assert contents(out) == before


# --- pictures ------------------------------------------------------------------------------------------

@pytest.fixture
def pictures(tmp_path):
    """A data folder with 40 small MNIST images, as prepare_data.py would leave them, and the labels of evaluation()."""
    labels = np.random.RandomState(0).randint(10, size=40)
    images = np.arange(40 * 4, dtype=np.uint8).reshape(40, 1, 2, 2)
    folder = tmp_path / 'data' / 'mnist'
    folder.mkdir(parents=True)
    records.write(str(folder / 'test_lmdb'), [(images, labels)], 8)
    size = os.path.getsize(str(folder / 'test_lmdb' / 'data.mdb'))
    write_json(folder / 'manifest.json',
               {'format': sets.FORMAT, 'set': 'mnist', 'settings': {}, 'files': {'test_lmdb/data.mdb': size}})
    return tmp_path / 'data', images


def test_the_images_shown_are_stored_with_their_pixels(runs, out, pictures, capsys):
    data, images = pictures
    evaluation(runs / 'mnist-lenet_all-seed1' / 'mc' / 'T3-a', 'mnist/lenet_all', weights='f' * 64)
    code, _, errors = go(runs, out, capsys, data=data)
    assert (code, errors) == (0, [])
    rows = {row['image']: row for row in csv_tables.read(str(out), 'thumbnails')}
    assert set(rows) == {row['image'] for row in csv_tables.read(str(out), 'images')}
    for i, row in rows.items():
        assert (row['height'], row['width'], row['channels']) == (2, 2, 1)
        assert base64.b64decode(row['pixels']) == images[i].tobytes()


def test_pictures_of_other_images_are_refused(runs, out, pictures, capsys):
    evaluation(runs / 'mnist-lenet_all-seed1' / 'mc' / 'T3-a', 'mnist/lenet_all', weights='f' * 64, seed=5)  # other labels
    code, _, errors = go(runs, out, capsys, data=pictures[0])
    assert code == 1 and len(errors) == 1 and 'the evaluation was on other images' in errors[0]
    assert not csv_tables.read(str(out), 'thumbnails')


# --- risk ------------------------------------------------------------------------------------------------

@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6), st.data())
def test_errors_kept_is_the_mean_over_all_orders_of_equal_images(images, data):
    kept = data.draw(st.integers(1, len(images)))
    counts = [sum(images[i][1] for i in order[:kept]) for order in itertools.permutations(range(len(images)))
              if all(images[a][0] <= images[b][0] for a, b in zip(order, order[1:]))]
    uncertainty, wrong = (np.array(column) for column in zip(*images))
    assert metrics.errors_kept(uncertainty.astype(float), wrong, kept) == pytest.approx(np.mean(counts))


def test_config_is_the_start_of_a_sha256(runs, out, capsys):
    go(runs, out, capsys)
    config = {'net': 'lenet_all', 'dataset': 'mnist', 'seed': 1, 'T': 5, 'device': 'cpu'}
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()
    assert {row['config'] for row in csv_tables.read(str(out), 'curves')} == {digest[:8]}
