"""tools/verify.py on a real run, a real evaluation and the tables made of them: whole, and tampered with in every part."""

import json
import os
import shutil
import sys

import numpy as np
import pytest

import trainhelp
from bcnn import weights
from bcnn.mc import evaluation
from bcnn.results import csv_tables, findings, verify, verify_folders
from bcnn.system import places, store
from conftest import ROOT, one_clear_line


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """data, runs/mnist-lenet_ip-seed1 with an evaluation in mc/, and results."""
    place = tmp_path_factory.mktemp('whole')
    trainhelp.make_recorded(place)
    return place


@pytest.fixture
def place(whole, tmp_path):
    """A copy to do harm to."""
    for name in ('runs', 'results', 'data'):
        shutil.copytree(str(whole / name), str(tmp_path / name))
    return tmp_path


def paths(place):
    folder = place / 'runs' / 'mnist-lenet_ip-seed1'
    return folder, next((folder / 'mc').iterdir())


def wrong(place, what='runs'):
    """{name of the file: text} of what is wrong."""
    found = {}
    for finding in verify.check(str(place / what), str(place / 'data'), str(place / 'runs')):
        if finding.state == findings.WRONG:
            name = os.path.basename(finding.path)
            found[name] = found.get(name, '') + finding.text + '\n'
    return found


# --- whole

def test_what_is_whole_agrees(whole, tool):
    result = tool('verify.py', whole / 'runs', whole / 'results', '--data', whole / 'data', '--runs', whole / 'runs', '--all',
                  python=sys.executable)
    assert result.returncode == 0, result.stdout
    assert result.stdout.endswith('all agree\n') and 'WRONG' not in result.stdout
    for part in ('the weights that done.json names', 'what the blocks give', 'the first 200 images of', 'the train data that',
                 'what is recorded of it', 'agrees with the other tables', 'the config that the folder is named after'):
        assert part in result.stdout, part


def test_every_result_names_what_computed_it(whole):
    """Config hash, commit, Caffe and library versions, data checksums, seed, device."""
    rows = {row['kind']: row for row in csv_tables.read(str(whole / 'results'), 'provenance')}
    assert set(rows) == {'training', 'evaluation'}
    for row in rows.values():
        for column in ('config_sha256', 'seed', 'device', 'threads', 'data', 'caffe', 'python', 'numpy', 'protobuf', 'lmdb', 'blas'):
            assert row[column], column
        assert row['config_sha256'].startswith(row['config'])
        if os.path.exists(os.path.join(ROOT, '.git')):
            assert len(row['commit']) == 40 and row['modified'] in ('yes', 'no')
    used = {row['config'] for name in ('curves', 'evaluations') for row in csv_tables.read(str(whole / 'results'), name)}
    assert used == {row['config'] for row in rows.values()}
    folder, evaluation = paths(whole)
    assert rows['evaluation']['weights'] == store.sha256(str(folder / 'final.caffemodel'))


def test_it_changes_nothing(place):
    def state():
        return {path: os.stat(os.path.join(folder, path)).st_mtime_ns for folder, _, names in os.walk(str(place)) for path in names}
    before = state()
    assert wrong(place) == {} and wrong(place, 'results') == {}
    assert state() == before


# --- tampered with

def flip(path, offset=-40):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(bytes(data))


def test_changed_weights(place):
    folder, _ = paths(place)
    flip(folder / 'final.caffemodel')
    text = wrong(place)['final.caffemodel']
    assert 'not the weights that done.json names' in text and 'changed since it was written' in text


def test_a_changed_curve(place):
    folder, _ = paths(place)
    text = (folder / 'curve.csv').read_text().splitlines()
    cells = text[-1].split(',')
    cells[4] = str(int(cells[4]) - 1)
    (folder / 'curve.csv').write_text('\n'.join(text[:-1] + [','.join(cells)]) + '\n')
    assert 'changed since it was written' in wrong(place)['curve.csv']
    assert 'not what is recorded of it' in wrong(place, 'results')['mnist-lenet_ip-seed1']


def test_a_changed_snapshot_and_config(place):
    folder, _ = paths(place)
    flip(next((folder / 'snapshots').glob('stage*')) / 'weights.caffemodel')
    config = json.loads((folder / 'config.json').read_text())
    (folder / 'config.json').write_text(json.dumps(dict(config, seed=2)))
    found = wrong(place)
    assert any('has changed' in text for text in found.values()) and 'changed since' in found['config.json']


def test_other_data(place):
    path = place / 'data' / 'mnist' / 'manifest.json'
    found = json.loads(path.read_text())
    found['splits']['train']['sha256'] = '0' * 64
    path.write_text(json.dumps(found))
    assert 'not the train data' in wrong(place)['mnist']


@pytest.mark.parametrize('name', ['standard-00001.npz', 'mc1-00000.npz', 'mc2-00003.npz'])
def test_a_changed_block(place, name):
    _, folder = paths(place)
    path = folder / 'blocks' / name
    with np.load(str(path)) as file:
        arrays = {key: file[key] for key in file.files}
    arrays['probs'][0] = arrays['probs'][0][::-1]
    np.savez(str(path), **arrays)
    found = wrong(place)
    assert 'changed since it was written' in found[name]
    assert 'not what the blocks give' in found.get('result.json', '') + found.get('images.npz', '')


def test_blocks_in_each_others_place(place):
    _, folder = paths(place)
    blocks = folder / 'blocks'
    (blocks / 'mc1-00000.npz').rename(blocks / 'x')
    (blocks / 'mc1-00001.npz').rename(blocks / 'mc1-00000.npz')
    (blocks / 'x').rename(blocks / 'mc1-00001.npz')
    assert {'mc1-00000.npz', 'mc1-00001.npz'} <= set(wrong(place))
    (folder / 'checksums.json').unlink()  # of an older version: the sums tell
    assert 'images.npz' in wrong(place)


def test_impossible_sums_are_named_without_checksums(place):
    _, folder = paths(place)
    (folder / 'checksums.json').unlink()
    path = folder / 'blocks' / 'mc2-00001.npz'
    with np.load(str(path)) as file:
        arrays = {key: file[key] for key in file.files}
    arrays['probs'][3] *= 1.1
    np.savez(str(path), **arrays)
    assert 'do not add up to the number of passes' in wrong(place)['mc2-00001.npz']


@pytest.mark.parametrize('change', [
    lambda result: result['standard'].update(error=1.0), lambda result: result['mc']['probs'].update(mean=0.5),
    lambda result: result['mc']['scores']['curve'][1].__setitem__(2, 0.0), lambda result: result.pop('uncertainty'),
    lambda result: result['config'].update(seed=7)])
def test_a_changed_summary(place, change):
    _, folder = paths(place)
    result = json.loads((folder / 'result.json').read_text())
    change(result)
    (folder / 'result.json').write_text(json.dumps(result))
    assert 'result.json' in wrong(place)


def test_a_changed_image_table(place):
    _, folder = paths(place)
    text = (folder / 'images.csv').read_text().splitlines()
    (folder / 'images.csv').write_text('\n'.join(text[:5] + [text[6], text[5]] + text[7:]) + '\n')
    assert 'not what the blocks give' in wrong(place)['images.csv']


def test_a_folder_with_the_config_of_another(place):
    _, folder = paths(place)
    config = json.loads((folder / 'config.json').read_text())
    (folder / 'config.json').write_text(json.dumps(dict(config, seed=2)))
    assert 'config.json' in wrong(place)


@pytest.mark.parametrize('table, column, named', [
    ('evaluations', 'errors', {'convergence.csv', 'risk.csv', 'wrong.csv'}), ('evaluations', 'ece', {'calibration.csv'}),
    ('convergence', 'errors', {'convergence.csv'}), ('calibration', 'count', {'calibration.csv'}),
    ('evaluations', 'only_mc_right', {'evaluations.csv'}), ('risk', 'errors_kept', {'risk.csv'}),
    ('wrong', 'n', {'wrong.csv'})])
def test_tables_that_contradict_each_other(place, table, column, named):
    """Even where the runs are gone."""
    path = place / 'results' / (table + '.csv')
    lines = path.read_text().splitlines()
    names = lines[0].split(',')
    for i in range(1, len(lines)):
        cells = lines[i].split(',')
        row = dict(zip(names, cells))
        if row['method'] == 'mc' and row['average'] == 'probs' and row.get('t', '4') == '4' and row.get('rejected', '0') == '0':
            cells[names.index(column)] = str(float(row[column]) + 0.2) if column == 'ece' else '%d' % (float(row[column]) + 2)
            lines[i] = ','.join(cells)
            break
    else:
        raise AssertionError('no row to change')
    path.write_text('\n'.join(lines) + '\n')
    shutil.rmtree(str(place / 'runs'))
    assert named <= set(wrong(place, 'results'))


def test_the_exit_code_and_one_line_refusals(place, tool):
    folder, _ = paths(place)
    flip(folder / 'final.caffemodel')
    result = tool('verify.py', place / 'runs', '--data', place / 'data', python=sys.executable)
    assert result.returncode == 1 and 'WRONG: ' in result.stdout and 'final.caffemodel' in result.stdout
    one_clear_line(tool('verify.py', place / 'none', python=sys.executable), 'no such folder')
    one_clear_line(tool('verify.py', place / 'data', python=sys.executable), 'neither a run')


def test_the_committed_results_agree(tool):
    result = tool('verify.py', 'analysis/results', python=sys.executable)
    assert result.returncode == 0, result.stdout


def test_all_of_a_new_clone_agrees(tmp_path):
    """Its recorded tables and weights; it has no runs, and nothing is prepared."""
    clone = trainhelp.make_clone(tmp_path, weights.FOLDER, places.RESULTS, tmp_path / 'none')
    said = trainhelp.typed(clone, 'tools/verify.py')
    assert said.returncode == 0 and said.stdout.endswith('all agree\n'), said.stdout + said.stderr


def test_help_has_an_example(tool):
    assert 'python tools/verify.py runs/' in tool('verify.py', '--help').stdout


@pytest.mark.parametrize('config', [
    {'T': 10, 'count': 5, 'mode': mode, 'adaptive': {'error': 0.01}, 'mc_net': net} for mode in ('stream', 'adaptive')
    for net in ('x', None)])
def test_a_folder_is_held_to_the_config_that_it_is_named_after(tmp_path, config):
    folder = str(tmp_path / evaluation.name_of(config))
    assert verify_folders._name(folder, config).state == findings.OK
    assert verify_folders._name(folder, dict(config, count=6)).state == findings.WRONG
    assert verify_folders._name(str(tmp_path / 'mine'), config).state == findings.UNKNOWN
    if not config['mc_net']:  # what evaluations without passes were called before
        former = folder.replace('standard-', 'T10-')
        assert former != folder and verify_folders._name(former, config).state == findings.OK
