"""Test images from wherever a user has them, fed to a net as Caffe's data layers would.

open_images() gives an object with `count`, `shape` (of an image, as the net gets it) and
read(start, stop) -> float32 images (n, channels, height, width), labels (n,). It opens its
files in read(), so that it can be handed to a forked process.
"""

import csv
import hashlib
import io
import os
import re
import warnings
from collections import namedtuple

import numpy as np

from . import runs
from .data import records
from .engine import caffe_pb2, parse_bytes
from .errors import UserError

EXTENSIONS = ('.png', '.jpg', '.jpeg', '.bmp', '.ppm', '.pgm')
FORMATS = ('PNG', 'JPEG', 'BMP', 'PPM')  # of these; PIL knows others that start programs to read them
MOST = 1 << 31  # labels below, as Caffe's are

# What a data layer does at test: (pixel - mean) * scale, then the centre crop.
Transform = namedtuple('Transform', 'scale mean crop')
NONE = Transform(1.0, None, None)


def transform_of(parameter):
    """The Transform of a TransformationParameter, None for none."""
    if parameter is None:
        return NONE
    mean = np.array(parameter.mean_value, np.float32).reshape(-1, 1, 1) if parameter.mean_value else None
    if parameter.mean_file:
        mean = _mean_file(parameter.mean_file)
    return Transform(parameter.scale, mean, parameter.crop_size or None)


def _mean_file(path):
    try:
        with open(path, 'rb') as file:
            blob = parse_bytes(caffe_pb2.BlobProto(), file.read())
        shape = tuple(blob.shape.dim)[-3:] or (blob.channels, blob.height, blob.width)
        mean = np.array(blob.data, np.float32).reshape(shape)
        if mean.ndim != 3:
            raise ValueError('not of three dimensions')
        return mean
    except (OSError, ValueError, OverflowError) as error:
        raise UserError('%s: cannot read this mean_file, which the data layer names (%s)' % (path, error))


def apply(transform, images):
    """The images as the net gets them."""
    images = images.astype(np.float32)
    if transform.mean is not None:
        if transform.mean.shape[0] not in (1, images.shape[1]):
            raise UserError('the mean has %d channels, the images have %d' % (transform.mean.shape[0], images.shape[1]))
        if transform.mean.shape[1:] not in ((1, 1), images.shape[2:]):
            raise UserError('the mean is of %d x %d pixels, the images of %d x %d'
                            % (transform.mean.shape[1:] + images.shape[2:]))
        images = images - transform.mean
    if transform.crop:
        images = crop(images, transform.crop, *centre(images, transform.crop))
    return images if transform.scale == 1 else images * np.float32(transform.scale)


def centre(images, size):
    return (images.shape[2] - size) // 2, (images.shape[3] - size) // 2


def crop(images, size, top, left):
    """The square of this size at (top, left) of each image."""
    if min(images.shape[2:]) < size:
        raise UserError('cannot crop %d x %d from images of %d x %d' % ((size, size) + images.shape[2:]))
    return images[:, :, top:top + size, left:left + size]


def random_views(images, size, rng):
    """For each image a random crop of this size, mirrored or not: what a data layer does in training."""
    n, channels, height, width = images.shape
    tops, lefts = rng.randint(height - size + 1, size=n), rng.randint(width - size + 1, size=n)
    views = np.empty((n, channels, size, size), images.dtype)
    for i, mirrored in enumerate(rng.rand(n) < 0.5):
        view = images[i, :, tops[i]:tops[i] + size, lefts[i]:lefts[i] + size]
        views[i] = view[:, :, ::-1] if mirrored else view
    return views


# --- sources -----------------------------------------------------------------------------

def open_images(path, transform=NONE):
    """The images at a path: an LMDB folder, a folder of pictures, or an .npz file."""
    if os.path.isfile(os.path.join(path, 'data.mdb')):
        return _Lmdb(path, transform)
    if os.path.isdir(path):
        return _Folder(path, transform)
    if os.path.isfile(path) and path.endswith('.npz'):
        return _Npz(path, transform)
    raise UserError('%s: no images here; it should be an LMDB folder, a folder of pictures, or an .npz file with '
                    'images and labels' % path)


class _Source:
    """What the three kinds share: the transform, and the shape after it."""

    def __init__(self, path, transform):
        self.path, self.transform, self._scanned = path, transform, {}
        self.count = self._count()
        if not self.count:
            raise UserError('%s: no images in it' % path)
        self.shape = self.read(0, 1)[0].shape[1:]

    def read(self, start, stop):
        """Images and labels of this span, transformed."""
        images, labels = self.read_raw(start, stop)
        return apply(self.transform, images), labels

    def read_whole(self, start, stop):
        """The images of this span, transformed but not cropped."""
        return apply(self.transform._replace(crop=None), self.read_raw(start, stop)[0])

    def scan(self, count):
        """(labels, digest) of the first images: the digest says what they are, as fed to the net."""
        if count not in self._scanned:
            digest, labels = hashlib.sha256(), []
            for start in range(0, count, 1000):
                pixels, some = self.read(start, min(start + 1000, count))
                digest.update(np.ascontiguousarray(pixels))
                digest.update(some.astype('<i8'))
                labels.append(some)
            self._scanned[count] = np.concatenate(labels), digest.hexdigest()
        return self._scanned[count]


class _Lmdb(_Source):
    """Records as Caffe's converters and ours write them."""

    def _count(self):
        return records.count(self.path)

    def read_raw(self, start, stop):
        if os.path.isfile(os.path.join(os.path.dirname(os.path.abspath(self.path)), 'manifest.json')):
            return records.load(self.path, start, stop)  # of our making, whole blocks at a time
        pairs = [_datum(value, '%s, record %d' % (self.path, start + i))
                 for i, value in enumerate(records.values(self.path, start, stop))]
        return _stack([image for image, _ in pairs], self.path), np.array([label for _, label in pairs])


def _datum(value, name):
    try:
        datum = parse_bytes(caffe_pb2.Datum(), value)
        if datum.encoded:
            return _picture(datum.data, name), datum.label
        flat = np.frombuffer(datum.data, np.uint8) if datum.data else np.array(datum.float_data, np.float32)
        return flat.reshape(datum.channels, datum.height, datum.width), datum.label
    except ValueError as error:
        raise UserError('%s: not an image record of Caffe (%s)' % (name, error))


class _Npz(_Source):
    """A file with `images` (n, channels, height, width) and `labels` (n,)."""

    def _count(self):
        stored = runs.read_arrays(self.path, 'it should be an .npz file with the arrays images and labels')
        if 'images' not in stored or 'labels' not in stored:
            raise UserError('%s: %s is not a file in the archive; it needs the arrays images and labels'
                            % (self.path, 'images' if 'images' not in stored else 'labels'))
        self.images, self.labels = stored['images'], stored['labels']
        if self.images.ndim != 4 or self.labels.shape != (len(self.images),):
            raise UserError('%s: images have shape %s and labels %s; (n, channels, height, width) and (n,) are needed'
                            % (self.path, self.images.shape, self.labels.shape))
        if self.images.dtype.kind not in 'uif' or self.labels.dtype.kind not in 'ui':
            raise UserError('%s: images of %s and labels of %s; numbers and whole numbers are needed'
                            % (self.path, self.images.dtype, self.labels.dtype))
        return len(self.images)

    def read_raw(self, start, stop):
        return self.images[start:stop], self.labels[start:stop].astype(np.int64)


class _Folder(_Source):
    """Pictures with their labels in labels.csv (name,label lines), or in a folder a class, in order of name.

    Colours come as blue, green, red: the order of Caffe's own tools.
    """

    def _count(self):
        table = os.path.join(self.path, 'labels.csv')
        self.items = _labelled(self.path, table) if os.path.isfile(table) else _by_class(self.path)
        return len(self.items)

    def read_raw(self, start, stop):
        items = self.items[start:stop]
        pictures = []
        for name, _ in items:
            with open(os.path.join(self.path, name), 'rb') as file:
                pictures.append(_picture(file.read(), os.path.join(self.path, name)))
        return _stack(pictures, self.path), np.array([label for _, label in items])


def _labelled(path, table):
    items = []
    try:
        with open(table, newline='') as file:
            for number, row in enumerate(csv.reader(file, strict=True), 1):
                if row:
                    items.append(_item(path, table, number, row))
    except (ValueError, csv.Error) as error:  # bytes that are no UTF-8, or no CSV
        raise UserError('%s: not a table of "name,label" lines (%s)' % (table, ' '.join(str(error).split())))
    return items


def _item(path, table, number, row):
    name, label = (row + ['', ''])[:2]
    if not re.match(r'[0-9]{1,10}$', label.strip()) or int(label) >= MOST:
        raise UserError('%s, line %d: not "name,label" with a whole number as the label' % (table, number))
    if os.path.isabs(name) or '..' in name.split('/') or '\0' in name or not os.path.isfile(os.path.join(path, name)):
        raise UserError('%s, line %d: no file %s in this folder' % (table, number, ' '.join(name.split())))
    return name, int(label)


def _by_class(path):
    classes = sorted(name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name)))
    if not classes:
        raise UserError('%s: neither labels.csv nor a folder for each class in it' % path)
    return [(os.path.join(name, file), label) for label, name in enumerate(classes)
            for file in sorted(os.listdir(os.path.join(path, name))) if file.lower().endswith(EXTENSIONS)]


def _picture(data, name):
    """The (channels, height, width) bytes of an encoded picture, blue first."""
    from PIL import Image
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data)) as picture:
            warnings.simplefilter('error', Image.DecompressionBombWarning)
            if picture.format not in FORMATS:
                raise ValueError('a %s, which is not one of %s' % (picture.format, ', '.join(FORMATS)))
            grey = picture.mode in ('1', 'L', 'I;16')
            pixels = np.array(picture.convert('L' if grey else 'RGB'))
    except Exception as error:  # PIL raises many kinds on damaged files
        raise UserError('%s: not a readable picture (%s)' % (name, ' '.join(str(error).split())))
    return pixels[None] if grey else pixels[:, :, ::-1].transpose(2, 0, 1)


def _stack(images, path):
    shapes = set(image.shape for image in images)
    if len(shapes) > 1:
        raise UserError('%s: images of several sizes (%s): bring them to one size first'
                        % (path, ', '.join('x'.join(map(str, shape)) for shape in sorted(shapes))))
    return np.stack(images)
