"""How each set is made from its verified source files."""

import hashlib
import os
from typing import Any, Dict, Sequence, Tuple

import numpy as np

from ..system import progress
from . import cifar, idx, records, whiten
from .sets import PAD, SETS

BLOCK = 2000  # images in memory at a time


def make(name: str, contents: Dict[str, bytes], folder: str, data: str) -> Dict[str, Any]:
    """Fills `folder` with the set's files from {file name: bytes}; gives the facts for its manifest."""
    if name == 'nin_weights':
        return _weights(contents, folder)
    if name in ('mnist', 'fashion_mnist'):
        return _bytes(name, folder, records.MNIST_DIGITS, train=mnist(contents, 'train'), test=mnist(contents, 't10k'))
    if name == 'cifar10_raw':
        return _bytes(name, folder, records.CIFAR_DIGITS, train=batches(contents, cifar.TRAIN_FILES),
                      test=batches(contents, cifar.TEST_FILES))
    if name == 'cifar10':
        return _whitened(contents, folder)
    if name == 'cifar10_pad4':
        return _padded(folder, os.path.join(data, 'cifar10'))
    return _subset(name, contents, folder)


def mnist(contents: Dict[str, bytes], split: str) -> Tuple[np.ndarray, np.ndarray]:
    """Images and labels of an MNIST-shaped set; split is 'train' or 't10k'."""
    images, labels = '%s-images-idx3-ubyte' % split, '%s-labels-idx1-ubyte' % split
    return idx.images(contents[images], images), idx.labels(contents[labels], labels)


def batches(contents: Dict[str, bytes], names: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
    """Images and labels of CIFAR-10's binary files, one after the other."""
    parts = [cifar.records(contents[name], name) for name in names]
    return np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])


def subset(count: int, divisor: int, seed: int) -> np.ndarray:
    """The sorted indices of a random 1/divisor of `count` items; with one seed, smaller subsets lie in larger ones."""
    return np.sort(np.random.RandomState(seed).permutation(count)[:count // divisor])


# --- one function a kind -----------------------------------------------------------------

def _bytes(name, folder, digits, **splits):
    return {'splits': {split: _lmdb(name, split, folder, [pair], pair[1], digits)
                       for split, pair in sorted(splits.items())}}


def _subset(name, contents, folder):
    settings = SETS[name].settings
    images, labels = mnist(contents, 'train')
    chosen = subset(len(images), settings['divisor'], settings['seed'])
    facts = _bytes(name, folder, records.MNIST_DIGITS, train=(images[chosen], labels[chosen]))
    facts['indices_sha256'] = hashlib.sha256(chosen.astype('<i4').tobytes()).hexdigest()
    return facts


def _whitened(contents, folder):
    train, test = batches(contents, cifar.TRAIN_FILES), batches(contents, cifar.TEST_FILES)
    with progress.bar('cifar10: fitting ZCA', whiten.steps(len(train[0])), 'steps') as step:
        whitener = whiten.fit(train[0], step)
    stored = os.path.join(folder, 'zca.npz')
    whitener.save(stored)
    facts = {'splits': {}}
    for split, (images, labels) in (('train', train), ('test', test)):
        blocks = ((whitener.apply(images[i:i + BLOCK]), labels[i:i + BLOCK]) for i in range(0, len(images), BLOCK))
        facts['splits'][split] = _lmdb('cifar10', split, folder, blocks, labels, records.CIFAR_DIGITS)
    facts['mean_sha256'] = hashlib.sha256(whitener.mean.astype('<f8').tobytes()).hexdigest()
    facts['transform_sha256'] = hashlib.sha256(whitener.transform.astype('<f4').tobytes()).hexdigest()
    return facts


def _padded(folder, unpadded):
    """The whitened images with zeros around: padded after whitening, so that the centre crop is the image itself."""
    facts = {'splits': {}}
    for split in ('train', 'test'):
        source = os.path.join(unpadded, split + '_lmdb')
        labels = np.concatenate([labels for _, labels in records.blocks(source, BLOCK)])
        padded = ((np.pad(images, ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)), 'constant'), labels)
                  for images, labels in records.blocks(source, BLOCK))
        facts['splits'][split] = _lmdb('cifar10_pad4', split, folder, padded, labels, records.CIFAR_DIGITS)
    return facts


def _lmdb(name, split, folder, blocks, labels, digits):
    with progress.bar('%s: writing %s' % (name, split), len(labels), 'images') as step:
        facts = records.write(os.path.join(folder, split + '_lmdb'), blocks, digits, step)
    facts['classes'] = np.bincount(labels, minlength=10).tolist()
    return facts


def _weights(contents, folder):
    (name, data), = contents.items()
    with open(os.path.join(folder, name), 'wb') as file:
        file.write(data)
    return {'weights_sha256': hashlib.sha256(data).hexdigest()}
