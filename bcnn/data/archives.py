"""Archives read member by member, into memory, within limits; nothing is ever extracted to a path."""

import contextlib
import gzip
import io
import os
import subprocess
import tarfile
import zlib
from typing import Dict

from ..errors import UserError

MAX_MEMBERS = 10000
MAX_BYTES = 1 << 30  # unpacked, of a whole archive; CIFAR-10's has 184 MB
DAMAGE = (EOFError, OSError, zlib.error, tarfile.TarError, ValueError)


def gunzip(data: bytes, name: str, limit: int) -> bytes:
    """The unpacked bytes of a .gz, at most limit + 1 of them (one more tells that it is too long)."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(limit + 1)
    except DAMAGE as error:
        raise UserError('%s: damaged gzip file (%s)' % (name, error))


def members(path: str, wanted: Dict[str, int]) -> Dict[str, bytes]:
    """{name: bytes} of the files in a .tar, .tar.gz, .tgz or .deb that are in `wanted`, {name: most bytes}."""
    with _stream(path) as (stream, mode):
        try:
            with tarfile.open(fileobj=stream, mode=mode) as archive:
                return _collect(archive, path, wanted)
        except DAMAGE as error:
            raise UserError('%s: damaged archive (%s)' % (path, ' '.join(str(error).split()) or type(error).__name__))


def _collect(archive, path, wanted):
    contents, total = {}, 0
    for number, member in enumerate(archive):
        total += member.size
        if number >= MAX_MEMBERS or total > MAX_BYTES:
            raise UserError('%s: more than %d files or %d MB in this archive' % (path, MAX_MEMBERS, MAX_BYTES >> 20))
        _refuse_odd(member, path)
        name = os.path.basename(member.name)
        if name not in wanted or not member.isfile():
            continue
        if member.size > wanted[name]:
            raise UserError('%s: %s has %d bytes, more than the %d expected'
                            % (path, member.name, member.size, wanted[name]))
        data = archive.extractfile(member).read()
        if len(data) != member.size:
            raise UserError('%s: damaged archive (%s is cut off)' % (path, member.name))
        contents[name] = data
    return contents


def _refuse_odd(member, path):
    """Refuse an archive with members that no data set has; nothing is extracted, yet such an archive is not ours."""
    if member.name.startswith('/') or '..' in member.name.split('/'):
        raise UserError('%s: refused, a member with the path %r leads out of the archive' % (path, member.name))
    if not member.isfile() and not member.isdir():
        raise UserError('%s: refused, its member %r is a link or a device' % (path, member.name))


class _Limited:
    """A stream that refuses to go on after MAX_BYTES: tarfile reads some headers whole, whatever size they claim."""

    def __init__(self, stream, path):
        self.stream, self.path, self.total = stream, path, 0

    def read(self, size):
        data = self.stream.read(size)
        self.total += len(data)
        if self.total > MAX_BYTES + (MAX_MEMBERS << 10):
            raise UserError('%s: more than %d MB in this archive' % (self.path, MAX_BYTES >> 20))
        return data


@contextlib.contextmanager
def _stream(path):
    """The archive as a stream, and tarfile's mode for it."""
    if not path.endswith('.deb'):
        with open(path, 'rb') as file:
            packed = file.read(2) == b'\x1f\x8b'
            file.seek(0)
            yield _Limited(gzip.GzipFile(fileobj=file) if packed else file, path), 'r|'
        return
    try:
        process = subprocess.Popen(['dpkg-deb', '--fsys-tarfile', path], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except FileNotFoundError:
        raise UserError('%s: reading a .deb needs dpkg-deb (Debian, Ubuntu), which is not here' % path)
    with process:
        try:
            yield _Limited(process.stdout, path), 'r|'
        finally:
            process.kill()
