"""Where runs live: one folder a training run, its evaluations below it.

    config.json       what the run is: net, data and their checksums, seed, T ...; compared when it goes on
    provenance.json   what computed it: versions, commit
    *.prototxt        the nets and solvers that are run
    curve.csv         the errors at the evaluation points
    snapshots/        one folder a snapshot; see bcnn.snapshots
    stageN.caffemodel the weights after each stage but the last (DSN)
    status.json       where a running process is, for tools/status.py
    diverged.json     only where the training diverged
    final.caffemodel  the weights at the end
    done.json         written last: a run with it is complete
"""

import contextlib
import errno
import fcntl
import glob
import json
import os
import re
import socket
import subprocess
import time
import zipfile
import zlib

import numpy as np

from . import files
from .errors import UserError

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNS = os.path.join(ROOT, 'runs')
FINAL = 'final.caffemodel'
CONFIG, PROVENANCE, CURVE, STATUS = 'config.json', 'provenance.json', 'curve.csv', 'status.json'
DIVERGED, DONE, LOCK = 'diverged.json', 'done.json', 'lock'
SNAPSHOTS, STATE = 'snapshots', 'state.json'
SNAPSHOT = re.compile(r'stage(\d+)-(\d{8,})$')


def folder(dataset, net, seed, runs=RUNS):
    """The folder of a training run."""
    return os.path.join(runs, '%s-%s-seed%d' % (dataset, net, seed))


def furthest(dataset, net, seed, runs=RUNS):
    """The folder of the complete run that went furthest, of train.py or of a profile of run_all.sh; None if none is."""
    name = os.path.basename(folder(dataset, net, seed))
    found = [(sum(read_json(path)['iterations']), os.path.dirname(path))
             for pattern in ((name, DONE), ('*', name, DONE))
             for path in glob.glob(os.path.join(glob.escape(runs), *pattern))]
    return max(found)[1] if found else None


def evaluations(weights, name, runs=RUNS):
    """The folder for evaluations of these weights: below their run, or one of its own for weights from elsewhere."""
    run = os.path.dirname(os.path.abspath(weights))
    if os.path.exists(os.path.join(run, DONE)):
        return os.path.join(run, 'mc')
    stem = os.path.splitext(os.path.basename(weights))[0]
    return os.path.join(runs, '%s-%s' % (name.replace('/', '-'), stem), 'mc')


def find(runs=RUNS):
    """The folders of all training runs, those of run_all.sh's profiles one level lower; in order of name."""
    configs = [path for below in (('*',), ('*', '*')) for path in glob.glob(os.path.join(glob.escape(runs), *below + (CONFIG,)))]
    return sorted(os.path.dirname(path) for path in configs
                  if os.path.exists(os.path.join(os.path.dirname(path), PROVENANCE)))


def stored(run):
    """[(stage, iteration, path)] of the snapshots in a run's folder, oldest first."""
    place = os.path.join(run, SNAPSHOTS)
    names = os.listdir(place) if os.path.isdir(place) else ()
    found = [(SNAPSHOT.match(name), os.path.join(place, name)) for name in names]
    # One that is half removed has lost its state first.
    return sorted((int(match.group(1)), int(match.group(2)), path) for match, path in found
                  if match and os.path.exists(os.path.join(path, STATE)))


# --- one process a run -----------------------------------------------------------------------

PATIENCE = 3.0  # seconds for the children of a killed process to go


@contextlib.contextmanager
def lock(run, doing='being trained', waiting=None):
    """Holds a run's lock; refuses at once, with its process id, while another process holds it.

    Children inherit the lock, so it is free only when they are gone too. Those of a process
    ended by kill -9 need a moment for that, which is waited for. doing: what the holder does
    to the folder. waiting: called with the message once, and then the lock is waited for.
    """
    with files.explained(run):
        descriptor = os.open(os.path.join(run, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        give_up = time.time() + PATIENCE
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            holder = _holder(descriptor)
            if holder and (holder[1] != socket.gethostname() or _alive(holder[0])) or time.time() > give_up:
                message = '%s: %s by process %s' % (run, doing, '%d on %s' % holder if holder else 'unknown')
                if waiting is None:
                    raise UserError('%s: wait for it, or stop it first' % message)
                waiting(message)
                _wait_lock(descriptor)
                break
            time.sleep(0.05)
        _write_holder(descriptor, '%d %s' % (os.getpid(), socket.gethostname()))
        try:
            yield
        finally:
            _write_holder(descriptor, '')
    finally:
        os.close(descriptor)


def holder(run):
    """(process id, host) of the process that trains in this folder, or None."""
    try:
        descriptor = os.open(os.path.join(run, LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _try_lock(descriptor, fcntl.LOCK_SH) else _holder(descriptor)
    finally:
        os.close(descriptor)


def _try_lock(descriptor, kind):
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise UserError('this disk knows no locks (%s): choose another --out' % error.strerror)
    return True


def _wait_lock(descriptor):
    while not _try_lock(descriptor, fcntl.LOCK_EX):  # not one blocking call: a signal should end the wait
        time.sleep(0.5)


def _holder(descriptor):
    pid, _, host = os.pread(descriptor, 300, 0).decode('utf-8', 'replace').partition(' ')
    return (int(pid), host) if pid.isdigit() else None


def _write_holder(descriptor, text):
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _alive(pid):
    """Whether a process runs; one that is dead but not yet collected by its parent does not."""
    try:
        with open('/proc/%d/stat' % pid) as file:
            return file.read().rsplit(')', 1)[1].split()[0] not in 'ZX'
    except (OSError, IndexError):
        return False


# --- records ---------------------------------------------------------------------------------

def read_json(path):
    """The dictionary in a JSON file of ours, None where there is no file; one line if it is damaged."""
    try:
        with open(path) as file:
            found = json.load(file)
        if isinstance(found, dict):
            return found
        raise ValueError('not an object')
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise UserError('%s: damaged (%s): remove its folder to start anew' % (path, error))


def write_json(path, value):
    """Writes a dictionary, whole or not at all."""
    with files.atomic(path) as temporary, open(temporary, 'w') as file:
        json.dump(value, file, indent=1)
        file.write('\n')


def read_arrays(path, advice):
    """{name: array} of an .npz file of ours; one line with the advice if it is damaged."""
    try:
        zipfile.ZipFile(path).close()  # numpy's own attempt at a damaged file leaves a traceback behind
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError('%s: not readable (%s): %s' % (path, ' '.join(str(error).split()), advice))


def provenance(about):
    """What computes a run: `about` from engine.describe() without paths, and the commit; nothing of this machine."""
    git = subprocess.run(['git', '-C', ROOT, 'rev-parse', 'HEAD'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         universal_newlines=True) if os.path.exists(os.path.join(ROOT, '.git')) else None
    commit = git.stdout.strip() if git and git.returncode == 0 else None
    return dict({name: value for name, value in about.items() if name != 'caffe_path'}, commit=commit)


def differences(theirs, mine):
    """['T 50, here 10', ...]: where two configs differ, nested names joined by dots."""
    found = []
    for name in list(mine) + [name for name in theirs if name not in mine]:
        old, new = theirs.get(name), mine.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            found += ['%s.%s' % (name, text) for text in differences(old, new)]
        elif old != new:
            found.append('%s %s, here %s' % (name, _short(old), _short(new)))
    return found


def _short(value):
    text = 'none' if value is None else str(value)
    return text if len(text) < 40 else text[:12] + '...'


def sweep(run):
    """Removes what killed writers left; only for the holder of the lock."""
    for place in (run, os.path.join(run, SNAPSHOTS)):
        for left in glob.glob(os.path.join(glob.escape(place), '.*')):
            files.remove(left)
