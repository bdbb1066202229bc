"""Files that are whole or not there: atomic writes, and disk errors that say what to do.

A result is written beside its place, synced, and renamed; a process killed at any moment
leaves the old result or none, never half of one.
"""

import contextlib
import csv
import errno
import glob
import os
import shutil
import tempfile
from typing import Any, Iterable, Iterator, Sequence, Union

from ..errors import UserError

Path = Union[str, 'os.PathLike[str]']

# --- whole or not there ------------------------------------------------------------------


@contextlib.contextmanager
def atomic(path: Path, folder: bool = False) -> Iterator[str]:
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


def write_text(path: Path, text: str) -> None:
    """Writes a text file, whole or not at all."""
    with atomic(path) as temporary, open(temporary, 'w', encoding='utf-8', newline='\n') as file:
        file.write(text)


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a table, whole or not at all; names of files that are no text stay as they are."""
    with atomic(path) as temporary, open(temporary, 'w', newline='', encoding='utf-8',
                                         errors='surrogateescape') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(head)
        writer.writerows(rows)


def _beside(path, folder):
    parent, name = os.path.split(path)
    prefix = '.%s.tmp.' % name
    if folder:
        temporary = tempfile.mkdtemp(prefix=prefix, dir=parent)
    else:
        descriptor, temporary = tempfile.mkstemp(prefix=prefix, dir=parent)
        os.close(descriptor)
    os.chmod(temporary, (0o777 if folder else 0o666) & ~_umask())  # mkstemp's are private, results are not
    return temporary


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


def sweep(path: Path) -> None:
    """Remove what killed writers of `path` left beside it; only for the holder of its lock."""
    parent, name = os.path.split(os.path.abspath(os.fspath(path)))
    for left in glob.glob(os.path.join(glob.escape(parent), '.%s.tmp.*' % glob.escape(name))):
        remove(left)


def sweep_folder(folder: Path) -> None:
    """Remove what killed writers left in a folder; only for the holder of its lock."""
    for left in glob.glob(os.path.join(glob.escape(os.fspath(folder)), '.*.tmp.*')):
        remove(left)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.remove(path)


def make_folder(path: Path) -> None:
    """Makes the folder `path` and those above it where they are missing."""
    with explained(os.path.abspath(os.fspath(path))):
        os.makedirs(path, exist_ok=True)


@contextlib.contextmanager
def folder(path: Path) -> Iterator[None]:
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


# --- disk errors -------------------------------------------------------------------------

DENIED = ('cannot write %s: no permission; choose another place, change who may write there, or run as the user whose '
          'it is (a container: --user "$(id -u):$(id -g)")')
ADVICE = {
    errno.ENOSPC: 'no space left on the disk of %s: free some, or choose another place',
    errno.EDQUOT: 'the disk quota is used up at %s: free some space, or choose another place',
    errno.EFBIG: 'the file would be larger than allowed at %s: raise the limit (ulimit -f), or choose another place',
    errno.EACCES: DENIED,
    errno.EPERM: DENIED,
    errno.EROFS: 'cannot write %s: the disk is read-only; choose another place',
    errno.ENOTDIR: 'cannot write %s: a part of this path is a file, not a folder',
}


@contextlib.contextmanager
def explained(path: str) -> Iterator[None]:
    """Turns a disk error of writing at `path` in the block into a UserError that says what to do."""
    try:
        yield
    except OSError as error:
        place, where = os.path.dirname(path), os.path.abspath(error.filename or path)
        if error.errno not in ADVICE or not (where.startswith(place) or place.startswith(where)):
            raise  # about something else, such as a file that the block reads
        raise UserError(ADVICE[error.errno] % path)


def require_space(path: str, needed: int) -> None:
    """Refuses, before any work, a disk with fewer than `needed` bytes free at `path`."""
    while not os.path.exists(path):
        path = os.path.dirname(os.path.abspath(path))
    disk = os.statvfs(path)
    free = disk.f_bavail * disk.f_frsize
    if free < needed:
        raise UserError('no space left: %s has %d MB free, %d MB are needed: free some, or choose another place'
                        % (path, free >> 20, needed >> 20))
