"""Pictures as arrays of bytes: decoded, turned upright, made grey or coloured, resized, as Caffe's ImageData does it.

A picture here is (height, width) where it is grey, else (height, width, 3) with red first. Caffe reads and resizes
with OpenCV; the arithmetic is OpenCV's, so that a net gets the same bytes from us. Knows nothing of Caffe.
"""

import io
import warnings
from typing import Any, Optional, Tuple

import numpy as np

from ..errors import UserError

EXTENSIONS = ('.png', '.jpg', '.jpeg', '.bmp', '.ppm', '.pgm')
FORMATS = ('PNG', 'JPEG', 'BMP', 'PPM')  # of these; PIL knows others that start programs to read them
# How much red, green and blue make brightness, in parts of 2 ** bits, and what is added to round: OpenCV's, and that
# of libpng, to which OpenCV leaves it.
GREY, GREY_OF = ((4899, 9617, 1868), 14, 1 << 13), {'PNG': ((9797, 19234, 3737), 15, 0)}
GREY_MODES = ('1', 'L', 'LA', 'I', 'I;16', 'I;16B')


# --- reading ---------------------------------------------------------------------------------

def read(path: str, grey: bool = False) -> np.ndarray:
    """The picture in a file; grey: made so as it is decoded."""
    try:
        with open(path, 'rb') as file:
            data = file.read()
    except OSError as error:
        raise UserError('%s: %s' % (path, error.strerror))
    return decode(data, path, grey)


def decode(data: bytes, name: str, grey: bool = False) -> np.ndarray:
    """The picture in some bytes; name: for messages."""
    from PIL import Image
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data)) as picture:
            warnings.simplefilter('error', Image.DecompressionBombWarning)
            if picture.format not in FORMATS:
                raise ValueError('a %s, which is not one of %s' % (picture.format, ', '.join(FORMATS)))
            if grey and picture.format == 'JPEG':
                picture.draft('L', None)  # the brightness that is in the file, as OpenCV takes it
            pixels = of_pil(picture)
            return made_grey(pixels, GREY_OF.get(picture.format, GREY)) if grey and pixels.ndim == 3 else pixels
    except Exception as error:  # PIL raises many kinds on damaged files
        raise UserError('%s: not a readable picture (%s)' % (name, ' '.join(str(error).split())))


def of_pil(picture: Any) -> np.ndarray:
    """The bytes of a PIL picture, turned as its EXIF says (as OpenCV does); transparency is left out."""
    from PIL import ImageOps
    picture = ImageOps.exif_transpose(picture)
    if picture.mode.startswith('I'):  # 16 bits a pixel: PIL's own conversion would cut them off at 255
        return (np.array(picture) >> 8).astype(np.uint8)
    return np.array(picture.convert('L' if picture.mode in GREY_MODES else 'RGB'))


# --- colours ---------------------------------------------------------------------------------

def planes(picture: np.ndarray, channels: Optional[int] = None, order: str = 'bgr') -> np.ndarray:
    """The (channels, height, width) of a picture: 1 makes it grey, 3 coloured, None leaves that as it is."""
    if channels == 1 and picture.ndim == 3:
        picture = made_grey(picture)
    if channels == 3 and picture.ndim == 2:
        picture = np.repeat(picture[:, :, None], 3, axis=2)
    if picture.ndim == 2:
        return picture[None]
    return (picture[:, :, ::-1] if order == 'bgr' else picture).transpose(2, 0, 1)


def made_grey(picture: np.ndarray, rule: Tuple[Any, int, int] = GREY) -> np.ndarray:
    """The brightness of a coloured picture."""
    weights, bits, rounding = rule
    return ((picture.astype(np.int32) @ np.array(weights, np.int32) + rounding) >> bits).astype(np.uint8)


# --- size --------------------------------------------------------------------------------------

def resize(image: np.ndarray, size: Tuple[int, int]) -> np.ndarray:
    """An image (channels, height, width) in another size (height, width), by OpenCV's bilinear interpolation."""
    height, width = image.shape[1:]
    if (height, width) == tuple(size):
        return image
    if image.dtype != np.uint8:
        return _bilinear_floats(image, size)
    if (height, width) == (2 * size[0], 2 * size[1]):  # the mean of four pixels, which OpenCV takes for exactly half
        blocks = image.reshape(len(image), size[0], 2, size[1], 2).astype(np.int32)
        return ((blocks.sum(axis=(2, 4)) + 2) >> 2).astype(np.uint8)
    return _bilinear_bytes(image, size)


def _bilinear_bytes(image, size):
    """Weights in 2^-11, rounded twice on the way down to bytes, as OpenCV's resize does."""
    (top, bottom, down), (left, right, across) = (_between(old, new) for old, new in zip(image.shape[1:], size))
    (above, below), (here, next_one) = (_fixed(part) for part in (down, across))
    rows = image.astype(np.int32)
    rows = rows[:, :, left] * here + rows[:, :, right] * next_one
    upper, lower = (rows[:, which] >> 4 for which in (top, bottom))
    return ((((above[:, None] * upper) >> 16) + ((below[:, None] * lower) >> 16) + 2) >> 2).astype(np.uint8)


def _bilinear_floats(image, size):
    (top, bottom, down), (left, right, across) = (_between(old, new) for old, new in zip(image.shape[1:], size))
    rows = image[:, :, left] * (1 - across) + image[:, :, right] * across
    return (rows[:, top] * (1 - down[:, None]) + rows[:, bottom] * down[:, None]).astype(np.float32)


def _between(old, new):
    """For each of `new` pixels the two of `old` that it lies between, and how far it is from the first; beyond the
    edge both are the last one."""
    place = ((np.arange(new) + 0.5) * (old / float(new)) - 0.5).astype(np.float32)
    first = np.floor(place).astype(int)
    part = place - first.astype(np.float32)
    return np.clip(first, 0, old - 1), np.clip(first + 1, 0, old - 1), part


def _fixed(part):
    return (np.rint((1 - part) * 2048).astype(np.int32), np.rint(part * 2048).astype(np.int32))
