"""Caffe's records: Datum messages in an LMDB, written and read whole arrays at a time.

The messages are laid out by hand (protobuf's wire format) because a Python loop over 3072
floats an image would take minutes; tests compare them with caffe_pb2 and with the output of
Caffe's own converters.
"""

import concurrent.futures
import contextlib
import errno
import hashlib
import os
import struct
import zlib
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

import lmdb
import numpy as np

from ..errors import CaffeError, UserError
from ..system import processes

Block = Tuple[np.ndarray, np.ndarray]  # images (N, C, H, W), and the label of each

# Field numbers of Datum in caffe.proto, and protobuf's wire types.
CHANNELS, HEIGHT, WIDTH, DATA, LABEL, FLOAT_DATA = 1, 2, 3, 4, 5, 6
VARINT, BYTES = 0, 2

MNIST_DIGITS, CIFAR_DIGITS = 8, 5  # of the keys, as convert_mnist_data and convert_cifar_data write them
BATCH = 1000                       # records a transaction: fixed, since the file's bytes depend on it
PAGE = 4096


# --- Datum -------------------------------------------------------------------------------

def datums(images: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Serialised Datums as rows of a uint8 array, of images (N, C, H, W) and labels below 128.

    uint8 images go into `data`, fields in the order in which the converters' C++ writes
    them. float32 images go into `float_data`, in the packed form: caffe.proto declares the
    field unpacked, and protobuf's parsers take both; packed is a fifth smaller.
    """
    count = len(images)
    shape = b''.join(_tag(field, VARINT) + _varint(size)
                     for field, size in zip((CHANNELS, HEIGHT, WIDTH), images.shape[1:]))
    labels = np.asarray(labels, np.uint8)
    if count and labels.max() > 127:
        raise ValueError('labels above 127 need more than a byte')
    if images.dtype == np.uint8:
        body = images.reshape(count, -1)
        head, tail = shape + _tag(DATA, BYTES) + _varint(body.shape[1]), _tag(LABEL, VARINT)
        return np.concatenate([_tile(head, count), body, _tile(tail, count), labels[:, None]], axis=1)
    if images.dtype != np.float32:
        raise TypeError('images are uint8 or float32, not %s' % images.dtype)
    body = np.ascontiguousarray(images, '<f4').reshape(count, -1).view(np.uint8)
    head, middle = shape + _tag(LABEL, VARINT), _tag(FLOAT_DATA, BYTES) + _varint(body.shape[1])
    return np.concatenate([_tile(head, count), labels[:, None], _tile(middle, count), body], axis=1)


def arrays(rows: np.ndarray, name: str = 'LMDB') -> Block:
    """Images (N, C, H, W) and labels of serialised Datums of one shape: the inverse of `datums`."""
    fields, where = {}, 0
    first = rows[0].tobytes()
    try:
        while where < len(first):
            tag, where = _read_varint(first, where)
            start = where
            value, where = _read_varint(first, where)
            if tag & 7 == BYTES:
                start, where = where, where + value
            elif tag & 7 != VARINT:
                raise IndexError
            fields[tag >> 3] = value, start, where
        shape = tuple(fields[field][0] for field in (CHANNELS, HEIGHT, WIDTH))
        kind = FLOAT_DATA if FLOAT_DATA in fields else DATA
        _, start, stop = fields[kind]
        body = np.ascontiguousarray(rows[:, start:stop])
        images = body.view('<f4').astype(np.float32, copy=False) if kind == FLOAT_DATA else body
        return images.reshape((len(rows),) + shape), rows[:, fields[LABEL][1]].astype(np.int64)
    except (IndexError, KeyError, ValueError, OverflowError, MemoryError):
        raise UserError('%s: not the records that prepare_data.py writes: prepare the set again' % name)


def _tag(field, wire):
    return _varint(field << 3 | wire)


def _varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytearray([n]))


def _read_varint(data, where):
    value = shift = 0
    while True:
        byte = data[where]
        value |= (byte & 127) << shift
        where, shift = where + 1, shift + 7
        if byte < 128:
            return value, where


def _tile(data, count):
    return np.broadcast_to(np.frombuffer(data, np.uint8), (count, len(data)))


# --- LMDB --------------------------------------------------------------------------------

def write(path: str, blocks: Iterable[Block], digits: int,
          step: Callable[[int], None] = lambda n: None) -> Dict[str, Any]:
    """Writes a new LMDB folder of blocks (images, labels), keys counting from zero; gives its facts.

    Facts: {'records': their number, 'sha256': of keys and values, see `digest`}.
    Nothing is synced here: the caller does that before the folder gets its name.
    """
    sha, count = hashlib.sha256(), 0
    with _disk_errors(path), concurrent.futures.ThreadPoolExecutor(1) as beside:
        hashed = beside.submit(lambda: None)
        # A transaction's pages are written in order; no page is reused while it is dirty, so
        # the same records give the same file.
        with lmdb.open(path, map_size=PAGE << 20, sync=False, metasync=False, meminit=True) as env:
            for images, labels in blocks:
                for start in range(0, len(images), BATCH):
                    rows = datums(images[start:start + BATCH], labels[start:start + BATCH])
                    items = [(b'%0*d' % (digits, count + i), row.data) for i, row in enumerate(rows)]
                    with env.begin(write=True) as transaction:
                        transaction.cursor().putmulti(items, append=True)
                    hashed.result()  # while the next batch is written; neither holds Python's lock for long
                    hashed = beside.submit(_hash, sha, items)
                    count += len(items)
                    step(len(items))
        hashed.result()
    return {'records': count, 'sha256': sha.hexdigest()}


def digest(path: str, step: Callable[[int], None] = lambda n: None) -> str:
    """The SHA-256 of an LMDB's records: for each, both lengths (32 bits, little-endian), key, value."""
    sha = hashlib.sha256()
    with _reader(path) as cursor:
        for item in cursor:
            _hash(sha, [item])
            step(1)
    return sha.hexdigest()


def load(path: str, start: int = 0, stop: Optional[int] = None) -> Block:
    """Images (N, C, H, W) and labels (N,) of records start to stop, in key order."""
    with _reader(path) as cursor:
        rows = [value for _, value in _span(cursor, start, stop)]
    return _arrays_of(rows, path)


def values(path: str, start: int = 0, stop: Optional[int] = None) -> List[bytes]:
    """The serialised Datums of records start to stop, in key order, whoever wrote them."""
    with _reader(path) as cursor:
        return [bytes(value) for _, value in _span(cursor, start, stop)]


def blocks(path: str, size: int) -> Iterator[Block]:
    """Yields (images, labels) of `size` records at a time, in key order."""
    with _reader(path) as cursor:
        rows = []
        for _, value in cursor:
            rows.append(value)
            if len(rows) == size:
                yield _arrays_of(rows, path)
                rows = []
        if rows:
            yield _arrays_of(rows, path)


def count(path: str) -> int:
    """The number of records in an LMDB."""
    return _in_child(path, _count)


def _count(path):
    with _open(path) as env:
        return env.stat()['entries']


def _arrays_of(rows, path):
    if len(set(map(len, rows))) != 1:
        raise UserError('%s: no records, or not of one size: prepare the set again' % path)
    return arrays(np.frombuffer(b''.join(rows), np.uint8).reshape(len(rows), -1), path)


def _span(cursor, start, stop):
    for i, item in enumerate(cursor):
        if stop is not None and i >= stop:
            return
        if i >= start:
            yield item


def _hash(sha, items):
    for key, value in items:
        sha.update(struct.pack('<II', len(key), len(value)))
        sha.update(key)
        sha.update(value)


def _open(path):
    if not os.path.isfile(os.path.join(path, 'data.mdb')):
        raise UserError('%s: no such LMDB: make it with tools/prepare_data.py' % path)
    with _damage(path):
        # lock=False: what is prepared is never written again, and reading leaves no trace.
        return lmdb.open(path, readonly=True, lock=False)


@contextlib.contextmanager
def _damage(path):
    try:
        yield
    except (lmdb.Error, MemoryError, OverflowError) as error:
        raise UserError('%s: not a readable LMDB (%s): prepare the set again' % (path, ' '.join(str(error).split())))


@contextlib.contextmanager
def _reader(path):
    _require_sound(path)
    with _open(path) as env, _damage(path), env.begin() as transaction:
        yield transaction.cursor()


_sound = set()  # the files that this process, or the one it was forked from, has read through


def _require_sound(path):
    """Refuses an LMDB that cannot be read to its end: on a damaged one LMDB's library may end the whole process."""
    if not os.path.isfile(os.path.join(path, 'data.mdb')):
        _open(path)
    facts = os.stat(os.path.join(path, 'data.mdb'))
    identity = os.path.abspath(path), facts.st_size, facts.st_mtime_ns, facts.st_ino
    if identity not in _sound:
        _in_child(path, _walk)
        _sound.add(identity)


def _walk(path):
    with _open(path) as env, _damage(path), env.begin() as transaction:
        entries, size = env.stat()['entries'], os.path.getsize(os.path.join(path, 'data.mdb'))
        for number, (key, value) in enumerate(transaction.cursor(), 1):
            # A record is read to its end: its length may be a lie that leads out of the file.
            if number > entries or len(key) + len(value) > size or zlib.crc32(value) < 0:
                raise UserError('%s: not a readable LMDB (records that cannot be): prepare the set again' % path)


def _in_child(path, function):
    try:
        return processes.call(function, path)
    except CaffeError as error:
        raise UserError('%s: not a readable LMDB (%s): prepare the set again'
                        % (path, str(error).replace('the Caffe process', 'reading it')))


@contextlib.contextmanager
def _disk_errors(path):
    """LMDB's errors for a full disk and the like as the OSErrors that Python's own writes raise."""
    try:
        yield
    except lmdb.Error as error:
        for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EROFS, errno.EIO):
            if os.strerror(number) in str(error):
                if number == errno.EIO:
                    _write_more(path)
                raise OSError(number, os.strerror(number), path)
        raise


def _write_more(path):
    """Raise the disk's own error where LMDB only says "input/output error": its word for a write cut short."""
    try:
        with open(os.path.join(path, 'data.mdb'), 'ab') as file:
            file.write(bytes(BATCH * PAGE))
    except OSError as error:
        raise OSError(error.errno, error.strerror, path)
