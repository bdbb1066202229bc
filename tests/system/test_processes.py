"""Child processes: their memory is limited, half a result is a death, and a stopped orphan holds no lock for ever."""

import gc
import multiprocessing.connection
import os
import resource
import signal
import struct
import subprocess
import sys
import time

import pytest

from bcnn.errors import CaffeError, UserError
from bcnn.system import locks, places, processes
from conftest import ROOT

# --- memory


@pytest.mark.parametrize('text, amount', [('8G', 8 << 30), ('500 M', 500 << 20), ('1000', 1000), ('2TiB', 2 << 40), ('0', None)])
def test_an_amount_of_memory(monkeypatch, text, amount):
    monkeypatch.setenv(processes.MEMORY, text)
    assert processes.memory_limit() == amount


@pytest.mark.parametrize('text', ['lots', '-1', '1.5G', '9' * 20, '8X'])
def test_no_amount_is_one_line(monkeypatch, text):
    monkeypatch.setenv(processes.MEMORY, text)
    with pytest.raises(UserError, match=processes.MEMORY):
        processes.call(int, 1)


def test_the_default_is_what_the_machine_has(monkeypatch):
    monkeypatch.delenv(processes.MEMORY, raising=False)
    total = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    assert 0 < processes.memory_limit() and (processes.memory_limit() < 2 * total or 'SwapTotal' in open('/proc/meminfo').read())


def test_a_child_cannot_have_more_than_its_limit(monkeypatch):
    with open('/proc/self/status') as status:  # a child begins with what the tests before have left in this process
        used = next(int(line.split()[1]) for line in status if line.startswith('VmData'))
    monkeypatch.setenv(processes.MEMORY, '%dM' % (used // 1024 + 500))
    assert processes.call(lambda: len(bytearray(100 << 20))) == 100 << 20
    with pytest.raises(MemoryError):
        processes.call(lambda: len(bytearray(1 << 30)))
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY  # and its parent has none


def soft():
    return resource.getrlimit(resource.RLIMIT_DATA)[0]


def test_a_gpu_lifts_the_limit_of_a_child_and_of_its_children(monkeypatch):
    """CUDA reserves address space by the terabyte; bcnn.engine lifts the limit before it opens a GPU."""
    monkeypatch.setenv(processes.MEMORY, '500M')

    def lifted():
        processes.lift_memory_limit()
        return soft()

    assert processes.call(soft) == 500 << 20
    assert processes.call(lifted) == resource.RLIM_INFINITY
    assert processes.call(lambda: processes.call(lifted)) == resource.RLIM_INFINITY


# --- a worker that dies with half its result sent

def half_a_result():
    """What the kernel's OOM killer may leave in the pipe."""
    for thing in gc.get_objects():
        if isinstance(thing, multiprocessing.connection.Connection) and not thing.closed and thing.writable:
            os.write(thing.fileno(), struct.pack('!i', 1000) + b'half')
    os.kill(os.getpid(), signal.SIGKILL)


def test_half_a_result_is_a_death():
    with pytest.raises(CaffeError, match='signal 9'):
        processes.call(half_a_result)


# --- signals

@pytest.fixture
def ends_with_a_signal(monkeypatch):
    """Children in whose last moment, with all results received, this process gets a SIGINT."""
    end = processes._Child.end

    def interrupted(self):
        os.kill(os.getpid(), signal.SIGINT)
        end(self)

    monkeypatch.setattr(processes._Child, 'end', interrupted)


def test_a_signal_while_children_are_being_ended_is_not_lost(ends_with_a_signal):
    with pytest.raises(KeyboardInterrupt):
        processes.call(int, 1)
    done = []
    with pytest.raises(KeyboardInterrupt):
        for task, _ in processes.work(lambda: int, [1, 2, 3], jobs=2):
            done.append(task)
    assert sorted(done) == [1, 2, 3]


def test_it_comes_to_the_handler_that_was_there_before(ends_with_a_signal):
    seen = []
    old = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        assert processes.call(int, 1) == 1 and seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, old)


def test_a_signal_that_meets_the_result_is_not_lost():
    def last_act():
        os.kill(os.getppid(), signal.SIGINT)
        return 'done'

    for _ in range(20):  # it arrives before the result, with it or after it
        with pytest.raises(KeyboardInterrupt):
            processes.call(last_act)


def test_a_child_may_answer_a_signal_in_its_own_way():
    def answer():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(0.2)  # until it has been passed on, and ignored
        return 'stopped after iteration 7'

    assert processes.call(answer, answers=bool) == 'stopped after iteration 7'
    with pytest.raises(KeyboardInterrupt):
        processes.call(answer)


# --- stopped orphans

HOLD = '''
import os, signal, sys, time
sys.path.insert(0, %r)
from bcnn.system import locks, places
with %s:
    if os.fork() == 0:           # a child that is stopped before it can ask to die with its parent
        parent = os.getppid()
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)              # continued: bcnn.system.processes looks for its parent here
    print('holding', flush=True)
    time.sleep(60)
'''


def orphan(lock):
    """Leaves a stopped child that has the lock, of a parent that is dead."""
    process = subprocess.Popen([sys.executable, '-c', HOLD % (ROOT, lock)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b'holding\n'
    time.sleep(0.2)
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_stopped_orphan_of_a_training_run_frees_its_lock(tmp_path):
    orphan('places.lock(%r)' % str(tmp_path))
    begin = time.monotonic()
    with places.lock(str(tmp_path)):
        assert time.monotonic() - begin < locks.PATIENCE


def test_a_stopped_orphan_of_an_evaluation_frees_its_lock(tmp_path):
    path = str(tmp_path / 'lock')
    orphan('locks.lock(%r)' % path)
    waited, begin = [], time.monotonic()
    with locks.lock(path, waited.append):
        assert not waited and time.monotonic() - begin < locks.PATIENCE


def wait_for_stop(pid):
    deadline = time.monotonic() + 10
    while locks._state(pid) != 'T':
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_job_that_its_user_has_stopped_stays_stopped(tmp_path):
    """Ctrl-Z on a command that holds a lock is nobody else's business."""
    process = subprocess.Popen([sys.executable, '-c', HOLD % (ROOT, 'places.lock(%r)' % str(tmp_path))], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b'holding\n'
        process.send_signal(signal.SIGSTOP)
        wait_for_stop(process.pid)
        with pytest.raises(UserError, match='being trained by process %d' % process.pid):
            with places.lock(str(tmp_path)):
                pass
        time.sleep(0.1)
        assert locks._state(process.pid) == 'T'
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        with places.lock(str(tmp_path)):  # wakes the child, which ends
            pass
