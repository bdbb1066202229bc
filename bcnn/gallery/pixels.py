"""What the images of an evaluation look like: small pictures of bytes, red first, found where it had them."""

import os
from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np

from .. import paper
from ..data import sets, show
from ..errors import UserError
from ..inputs import sources
from ..inputs.preprocessing import Transform

MOST_PIXELS, LARGEST = 41 * 10 ** 6, 128  # of all small pictures together; of the longer side of one
CHUNK = 500                               # images that are read at a time
RAW = {'cifar10': 'cifar10_raw', 'cifar10_pad4': 'cifar10_raw'}  # what whitened sets look like
STRETCHED = 'Not bytes: each picture is shown from its lowest number (black) to its highest (white).'


class Seen(NamedTuple):
    """The pictures of an evaluation."""

    pictures: List[Any]            # arrays of bytes, (height, width) or (height, width, 3)
    classes: Optional[List[str]]   # names of the classes, where they are known
    reduced: bool                  # whether the pictures are smaller than the images
    note: str                      # what a reader should know of them, '' for nothing


def of_evaluation(told: Dict[str, Any], labels: np.ndarray, path: Optional[str] = None,
                  order: Optional[str] = None) -> Seen:
    """The Seen of the images with these labels.

    told: the evaluation's source.json; path: where its images are now, if not there; order: of the colours of arrays.
    """
    path, names = path or told.get('images'), told.get('files')
    if not path:
        raise UserError('the evaluation does not say where its images are: --data PATH names them')
    prepared = _set_of(path)
    raw = _raw_of(path, prepared)
    source = _open(raw or path, names, len(labels))
    side = _side(len(labels))
    shown, done = [], set()
    for start in range(0, len(labels), CHUNK):
        for image in source.as_stored(start, min(start + CHUNK, len(labels))):
            picture, what = _bytes(image, 'rgb' if source.pictures or prepared else order or 'bgr')
            small = _small(picture, side)
            shown.append(small)
            done.update(what + ['reduced'] * (small.shape != picture.shape))
    if not names:
        _check_labels(source, labels)
    classes = told.get('classes') or (prepared and show.NAMES.get(paper.base_of(prepared)))
    return Seen(pictures=shown, classes=classes and list(classes), reduced='reduced' in done,
                note=STRETCHED if 'stretched' in done else '')


# --- where they are ------------------------------------------------------------------------------

def _set_of(path):
    """The name of the prepared set that a path belongs to, None for images of a user's own."""
    folder = os.path.dirname(os.path.abspath(path))
    name = os.path.basename(folder)
    return name if name in sets.SETS and sets.manifest(name, os.path.dirname(folder)) else None


def _raw_of(path, prepared):
    """The images before they were whitened, where they are prepared too; whitened ones are hard to recognise."""
    data = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    if prepared in RAW and sets.manifest(RAW[prepared], data):
        return os.path.join(data, RAW[prepared], os.path.basename(path))
    return None


def _open(path, names, count):
    """The images as they are stored; pictures by the names that the evaluation has for them."""
    if names and len(names) < count:
        raise UserError('source.json has %d file names, %d images were evaluated' % (len(names), count))
    if names and os.path.isdir(path):
        items = [os.path.join(path, name) for name in names[:count]]
        missing = [item for item in items if not os.path.isfile(item)]
        if missing:
            raise UserError('%s: not there any more; --data PATH names the folder of the images' % missing[0])
        return sources.Pictures(items, Transform(order='rgb'), path=path)
    if not os.path.exists(path):
        raise UserError('%s: the images are not there any more; --data PATH says where they are' % path)
    return sources.open_images(path, Transform(order='rgb'))


def _check_labels(source, labels):
    if source.count < len(labels):
        raise UserError('%s has %d images, the evaluation %d: it was of other images'
                        % (source.path, source.count, len(labels)))
    different = np.flatnonzero(source.truth(len(labels)) != labels)
    if len(different):
        raise UserError('%s: image %d is not of class %d: the evaluation was of other images; --data PATH names those'
                        % (source.path, different[0], labels[different[0]]))


# --- what they look like --------------------------------------------------------------------------

def _side(count):
    """The longest side of a small picture, so that all together stay of a size that a browser likes."""
    return int(min(LARGEST, max(16, np.sqrt(MOST_PIXELS / float(count)))))


def _bytes(image, order):
    """(bytes (height, width) or (height, width, 3) with red first, what was done) of a (channels, height, width)."""
    done = []
    if image.dtype != np.uint8:
        low, high = float(image.min()), float(image.max())
        if low < 0 or high > 255 or high <= 1:
            image, done = (image - low) * (255.0 / ((high - low) or 1.0)), ['stretched']
        image = np.rint(image).astype(np.uint8)
    if len(image) != 3:
        return image[0], done  # other numbers of channels have no colours: the first is shown
    return np.ascontiguousarray((image[::-1] if order == 'bgr' else image).transpose(1, 2, 0)), done


def _small(picture, side):
    """A picture of which no side is longer than that."""
    from PIL import Image
    longest = float(max(picture.shape[:2]))
    if longest <= side:
        return picture
    size = [max(1, int(round(length * side / longest))) for length in picture.shape[:2]]
    return np.array(Image.fromarray(picture).resize(size[::-1], Image.BOX))
