"""GCN + ZCA: against plain numpy, and the same bytes whatever the BLAS does."""

import hashlib
import os

import numpy as np
import pytest

from bcnn.data import whiten
from bcnn.errors import UserError
from bcnn.system import blas
from datahelp import ROOT, python


def pictures(count=400, seed=0, side=8):
    """uint8 images with smooth structure, so that their covariance is far from flat, as with photographs."""
    random = np.random.RandomState(seed)
    noise = random.randn(count, 3, side, side).cumsum(axis=2).cumsum(axis=3)
    return np.clip(128 + 12 * noise, 0, 255).astype(np.uint8)


def plain(train, images):
    """The formulas of pylearn2's GCN and ZCA, word for word, in float64."""
    def gcn(x):
        x = x.reshape(len(x), -1).astype(np.float64)
        x = x - x.mean(axis=1)[:, None]
        norm = np.sqrt((x ** 2).sum(axis=1)) / 55
        norm[norm < 1e-8] = 1
        return x / norm[:, None]
    x = gcn(train)
    mean = x.mean(axis=0)
    values, vectors = np.linalg.eigh((x - mean).T.dot(x - mean) / len(x) + 0.1 * np.identity(x.shape[1]))
    p = (vectors / np.sqrt(values)).dot(vectors.T)
    return mean, p, (gcn(images) - mean).dot(p).reshape(images.shape)


def test_it_is_pylearn2s_formula():
    train, test = pictures(), pictures(50, seed=1)
    mean, p, expected = plain(train, test)
    fitted = whiten.fit(train)
    # The grid of x is 2^-19 here; its errors average out in the mean and, less so with few images, in the covariance.
    assert np.abs(fitted.mean - mean).max() < 1e-7
    assert np.abs(fitted.transform - p).max() < 1e-6
    assert np.abs(fitted.apply(test) - expected).max() < 3e-5 * np.abs(expected).max()
    assert fitted.apply(test).dtype == np.float32 and fitted.apply(test).shape == test.shape
    assert np.array_equal(fitted.transform, fitted.transform.T)


def test_whitened_images_have_the_covariance_they_should():
    train = pictures(3000)
    out = whiten.fit(train).apply(train).reshape(3000, -1).astype(np.float64)
    assert np.abs(out.mean(axis=0)).max() < 1e-6
    values = np.linalg.eigvalsh(np.cov(out.T, bias=True))
    raw = np.linalg.eigvalsh(np.cov(whiten.gcn(train).T, bias=True))
    assert np.allclose(np.sort(values), np.sort(raw / (raw + 0.1)), atol=1e-5)


def test_a_flat_image_is_not_divided_by_zero():
    flat = np.full((2, 3, 8, 8), 77, np.uint8)
    means, divisors = whiten.moments(flat)
    assert means.tolist() == [77, 77] and divisors.tolist() == [1, 1]
    assert not whiten.gcn(flat).any()


def test_the_inverse_root_is_right_far_beyond_float64():
    """P + D squared times C is I to 1e-18, computed with fractions: float64 alone reaches about 1e-13."""
    from fractions import Fraction
    random = np.random.RandomState(0)
    a = random.randn(6, 6)
    c = a @ a.T + 0.1 * np.identity(6)
    c = (c + c.T) / 2
    p, d = whiten.inverse_root(c)
    exact = [[Fraction(p[i, j]) + Fraction(d[i, j]) for j in range(6)] for i in range(6)]
    c = [[Fraction(x) for x in row] for row in c]

    def times(x, y):
        return [[sum(x[i][k] * y[k][j] for k in range(6)) for j in range(6)] for i in range(6)]
    product = times(times(exact, c), exact)
    worst = max(abs(product[i][j] - (i == j)) for i in range(6) for j in range(6))
    assert worst < 1e-18, float(worst)


FIT = '''import hashlib
from test_whiten import pictures, plain, whiten
fitted = whiten.fit(pictures())
ours = [fitted.mean, fitted.transform, fitted.apply(pictures(300, 1))]
print(hashlib.sha256(b''.join(array.tobytes() for array in ours)).hexdigest())
print(hashlib.sha256(plain(pictures(), pictures(1))[1].tobytes()).hexdigest())
'''


def test_other_processors_and_threads_give_the_same_bytes():
    """OpenBLAS computes in another order with each kernel; asked for by name, it runs an older processor's here."""
    exact, usual = set(), set()
    names = [name for name, _ in blas.NEEDS]
    runnable = names[names.index(blas.kernel()):] if blas.kernel() else []
    for i, kernel in enumerate(['Prescott', 'Nehalem'] + runnable):
        threads = str(1 + i % 2)
        path = os.pathsep.join([ROOT, os.path.join(ROOT, 'tests'), os.path.join(ROOT, 'tests', 'data')])
        how = {'OPENBLAS_NUM_THREADS': threads, 'OPENBLAS_CORETYPE': kernel, 'PYTHONPATH': path}
        process = python(FIT, env=dict(os.environ, **how))
        out = process.communicate(timeout=120)[0]
        assert process.returncode == 0, out
        exact.add(out.split()[0])
        usual.add(out.split()[1])
    assert len(exact) == 1
    assert len(usual) > 1  # the plain formula does differ: these kernels really are different


def test_stored_and_loaded(tmp_path):
    fitted, images = whiten.fit(pictures()), pictures(20, 2)
    fitted.save(str(tmp_path / 'zca.npz'))
    assert np.array_equal(whiten.load(str(tmp_path / 'zca.npz')).apply(images), fitted.apply(images))
    first = hashlib.sha256((tmp_path / 'zca.npz').read_bytes()).hexdigest()
    fitted.save(str(tmp_path / 'again'))
    assert hashlib.sha256((tmp_path / 'again').read_bytes()).hexdigest() == first


def test_bad_files_and_bad_images(tmp_path):
    with pytest.raises(UserError, match='no such file: make it with'):
        whiten.load(str(tmp_path / 'none.npz'))
    (tmp_path / 'bad.npz').write_bytes(b'PK nonsense')
    with pytest.raises(UserError, match='not readable'):
        whiten.load(str(tmp_path / 'bad.npz'))
    np.savez(str(tmp_path / 'pickle.npz'), settings=np.array([{}], dtype=object))
    with pytest.raises(UserError, match='not readable'):
        whiten.load(str(tmp_path / 'pickle.npz'))
    fitted = whiten.fit(pictures(50))
    with pytest.raises(ValueError, match='uint8 images of 192 pixels'):
        fitted.apply(np.zeros((2, 3, 8, 8), np.float32))
    with pytest.raises(ValueError, match='uint8 images of 192 pixels'):
        fitted.apply(np.zeros((2, 3, 9, 9), np.uint8))
