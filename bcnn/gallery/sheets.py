"""Many small pictures in a few large ones: a browser reads ten files of a thousand faster than ten thousand."""

import base64
import io
from typing import List, NamedTuple, Sequence

import numpy as np

COLUMNS, MOST_ROWS = 32, 32   # pictures in a sheet
QUALITY = 92                  # of JPEG


class Sheets(NamedTuple):
    """Pictures by their number: row by row of `columns`, `rows` of them in a sheet."""

    width: int          # of the place of a picture; one that is smaller stands in the middle of it
    height: int
    columns: int
    rows: int
    files: List[str]    # data: addresses


def pack(pictures: Sequence[np.ndarray]) -> Sheets:
    """The Sheets of arrays of bytes, (height, width) or (height, width, 3)."""
    coloured = any(picture.ndim == 3 for picture in pictures)
    height, width = (max(picture.shape[axis] for picture in pictures) for axis in (0, 1))
    if coloured:  # JPEG works on squares of 8: so none has two pictures in it
        height, width = (-(-side // 8) * 8 for side in (height, width))
    a_sheet = COLUMNS * MOST_ROWS
    return Sheets(width=width, height=height, columns=COLUMNS, rows=MOST_ROWS, files=[
        _sheet(pictures[start:start + a_sheet], height, width, coloured) for start in range(0, len(pictures), a_sheet)])


def _sheet(pictures, height, width, coloured):
    rows = -(-len(pictures) // COLUMNS)
    pixels = np.zeros((rows * height, COLUMNS * width) + ((3,) if coloured else ()), np.uint8)
    for i, picture in enumerate(pictures):
        if coloured and picture.ndim == 2:
            picture = picture[:, :, None]
        top = i // COLUMNS * height + (height - picture.shape[0]) // 2
        left = i % COLUMNS * width + (width - picture.shape[1]) // 2
        pixels[top:top + picture.shape[0], left:left + picture.shape[1]] = picture
    return _address(pixels)


def _address(pixels):
    """A data: address: PNG where it is grey, JPEG with colours at full resolution where not, a third of the size."""
    from PIL import Image
    kind, options = 'PNG', {'optimize': True}
    if pixels.ndim == 3:
        kind, options = 'JPEG', {'quality': QUALITY, 'subsampling': 0}
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **options)
    return 'data:image/%s;base64,%s' % (kind.lower(), base64.b64encode(file.getvalue()).decode())
