"""The faults: each disturbs a running command once and tells what came of it.

A fault is a function (trial) -> Outcome; it leaves no process of the trial behind and takes away
what it did to the machine (mounts, renamed folders), so that afterwards the same command can run again.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = 'BCNN_FAULT_TRIAL'  # in the environment of every process of a trial

# exit: None where it was killed by us; said: its stderr; injected: whether the fault happened before the end.
Outcome = namedtuple('Outcome', 'exit said injected')


class Started:
    """A started command, in a session of its own; everything it starts has our mark."""

    def __init__(self, target, mark, clock=None, **options):
        words = target.command()
        if words[0].endswith('.py'):
            words = [sys.executable] + ([os.path.join(HERE, 'clock.py'), str(clock)] if clock is not None else []) + words
        self.said, self.started = tempfile.TemporaryFile(), time.monotonic()
        env = dict(os.environ, **dict(target.env, **{MARK: mark}))
        self.process = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=self.said, start_new_session=True, cwd=target.place, **options)

    def runs_for(self, seconds):
        """Whether it is still running after so many seconds."""
        try:
            self.process.wait(seconds)
            return False
        except subprocess.TimeoutExpired:
            return True

    def age(self):
        """Seconds since it was started."""
        return time.monotonic() - self.started

    def end(self, injected=True, seconds=300):
        """Its Outcome when it has ended by itself; one that does not end is killed and said to hang."""
        if self.runs_for(seconds):
            self.signal_group(signal.SIGKILL)
            self.process.wait()
            return Outcome('hangs', self.words(), injected)
        return Outcome(self.process.returncode, self.words(), injected)

    def words(self):
        self.said.seek(0)
        return self.said.read().decode('utf-8', 'replace')

    def signal_group(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def workers(self):
        """The process ids of what it has started."""
        return [pid for pid in marked(self_mark(self.process.pid)) if pid != self.process.pid]


def self_mark(pid):
    with contextlib.suppress(OSError), open('/proc/%d/environ' % pid, 'rb') as file:
        for item in file.read().split(b'\0'):
            if item.startswith(MARK.encode() + b'='):
                return item.split(b'=', 1)[1].decode()
    return None


def marked(mark):
    """The ids of all living processes of a trial."""
    found = []
    for name in os.listdir('/proc') if mark else ():
        if name.isdigit() and self_mark(int(name)) == mark:
            found.append(int(name))
    return found


def killed(started):
    started.process.wait()
    return Outcome(None, started.words(), True)


# --- processes ---------------------------------------------------------------------------------

def kill_group(trial):
    """kill -9 to all its processes at once: power cut, batch system."""
    started = trial.start()
    if not started.runs_for(trial.moment()):
        return started.end(False)
    started.signal_group(signal.SIGKILL)
    return killed(started)


def kill_main(trial):
    """kill -9 to the command alone: its children have to notice."""
    started = trial.start()
    if not started.runs_for(trial.moment()):
        return started.end(False)
    started.process.kill()
    return killed(started)


def kill_worker(trial):
    """kill -9 to one of its children, as the kernel does when memory runs out."""
    started = trial.start()
    deadline = time.monotonic() + trial.moment()
    while started.runs_for(max(0.0, deadline - time.monotonic()) + 0.002):
        workers = started.workers()
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(trial.rng.choice(workers), signal.SIGKILL)
            return started.end()
    return started.end(False)


def stop_and_kill(trial):
    """All its processes are stopped, then the command is killed: a child just forked may stay stopped."""
    started = trial.start()
    if not started.runs_for(trial.moment()):
        return started.end(False)
    started.signal_group(signal.SIGSTOP)
    time.sleep(0.05)
    started.process.kill()
    return killed(started)


def terminate(trial):
    """SIGTERM to the command, as a batch system does before it kills."""
    started = trial.start()
    if not started.runs_for(trial.moment()):
        return started.end(False)
    # Ctrl-C while Python itself still loads its modules gives Python's own traceback.
    started.process.send_signal(trial.rng.choice([signal.SIGTERM, signal.SIGINT]) if started.age() > 2 else signal.SIGTERM)
    outcome = started.end()
    said_too_much = 'Traceback' in outcome.said
    return outcome._replace(exit=None) if outcome.exit in (130, 143, -15) and not said_too_much else outcome


def two_at_once(trial):
    """A second copy of the command at the same time; it may wait or refuse."""
    both = [trial.start()]
    time.sleep(trial.rng.choice([0, 0, 0.3 * trial.moment()]))
    both.append(trial.start())
    outcomes = [started.end() for started in both]
    bad = [outcome for outcome in outcomes if outcome.exit != 0]
    return bad[0] if bad else outcomes[0]


# --- disks and folders ---------------------------------------------------------------------------

def disk_full(trial):
    """Its folder is a disk that is too small."""
    with trial.disk(kilobytes=int(trial.size() / 1024.0 * trial.rng.uniform(0.0, 1.1)) + 20):
        return trial.start().end()


def file_limit(trial):
    """A limit on the size of files (ulimit -f), the ordinary user's full disk."""
    most = int(max(trial.sizes()) * trial.rng.uniform(0.0, 1.0)) + 1
    return trial.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))).end()


def read_only(trial):
    """The disk has become read-only, after a first part of the work was done and killed."""
    with trial.disk(kilobytes=0):
        started = trial.start()
        if started.runs_for(trial.moment()):
            started.signal_group(signal.SIGKILL)
        started.process.wait()
        trial.wait_for_end()
        trial.remount('ro')
        before = trial.target.result()
        outcome = trial.start().end()
        if trial.target.result() != before:
            outcome = outcome._replace(said=outcome.said + 'Traceback: a read-only disk was written to')
        trial.remount('rw')
    return outcome


def inputs_vanish(trial):
    """What it reads is moved away while it runs, and is back for the next run."""
    started = trial.start()
    running = started.runs_for(trial.moment())
    aside = trial.target.inputs + '.aside'
    os.rename(trial.target.inputs, aside)
    try:
        return started.end(running)
    finally:
        os.rename(aside, trial.target.inputs)


# --- the clock -----------------------------------------------------------------------------------

def clock_jumps(trial):
    """The time of day is set back and forth; a kill in the midst, and then files with times of other years."""
    started = trial.start(clock=trial.rng.randrange(1 << 30))
    if not started.runs_for(trial.moment()):
        return started.end()
    started.signal_group(signal.SIGKILL)
    started.process.wait()
    trial.wait_for_end()
    for folder, _, names in os.walk(trial.target.out):
        for name in names:
            when = trial.rng.uniform(0, 4e9)
            with contextlib.suppress(OSError):
                os.utime(os.path.join(folder, name), (when, when), follow_symlinks=False)
    return trial.start(clock=trial.rng.randrange(1 << 30)).end()


FAULTS = {'kill -9, all processes': kill_group, 'kill -9, the command alone': kill_main, 'kill -9, a worker': kill_worker,
          'stopped, then killed': stop_and_kill, 'SIGTERM or SIGINT': terminate, 'two at once': two_at_once,
          'disk full': disk_full, 'file size limit': file_limit, 'disk read-only': read_only,
          'inputs vanish': inputs_vanish, 'clock jumps': clock_jumps}
NEED_DISK = ('disk full', 'disk read-only')
NEED_WORKERS = ('kill -9, a worker',)
