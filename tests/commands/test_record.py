"""tools/record.py as a user runs it: with any python3, on folders that are there or not."""

import json
import os

import pytest

from conftest import ROOT, one_clear_line

CURVE = 'stage,iteration,lr,train_loss,standard_errors,mc_errors,mc_errors_scores,n,T\n1,100,0.01,0.7,33,28,29,500,5\n'


def make_run(folder, errors=33):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'config.json').write_text(json.dumps({'net': 'lenet_all', 'dataset': 'mnist', 'seed': 1,
                                                    'iterations': [100], 'device': 'cpu'}))
    (folder / 'provenance.json').write_text(json.dumps({'caffe': '1.0.0', 'commit': None}))
    (folder / 'curve.csv').write_text(CURVE.replace(',33,', ',%d,' % errors))
    (folder / 'done.json').write_text(json.dumps({'iterations': [100], 'final.caffemodel': 'f' * 64}))


def test_record_then_again_then_a_contradiction(tool, tmp_path):
    make_run(tmp_path / 'runs' / 'a')
    args = [tmp_path / 'runs', '--results', tmp_path / 'results', '--data', tmp_path]
    first = tool('record.py', *args)
    assert (first.returncode, first.stdout) == (0, '1 runs and evaluations found; new rows: curves 3, provenance 1\n'), first.stderr
    before = (tmp_path / 'results' / 'curves.csv').read_bytes()
    assert tool('record.py', *args).stdout == '1 runs and evaluations found; new rows: none\n'
    make_run(tmp_path / 'runs' / 'a', errors=34)
    one_clear_line(tool('record.py', *args), 'errors is 34, recorded 33', '--replace')
    assert (tmp_path / 'results' / 'curves.csv').read_bytes() == before
    assert tool('record.py', '--replace', *args).returncode == 0
    assert b',34,' in (tmp_path / 'results' / 'curves.csv').read_bytes()
    assert sorted(os.listdir(str(tmp_path / 'results'))) == ['curves.csv', 'provenance.csv']


def test_a_folder_that_is_not_there(tool, tmp_path):
    one_clear_line(tool('record.py', tmp_path / 'none', '--results', tmp_path / 'results'), 'none: no such folder')


def test_results_that_cannot_be_written(tool, tmp_path):
    make_run(tmp_path / 'runs' / 'a')
    (tmp_path / 'file').write_text('')
    one_clear_line(tool('record.py', tmp_path / 'runs', '--results', tmp_path / 'file'), 'file')


def test_help_has_an_example(tool):
    result = tool('record.py', '--help')
    assert result.returncode == 0 and 'python tools/record.py runs/' in result.stdout


def test_what_is_committed_can_be_read(tool, tmp_path):
    """Recording nothing over the committed tables changes no byte of them."""
    folder = os.path.join(ROOT, 'analysis', 'results')
    if not os.path.isdir(folder):
        pytest.skip('no results are committed yet')
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), 'rb') as file:
            (tmp_path / name).write_bytes(file.read())
    (tmp_path / 'runs').mkdir()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    tool('record.py', tmp_path / 'runs', '--results', tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
