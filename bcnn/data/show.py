"""Contact sheets: what the images look like raw, contrast-normalised, and whitened."""

import os
from typing import Iterable, Optional

import numpy as np

from ..errors import UserError
from ..system import files
from . import cifar, records, sets, whiten

DIGITS = tuple(str(i) for i in range(10))
FASHION = ('T-shirt', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt', 'sneaker', 'bag', 'ankle boot')
NAMES = {'mnist': DIGITS, 'fashion_mnist': FASHION, 'cifar10': cifar.CLASSES}  # of the classes of each set
PER_CLASS = 2
ZOOM, GAP, MARGIN, HEAD = 3, 6, 110, 64  # pixels of the picture


def sheet(name: str, data: str = sets.DATA, out: Optional[str] = None) -> str:
    """The path of a PNG with the first two images of each class of a set: raw, GCN, whitened."""
    folder = sets.require(name, data)
    if name == 'nin_weights':
        raise UserError('nin_weights has no images: --show mnist, fashion_mnist, cifar10 ...')
    raw = 'cifar10_raw' if name.startswith('cifar10') else name
    images, labels = records.load(os.path.join(sets.require(raw, data), 'train_lmdb'))
    chosen = np.concatenate([[np.flatnonzero(labels == k)[n] for k in range(10)] for n in range(PER_CLASS)])
    whitener = _whitener(raw, images, data)
    rows = [('raw', images[chosen]), ('GCN', whiten.gcn(images[chosen]).reshape(images[chosen].shape)),
            ('GCN + ZCA', whitener.apply(images[chosen]))]
    if name == 'cifar10_pad4':
        rows.append(('padded', records_at(os.path.join(folder, 'train_lmdb'), chosen)))
    names = NAMES['cifar10' if raw == 'cifar10_raw' else 'fashion_mnist' if name == 'fashion_mnist' else 'mnist']
    path = out or os.path.join(data, name + '.png')
    picture = _draw([(title, _visible(row)) for title, row in rows], names, name)
    with files.atomic(path) as temporary:
        picture.save(temporary, 'PNG')
    return path


def _whitener(raw, images, data):
    """The set's own whitening; for MNIST and its like, which the nets read raw, one fitted here for the picture."""
    if raw == 'cifar10_raw':
        return whiten.load(os.path.join(sets.require('cifar10', data), 'zca.npz'))
    return whiten.fit(images)


def records_at(path: str, indices: Iterable[int]) -> np.ndarray:
    """The images of an LMDB at some places."""
    return np.concatenate([records.load(path, i, i + 1)[0] for i in indices])


def _visible(images):
    """Images (N, C, H, W) as bytes (N, H, W, 3); floats: zero is grey, three standard deviations the range."""
    if images.dtype != np.uint8:
        images = np.clip(np.rint(127.5 + 127.5 * images / (3 * np.std(images) or 1.0)), 0, 255).astype(np.uint8)
    images = images.transpose(0, 2, 3, 1)
    return np.repeat(images, 3, axis=3) if images.shape[3] == 1 else images


def _draw(rows, classes, name):
    """A PIL image with a column a class and, for each example, a line of tiles a (title, images) of rows."""
    from PIL import Image, ImageDraw
    columns = len(classes)
    side = ZOOM * max(images.shape[1] for _, images in rows)
    height = HEAD + PER_CLASS * (len(rows) * (side + GAP) + 2 * GAP)
    picture = Image.new('RGB', (MARGIN + columns * (side + GAP) + GAP, height), 'white')
    pen, small, large = ImageDraw.Draw(picture), _font(14), _font(17)
    pen.text((GAP, GAP), '%s: the first %d images of each class' % (name, PER_CLASS), fill='black', font=large)
    for j, title in enumerate(classes):
        pen.text((MARGIN + j * (side + GAP), HEAD - 22), title, fill='black', font=small)
    for n in range(PER_CLASS):
        for i, (title, images) in enumerate(rows):
            y = HEAD + n * (len(rows) * (side + GAP) + 2 * GAP) + i * (side + GAP)
            pen.text((GAP, y + side // 2 - 8), title, fill='black', font=small)
            for j in range(columns):
                picture.paste(_tile(images[n * columns + j], side), (MARGIN + j * (side + GAP), y))
    return picture


def _tile(pixels, side):
    """A square PIL image with `pixels` (H, W, 3) enlarged in its middle."""
    from PIL import Image
    size = ZOOM * len(pixels)
    tile = Image.new('RGB', (side, side), 'white')
    tile.paste(Image.fromarray(pixels).resize((size, size), Image.NEAREST), ((side - size) // 2, (side - size) // 2))
    return tile


def _font(size):
    """Matplotlib's font, which is there with Caffe's Python; else Pillow's own small one."""
    from PIL import ImageFont
    try:
        from matplotlib import font_manager
        return ImageFont.truetype(font_manager.findfont('DejaVu Sans'), size)
    except (ImportError, OSError):
        return ImageFont.load_default()
