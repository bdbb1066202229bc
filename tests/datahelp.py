"""Small data sets of the real formats, and what several data tests need."""

import glob
import hashlib
import os
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

from bcnn.data import catalogue, cifar, idx, obtain, sets
from bcnn.errors import UserError
from bcnn.system import files, locks

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def idx_images(array):
    """The idx3 bytes of uint8 images (N, 1, 28, 28)."""
    return struct.pack('>4i', idx.IMAGES, len(array), idx.SIDE, idx.SIDE) + np.asarray(array, np.uint8).tobytes()


def idx_labels(array):
    """The idx1 bytes of labels."""
    return struct.pack('>2i', idx.LABELS, len(array)) + np.asarray(array, np.uint8).tobytes()


def mnist_bytes(count=50, seed=0):
    """{file name: bytes} of a small set in MNIST's format."""
    random = np.random.RandomState(seed)
    found = {}
    for split, n in (('train', count), ('t10k', count // 2)):
        found['%s-images-idx3-ubyte' % split] = idx_images(random.randint(0, 256, (n, 1, 28, 28)))
        found['%s-labels-idx1-ubyte' % split] = idx_labels(random.randint(0, 10, n))
    return found


def cifar_bytes(count=4, seed=0):
    """{file name: bytes} of a small set in CIFAR-10's binary format."""
    random = np.random.RandomState(seed)
    return {name: cifar.write_records(random.randint(0, 256, (count, 3, 32, 32)), random.randint(0, 10, count))
            for name in cifar.TRAIN_FILES + cifar.TEST_FILES}


def source(files, places=(), packed=None):
    """A catalogue.Source of {name: bytes}; packed: {name: bytes of its .gz}."""
    md5 = (lambda data: hashlib.md5(data).hexdigest())
    return catalogue.Source('a small set', tuple(
        catalogue.File(name=name, size=len(data), md5=md5(data), sha256=hashlib.sha256(data).hexdigest(),
                       packed=md5(packed[name]) if packed else None)
        for name, data in sorted(files.items())), tuple(places), 1 << 20)


def put(folder, files):
    """Write {name: bytes} into a folder; gives the folder's path."""
    for name, data in files.items():
        path = os.path.join(str(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'wb') as file:
            file.write(data)
    return str(folder)


_real = {}


def fetched(name):
    """The real files of a source, {name: bytes}: from the user's downloads, or fetched, which is tried once."""
    if name not in _real:
        try:
            _real[name] = obtain.obtain(name, catalogue.SOURCES[name])[0]
        except UserError as error:
            _real[name] = error
    if isinstance(_real[name], UserError):
        raise _real[name]
    return _real[name]


def real(name):
    """The same; skips where it fails."""
    try:
        return fetched(name)
    except UserError as error:
        pytest.skip(str(error))


PREPARE = [sys.executable, os.path.join(ROOT, 'tools', 'prepare_data.py')]
CIFAR10 = ('cifar10_raw', 'cifar10_pad4', 'cifar10')  # the padded one brings along what it is made from


def prepared(name):
    """data/ with this set in it, as the tools find it: made for the first test that asks, while those on other cores wait.

    CIFAR-10 is made whole. Where its padded images were missing, they are made after a kill -9 in the midst of them: their
    LMDB of floats is the largest, and afterwards nothing is whitened anew.
    """
    needed, source_ = (CIFAR10, 'cifar10') if name in CIFAR10 else ((name,), name)
    if any(sets.manifest(each) is None for each in needed):
        real(source_)  # skips where it is out of reach
        with files.folder(sets.DATA), locks.lock(os.path.join(sets.DATA, '.tests.lock')):
            for each in needed:
                if each == 'cifar10_pad4' and sets.manifest(each) is None:
                    _kill_while_padding()
                subprocess.check_call(PREPARE + [each])
    return sets.DATA


def _kill_while_padding():
    process = subprocess.Popen(PREPARE + ['cifar10_pad4'])
    growing = os.path.join(sets.DATA, '.cifar10_pad4.tmp.*', 'train_lmdb', 'data.mdb')
    try:
        while process.poll() is None and sum(map(os.path.getsize, glob.glob(growing))) < 50 << 20:
            time.sleep(0.01)
    finally:
        process.kill()
    assert process.wait() == -9
    assert sets.manifest('cifar10_pad4') is None and sets.manifest('cifar10')


def snapshot(folder):
    """{relative path: sha256 or None for a folder} of everything in a folder, or None where there is none."""
    if not os.path.isdir(str(folder)):
        return None
    found = {}
    for place, folders, names in os.walk(str(folder)):
        for name in folders:
            found[os.path.relpath(os.path.join(place, name), str(folder))] = None
        for name in names:
            with open(os.path.join(place, name), 'rb') as file:
                found[os.path.relpath(os.path.join(place, name), str(folder))] = hashlib.sha256(file.read()).hexdigest()
    return found


def python(code, *args, **options):
    """A started process of this Python that runs `code` with the package importable; options are Popen's."""
    options.setdefault('env', dict(os.environ, PYTHONPATH=os.pathsep.join([ROOT, os.path.join(ROOT, 'tests')])))
    return subprocess.Popen([sys.executable, '-c', code] + [str(arg) for arg in args], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, universal_newlines=True, **options)
