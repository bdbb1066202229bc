"""Files that are whole or not there: atomic writes, locks, and disk errors that say what to do.

A result is written beside its place, synced, and renamed; a process killed at any moment
leaves the old result or none, never half of one.
"""

import contextlib
import errno
import fcntl
import glob
import os
import shutil
import signal
import socket
import tempfile
import time

from .errors import UserError


# --- whole or not there ------------------------------------------------------------------

@contextlib.contextmanager
def atomic(path, folder=False):
    """A temporary path beside `path` to write to; renamed to `path` when the block ends well.

    With folder=True it is a new empty folder, which replaces a folder at `path`. When the
    block raises, `path` is as before and nothing is left beside it. What kill -9 leaves is
    hidden (its name starts with a dot) and `sweep` removes it.
    """
    path = os.path.abspath(os.fspath(path))
    with explained(path):
        temporary = _beside(path, folder)
        try:
            yield temporary
            _sync_tree(temporary)
            _put(temporary, path)
        except BaseException:  # Ctrl-C too
            remove(temporary)
            raise


def write_text(path, text):
    """Writes a text file, whole or not at all."""
    with atomic(path) as temporary, open(temporary, 'w', encoding='utf-8', newline='\n') as file:
        file.write(text)


def _beside(path, folder):
    parent, name = os.path.split(path)
    make = tempfile.mkdtemp if folder else tempfile.mkstemp
    made = make(prefix='.%s.tmp.' % name, dir=parent)
    if not folder:
        os.close(made[0])
        made = made[1]
    os.chmod(made, (0o777 if folder else 0o666) & ~_umask())  # mkstemp's are private, results are not
    return made


def _umask():
    with open('/proc/self/status') as status:  # asking with os.umask would change it for other threads
        for line in status:
            if line.startswith('Umask:'):
                return int(line.split()[1], 8)
    return 0o022


def _put(temporary, path):
    """Rename `temporary` to `path`, replacing what is there."""
    old = None
    if os.path.isdir(path) and not os.path.islink(path):
        # rename(2) replaces no folder that has files, so the old one steps aside first. A
        # kill between the two renames leaves no result, which the next run makes anew.
        old = tempfile.mkdtemp(prefix='.%s.tmp.' % os.path.basename(path), dir=os.path.dirname(path))
        os.rename(path, os.path.join(old, 'old'))
    os.rename(temporary, path)
    _sync(os.path.dirname(path))
    if old:
        remove(old)


def _sync_tree(path):
    """Force a file, or a folder with all that is in it, to the disk."""
    for folder, _, names in os.walk(path):
        for name in names:
            _sync(os.path.join(folder, name))
        _sync(folder)
    if not os.path.isdir(path):
        _sync(path)


def _sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(path):
    """Remove what killed writers of `path` left beside it; only for the holder of its lock."""
    parent, name = os.path.split(os.path.abspath(os.fspath(path)))
    for left in glob.glob(os.path.join(glob.escape(parent), '.%s.tmp.*' % glob.escape(name))):
        remove(left)


def sweep_folder(folder):
    """Remove what killed writers left in a folder; only for the holder of its lock."""
    for left in glob.glob(os.path.join(glob.escape(os.fspath(folder)), '.*.tmp.*')):
        remove(left)


def remove(path):
    """Remove a file or a folder, if it is there."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.remove(path)


@contextlib.contextmanager
def folder(path):
    """Makes the folder `path` where it is missing; takes it away again if the block leaves it empty."""
    path = os.path.abspath(os.fspath(path))
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    with explained(missing[0] if missing else path):
        for path in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)
    try:
        yield
    finally:
        for path in missing:
            with contextlib.suppress(OSError):  # not empty: wanted
                os.rmdir(path)


# --- one at a time -----------------------------------------------------------------------

POLL = 0.05  # seconds between two tries at a lock


@contextlib.contextmanager
def lock(path, waiting=None):
    """Holds the lock file `path`; another holder is waited for, after calling waiting() once.

    The kernel frees it however its holder ends, kill -9 included. The file is removed on
    release, so whoever gets the lock makes sure that the file it locked is still the one at
    `path`, and otherwise tries again.
    """
    path = os.path.abspath(os.fspath(path))
    with explained(path):
        descriptor = _locked(path, waiting)
    write_holder(descriptor)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.remove(path)
        os.close(descriptor)


def _locked(path, waiting):
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            while not _try_lock(descriptor):
                if waiting:
                    waiting()
                    waiting = None
                wake_orphans(descriptor)
                time.sleep(POLL)
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _try_lock(descriptor):
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor, path):
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


# --- whose lock it is --------------------------------------------------------------------

def write_holder(descriptor, text=None):
    """Notes in a lock file that this process, on this host, holds it; '' takes the note away."""
    text = '%d %s' % (os.getpid(), socket.gethostname()) if text is None else text
    with contextlib.suppress(OSError):  # a full disk: the lock holds without the note
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)


def holder(descriptor):
    """(process id, host) that a lock file names, or None."""
    pid, _, host = os.pread(descriptor, 300, 0).decode('utf-8', 'replace').partition(' ')
    return (int(pid), host) if pid.isdigit() and len(pid) < 10 else None


def alive(pid):
    """Whether a process runs; one that is dead but not yet collected by its parent does not."""
    return _state(pid) not in ('', 'Z', 'X')


def _state(pid):
    """The letter for a process's state in /proc; '' where there is none."""
    try:
        with open('/proc/%d/stat' % pid) as file:
            return file.read().rsplit(')', 1)[1].split()[0]
    except (OSError, IndexError):
        return ''


def wake_orphans(descriptor):
    """Lets the stopped children of a dead holder go on, and so find out that they are orphans and end.

    A child asks the kernel to be killed with its parent as the first thing it does. One that is
    stopped (SIGSTOP to the whole group) before that, and whose parent is killed then, would hold
    the lock for ever.
    """
    found = holder(descriptor)
    if not found or found[1] != socket.gethostname() or alive(found[0]):
        return
    mine = os.fstat(descriptor)
    for name in os.listdir('/proc'):
        if name.isdigit() and int(name) != os.getpid() and _state(int(name)) == 'T' and _has_open(name, mine):
            with contextlib.suppress(OSError):
                os.kill(int(name), signal.SIGCONT)


def _has_open(pid, wanted):
    place = '/proc/%s/fd' % pid
    with contextlib.suppress(OSError):  # gone, or somebody else's
        for name in os.listdir(place):
            with contextlib.suppress(OSError):
                if os.path.samestat(os.stat(os.path.join(place, name)), wanted):
                    return True
    return False


# --- disk errors -------------------------------------------------------------------------

ADVICE = {
    errno.ENOSPC: 'no space left on the disk of %s: free some, or choose another place',
    errno.EDQUOT: 'the disk quota is used up at %s: free some space, or choose another place',
    errno.EFBIG: 'the file would be larger than allowed at %s: raise the limit (ulimit -f), or choose another place',
    errno.EACCES: 'cannot write %s: no permission; choose another place, or change who may write there',
    errno.EPERM: 'cannot write %s: no permission; choose another place, or change who may write there',
    errno.EROFS: 'cannot write %s: the disk is read-only; choose another place',
    errno.ENOTDIR: 'cannot write %s: a part of this path is a file, not a folder',
}


@contextlib.contextmanager
def explained(path):
    """Turns a disk error of writing at `path` in the block into a UserError that says what to do."""
    try:
        yield
    except OSError as error:
        place, where = os.path.dirname(path), os.path.abspath(error.filename or path)
        if error.errno not in ADVICE or not (where.startswith(place) or place.startswith(where)):
            raise  # about something else, such as a file that the block reads
        raise UserError(ADVICE[error.errno] % path)


def require_space(path, needed):
    """Refuses, before any work, a disk with fewer than `needed` bytes free at `path`."""
    while not os.path.exists(path):
        path = os.path.dirname(os.path.abspath(path))
    disk = os.statvfs(path)
    free = disk.f_bavail * disk.f_frsize
    if free < needed:
        raise UserError('no space left: %s has %d MB free, %d MB are needed: free some, or choose another place'
                        % (path, free >> 20, needed >> 20))
