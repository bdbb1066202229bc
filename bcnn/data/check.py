"""The figures that a right preparation has, beside what is here."""

import os
from typing import List, Sequence, Tuple

import numpy as np

from .. import paper
from ..errors import UserError
from ..system import progress, store
from . import records, sets, whiten

# (figure, expected, half a unit of its last digit), of pylearn2's preprocessing of CIFAR-10; not computed by this code.
ZCA_FIGURES = (
    ('smallest mean', -0.37646, 5e-6), ('largest mean', 0.33117, 5e-6), ('RMS of the means', 0.16273, 5e-6),
    ('mean of R', 0.09203, 5e-6), ('mean of G', 0.05208, 5e-6), ('mean of B', -0.14411, 5e-6),
)
TEST_FIGURES = (
    ('GCN divisors of the test set, mean', 54.222, 5e-4), ('GCN divisors of the test set, smallest', 12.832, 5e-4),
    ('GCN divisors of the test set, largest', 107.354, 5e-4), ('means of the test images, average', 121.529, 5e-4),
)
NIN_ERRORS = int(round(paper.PUBLISHED['nin'].standard * paper.TEST_IMAGES / 100))

# SHA-256 of the records (records.digest), the same on every machine.
DIGESTS = {
    ('mnist', 'train'): '4825892b0ed09e3d5850f9a134335752913b7191de9b84bcdbdec12491da93df',
    ('mnist', 'test'): 'a244f1a7603448cf37f2c064f3dd1cb543815c826caf8c6e40cb67815301ce39',
    ('mnist_2', 'train'): '5a5110a7d405ccf6e0e8297f490f395a235528905215aa1daa9f0fb5df4edf12',
    ('mnist_2_draw2', 'train'): '49b19f256749fce63ba048d6d880b0430f6fd52eb4eb3cd293f0f80cb3068b54',
    ('mnist_2_draw3', 'train'): '66a956d310b50a825d9e823913adc38f2ead6892ffd50953928a65b3847f2ab5',
    ('mnist_4', 'train'): '612faf5f34c4609472e59bb79884b490bcbc07978eef67c1d01fb39e943c8efd',
    ('mnist_4_draw2', 'train'): 'ba29bf1e9ac9182fb205eb86949643fee88bf678e07b86232552ab34c965c3e8',
    ('mnist_4_draw3', 'train'): 'c0fbca500fd698de12f3e4917fdde69211bfd21a36c571432b55df17bc92f4ff',
    ('mnist_8', 'train'): 'bf5c065c131005dcb793a9f582cb5fda1259caf2c740e3a7d7d1b59c3fd8cf76',
    ('mnist_8_draw2', 'train'): '4da7f68b4c0d1c7a4036ca3f03534132a3e17984de5a1433d0f3da0f88e87435',
    ('mnist_8_draw3', 'train'): '089541cf72bfffdf69106883d6a64062732e1651fd8927723f9a40a280fd37cf',
    ('mnist_16', 'train'): 'b3d0b46e5032ecb58b9f99f73dbcf4fab4f986ff421322d452a728d1a5d795cb',
    ('mnist_16_draw2', 'train'): '88b80608fc6c245c578a60ba964783196f2e43342683a625540905c6b4c305ee',
    ('mnist_16_draw3', 'train'): 'c6ff49392ac6561acba29ebc5f286e7b55234596a723ab87cefe3116958f43fe',
    ('mnist_32', 'train'): '00a0cf20a957d480b1b6cb367f5df6e6812edf241dd5fef07c246c6de9bc993d',
    ('mnist_32_draw2', 'train'): 'd7d8fd40a1e3633eb19817397f4e41f69a37337464a3cb1b4f1188afcf2d526b',
    ('mnist_32_draw3', 'train'): '808edc8d8f3684c7148f3c35fb8b9befe000d829b93e6bf316756e16ebbe6deb',
    ('fashion_mnist', 'train'): 'c4b75d47e38c8bc854d3eb059a8a8189a73b6275289700f6187ad4340b409c36',
    ('fashion_mnist', 'test'): '596e8b65e9014380f3d0d133f3f7ca83185e5cae20c4b21d0dce851286f6cb8e',
    ('cifar10_raw', 'train'): '1128687ce7c633784ef29d5f38bd619536fe6f2bd1abaa7b016bf1fba9818f10',
    ('cifar10_raw', 'test'): '19c9841a7fed9c5094722da5c3fbd4a116d8774e534b7fb455a7929cb6d92838',
    ('cifar10', 'train'): '328903a5a6ad16193cecd24d32510d59f11365be7603fe26c92e49624b5a3ba0',
    ('cifar10', 'test'): 'a8e5f2455cd8beeb6db0ce520cdc84271d99aeebf9a27ed7e89bc8096ef72628',
    ('cifar10_pad4', 'train'): '4bdf76eba66ac1e4fe356e005e294d324c744f48bcfeb66b8f0ca8cce461810d',
    ('cifar10_pad4', 'test'): '85e04bb18106c650b130be75aa75fe61dac7da30a1a603bf7a07069a3187bd23',
}


def report(names: Sequence[str], data: str, deploy: str) -> int:
    """Prints every figure beside the expected one; 0 if all agree, else 1. Checks what is ready if no set is named."""
    names = names or [name for name in sets.SETS if sets.manifest(name, data)]
    if not names:
        raise UserError('nothing is ready in %s: prepare a set first' % data)
    wrong = 0
    for name in names:
        folder = sets.require(name, data)
        for title, measured, expected, agrees in _figures(name, folder, data, deploy):
            wrong += not agrees
            progress.say('%-14s %-40s %-17s expected %-17s %s'
                         % (name, title, measured, expected, 'ok' if agrees else 'DIFFERS'))
    progress.say('%d figures differ' % wrong if wrong else 'all figures agree')
    return 1 if wrong else 0


def _figures(name, folder, data, deploy):
    """Yields (title, found, expected, whether they agree)."""
    for split in sorted(sets.manifest(name, data).get('splits', {}), reverse=True):
        path = os.path.join(folder, split + '_lmdb')
        with progress.bar('%s: reading %s' % (name, split), records.count(path), 'records') as step:
            measured = records.digest(path, step)
        expected = DIGESTS.get((name, split), sets.manifest(name, data)['splits'][split]['sha256'])
        yield 'sha256 of the %s records' % split, measured[:16], expected[:16], measured == expected
    if name == 'cifar10':
        for title, expected, half, measured in statistics(folder, data):
            digits = len(repr(expected).split('.')[1])
            yield title, '%.*f' % (digits, measured), '%.*f' % (digits, expected), abs(measured - expected) <= half
        yield from _nin(folder, data, deploy)
    if name == 'cifar10_pad4':
        yield from _padding(data)
    if name == 'nin_weights':
        yield from _weights(data)


def statistics(folder: str, data: str) -> List[Tuple[str, float, float, float]]:
    """(title, expected, tolerance, found) of the check values for CIFAR-10's whitening."""
    mean = whiten.load(os.path.join(folder, 'zca.npz')).mean
    channels = mean.reshape(3, -1).mean(axis=1)
    values = [mean.min(), mean.max(), np.sqrt(np.square(mean).mean())] + list(channels)
    if sets.manifest('cifar10_raw', data) is None:
        progress.say('cifar10        figures of the raw test images: not compared, they are not here '
                     '(prepare_data.py cifar10_raw)')
    else:
        images, _ = records.load(os.path.join(sets.require('cifar10_raw', data), 'test_lmdb'))
        means, divisors = whiten.moments(images)
        values += [divisors.mean(), divisors.min(), divisors.max(), means.mean()]
    return [figure + (value,) for figure, value in zip(ZCA_FIGURES + TEST_FIGURES, values)]


def _padding(data):
    """That the centre of every padded image is the image, and its border zero."""
    plain, padded = (os.path.join(sets.require(name, data), 'test_lmdb') for name in ('cifar10', 'cifar10_pad4'))
    border = (sets.PAD, sets.PAD)
    same = all(np.array_equal(np.pad(a, ((0, 0), (0, 0), border, border), 'constant'), b) and np.array_equal(m, n)
               for (a, m), (b, n) in zip(records.blocks(plain, 1000), records.blocks(padded, 1000)))
    yield 'padded test images, centre', 'same' if same else 'other', 'same', same


def _weights(data):
    digest = store.sha256(sets.weights_path('nin_weights', data))
    expected = sets.manifest('nin_weights', data)['weights_sha256']
    yield 'sha256 of the weights', digest[:16], expected[:16], digest == expected


def _nin(folder, data, deploy):
    """The published NIN's test errors with standard dropout, where its weights and a deploy net are here."""
    if sets.manifest('nin_weights', data) is None:
        progress.say('cifar10        test errors of the published NIN: not counted, its weights are not here '
                     '(prepare_data.py nin_weights)')
        return
    if not os.path.isfile(deploy):
        progress.say('cifar10        test errors of the published NIN: not counted, no %s' % deploy)
        return
    errors = count_errors(deploy, sets.weights_path('nin_weights', data), os.path.join(folder, 'test_lmdb'))
    yield 'test errors of the published NIN', str(errors), str(NIN_ERRORS), errors == NIN_ERRORS


def count_errors(deploy: str, weights: str, lmdb: str, batch: int = 100) -> int:
    """How many images of an LMDB a deploy net gets wrong: one forward pass each, no sampling."""
    from .. import engine
    net = engine.load_net(deploy, weights)
    source, out = net.inputs[0], net.outputs[0]
    wrong = 0
    with progress.bar('test errors', records.count(lmdb), 'images') as step:
        for images, labels in records.blocks(lmdb, batch):
            net.blobs[source].reshape(*images.shape)
            net.blobs[source].data[...] = images
            scores = net.forward()[out].reshape(len(images), -1)
            wrong += int((scores.argmax(axis=1) != labels).sum())
            step(len(images))
    return wrong
