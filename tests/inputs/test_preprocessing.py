"""What a prototxt and a user say of the images, and that it is done as Caffe does it."""

import numpy as np
import pytest
from google.protobuf import text_format

from bcnn import engine
from bcnn.data import whiten
from bcnn.errors import UserError
from bcnn.inputs import preprocessing
from bcnn.inputs.preprocessing import Options, Transform

pytestmark = pytest.mark.caffe


def layer(text):
    return text_format.Parse(text, engine.caffe_pb2.LayerParameter())


def test_an_image_data_layer_tells_size_and_colours():
    found = preprocessing.of_layer(layer('type: "ImageData" image_data_param { new_height: 5 new_width: 4 is_color: false }'
                                         ' transform_param { crop_size: 3 scale: 0.5 mean_value: 7 }'))
    assert found.resize == (5, 4) and found.channels == 1 and (found.crop, found.scale) == (3, 0.5)
    with pytest.raises(UserError, match='new_height and new_width'):
        preprocessing.of_layer(layer('type: "ImageData" image_data_param { new_height: 5 }'))
    assert preprocessing.of_layer(None) == preprocessing.NONE
    assert preprocessing.of_layer(layer('type: "Data" transform_param { force_gray: true }')).channels == 1


def test_a_mean_file_that_is_elsewhere_is_named_or_replaced():
    there = layer('type: "Data" transform_param { mean_file: "nowhere/mean.binaryproto" }')
    with pytest.raises(UserError, match='nowhere/mean.binaryproto: .*--mean FILE names another'):
        preprocessing.of_layer(there)
    assert preprocessing.of_layer(there, mean_given=True).mean is None


@pytest.mark.parametrize('given', ['1,2,3', [1, 2, 3], (1.0, 2, 3), np.array([1, 2, 3]), np.array([[[1]], [[2]], [[3]]])])
def test_values_a_channel(given):
    assert preprocessing.read_mean(given).tolist() == [[[1]], [[2]], [[3]]]


def test_files_of_means(tmp_path):
    image = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
    np.save(str(tmp_path / 'm.npy'), image)
    blob = engine.caffe_pb2.BlobProto(num=1, channels=3, height=2, width=2, data=image.ravel())
    (tmp_path / 'm.binaryproto').write_bytes(blob.SerializeToString())
    for name in ('m.npy', 'm.binaryproto'):
        assert np.array_equal(preprocessing.read_mean(tmp_path / name), image)
    for name, content in (('x.npy', b'no array'), ('x.binaryproto', b'\xff')):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match=name):
            preprocessing.read_mean(str(tmp_path / name))


@pytest.mark.parametrize('options, words', [
    (Options(scale=0), '--scale 0'), (Options(scale=float('nan')), '--scale nan'), (Options(mean='1,x'), '--mean 1,x'),
    (Options(mean='no.npy'), 'no such file'), (Options(mean=[float('inf')]), 'mean'), (Options(mean=[[1, 2]]), 'shape'),
    (Options(channels='brg'), '--channels brg'), (Options(resize=(0, 4)), '--resize'), (Options(crop=0), '--crop 0')])
def test_nonsense_is_refused(options, words):
    with pytest.raises(UserError, match=words):
        preprocessing.with_options(preprocessing.NONE, options)


def test_a_user_overrides_the_prototxt():
    made = preprocessing.with_options(Transform(scale=0.5, crop=3), Options(scale=2, mean='1', channels='rgb', resize=(8, 9)))
    assert (made.scale, made.crop, made.order, made.resize, made.mean.tolist()) == (2, 3, 'rgb', (8, 9), [[[1]]])


def test_what_is_done_is_told_in_words():
    made = Transform(scale=0.017, mean=np.ones((3, 4, 4)), crop=2, resize=(4, 4))
    assert preprocessing.describe(made) == ('resized to 4 x 4; less the mean image, on average 1, 1, 1; '
                                            'the centre of 2 x 2; times 0.017')
    assert preprocessing.describe(preprocessing.NONE) == 'nothing'
    assert preprocessing.describe(preprocessing.NONE, decoded=1) == 'grey'
    assert 'blue, green, red' in preprocessing.describe(preprocessing.NONE, decoded=3)


def test_a_mean_of_another_size_is_refused_with_its_values():
    with pytest.raises(UserError, match=r'--resize 4,4 .*--mean 2,2,2'):
        preprocessing.apply(Transform(mean=np.full((3, 4, 4), 2, np.float32)), np.zeros((1, 3, 5, 5)))


def test_bytes_are_whitened_and_floats_are_not(tmp_path):
    rng = np.random.RandomState(0)
    pixels = rng.randint(0, 256, (60, 1, 3, 3)).astype(np.uint8)
    fitted = whiten.fit(pixels)
    path = str(tmp_path / 'zca.npz')
    fitted.save(path)
    made = Transform(whitening=path)
    assert np.array_equal(preprocessing.apply(made, pixels), fitted.apply(pixels))
    floats = pixels.astype(np.float32)
    assert np.array_equal(preprocessing.apply(made, floats), floats)
    with pytest.raises(UserError, match='--resize 32,32'):
        preprocessing.apply(made, pixels[:, :, :2])
    with pytest.raises(UserError, match='prepare_data.py cifar10'):
        preprocessing.apply(Transform(whitening=str(tmp_path / 'no.npz')), pixels)


def test_numbers_of_at_most_1_for_a_net_that_expects_bytes():
    ones = np.full((1, 1, 2, 2), 0.9)
    assert preprocessing.looks_scaled(ones, Transform(scale=1 / 256.0))
    assert preprocessing.looks_scaled(ones, Transform(mean=np.full((1, 1, 1), 104.0)))
    assert not preprocessing.looks_scaled(ones * 200, Transform(scale=1 / 256.0))
    assert not preprocessing.looks_scaled(ones, Transform())
