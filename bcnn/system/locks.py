"""Locks that the kernel frees however their holder ends, and whose they are."""

import contextlib
import fcntl
import os
import signal
import socket
import time
from typing import Callable, Iterator, Optional, Tuple

from ..errors import UserError
from . import files

Holder = Tuple[int, str]  # its process id and host

# --- one at a time -----------------------------------------------------------------------

POLL = 0.05     # seconds between two tries at a lock
PATIENCE = 3.0  # seconds for the children of a killed holder to go


@contextlib.contextmanager
def lock(path: files.Path, busy: Callable[[Optional[Holder]], None] = lambda who: None) -> Iterator[None]:
    """Holds the lock file `path`; while another process does, busy(who) is called once, and may refuse by raising.

    who: (process id, host), or None where that is not known. The kernel frees the lock however
    its holder ends, kill -9 included. Children inherit it, so it is free only when they are gone
    too; those of a killed process get a moment for that before it counts as busy. The file is
    removed on release, so whoever gets the lock makes sure that the file it locked is still the
    one at `path`, and otherwise tries again.
    """
    path = os.path.abspath(os.fspath(path))
    with files.explained(path):
        descriptor = _locked(path, busy)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.remove(path)
        os.close(descriptor)


def _locked(path, busy):
    """The descriptor of the file at `path`, locked."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            _wait(descriptor, busy)
            if _is_at(descriptor, path):
                _write_holder(descriptor)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        os.makedirs(os.path.dirname(path), exist_ok=True)  # the last holder took it away, if that left it empty


def _wait(descriptor, busy):
    patient_until, told = time.monotonic() + PATIENCE, False
    while not _try_lock(descriptor, fcntl.LOCK_EX):
        who = _noted(descriptor)
        if not told and (_is_at_work(who) or time.monotonic() > patient_until):
            busy(who)
            told = True
        _wake_orphans(descriptor)
        time.sleep(POLL)  # not one blocking call: a signal should end the wait


def _try_lock(descriptor, kind):
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise UserError('this disk knows no locks (%s): choose a folder on another' % error.strerror)
    return True


def _is_at(descriptor, path):
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def holder(path: files.Path) -> Optional[Holder]:
    """(process id, host) of the process that holds the lock file `path`, or None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _try_lock(descriptor, fcntl.LOCK_SH) else _noted(descriptor)
    finally:
        os.close(descriptor)


# --- whose lock it is --------------------------------------------------------------------

def _write_holder(descriptor):
    """Notes in a lock file that this process, on this host, holds it."""
    with contextlib.suppress(OSError):  # a full disk: the lock holds without the note
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, ('%d %s' % (os.getpid(), socket.gethostname())).encode(), 0)


def _noted(descriptor):
    """(process id, host) that a lock file names, or None."""
    pid, _, host = os.pread(descriptor, 300, 0).decode('utf-8', 'replace').partition(' ')
    return (int(pid), host) if pid.isdigit() and len(pid) < 10 else None


def _is_at_work(who):
    return who is not None and (who[1] != socket.gethostname() or alive(who[0]))


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but not yet collected by its parent does not."""
    return _state(pid) not in ('', 'Z', 'X')


def _state(pid):
    """The letter for a process's state in /proc; '' where there is none."""
    try:
        with open('/proc/%d/stat' % pid) as file:
            return file.read().rsplit(')', 1)[1].split()[0]
    except (OSError, IndexError):
        return ''


def _wake_orphans(descriptor):
    """Lets the stopped children of a dead holder go on, and so find out that they are orphans and end.

    A child asks the kernel to be killed with its parent as the first thing it does. One that is
    stopped (SIGSTOP to the whole group) before that, and whose parent is killed then, would hold
    the lock for ever.
    """
    who = _noted(descriptor)
    if who is None or _is_at_work(who):
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
