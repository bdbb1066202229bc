"""What is done to images before a net gets them, as Caffe's data layers do it; what a prototxt and a user say of it.

In this order: grey or coloured, resized, whitened (the paper's CIFAR-10), less the mean, the centre cut out, scaled.
"""

import functools
import os
from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from ..data import whiten
from ..errors import UserError


class Transform(NamedTuple):
    """What is done to images; of colours only to pictures, as arrays come in an order of their own."""

    scale: float = 1.0                        # factor, after the mean
    mean: Any = None                          # (channels, 1, 1) or (channels, height, width)
    crop: Optional[int] = None                # side of the square in the centre
    resize: Optional[Tuple[int, int]] = None  # height, width
    channels: Optional[int] = None            # of a picture: 1 grey, 3 coloured, None as it is
    order: str = 'bgr'                        # of the colours: bgr as Caffe's own tools, or rgb
    whitening: Optional[str] = None           # file by which images of bytes are whitened


NONE = Transform()


class Options(NamedTuple):
    """What a user says; None for nothing."""

    scale: Optional[float] = None
    mean: Any = None                          # path of a .binaryproto or .npy, an array, or values a channel
    channels: Optional[str] = None            # bgr or rgb
    resize: Optional[Tuple[int, int]] = None
    crop: Optional[int] = None


# --- where it comes from ---------------------------------------------------------------------

def of_paper(data: Any, whitening: Optional[str] = None) -> Transform:
    """The Transform for a net of the paper; data: of its entry in bcnn.nets; whitening: file for images of bytes."""
    return Transform(scale=data.scale or 1.0, crop=data.crop, channels=data.shape[0],
                     order='rgb' if whitening else 'bgr', whitening=whitening)


def of_layer(layer: Any, mean_given: bool = False) -> Transform:
    """The Transform that a data layer says; None for NONE. mean_given: whether its own mean is not wanted."""
    if layer is None:
        return NONE
    transform = of_parameter(layer.transform_param, mean_given)
    if layer.type == 'ImageData':
        image = layer.image_data_param
        transform = transform._replace(channels=3 if image.is_color else 1)
        if image.new_height or image.new_width:
            if not (image.new_height and image.new_width):
                raise UserError('layer %r: new_height and new_width need each other' % layer.name)
            transform = transform._replace(resize=(image.new_height, image.new_width))
    return transform


def of_parameter(parameter: Any, mean_given: bool = False) -> Transform:
    """The Transform of a TransformationParameter."""
    mean = None
    if parameter.mean_file and not mean_given:
        mean = _mean_file(parameter.mean_file, ', which the data layer names: --mean FILE names another')
    elif parameter.mean_value:
        mean = np.array(parameter.mean_value, np.float32).reshape(-1, 1, 1)
    channels = 3 if parameter.force_color else 1 if parameter.force_gray else None
    return Transform(scale=parameter.scale, mean=mean, crop=parameter.crop_size or None, channels=channels)


def with_options(transform: Transform, options: Options) -> Transform:
    """The Transform with what the user says in the place of its own."""
    changes = {}
    if options.scale is not None:
        if not np.isfinite(options.scale) or options.scale == 0:
            raise UserError('--scale %g: it must be a number other than 0' % options.scale)
        changes['scale'] = float(options.scale)
    if options.mean is not None:
        changes['mean'] = read_mean(options.mean)
    if options.channels is not None:
        if options.channels not in ('bgr', 'rgb'):
            raise UserError('--channels %s: it is bgr or rgb' % (options.channels,))
        changes['order'] = options.channels
    if options.resize is not None:
        if len(options.resize) != 2 or min(options.resize) < 1:
            raise UserError('--resize %s: not of the form 227,227 (height, width)' % (options.resize,))
        changes['resize'] = tuple(int(side) for side in options.resize)
    if options.crop is not None:
        if options.crop < 1:
            raise UserError('--crop %d: it must be 1 or more' % options.crop)
        changes['crop'] = int(options.crop)
    return transform._replace(**changes)


def read_mean(given: Any) -> np.ndarray:
    """The mean as an array (channels, 1, 1) or (channels, height, width), from whatever names it."""
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        if not os.path.isfile(path):
            return _mean_values(path)
        if path.endswith('.npy'):
            return _as_mean(_read_npy(path), path)
        return _mean_file(path, '')
    return _as_mean(given, 'the mean')


def _mean_values(text):
    try:
        return _as_mean([float(part) for part in text.split(',')], '--mean ' + text)
    except ValueError:
        raise UserError('--mean %s: no such file, and not values a channel like 104,117,123' % text)


def _read_npy(path):
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError('%s: not an .npy file (%s)' % (path, ' '.join(str(error).split())))


def _as_mean(values, name):
    try:
        mean = np.asarray(values, np.float32)
    except (TypeError, ValueError):
        mean = np.zeros(())
    if mean.ndim == 4 and len(mean) == 1:
        mean = mean[0]
    if mean.ndim <= 1:
        mean = mean.reshape(-1, 1, 1)
    if mean.ndim != 3 or not mean.size or not np.isfinite(mean).all():
        raise UserError('%s: a mean is numbers a channel, or an image of channels x height x width; this has shape %s'
                        % (name, np.shape(values)))
    return mean


def _mean_file(path, advice):
    """The mean in a .binaryproto of Caffe's."""
    from ..engine import caffe_pb2, parse_bytes
    try:
        with open(path, 'rb') as file:
            blob = parse_bytes(caffe_pb2.BlobProto(), file.read())
        shape = tuple(blob.shape.dim)[-3:] or (blob.channels, blob.height, blob.width)
        mean = np.array(blob.data, np.float32).reshape(shape)
        if mean.ndim != 3 or not mean.size:
            raise ValueError('not of three dimensions')
        return mean
    except (OSError, ValueError, OverflowError) as error:
        raise UserError('%s: cannot read this mean file%s (%s)' % (path, advice, error))


# --- for people --------------------------------------------------------------------------------

def describe(transform: Transform, decoded: Optional[int] = None, whitens: bool = False) -> str:
    """'less the mean 104, 117, 123; times 0.017': what is done; 'nothing' for nothing.

    decoded: the channels of pictures that are decoded here, whose colours are ours to order; whitens: whether the
    images are bytes.
    """
    parts = []
    if decoded:
        order = 'blue, green, red' if transform.order == 'bgr' else 'red, green, blue'
        parts.append('grey' if decoded == 1 else 'colours in the order %s' % order)
    if transform.resize:
        parts.append('resized to %d x %d' % transform.resize)
    if transform.whitening and whitens:
        parts.append('contrast-normalised and whitened as CIFAR-10')
    if transform.mean is not None:
        values = transform.mean.reshape(len(transform.mean), -1).mean(axis=1)
        image = '' if transform.mean.shape[1:] == (1, 1) else 'image, on average '
        parts.append('less the mean %s%s' % (image, ', '.join('%g' % value for value in np.round(values, 3))))
    if transform.crop:
        parts.append('the centre of %d x %d' % (transform.crop, transform.crop))
    if transform.scale != 1:
        parts.append('times %.7g' % transform.scale)
    return '; '.join(parts) or 'nothing'


def options_for(layer: Any) -> str:
    """'--scale 0.0039 --mean mean.binaryproto': what gives a deploy net that which this data layer does."""
    parameter, words = layer.transform_param, []
    if parameter.scale != 1:
        words.append('--scale %.7g' % parameter.scale)
    if parameter.mean_file:
        words.append('--mean %s' % parameter.mean_file)
    elif parameter.mean_value:
        words.append('--mean %s' % ','.join('%g' % value for value in parameter.mean_value))
    if parameter.crop_size:
        words.append('--crop %d' % parameter.crop_size)
    if layer.type == 'ImageData' and layer.image_data_param.new_height:
        words.append('--resize %d,%d' % (layer.image_data_param.new_height, layer.image_data_param.new_width))
    return ' '.join(words)


def looks_scaled(images: np.ndarray, transform: Transform) -> bool:
    """Whether images of at most 1 meet a scale or a mean for bytes."""
    for_bytes = abs(transform.scale) < 0.1 or transform.mean is not None and np.abs(transform.mean).max() > 2
    return bool(for_bytes and images.size and 0 < np.abs(images).max() <= 1)


# --- doing it ----------------------------------------------------------------------------------

def apply(transform: Transform, images: np.ndarray) -> np.ndarray:
    """The images (n, channels, height, width), of the right size, as the net gets them."""
    if transform.whitening and images.dtype == np.uint8:
        images = _whitened(transform.whitening, images)
    images = images.astype(np.float32)
    if transform.mean is not None:
        images = images - _fitting_mean(transform.mean, images)
    if transform.crop:
        images = crop(images, transform.crop, *centre(images, transform.crop))
    return images if transform.scale == 1 else images * np.float32(transform.scale)


def _fitting_mean(mean, images):
    if not mean.size:
        raise UserError('the mean is of %d x %d pixels: it is empty' % mean.shape[1:])
    if mean.shape[0] not in (1, images.shape[1]):
        raise UserError('the mean has %d channels, the images have %d' % (mean.shape[0], images.shape[1]))
    if mean.shape[1:] not in ((1, 1), images.shape[2:]):
        values = ','.join('%g' % value for value in np.round(mean.mean(axis=(1, 2)), 3))
        sizes = mean.shape[1:] + images.shape[2:] + mean.shape[1:]
        raise UserError('the mean is of %d x %d pixels, the images of %d x %d: --resize %d,%d brings them to its size, '
                        'or take its values a channel, --mean %s' % (sizes + (values,)))
    return mean


def _whitened(path, images):
    if not os.path.isfile(path):
        raise UserError('the net takes whitened images, these are bytes, and %s, by which they would be whitened, is '
                        'not there: python tools/prepare_data.py cifar10' % path)
    try:
        return _whitener(path).apply(images)
    except ValueError:
        raise UserError('images of %s cannot be whitened as CIFAR-10, whose are 3x32x32: --resize 32,32 scales them'
                        % 'x'.join(map(str, images.shape[1:])))


_whitener = functools.lru_cache(maxsize=1)(whiten.load)


def centre(images: np.ndarray, size: int) -> Tuple[int, int]:
    """(top, left) of the square of this size in the middle."""
    return (images.shape[2] - size) // 2, (images.shape[3] - size) // 2


def crop(images: np.ndarray, size: int, top: int, left: int) -> np.ndarray:
    """The square of this size at (top, left) of each image."""
    if min(images.shape[2:]) < size:
        raise UserError('cannot crop %d x %d from images of %d x %d' % ((size, size) + images.shape[2:]))
    return images[:, :, top:top + size, left:left + size]


def random_views(images: np.ndarray, size: int, rng: np.random.RandomState) -> np.ndarray:
    """For each image a random crop of this size, mirrored or not: what a data layer does in training."""
    n, channels, height, width = images.shape
    tops, lefts = rng.randint(height - size + 1, size=n), rng.randint(width - size + 1, size=n)
    views = np.empty((n, channels, size, size), images.dtype)
    for i, mirrored in enumerate(rng.rand(n) < 0.5):
        view = images[i, :, tops[i]:tops[i] + size, lefts[i]:lefts[i] + size]
        views[i] = view[:, :, ::-1] if mirrored else view
    return views
