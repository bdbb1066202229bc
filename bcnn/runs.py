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
    checksums.json    of the files that stay as they are; see tools/verify.py
    done.json         written last: a run with it is complete
"""

import contextlib
import errno
import fcntl
import glob
import hashlib
import io
import json
import os
import re
import socket
import subprocess
import time
import zipfile

import numpy as np

from . import children, files
from .errors import UserError

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUNS = os.path.join(ROOT, 'runs')
FINAL = 'final.caffemodel'
CONFIG, PROVENANCE, CURVE, STATUS = 'config.json', 'provenance.json', 'curve.csv', 'status.json'
DIVERGED, DONE, LOCK, CHECKSUMS = 'diverged.json', 'done.json', 'lock', 'checksums.json'
MAX_JSON = 64 << 20  # bytes: no record of ours comes near
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
    configs = [path for below in (('*',), ('*', '*'))
               for path in glob.glob(os.path.join(glob.escape(runs), *below + (CONFIG,)))]
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
        give_up = time.monotonic() + PATIENCE
        while not _try_lock(descriptor, fcntl.LOCK_EX):
            holder = files.holder(descriptor)
            if holder and (holder[1] != socket.gethostname() or files.alive(holder[0])) or time.monotonic() > give_up:
                message = '%s: %s by process %s' % (run, doing, '%d on %s' % holder if holder else 'unknown')
                if waiting is None:
                    raise UserError('%s: wait for it, or stop it first' % message)
                waiting(message)
                _wait_lock(descriptor)
                break
            files.wake_orphans(descriptor)
            time.sleep(files.POLL)
        files.write_holder(descriptor)
        try:
            yield
        finally:
            files.write_holder(descriptor, '')
    finally:
        os.close(descriptor)


def holder(run):
    """(process id, host) of the process that trains in this folder, or None."""
    try:
        descriptor = os.open(os.path.join(run, LOCK), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _try_lock(descriptor, fcntl.LOCK_SH) else files.holder(descriptor)
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


# --- records ---------------------------------------------------------------------------------

def read_json(path):
    """The dictionary in a JSON file of ours, None where there is no file; one line if it is damaged."""
    try:
        with open(path) as file:
            text = file.read(MAX_JSON + 1)
        if len(text) > MAX_JSON:
            raise ValueError('too large')
        found = json.loads(text)
        if isinstance(found, dict):
            return found
        raise ValueError('not an object')
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise UserError('%s: damaged (%s): remove its folder to start anew' % (path, error))


def write_json(path, value):
    """Writes a dictionary, whole or not at all."""
    with files.atomic(path) as temporary, open(temporary, 'w') as file:
        json.dump(value, file, indent=1)
        file.write('\n')


def write_arrays(path, arrays):
    """Writes {name: array} as an .npz file, whole or not at all."""
    packed = io.BytesIO()  # numpy writing to a full disk itself leaves a traceback behind
    np.savez(packed, **arrays)
    with files.atomic(path) as temporary, open(temporary, 'wb') as file:
        file.write(packed.getbuffer())


def read_arrays(path, advice):
    """{name: array} of an .npz file of ours; one line with the advice if it is damaged."""
    try:
        with zipfile.ZipFile(path) as packed:  # numpy's own attempt at a damaged file leaves a traceback behind
            size = sum(part.file_size for part in packed.infolist())
        if size > (children.memory_limit() or size):
            raise ValueError('it unpacks to %d MB, more than the memory here' % (size >> 20))
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):  # numpy gives the bytes of parts that are no arrays
                raise ValueError('%r in it is no array' % name)
        return arrays
    except FileNotFoundError:
        raise UserError('%s: no such file: %s' % (path, advice))
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise many kinds on damaged files
        raise UserError('%s: not readable (%s): %s'
                        % (path, ' '.join(str(error).split()) or type(error).__name__, advice))


def provenance(about):
    """What computes a run: `about` from engine.describe() without paths, and the commit; nothing of this machine.

    modified: whether tracked files differ from that commit; None where there is none.
    """
    commit = _git('rev-parse', 'HEAD') or None
    modified = bool(_git('status', '--porcelain', '--untracked-files=no')) if commit else None
    kept = {name: value for name, value in about.items() if name != 'caffe_path'}
    return dict(kept, commit=commit, modified=modified)


def short_commit(about):
    """Ten digits of a provenance's commit, as the tables have it; None where the project was no checkout."""
    return (about.get('commit') or '')[:10] or None


def _git(*words):
    """What a git command says of this project; '' where there is no git, or it fails."""
    if not os.path.exists(os.path.join(ROOT, '.git')):
        return ''
    try:
        done = subprocess.run(('git', '-C', ROOT) + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, universal_newlines=True)
    except OSError:
        return ''
    return done.stdout.strip() if done.returncode == 0 else ''


def sha256(path):
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        for chunk in iter(lambda: file.read(1 << 20), b''):
            digest.update(chunk)
    return digest.hexdigest()


def identity(config):
    """The SHA-256 of what a config says; the number of iterations is a target, which does not change what a run is."""
    said = {name: value for name, value in config.items() if name != 'iterations'}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def write_checksums(folder, names):
    """Writes checksums.json: the SHA-256 of these files in a folder, for tools/verify.py."""
    write_json(os.path.join(folder, CHECKSUMS), {name: sha256(os.path.join(folder, name)) for name in sorted(names)})


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
