"""The parts of the training driver that need no Caffe: points, curve, locks, records, status."""

import json
import multiprocessing
import os
import signal
import socket
import time

import pytest

from bcnn.errors import UserError
from bcnn.system import locks, places, store
from bcnn.training import curve, display
from bcnn.workflow import status


def due(text, last, interval=500, upto=None):
    wanted = curve.points(text, interval)
    return [n for n in range(0, (upto or last) + 1) if wanted(n, last)]


# --- evaluation points

def test_points():
    assert due('log', 3000) == [100, 200, 500, 1000, 2000, 3000]
    assert due('log', 50) == [50]
    assert due('log', 1000) == [100, 200, 500, 1000]
    assert due('paper', 1200) == [500, 1000, 1200]
    assert due('none', 1200) == []
    assert due('20,7,7', 1200) == [7, 20]
    assert due('log:1', 10500) == [100, 1000, 10000, 10500]
    assert due('log:3', 1000) == [100, 215, 464, 1000]
    assert len(due('log:100', 1000)) == 101  # a decade and its end


@pytest.mark.parametrize('text', ['', 'lg', 'log:', 'log:0', 'log:x', 'log:1000', '0', '5,0', '-1', '1.5', '10;20'])
def test_bad_points_are_one_line(text):
    with pytest.raises(UserError, match='log, log:N') as caught:
        curve.points(text, 500)
    assert '\n' not in str(caught.value)


def test_log_spaced():
    assert [n for n in range(3000) if curve.log_spaced(n)] == [100, 200, 500, 1000, 2000]


# --- curve.csv

def test_a_curve_is_read_as_it_was_written(tmp_path):
    path = str(tmp_path / 'curve.csv')
    assert curve.read(path) == []
    rows = [curve.row(1, 100, 0.0099256481, [2.0, 1.0], (771, None, None), 10000, 50),
            curve.row(2, 200, 0.1, [1 / 3.0], (952, 832, 833), 10000, 50)]
    curve.write(path, rows)
    assert open(path).read() == (
        'stage,iteration,lr,train_loss,standard_errors,mc_errors,mc_errors_scores,n,T\n'
        '1,100,0.00992565,1.5,771,,,10000,\n2,200,0.1,0.333333,952,832,833,10000,50\n')
    assert curve.read(path) == rows
    assert [curve.percent(row) for row in rows] == ['Standard 7.71%', 'Standard 9.52%, MC 8.32%']


def test_a_curve_of_adaptive_points_says_so(tmp_path):
    path = str(tmp_path / 'curve.csv')
    rows = [curve.row(1, 200, 0.1, [0.5], (952, 832, None), 10000, 50, (0.01, 7.125))]
    curve.write(path, rows)
    assert open(path).read() == (
        'stage,iteration,lr,train_loss,standard_errors,mc_errors,mc_errors_scores,n,T,adaptive,passes\n'
        '1,200,0.1,0.5,952,832,,10000,50,0.01,7.12\n')
    assert curve.read(path) == rows


HEAD = ','.join(curve.COLUMNS)


@pytest.mark.parametrize('text', ['', 'a,b\n1,2\n', HEAD + '\n1,2\n', HEAD + '\nx,2,,,,,,,\n',
                                  HEAD + ',adaptive,passes\n1,2,0.1,0.5,9,8,,10,50,-1,7\n',
                                  HEAD + '\n1,2,0.1,0.5,9,8,,10,50,0.01,7\n'])
def test_a_foreign_curve_is_refused(tmp_path, text):
    (tmp_path / 'curve.csv').write_text(text)
    with pytest.raises(UserError, match='curve.csv: not a curve'):
        curve.read(str(tmp_path / 'curve.csv'))


# --- lock

def hold(run, ready, seconds):
    with places.lock(run):
        ready.set()
        time.sleep(seconds)


def held(run, seconds=60):
    context = multiprocessing.get_context('fork')
    ready = context.Event()
    process = context.Process(target=hold, args=(run, ready, seconds))
    process.start()
    assert ready.wait(20)
    return process


def test_a_lock_keeps_a_second_process_out_at_once(tmp_path):
    run = str(tmp_path)
    assert places.holder(run) is None
    process = held(run)
    try:
        assert places.holder(run) == (process.pid, socket.gethostname())
        begin = time.time()
        with pytest.raises(UserError, match='being trained by process %d on' % process.pid):
            with places.lock(run):
                pass
        assert time.time() - begin < 1
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    assert places.holder(run) is None
    with places.lock(run):
        assert places.holder(run)[0] == os.getpid()
    assert places.holder(run) is None


def test_a_lock_waits_for_the_children_of_a_killed_process(tmp_path):
    """They hold it a moment longer than the process that it names."""
    run, context = str(tmp_path), multiprocessing.get_context('fork')
    ready = context.Event()

    def parent():
        with places.lock(run):
            context.Process(target=time.sleep, args=(0.5,)).start()
            ready.set()
            time.sleep(60)

    process = context.Process(target=parent)
    process.start()
    assert ready.wait(20)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    begin = time.time()
    with places.lock(run):
        assert 0.1 < time.time() - begin < locks.PATIENCE


# --- records

def test_differences_are_shown_by_name():
    old = {'seed': 1, 'data': {'train': 'a', 'test': 'b'}, 'gone': 5}
    new = {'seed': 2, 'data': {'train': 'a', 'test': 'c' * 64}, 'T': None}
    assert store.differences(old, new) == ['seed 1, here 2', 'data.test b, here cccccccccccc...', 'gone 5, here none']
    assert store.differences(old, dict(old)) == []


@pytest.mark.parametrize('text', ['{', '[]', ''])
def test_a_damaged_record_is_one_line(tmp_path, text):
    (tmp_path / 'config.json').write_text(text)
    with pytest.raises(UserError, match='config.json: damaged'):
        store.read_json(str(tmp_path / 'config.json'))


def test_sweep_removes_hidden_leftovers_only(tmp_path):
    for name in ('.curve.csv.tmp.x', 'snapshots/.stage1-00000007.tmp.y/z', 'snapshots/stage1-00000007/state.json',
                 'curve.csv'):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('')
    places.sweep(str(tmp_path))
    assert sorted(os.listdir(str(tmp_path))) == ['curve.csv', 'snapshots']
    assert places.stored(str(tmp_path)) == [(1, 7, str(tmp_path / 'snapshots' / 'stage1-00000007'))]
    assert os.listdir(str(tmp_path / 'snapshots')) == ['stage1-00000007']


# --- status

def fake(runs_folder, name, iterations=(1000,), **records):
    """A run folder as the driver leaves it."""
    run = runs_folder / name
    run.mkdir()
    for file, value in dict({'config': {'iterations': list(iterations)}, 'provenance': {}}, **records).items():
        (run / (file + '.json')).write_text(json.dumps(value))
    return run


def test_status_of_all_states(tmp_path):
    with pytest.raises(UserError, match='no training runs here'):
        list(status.lines(str(tmp_path)))
    done = fake(tmp_path, 'done', done={})
    curve.write(str(done / 'curve.csv'), [curve.row(1, 1000, 0.01, [1], (100, 90, 91), 10000, 50)])
    fake(tmp_path, 'diverged', diverged={'iteration': 12})
    stopped = fake(tmp_path, 'stopped', iterations=(10, 20, 30))
    for name in ('stage1-00000010', 'stage2-00000005'):
        (stopped / 'snapshots' / name).mkdir(parents=True)
        (stopped / 'snapshots' / name / 'state.json').write_text('')
    now = {'stage': 1, 'iteration': 250, 'iterations_a_second': 2.0, 'time': time.time()}
    running = fake(tmp_path, 'running', status=now)
    fake(tmp_path, 'damaged', config=[])
    process = held(str(running))
    try:
        found = {line.split()[0]: line for line in status.lines(str(tmp_path))}
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    assert found['done'].split()[1] == 'done' and 'Standard 1.00%, MC 0.90% at 1000' in found['done']
    assert 'diverged at 12' in found['diverged']
    assert 'stopped' in found['stopped'][8:] and 'stage 2, 5 of 20' in found['stopped']
    assert 'running, process %d' % process.pid in found['running']
    assert '250 of 1000' in found['running'] and '2.0 it/s' in found['running'] and ' 6:15' in found['running']
    assert found['damaged'].split()[1] == 'damaged'


# --- watching

def test_a_line_a_minute_and_the_status_file(tmp_path, monkeypatch, capsys):
    now = [1000.0]
    monkeypatch.setattr(display.time, 'monotonic', lambda: now[0])
    shown = display.Display(str(tmp_path), (10000, 5000))
    shown.at(2, 0)
    for iteration in range(1, 1301):
        now[0] += 0.125
        shown.step(iteration, 0.5, lambda: 0.025)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ['stage 2, iteration 480 of 5000, loss 0.5, lr 0.025, 8.0 it/s, 9:25 left',
                     'stage 2, iteration 960 of 5000, loss 0.5, lr 0.025, 8.0 it/s, 8:25 left']
    found = json.loads((tmp_path / 'status.json').read_text())
    assert found['stage'] == 2 and 1200 <= found['iteration'] <= 1300
    with shown.measuring(0.5):
        now[0] += 1000
        assert json.loads((tmp_path / 'status.json').read_text())['measuring']
        shown.measured(0.25)
        assert json.loads((tmp_path / 'status.json').read_text())['measured'] == 0.25
    shown.step(1301, 0.5, lambda: 0.025)
    assert '8.0 it/s' in capsys.readouterr().out  # time for measuring is no part of the speed


def test_rate():
    assert display.rate(30.06) == '30.1 it/s' and display.rate(0.5) == '2.00 s/it'
