"""Global contrast normalisation and ZCA whitening, as pylearn2 did for CIFAR-10, bit for bit repeatable.

    x = (image - its mean) / (its norm / 55)              GCN (scale 55)
    mu, C = mean and covariance of the training x; P = (C + 0.1 I)^(-1/2)
    y = (x - mu) P                                        ZCA (bias 0.1)

pylearn2 computed in float32, where the last digits depend on the BLAS library, the processor
and the number of threads. Here every sum that a BLAS does is exact: its terms are integers
times a power of two ("on a grid"), few enough bits to add up without rounding in any order.
So each machine gives the same bytes, at full BLAS speed. The grids are as fine as float32's
own rounding or finer, where it matters.
"""

import json
import math
from typing import Callable, Tuple

import numpy as np

from ..errors import UserError
from ..system import npz
from .sets import GCN_SCALE as SCALE
from .sets import ZCA_BIAS as BIAS

MIN_DIVISOR = 1e-8  # pylearn2's default
EXACT = 53   # bits of a float64's integers
P_BITS = 24  # P is rounded to multiples of 2^-24: float32's own spacing for numbers in [1, 2)
BLOCK = 2500
FORMAT = 1


# --- GCN ---------------------------------------------------------------------------------

def moments(images: np.ndarray) -> Tuple[np.ndarray, np.ndarray]:
    """Each image's mean, and its GCN divisor: the norm of the centred image / 55 (1 if that is below 1e-8)."""
    pixels = images.reshape(len(images), -1)
    size = pixels.shape[1]
    total = pixels.sum(axis=1, dtype=np.int64)
    squares = np.einsum('ij,ij->i', pixels, pixels, dtype=np.int64, casting='safe')
    # All integers up to here, so no summation order can matter.
    divisor = np.sqrt((size * squares - total * total) / float(size)) / SCALE
    divisor[divisor < MIN_DIVISOR] = 1.0
    return total / float(size), divisor


def gcn(images: np.ndarray) -> np.ndarray:
    """uint8 images, contrast-normalised: float64, (N, pixels)."""
    mean, divisor = moments(images)
    x = images.reshape(len(images), -1) - mean[:, None]
    x /= divisor[:, None]  # in place: new memory takes several times as long as the division
    return x


# --- ZCA ---------------------------------------------------------------------------------

class Whitener:
    """A fitted ZCA: `mean` (float64) and `transform` (symmetric, float32), applied to raw images."""

    def __init__(self, mean: np.ndarray, transform: np.ndarray):
        self.mean, self.transform = mean, transform
        # The grid for x - mu: |sum of x_k P_kj| <= |x| |P_j| by Cauchy-Schwarz, for every partial sum too.
        self._p = transform.astype(np.float64)
        longest = math.sqrt(np.square(self._p).sum(axis=0).max())
        bound = 1.001 * (SCALE + math.sqrt(np.square(mean).sum())) * longest  # the rounding adds less than 0.001
        self._bits = EXACT - P_BITS - int(math.ceil(math.log(bound, 2)))

    def apply(self, images: np.ndarray) -> np.ndarray:
        """uint8 images (N, C, H, W), contrast-normalised and whitened: float32, same shape."""
        images = np.asarray(images)
        if images.dtype != np.uint8 or images.ndim < 2 or images[0:1].size not in (0, len(self.mean)):
            raise ValueError('whitening takes uint8 images of %d pixels, not %s of shape %s'
                             % (len(self.mean), images.dtype, images.shape))
        out = np.empty((len(images), len(self.mean)), np.float32)
        for start in range(0, len(images), BLOCK):
            x = gcn(images[start:start + BLOCK])
            x -= self.mean
            x = on_grid(x, self._bits)
            out[start:start + BLOCK] = x @ self._p
        return out.reshape(images.shape)

    def save(self, path: str) -> None:
        """Write mean, transform and settings as an .npz file."""
        settings = {'format': FORMAT, 'scale': SCALE, 'bias': BIAS, 'min_divisor': MIN_DIVISOR}
        npz.write(path, dict(mean=self.mean, transform=self.transform,
                             settings=json.dumps(settings, sort_keys=True)))


def load(path: str) -> Whitener:
    """The Whitener stored at `path`, for example data/cifar10/zca.npz; use its apply(images)."""
    stored = npz.read(path, 'make it with tools/prepare_data.py cifar10')
    try:
        same = json.loads(str(stored['settings']))['format'] == FORMAT
        mean, transform = stored['mean'], stored['transform']
        same = same and mean.dtype.kind == transform.dtype.kind == 'f' and mean.ndim == 1
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError('%s: not a stored whitening (%s)' % (path, error))
    if not same or transform.shape != (len(mean), len(mean)) or not len(mean):
        raise UserError('%s: a whitening of another version: prepare the set again' % path)
    return Whitener(mean, transform)


def fit(images: np.ndarray, step: Callable[[int], None] = lambda n: None) -> Whitener:
    """A Whitener fitted to uint8 images (N, C, H, W); step(1) is called steps(len(images)) times."""
    mean, covariance = _mean_and_covariance(images, step)
    covariance[np.diag_indices_from(covariance)] += BIAS
    whole, part = inverse_root(covariance, step)
    # Rounded in two parts: the sum of both would be rounded before it is rounded.
    scale = 2.0 ** P_BITS
    nearest = np.rint(whole * scale)
    nearest += np.rint((whole * scale - nearest) + part * scale)
    transform = (nearest / scale).astype(np.float32)
    return Whitener(mean, np.maximum(transform, transform.T))  # equal already, but for a tie broken differently


def steps(count: int) -> int:
    """How often fit() reports a step for so many images."""
    return 2 * -(-count // BLOCK) + 18


def _mean_and_covariance(images, step):
    """The mean and the covariance (divided by N) of the contrast-normalised images, in float64."""
    from scipy.linalg.blas import dsyrk
    count, size = len(images), images[0].size
    bits, sums = _fit_grid(images, step)
    gram = np.zeros((size, size), order='F')
    for start in range(0, count, BLOCK):
        x = on_grid(gcn(images[start:start + BLOCK]), bits)
        gram = dsyrk(1.0, x.T, beta=1.0, c=gram, overwrite_c=True)  # the upper triangle; exact
        step(1)
    gram = np.triu(gram)
    gram += np.triu(gram, 1).T
    mean = sums / count
    return mean, gram / count - mean[:, None] * mean[None, :]


def _fit_grid(images, step):
    """The finest grid, in bits, on which the Gram matrix of `images` is exact; and their column sums."""
    sums, squares = 0.0, 0.0
    for start in range(0, len(images), BLOCK):
        x = on_grid(gcn(images[start:start + BLOCK]), 24)  # sums of 2^18 such numbers below 2^11 are exact
        sums = sums + x.sum(axis=0)
        squares = squares + np.square(x).sum(axis=0)
        step(1)
    return (EXACT - 1 - int(math.ceil(math.log(max(squares.max(), 1.0), 2)))) // 2, sums


# --- C^(-1/2), correct far beyond float64 ------------------------------------------------

def on_grid(x: np.ndarray, bits: int) -> np.ndarray:
    """x rounded to multiples of 2^-bits."""
    rounded = x * 2.0 ** bits
    np.rint(rounded, out=rounded)
    rounded *= 2.0 ** -bits
    return rounded


def inverse_root(c: np.ndarray, step: Callable[[int], None] = lambda n: None) -> Tuple[np.ndarray, np.ndarray]:
    """(P, D) with P + D = c^(-1/2) to about 1e-20, for a symmetric positive matrix c; P is on the 2^-40 grid.

    A plain eigendecomposition is right to about 1e-13, which after rounding to P_BITS would
    leave a few of ten million entries to the machine's whim. So one Newton step follows: with
    R = I - P c P computed by exact products, and V, r the eigenvectors and the roots of the
    eigenvalues of c, the correction is D = V ((V'RV) / (r_i + r_j)) V'.
    """
    from scipy.linalg import eigh
    values, v = eigh(c)
    step(1)
    root = np.sqrt(values)
    p = v / np.sqrt(root)
    p = on_grid(p @ p.T, 40)
    p = np.triu(p) + np.triu(p, 1).T
    step(1)
    p_parts = _parts([p])[:2]  # the third part of a number on the 2^-40 grid is zero
    terms = _product(p_parts, _parts(_product(_parts([c]), p_parts, step)), step)
    residual = np.identity(len(c)) - terms[0]
    for term in terms[1:]:
        residual -= term
    inner = v.T @ residual @ v
    step(2)
    inner /= root[:, None] + root[None, :]
    correction = v @ inner @ v.T
    step(2)
    return p, (correction + correction.T) / 2


def _parts(terms):
    """A sum of matrices, largest first, as three parts: on the 2^-20 grid, on the 2^-40 grid, and the rest."""
    terms = list(terms) + [0.0, 0.0]
    first = on_grid(terms[0], 20)
    rest = (terms[0] - first) + terms[1]
    second = on_grid(rest, 40)
    rest = rest - second
    for term in terms[2:]:
        rest = rest + term
    return [first, second, rest]


def _product(a, b, step=lambda n: None):
    """The product of two sums of parts, as terms of falling size; the first two are exact."""
    terms = [0.0] * (len(a) + len(b) - 1)
    for i, left in enumerate(a):
        for j, right in enumerate(b):
            terms[i + j] = terms[i + j] + left @ right
            step(1)
    return terms
