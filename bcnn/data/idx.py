"""MNIST's idx files: a big-endian header (magic, sizes), then bytes."""

import struct

import numpy as np

from ..errors import UserError

IMAGES, LABELS = 0x803, 0x801  # "unsigned byte" (8) with 3 or 1 dimensions, as the MNIST page defines them
SIDE = 28
CLASSES = 10


def images(data: bytes, name: str = 'images') -> np.ndarray:
    """The images in an idx3 file's bytes: uint8, (N, 1, 28, 28). `name` is for messages."""
    count, rows, columns = _header(data, name, IMAGES, 3)
    if (rows, columns) != (SIDE, SIDE):
        raise UserError('%s: images of %d x %d, expected %d x %d' % (name, rows, columns, SIDE, SIDE))
    return _body(data, name, 16, count * SIDE * SIDE).reshape(count, 1, SIDE, SIDE)


def labels(data: bytes, name: str = 'labels') -> np.ndarray:
    """The labels in an idx1 file's bytes: uint8, (N,), each 0 to 9."""
    count, = _header(data, name, LABELS, 1)
    values = _body(data, name, 8, count)
    if count and values.max() >= CLASSES:
        place = int(np.argmax(values >= CLASSES))
        raise UserError('%s: label %d of item %d is out of range 0..9' % (name, values[place], place))
    return values


def _header(data, name, magic, dimensions):
    length = 4 + 4 * dimensions
    if len(data) < length:
        raise UserError('%s: truncated idx file, %d bytes are less than its header' % (name, len(data)))
    numbers = struct.unpack_from('>%dI' % (1 + dimensions), data)
    if numbers[0] != magic:
        raise UserError('%s: not such an idx file, magic number 0x%08x instead of 0x%08x' % (name, numbers[0], magic))
    return numbers[1:]


def _body(data, name, start, length):
    if len(data) != start + length:
        fault = 'truncated' if len(data) < start + length else 'too long'
        raise UserError('%s: %s idx file, %d bytes where its header announces %d'
                        % (name, fault, len(data), start + length))
    return np.frombuffer(data, np.uint8, length, start)
