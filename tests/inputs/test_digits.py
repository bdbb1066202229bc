"""Photos of digits become like the digits of MNIST."""

import itertools

import numpy as np
import pytest
from PIL import Image

from bcnn.errors import UserError
from bcnn.inputs import digits


def digit():
    """A seven as MNIST has them: strokes of some width, 20 pixels high, its weight in the middle."""
    large = np.zeros((200, 200), np.uint8)
    large[20:45, 40:160] = 255
    for k in range(150):
        large[30 + k, 140 - k // 2:165 - k // 2] = 255
    small = np.array(Image.fromarray(large[20:180, 40:165]).resize((16, 20), Image.BOX))
    return digits._centred(small / 255.0)


def photo(small, paper=230, ink=30, size=(300, 400), at=(30, 210), zoom=6, shade=0, noise=0.0):
    """The digit on paper: large, dark on light, in a corner, with a shadow and noise."""
    large = np.array(Image.fromarray(small).resize((28 * zoom, 28 * zoom), Image.BICUBIC)) / 255.0
    page = np.full(size, float(paper)) - np.linspace(0, shade, size[1])[None]
    where = tuple(slice(start, start + 28 * zoom) for start in at)
    page[where] += (ink - paper) * large
    return np.clip(page + noise * np.random.RandomState(0).randn(*size), 0, 255).astype(np.uint8)


@pytest.mark.parametrize('changes', [{}, {'shade': 90}, {'noise': 6}, {'paper': 20, 'ink': 220}, {'at': (100, 5)}, {'zoom': 3},
                                     {'size': (1200, 900), 'at': (700, 100)}, {'paper': 180, 'ink': 90, 'shade': 40, 'noise': 4}],
                         ids=str)
def test_a_photo_becomes_the_digit_that_it_shows(changes):
    right = digit()
    found, what = digits.from_photo(photo(right, **changes))
    assert found.shape == (28, 28) and found.dtype == np.uint8
    moved = [np.roll(found, shift, axis=(0, 1)) for shift in itertools.product((-1, 0, 1), repeat=2)]  # half a pixel is rounded
    assert max(np.corrcoef(one.ravel(), right.ravel())[0, 1] for one in moved) > 0.93
    assert ('inverted' in what) == (changes.get('paper', 230) > 127) and 'centred' in what


def test_what_is_like_mnist_stays_and_what_is_dark_on_light_does_not():
    right = digit()
    found, what = digits.from_photo(right)
    assert found is right and what == 'as it is'
    found, what = digits.from_photo(255 - right)
    assert 'inverted' in what and np.corrcoef(found.ravel(), right.ravel())[0, 1] > 0.95


def test_colours_are_left_out():
    right = digit()
    coloured = np.repeat(photo(right)[:, :, None], 3, axis=2)
    assert np.array_equal(digits.from_photo(coloured)[0], digits.from_photo(photo(right))[0])


@pytest.mark.parametrize('level', [0, 128, 255])
def test_paper_without_ink_is_refused(level):
    with pytest.raises(UserError, match='x.png: no digit'):
        digits.from_photo(np.full((50, 40), level, np.uint8), 'x.png')
