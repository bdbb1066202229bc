"""tools/bench.py as people type it."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bcnn.data import sets
from conftest import ROOT, one_clear_line
from datahelp import prepared

RECORDED = [os.path.join(ROOT, 'analysis', 'results', name + '.csv') for name in ('bench', 'growth')]


def recorded():
    """What is recorded now: {path: bytes}."""
    found = {}
    for path in RECORDED:
        if os.path.exists(path):
            with open(path, 'rb') as file:
                found[path] = file.read()
    return found


@pytest.mark.slow
def test_a_quick_run_measures_every_kind_of_row(tool, tmp_path):
    before = recorded()
    result = tool('bench.py', '--quick', python=sys.executable, env={'XDG_CACHE_HOME': str(tmp_path)})  # no peers there
    assert result.returncode == 0, result.stderr
    rows = {line[:52].strip(): line[52:].split() for line in result.stdout.splitlines()[1:]}
    for name in ('limit sgemm OpenBLAS', 'limit memory copy', 'MC mnist/lenet_ip T=4 stream',
                 'MC cifar10/nin T=4 replicate', 'MC mnist/lenet_all T=4 naive', 'MC mnist/lenet_ip T=4 antithetic', 'data whitening GCN and ZCA',
                 'start-up mc_eval.py',
                 'data LMDB of floats write, hash and sync', 'processes mnist/lenet_all T=2 --jobs 2'):
        assert float(rows[name][0]) > 0, name
    for name in ('MC cifar10/nin T=4 baal', 'MC cifar10/nin T=4 PyTorch, tuned', 'MC mnist/lenet_ip T=4 torch-uncertainty',
                 'training mnist/lenet_none PyTorch'):
        assert rows[name][0] == '-' and ' '.join(rows[name][1:]).startswith('not installed'), name
    if not sets.manifest('mnist'):
        assert 'not ready' in ' '.join(rows['training mnist/lenet_none driver'])
    assert recorded() == before


def test_a_part_of_the_table(tool):
    result = tool('bench.py', '--quick', '--only', 'data*read', python=sys.executable)
    assert result.returncode == 0, result.stderr
    assert [line[:52].strip() for line in result.stdout.splitlines()] == [
        'what', 'data LMDB of floats plain copy, synced', 'data LMDB of floats read']


@pytest.mark.slow
def test_growth_of_a_quick_run(tool):
    prepared('mnist')
    result = tool('bench.py', '--growth', '--quick', python=sys.executable)
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    assert len(rows) == 12
    assert all(float(row[5]) > 0 and 20 < float(row[-1]) < 2000 for row in rows)


@pytest.mark.parametrize('words, parts', [
    (('--rounds', '0'), ['--rounds is 0']),
    (('--rounds', '0', '--growth'), ['--rounds is 0']),
    (('--quick', '--record'), ['--record', '--quick']),
    (('--only', 'MC*', '--growth'), ['--growth']),
    (('--clock', 'cpu', '--growth'), ['--clock', '--growth']),
    (('--only', 'nothing', '--quick'), ['nothing is called nothing', 'MC']),
])
def test_refusals_are_one_clear_line(tool, words, parts):
    result = tool('bench.py', *words, python=sys.executable)
    one_clear_line(result, *parts)
    assert result.returncode == 2 and result.stdout == ''


def test_interrupted_nothing_is_written(tmp_path):
    before = recorded()
    process = subprocess.Popen([sys.executable, os.path.join(ROOT, 'tools', 'bench.py'), '--record', '--rounds', '1'],
                               env=dict(os.environ, TMPDIR=str(tmp_path)), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, universal_newlines=True)
    give_up = time.time() + 60
    while not os.listdir(str(tmp_path)) and time.time() < give_up:  # it has begun: its folder for temporary files
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err.splitlines()[-1] == 'bench.py: interrupted' and 'Traceback' not in err
    assert out == '' and recorded() == before and os.listdir(str(tmp_path)) == []
