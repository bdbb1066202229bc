"""Photos of digits, made like the digits of MNIST: light on black, 20 pixels in a square of 28, their weight centred.

That is what LeCun, Cortes and Burges did to theirs. What was done is told, for a net that was trained on MNIST
gives nonsense for a digit that is dark on white, large, or in a corner.
"""

from typing import Tuple

import numpy as np

from ..errors import UserError
from . import pictures

SIDE, BOX = 28, 20   # pixels: of the picture, of the digit in it
GRID = 6             # places along each side at which the brightness of the paper is looked at
FAINT = 0.25         # of the strongest ink: less is paper


def from_photo(picture: np.ndarray, name: str = 'picture') -> Tuple[np.ndarray, str]:
    """(bytes 28 x 28, what was done) of a photo of one digit; a picture that is like MNIST's already stays as it is."""
    picture = picture if picture.ndim == 2 else pictures.made_grey(picture)
    light = np.median(np.concatenate([picture[0], picture[-1], picture[:, 0], picture[:, -1]])) > 127
    if picture.shape == (SIDE, SIDE) and not light:
        return picture, 'as it is'
    ink = _ink(_without_specks(picture if light else 255 - picture))
    rows, columns = (np.flatnonzero(ink.any(axis=axis)) for axis in (1, 0))
    if not len(rows):
        raise UserError('%s: no digit to be seen in it, only paper' % name)
    cut = ink[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1]
    done = 'grey, %scut to the ink (%d x %d of %d x %d pixels), scaled to %d, centred by its weight' % (
        ('inverted, ' if light else '',) + cut.shape + picture.shape + (BOX,))
    return _centred(_scaled(cut)), done


def _without_specks(picture):
    """The picture with noise averaged away, over about a hundredth of its size; floats."""
    from PIL import Image, ImageFilter
    blur = ImageFilter.BoxBlur(max(picture.shape) // 200)
    return np.array(Image.fromarray(picture).filter(blur), np.float32)


def _ink(paper):
    """How much darker each pixel is than the paper around it, 0 to 1; `paper` is light."""
    height, width = paper.shape
    bands = [np.array_split(np.arange(size), min(GRID, size)) for size in (height, width)]
    # Nine tenths: where a stroke covers most of a place, the paper is still what is lightest there.
    levels = np.array([[np.percentile(paper[np.ix_(down, across)], 90) for across in bands[1]] for down in bands[0]])
    around = pictures.resize(levels[None].astype(np.float32), paper.shape)[0]
    ink = np.maximum(around - paper, 0)
    strongest = np.sort(ink, axis=None)[-max(1, ink.size // 2000)]  # not the very strongest, which may be noise
    if strongest < 25:  # of 255: paper, no ink
        return np.zeros_like(ink)
    ink = np.minimum(ink / strongest, 1)
    return np.where(ink < FAINT, 0, ink)


def _scaled(cut):
    """The cut-out with its longer side of 20 pixels: each pixel the mean of what it covers."""
    from PIL import Image
    longest = float(max(cut.shape))
    size = [max(1, int(round(side * BOX / longest))) for side in cut.shape]
    return np.array(Image.fromarray(cut.astype(np.float32), 'F').resize(size[::-1], Image.BOX))


def _centred(digit):
    """The digit in a square of 28, moved so that the centre of its weight is in the middle, as far as there is room."""
    digit = np.clip(digit / max(digit.max(), 1e-6), 0, 1)
    square = np.zeros((SIDE, SIDE), np.uint8)
    corner = []
    for axis, size in enumerate(digit.shape):
        weight = digit.sum(axis=1 - axis)
        centre = (weight * (np.arange(size) + 0.5)).sum() / weight.sum()
        corner.append(int(np.clip(round(SIDE / 2.0 - centre), 0, SIDE - size)))
    square[corner[0]:corner[0] + digit.shape[0], corner[1]:corner[1] + digit.shape[1]] = np.rint(255 * digit)
    return square
