"""Images from LMDBs, .npz files and folders come to the net as Caffe's own data layer would bring them."""

import io
import os

import hypothesis.strategies as st
import lmdb
import numpy as np
import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from PIL import Image

import trainhelp
from bcnn import engine
from bcnn.errors import UserError
from bcnn.inputs import preprocessing, sources

pytestmark = pytest.mark.caffe

Datum = engine.caffe_pb2.Datum


def write_lmdb(path, datums):
    with lmdb.open(str(path), map_size=1 << 26) as env, env.begin(write=True) as transaction:
        for i, datum in enumerate(datums):
            transaction.put(b'%08d' % i, datum if isinstance(datum, bytes) else datum.SerializeToString())
    return str(path)


def picture(rng, size=(6, 5), colour=True):
    return rng.randint(0, 256, size + ((3,) if colour else ())).astype(np.uint8)


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, 'PNG')
    return file.getvalue()


def byte_datum(pixels, label):
    return Datum(channels=pixels.shape[0], height=pixels.shape[1], width=pixels.shape[2], data=pixels.tobytes(), label=label)


def assert_read_as_caffe_does(path, transform, count):
    """The images and labels of an LMDB are those of Caffe's own data layer with this transform_param."""
    net = engine.load_net(text_format.Parse(
        'layer { name: "d" type: "Data" top: "data" top: "label" transform_param { %s } '
        'data_param { source: "%s" backend: LMDB batch_size: %d } }' % (transform, path, count), engine.caffe_pb2.NetParameter()))
    net.forward()
    parameter = text_format.Parse(transform, engine.caffe_pb2.TransformationParameter())
    images, labels = sources.open_images(path, preprocessing.of_parameter(parameter)).read(0, count)
    assert np.array_equal(images, net.blobs['data'].data)
    assert np.array_equal(labels, net.blobs['label'].data)


@pytest.mark.parametrize('transform', [
    '', 'scale: 0.00390625', 'mean_value: 10 mean_value: 20 mean_value: 30 scale: 0.5', 'crop_size: 4', 'mean_value: 7 crop_size: 3'])
def test_an_lmdb_is_read_as_caffes_data_layer_reads_it(tmp_path, transform):
    rng = np.random.RandomState(0)
    pixels = rng.randint(0, 256, (5, 3, 8, 6)).astype(np.uint8)
    path = write_lmdb(tmp_path / 'lmdb', [byte_datum(image, i + 300) for i, image in enumerate(pixels)])
    assert_read_as_caffe_does(path, transform, 5)
    labels = sources.open_images(path).read(0, 5)[1]
    assert labels.tolist() == [300, 301, 302, 303, 304]


def test_a_mean_file_is_subtracted_as_caffe_does(tmp_path):
    rng = np.random.RandomState(1)
    pixels = rng.randint(0, 256, (2, 3, 8, 8)).astype(np.uint8)
    path = write_lmdb(tmp_path / 'lmdb', [byte_datum(image, 0) for image in pixels])
    mean = rng.rand(3, 8, 8).astype(np.float32) * 100
    blob = engine.caffe_pb2.BlobProto(num=1, channels=3, height=8, width=8, data=mean.ravel())
    (tmp_path / 'mean').write_bytes(blob.SerializeToString())
    assert_read_as_caffe_does(path, 'mean_file: "%s" crop_size: 5 scale: 2' % (tmp_path / 'mean'), 2)


def test_floats_and_encoded_pictures(tmp_path):
    rng = np.random.RandomState(2)
    floats = rng.randn(2, 3, 4, 4).astype(np.float32)
    path = write_lmdb(tmp_path / 'floats', [
        Datum(channels=3, height=4, width=4, float_data=image.ravel(), label=i) for i, image in enumerate(floats)])
    assert np.array_equal(sources.open_images(path).read(0, 2)[0], floats)
    pixels = picture(rng)
    path = write_lmdb(tmp_path / 'encoded', [Datum(data=png(pixels), label=2, encoded=True)])
    found, labels = sources.open_images(path).read(0, 1)
    assert np.array_equal(found[0], pixels[:, :, ::-1].transpose(2, 0, 1))  # blue first
    assert labels.tolist() == [2]


def test_a_span_is_a_slice_of_the_whole(tmp_path):
    pixels = np.arange(7 * 12, dtype=np.uint8).reshape(7, 3, 2, 2)
    path = write_lmdb(tmp_path / 'lmdb', [byte_datum(image, i) for i, image in enumerate(pixels)])
    source = sources.open_images(path)
    assert source.count == 7 and source.shape == (3, 2, 2)
    assert np.array_equal(source.read(2, 5)[0], pixels[2:5])
    assert source.read(5, 7)[1].tolist() == [5, 6]


def test_an_npz_and_its_refusals(tmp_path):
    path = str(tmp_path / 'x.npz')
    pixels, labels = np.ones((4, 1, 2, 2), np.float32), np.array([0, 1, 2, 3])
    np.savez(path, images=pixels, labels=labels)
    source = sources.open_images(path)
    assert source.count == 4 and source.read(1, 3)[1].tolist() == [1, 2]
    for arrays in [dict(images=pixels), dict(images=pixels[0], labels=labels), dict(images=pixels, labels=labels[:2]),
                   dict(images=pixels, labels=labels.astype(float)), dict(images=np.array([None, {}]), labels=labels),
                   dict(images=pixels[:0], labels=labels[:0])]:
        np.savez(path, **arrays)
        with pytest.raises(UserError) as caught:
            sources.open_images(path)
        assert path in str(caught.value)


def test_a_folder_for_each_class(tmp_path):
    rng = np.random.RandomState(3)
    for name in ('cat', 'ant'):
        (tmp_path / name).mkdir()
        for i in range(2):
            (tmp_path / name / ('%d.png' % i)).write_bytes(png(picture(rng)))
    (tmp_path / 'ant' / 'notes.txt').write_text('no picture')
    source = sources.open_images(str(tmp_path))
    assert source.count == 4 and source.shape == (3, 6, 5)
    assert source.read(0, 4)[1].tolist() == [0, 0, 1, 1]  # ant before cat


def test_a_folder_with_labels_csv(tmp_path):
    rng = np.random.RandomState(4)
    for name in ('a.png', 'b.png'):
        (tmp_path / name).write_bytes(png(picture(rng, colour=False)))
    (tmp_path / 'labels.csv').write_text('b.png,7\na.png,1\n')
    source = sources.open_images(str(tmp_path))
    assert source.shape == (1, 6, 5)
    assert source.read(0, 2)[1].tolist() == [7, 1]


@pytest.mark.parametrize('line', ['a.png,x', 'a.png', 'none.png,1', '../a.png,1', '/etc/passwd,1', 'a.png,-1'])
def test_a_bad_line_of_labels_is_named(tmp_path, line):
    (tmp_path / 'a.png').write_bytes(png(picture(np.random.RandomState(5))))
    (tmp_path / 'labels.csv').write_text('a.png,1\n%s\n' % line)
    with pytest.raises(UserError, match='line 2'):
        sources.open_images(str(tmp_path))


def test_pictures_of_several_sizes_are_refused(tmp_path):
    (tmp_path / 'one').mkdir()
    for size in (5, 6):
        (tmp_path / 'one' / ('%d.png' % size)).write_bytes(png(picture(np.random.RandomState(6), size=(size, size))))
    with pytest.raises(UserError, match='several sizes'):
        sources.open_images(str(tmp_path)).read(0, 2)


@pytest.mark.parametrize('make', [
    lambda path: path, lambda path: path.mkdir(), lambda path: path.write_text('x'),
    lambda path: (path.mkdir(), (path / 'data.mdb').write_bytes(b'x' * 5000))])
def test_what_holds_no_images_is_refused(tmp_path, make):
    path = tmp_path / 'thing'
    make(path)
    with pytest.raises(UserError) as caught:
        sources.open_images(str(path))
    assert str(path) in str(caught.value)


@settings(max_examples=60)
@given(st.binary(max_size=200))
def test_any_bytes_as_a_record_an_archive_or_a_picture(tmp_path_factory, data):
    """Whatever a file holds: images, or a UserError."""
    folder = tmp_path_factory.mktemp('fuzz')
    (folder / 'x.npz').write_bytes(data)
    (folder / 'class').mkdir()
    (folder / 'class' / 'x.png').write_bytes(data)
    path = write_lmdb(folder / 'lmdb', [data or b'\0'])
    for place in (path, str(folder), str(folder / 'x.npz')):
        try:
            source = sources.open_images(place)
            assert source.read(0, 1)[0].ndim == 4
        except UserError:
            pass


def test_random_views_are_crops_and_mirrors():
    rng = np.random.RandomState(0)
    whole = np.arange(200 * 36, dtype=np.float32).reshape(200, 1, 6, 6)
    views = preprocessing.random_views(whole, 4, rng)
    seen = set()
    for image, view in zip(whole, views):
        found = [(top, left, mirrored) for top in range(3) for left in range(3) for mirrored in (False, True)
                 if np.array_equal(view, image[:, top:top + 4, left:left + 4][:, :, ::-1 if mirrored else 1])]
        assert len(found) == 1
        seen.add(found[0])
    assert len(seen) == 18  # each of 9 places, mirrored and not


def test_images_are_the_same_whatever_is_done_to_them(tmp_path):
    """By their files, records or arrays, with their labels; what the net gets is told apart."""
    np.savez(str(tmp_path / 'a.npz'), images=np.arange(8, dtype=np.uint8).reshape(2, 1, 2, 2), labels=[0, 1])
    for k in (0, 1):
        (tmp_path / 'folder' / str(k)).mkdir(parents=True)
        Image.fromarray(np.full((4, 4), 50 * k, np.uint8)).save(str(tmp_path / 'folder' / str(k) / 'x.png'))
    images, labels = np.ones((2, 1, 2, 2), np.uint8), np.array([1, 0])
    trainhelp.make_set(tmp_path, 'mnist', test=(images, labels))
    seen = set()
    for path in (tmp_path / 'a.npz', tmp_path / 'folder', tmp_path / 'mnist' / 'test_lmdb'):
        one, other = (sources.open_images(str(path), preprocessing.Transform(scale=scale, channels=1)) for scale in (1, 0.5))
        assert one.stored_digest(2) == other.stored_digest(2) and one.scan(2)[1] != other.scan(2)[1]
        seen |= {one.stored_digest(2), one.stored_digest(1)}
    assert len(seen) == 6


def test_the_digest_tells_images_apart(tmp_path):
    pixels = np.zeros((3, 1, 2, 2), np.float32)
    digests = set()
    for change in range(3):
        labels = np.array([0, 0, change])
        path = str(tmp_path / ('%d.npz' % change))
        np.savez(path, images=pixels, labels=labels)
        digests.add(sources.open_images(path).scan(3)[1])
        digests.add(sources.open_images(path).scan(2)[1])
    assert len(digests) == 4  # the first two images are the same each time
    assert os.path.exists(path)
