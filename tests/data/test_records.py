"""LMDB records: round trips, repeatable bytes, refusals, speed."""

import subprocess

import lmdb
import numpy as np
import pytest

from bcnn.data import records
from bcnn.errors import UserError


def images(count, shape, kind):
    random = np.random.RandomState(1)
    if kind == np.uint8:
        return random.randint(0, 256, (count,) + shape).astype(np.uint8)
    return random.randn(*((count,) + shape)).astype(np.float32)


LABELS = np.arange(2500) % 10


@pytest.mark.parametrize('kind', [np.uint8, np.float32])
@pytest.mark.parametrize('shape', [(1, 28, 28), (3, 32, 32), (3, 40, 40)])
def test_what_is_written_is_read(tmp_path, kind, shape):
    pixels, path = images(2500, shape, kind), str(tmp_path / 'lmdb')
    facts = records.write(path, [(pixels[:700], LABELS[:700]), (pixels[700:], LABELS[700:])], 5)
    assert facts == {'records': 2500, 'sha256': records.digest(path)} and records.count(path) == 2500
    back, labels = records.load(path)
    assert back.dtype == kind and np.array_equal(back, pixels) and np.array_equal(labels, LABELS)
    back, labels = records.load(path, 1200, 1203)
    assert np.array_equal(back, pixels[1200:1203]) and labels.tolist() == [0, 1, 2]
    parts = list(records.blocks(path, 900))
    assert [len(part) for part, _ in parts] == [900, 900, 700]
    assert np.array_equal(np.concatenate([part for part, _ in parts]), pixels)


def test_the_same_records_give_the_same_file(tmp_path):
    pixels = images(2500, (3, 32, 32), np.float32)
    for name in 'ab':
        records.write(str(tmp_path / name), [(pixels, LABELS)], 5)
    first, second = ((tmp_path / name / 'data.mdb').read_bytes() for name in 'ab')
    assert first == second


def test_the_digest_sees_keys_values_and_order(tmp_path):
    pixels = images(10, (1, 28, 28), np.uint8)
    labels = LABELS[:10]
    variants = [(pixels, labels, 5), (pixels, labels, 8), (pixels[::-1], labels, 5), (pixels, labels[::-1], 5)]
    digests = [records.write(str(tmp_path / str(i)), [(a, b)], c)['sha256'] for i, (a, b, c) in enumerate(variants)]
    assert len(set(digests)) == 4


def test_refusals(tmp_path):
    with pytest.raises(UserError, match='no such LMDB: make it with'):
        records.load(str(tmp_path / 'none'))
    (tmp_path / 'bad').mkdir()
    (tmp_path / 'bad' / 'data.mdb').write_bytes(b'\1' * 8192)
    with pytest.raises(UserError, match='not a readable LMDB'):
        records.load(str(tmp_path / 'bad'))
    for name, values in (('other', [b'hello', b'12345']), ('sizes', [b'a', b'bb']), ('empty', [])):
        with lmdb.open(str(tmp_path / name)) as env, env.begin(write=True) as transaction:
            for i, value in enumerate(values):
                transaction.put(b'%d' % i, value)
        with pytest.raises(UserError, match='prepare the set again'):
            records.load(str(tmp_path / name))
    with pytest.raises(ValueError):
        records.datums(images(1, (1, 2, 2), np.uint8), [128])
    with pytest.raises(TypeError):
        records.datums(np.zeros((1, 1, 2, 2)), [1])


def test_a_full_disk_is_an_oserror_with_the_path(tmp_path):
    place = tmp_path / 'disk'
    place.mkdir()
    if subprocess.call(['mount', '-t', 'tmpfs', '-o', 'size=2m', 'none', str(place)], stderr=subprocess.DEVNULL):
        pytest.skip('mounting a tmpfs needs root')
    try:
        with pytest.raises(OSError, match='No space left') as caught:
            records.write(str(place / 'lmdb'), [(images(2500, (3, 32, 32), np.float32), LABELS)], 5)
        assert caught.value.filename == str(place / 'lmdb')
    finally:
        subprocess.check_call(['umount', str(place)])
