"""idx and CIFAR-10 files: what is right parses to the same, anything else is refused in one line."""

import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from bcnn.data import cifar, idx
from bcnn.errors import UserError
from datahelp import idx_images, idx_labels, mnist_bytes

IMAGES = idx_images(np.arange(3 * 784).reshape(3, 1, 28, 28) % 251)
LABELS = idx_labels([3, 1, 4, 1, 5])
RECORDS = cifar.write_records(np.arange(2 * 3072).reshape(2, 3, 32, 32) % 251, [7, 2])


@given(st.integers(0, 4), st.integers(0, 2 ** 32 - 1))
@settings(max_examples=30)
def test_round_trips(count, seed):
    random = np.random.RandomState(seed)
    images, labels = random.randint(0, 256, (count, 1, 28, 28)), random.randint(0, 10, count)
    assert np.array_equal(idx.images(idx_images(images)), images)
    assert np.array_equal(idx.labels(idx_labels(labels)), labels)
    pictures = random.randint(0, 256, (count, 3, 32, 32))
    back = cifar.records(cifar.write_records(pictures, labels))
    assert np.array_equal(back[0], pictures) and np.array_equal(back[1], labels)


@given(st.sampled_from([(IMAGES, idx.images), (LABELS, idx.labels)]), st.data())
@settings(max_examples=200)
def test_idx_truncated_or_extended_is_refused(case, data):
    whole, parse = case
    changed = data.draw(st.one_of(st.integers(0, len(whole) - 1).map(lambda n: whole[:n]),
                                  st.binary(min_size=1, max_size=20).map(lambda more: whole + more)))
    with pytest.raises(UserError):
        parse(changed)


@given(st.sampled_from([(IMAGES, idx.images, 16), (LABELS, idx.labels, 8)]), st.data())
@settings(max_examples=300)
def test_idx_with_one_byte_changed(case, data):
    """A changed header is refused; a changed body parses to just that change, or is refused as a bad label."""
    whole, parse, header = case
    # Half of the draws in the header, which is short beside the body.
    place = data.draw(st.one_of(st.integers(0, header - 1), st.integers(header, len(whole) - 1)))
    value = data.draw(st.integers(0, 255).filter(lambda v: v != whole[place]))
    changed = bytearray(whole)
    changed[place] = value
    if place < header or (parse is idx.labels and value > 9):
        with pytest.raises(UserError):
            parse(bytes(changed))
    else:
        assert parse(bytes(changed)).tobytes() == bytes(changed[header:])


@given(st.data())
@settings(max_examples=200)
def test_cifar_changed_anyhow(data):
    place = data.draw(st.one_of(st.sampled_from([0, 3073]), st.integers(0, len(RECORDS) - 1)))
    changed = bytearray(RECORDS)
    changed[place] = data.draw(st.integers(0, 255))
    length = data.draw(st.one_of(st.just(len(RECORDS)), st.integers(0, len(RECORDS))))
    changed = bytes(changed[:length])
    if length % 3073 or any(label > 9 for label in changed[::3073]):
        with pytest.raises(UserError):
            cifar.records(changed)
    else:
        assert cifar.write_records(*cifar.records(changed)) == changed


@pytest.mark.parametrize('parse, data, message', [
    (idx.images, IMAGES[:-1], 'truncated idx file, 2367 bytes where its header announces 2368'),
    (idx.images, b'<html>' + IMAGES, 'magic number 0x3c68746d instead of 0x00000803'),
    (idx.images, LABELS + bytes(20), 'magic number 0x00000801'),
    (idx.images, IMAGES[:11] + b'\x1d' + IMAGES[12:], 'images of 29 x 28'),
    (idx.labels, idx_labels([3, 1, 11]), 'label 11 of item 2 is out of range'),
    (cifar.records, RECORDS[:-5], 'short CIFAR record'),
    (cifar.records, b'\x0a' + RECORDS[1:], 'label 10 of record 0 is out of range'),
])
def test_the_line_says_what_is_wrong(parse, data, message):
    with pytest.raises(UserError, match=message) as caught:
        parse(data, 'FILE')
    assert str(caught.value).startswith('FILE: ') and '\n' not in str(caught.value)


def png(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, 'PNG')
    return file.getvalue()


def test_png_rows_are_images():
    images = np.random.RandomState(0).randint(0, 256, (5, 3, 32, 32)).astype(np.uint8)
    rows = np.ascontiguousarray(images.transpose(0, 2, 3, 1).reshape(5, 1024, 3))
    assert np.array_equal(cifar.png_images(png(rows), count=5), images)


def bomb():
    """A valid PNG header that declares 60000 x 60000 pixels."""
    data = bytearray(png(np.zeros((2, 2, 3), np.uint8)))
    data[16:24] = b'\0\0\xea\x60\0\0\xea\x60'
    import struct
    import zlib
    data[29:33] = struct.pack('>I', zlib.crc32(bytes(data[12:29])))
    return bytes(data)


@pytest.mark.parametrize('data', [
    b'', b'<html>', png(np.zeros((5, 1024), np.uint8)), png(np.zeros((4, 1024, 3), np.uint8)),
    png(np.random.RandomState(0).randint(0, 256, (5, 1024, 3)).astype(np.uint8))[:-5000], bomb()],
    ids=['empty', 'html', 'grey', 'size', 'truncated', 'bomb'])
def test_bad_pngs(data):
    with pytest.raises(UserError, match='^x.png: '):
        cifar.png_images(data, 'x.png', count=5)


@pytest.mark.parametrize('text', ['', '[1, 2', '{"a": 1}', '[1]', '[1, 2, 10]', '[1, 2, -1]', '[1, 2, 3.0]',
                                  '[1, 2, true]', '[1, 2, "3"]', '[' * 100000, '\xff'])
def test_bad_json_labels(text):
    with pytest.raises(UserError, match='^x.json: '):
        cifar.json_labels(text.encode('latin1'), 'x.json', 3)


def test_json_labels():
    assert cifar.json_labels(json.dumps([3, 0, 9]).encode(), count=3).tolist() == [3, 0, 9]


def test_helpers_make_what_the_parsers_take():
    made = mnist_bytes(6)
    assert idx.images(made['train-images-idx3-ubyte']).shape == (6, 1, 28, 28)
