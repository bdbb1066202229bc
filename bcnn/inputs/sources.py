"""Test images from wherever a user has them, fed to a net as Caffe's data layers would.

open_images() gives an object with `count`, `shape` (of an image, as the net gets it) and
read(start, stop) -> float32 images (n, channels, height, width), labels (n,). It opens its
files in read(), so that it can be handed to a forked process.
"""

import hashlib
import os
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from ..data import records
from ..errors import UserError
from ..system import npz
from . import labels, pictures, preprocessing
from .preprocessing import NONE


def open_images(path: str, transform: preprocessing.Transform = NONE, classes: Optional[str] = None) -> 'Source':
    """The images at a path: an LMDB folder, a folder of pictures, or an .npz file; classes: file of class names."""
    if os.path.isfile(os.path.join(path, 'data.mdb')):
        return Lmdb(path, transform, labels.read_classes(classes) if classes else None)
    if os.path.isdir(path):
        return Folder(path, transform, classes)
    if os.path.isfile(path) and path.endswith('.npz'):
        return Npz(path, transform, labels.read_classes(classes) if classes else None)
    raise UserError('%s: no images here; it should be an LMDB folder, a folder of pictures, or an .npz file with '
                    'images and labels' % path)


class Source:
    """What all kinds share: the transform, and the shape after it."""

    names = None     # of the images' files, where they have some
    rule = None      # how labels were found, where that is a question
    pictures = False  # whether images are decoded here

    def __init__(self, path: str, transform: preprocessing.Transform, classes: Optional[List[str]] = None):
        self.path, self.transform, self.classes, self._scanned = path, transform, classes, {}
        self.count = self._count()
        if not self.count:
            raise UserError('%s: no images in it' % path)
        first = self.raw(0, 1)[0]
        self.bytes, self.stored = first.dtype == np.uint8, first.shape[1:]
        self.shape = preprocessing.apply(transform, first).shape[1:]

    def read(self, start: int, stop: int) -> Tuple[np.ndarray, np.ndarray]:
        """Images and labels of this span, transformed."""
        images, truth = self.raw(start, stop)
        return preprocessing.apply(self.transform, images), truth

    def read_whole(self, start: int, stop: int) -> np.ndarray:
        """The images of this span, transformed but not cropped."""
        return preprocessing.apply(self.transform._replace(crop=None), self.raw(start, stop)[0])

    def raw(self, start: int, stop: int) -> Tuple[np.ndarray, np.ndarray]:
        """Images (n, channels, height, width) and labels of this span: of one size, not changed otherwise."""
        images, truth = self._stored(start, stop)
        size = self.transform.resize
        if size is not None:
            images = [pictures.resize(image, size) for image in images]
        return images if isinstance(images, np.ndarray) else _stack(images, self.path), truth

    def as_stored(self, start: int, stop: int) -> Sequence[np.ndarray]:
        """The images of this span, each (channels, height, width), perhaps of several sizes."""
        return self._stored(start, stop)[0]

    def scan(self, count: int) -> Tuple[np.ndarray, str]:
        """(labels, digest) of the first images: the digest says what they are, as fed to the net."""
        if count not in self._scanned:
            digest, truth = hashlib.sha256(), []
            for start in range(0, count, 1000):
                pixels, part = self.read(start, min(start + 1000, count))
                digest.update(np.ascontiguousarray(pixels))
                digest.update(part.astype('<i8'))
                truth.append(part)
            self._scanned[count] = np.concatenate(truth), digest.hexdigest()
        return self._scanned[count]

    def stored_digest(self, count: int) -> str:
        """What the first images are before anything is done to them, with their labels: nets that take the same
        images in different sizes or scales have this in common."""
        digest = hashlib.sha256(self.truth(count).astype('<i8'))
        for part in self._parts(count):
            digest.update(b'%d %b' % (len(part), hashlib.sha256(part).digest()))
        return digest.hexdigest()

    def truth(self, count: int) -> np.ndarray:
        """The labels of the first images."""
        return self.scan(count)[0]

    def name(self, i: int) -> str:
        """What to call an image: by its file where it has one."""
        return 'image %d' % i if self.names is None else 'image %d (%s)' % (i, self.names[i])

    def describe(self) -> str:
        """What the images are and what is done to them, for people."""
        return '%s of %s %s; done to them: %s' % (
            'bytes' if self.bytes else 'floats', 'x'.join(map(str, self.stored)),
            'after decoding' if self.pictures else 'as stored',
            preprocessing.describe(self.transform, self.stored[0] if self.pictures else None, self.bytes))


class Lmdb(Source):
    """Records as Caffe's converters and ours write them."""

    def _count(self):
        return records.count(self.path)

    def _stored(self, start, stop):
        if os.path.isfile(os.path.join(os.path.dirname(os.path.abspath(self.path)), 'manifest.json')):
            return records.load(self.path, start, stop)  # of our making, whole blocks at a time
        datums = [datum(value, '%s, record %d' % (self.path, start + i), self.transform)
                  for i, value in enumerate(records.values(self.path, start, stop))]
        self.pictures = any(decoded for _, _, decoded in datums)
        return [image for image, _, _ in datums], np.array([label for _, label, _ in datums])

    def _parts(self, count):
        for start in range(0, count, 1000):
            yield from records.values(self.path, start, min(start + 1000, count))


def datum(value: bytes, name: str, transform: preprocessing.Transform = NONE) -> Tuple[np.ndarray, int, bool]:
    """(image, label, whether it was decoded) of a record of Caffe's; name: for messages."""
    from ..engine import caffe_pb2, parse_bytes
    try:
        message = parse_bytes(caffe_pb2.Datum(), value)
        if message.encoded:
            picture = pictures.decode(message.data, name, transform.channels == 1)
            return pictures.planes(picture, transform.channels, transform.order), message.label, True
        flat = np.frombuffer(message.data, np.uint8) if message.data else np.array(message.float_data, np.float32)
        return flat.reshape(message.channels, message.height, message.width), message.label, False
    except ValueError as error:
        raise UserError('%s: not an image record of Caffe (%s)' % (name, error))


class Arrays(Source):
    """Images (n, channels, height, width) in memory, with or without labels."""

    def __init__(self, images: np.ndarray, transform: preprocessing.Transform = NONE,
                 truth: Optional[np.ndarray] = None, path: str = 'the array', classes: Optional[List[str]] = None):
        self.images, self.labels = images, np.zeros(len(images), np.int64) if truth is None else truth
        Source.__init__(self, path, transform, classes)

    def _count(self):
        return len(self.images)

    def truth(self, count: int) -> np.ndarray:
        return self.labels[:count].astype(np.int64)

    def _stored(self, start, stop):
        return self.images[start:stop], self.labels[start:stop].astype(np.int64)

    def _parts(self, count):
        return (image.tobytes() for image in self.images[:count])


class Npz(Arrays):
    """A file with `images` (n, channels, height, width) and `labels` (n,)."""

    def __init__(self, path: str, transform: preprocessing.Transform = NONE, classes: Optional[str] = None):
        stored = npz.read(path, 'it should be an .npz file with the arrays images and labels')
        if 'images' not in stored or 'labels' not in stored:
            raise UserError('%s: %s is not a file in the archive; it needs the arrays images and labels'
                            % (path, 'images' if 'images' not in stored else 'labels'))
        images, truth = stored['images'], stored['labels']
        if images.ndim != 4 or truth.shape != (len(images),):
            raise UserError('%s: images have shape %s and labels %s; (n, channels, height, width) and (n,) are needed'
                            % (path, images.shape, truth.shape))
        if images.dtype.kind not in 'uif' or truth.dtype.kind not in 'ui':
            raise UserError('%s: images of %s and labels of %s; numbers and whole numbers are needed'
                            % (path, images.dtype, truth.dtype))
        Arrays.__init__(self, images, transform, truth, path, classes)


class Pictures(Source):
    """Pictures by their paths or as arrays of bytes (see bcnn.inputs.pictures), with or without labels."""

    pictures = True

    def __init__(self, items: Sequence[Any], transform: preprocessing.Transform = NONE,
                 truth: Optional[Sequence[int]] = None, names: Optional[List[str]] = None,
                 path: str = 'the files given', classes: Optional[List[str]] = None):
        self.items, self.names = items, names
        self.labels = np.zeros(len(items), np.int64) if truth is None else np.array(truth, np.int64)
        Source.__init__(self, path, transform, classes)

    def _count(self):
        return len(self.items)

    def truth(self, count: int) -> np.ndarray:
        return self.labels[:count]

    def _stored(self, start, stop):
        decoded = (item if isinstance(item, np.ndarray) else pictures.read(item, self.transform.channels == 1)
                   for item in self.items[start:stop])
        images = [pictures.planes(picture, self.transform.channels, self.transform.order) for picture in decoded]
        return images, self.labels[start:stop]

    def _parts(self, count):
        for item in self.items[:count]:
            if isinstance(item, np.ndarray):
                yield item.tobytes()
            else:
                with open(item, 'rb') as file:
                    yield file.read()


class Folder(Pictures):
    """A folder of pictures with their labels, see bcnn.inputs.labels."""

    def __init__(self, path: str, transform: preprocessing.Transform = NONE, classes: Optional[str] = None):
        labelled = labels.of_folder(path, classes)
        self.rule = labelled.rule
        names = [name for name, _ in labelled.items]
        Pictures.__init__(self, [os.path.join(path, name) for name in names], transform,
                          [label for _, label in labelled.items], names, path, labelled.classes)


def _stack(images, path):
    shapes = set(image.shape for image in images)
    if len(shapes) > 1:
        raise UserError('%s: images of several sizes (%s): --resize H,W brings them to one'
                        % (path, ', '.join('x'.join(map(str, shape)) for shape in sorted(shapes))))
    return np.stack(images)
