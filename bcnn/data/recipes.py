"""How each set is made from its verified source files."""

import hashlib
import os

import numpy as np

from .. import progress
from . import cifar, idx, records, whiten
from .sets import PAD, SETS

BLOCK = 2000  # images in memory at a time


def make(name, found, folder, data):
    """Fills `folder` with the set's files from {file name: bytes}; gives the facts for its manifest."""
    if name == 'nin_weights':
        return _weights(found, folder)
    if name in ('mnist', 'fashion_mnist'):
        return _bytes(name, folder, records.MNIST_DIGITS, train=mnist(found, 'train'), test=mnist(found, 't10k'))
    if name == 'cifar10_raw':
        return _bytes(name, folder, records.CIFAR_DIGITS, train=batches(found, cifar.TRAIN_FILES),
                      test=batches(found, cifar.TEST_FILES))
    if name == 'cifar10':
        return _whitened(found, folder)
    if name == 'cifar10_pad4':
        return _padded(folder, os.path.join(data, 'cifar10'))
    return _subset(name, found, folder)


def mnist(found, split):
    """Images and labels of an MNIST-shaped set; split is 'train' or 't10k'."""
    images, labels = '%s-images-idx3-ubyte' % split, '%s-labels-idx1-ubyte' % split
    return idx.images(found[images], images), idx.labels(found[labels], labels)


def batches(found, names):
    """Images and labels of CIFAR-10's binary files, one after the other."""
    parts = [cifar.records(found[name], name) for name in names]
    return np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])


def subset(count, divisor, seed):
    """The sorted indices of a random 1/divisor of `count` items; with one seed, smaller subsets lie in larger ones."""
    return np.sort(np.random.RandomState(seed).permutation(count)[:count // divisor])


# --- one function a kind -----------------------------------------------------------------

def _bytes(name, folder, digits, **splits):
    return {'splits': {split: _lmdb(name, split, folder, [pair], pair[1], digits)
                       for split, pair in sorted(splits.items())}}


def _subset(name, found, folder):
    settings = SETS[name].settings
    images, labels = mnist(found, 'train')
    chosen = subset(len(images), settings['divisor'], settings['seed'])
    facts = _bytes(name, folder, records.MNIST_DIGITS, train=(images[chosen], labels[chosen]))
    facts['indices_sha256'] = hashlib.sha256(chosen.astype('<i4').tobytes()).hexdigest()
    return facts


def _whitened(found, folder):
    train, test = batches(found, cifar.TRAIN_FILES), batches(found, cifar.TEST_FILES)
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


def _weights(found, folder):
    (name, data), = found.items()
    with open(os.path.join(folder, name), 'wb') as file:
        file.write(data)
    return {'weights_sha256': hashlib.sha256(data).hexdigest()}
