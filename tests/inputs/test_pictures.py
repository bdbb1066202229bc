"""Pictures come to a net as Caffe's own ImageData layer brings them, byte for byte."""

import io

import numpy as np
import pytest
from google.protobuf import text_format
from PIL import Image

from bcnn import engine
from bcnn.inputs import pictures

pytestmark = pytest.mark.caffe

LAYER = ('layer { name: "d" type: "ImageData" top: "data" top: "label" image_data_param { source: "%s" batch_size: 1 '
         'new_height: %d new_width: %d is_color: %s } }')


def by_caffe(folder, path, size, colour):
    """What a real ImageData layer makes of a picture."""
    (folder / 'list').write_text('%s 0\n' % path)
    net = engine.load_net(text_format.Parse(LAYER % ((folder / 'list',) + size + ('true' if colour else 'false',)),
                                            engine.caffe_pb2.NetParameter()))
    net.forward()
    return net.blobs['data'].data[0].copy()


@pytest.mark.parametrize('kind', ['png', 'jpg', 'bmp', 'ppm'])
@pytest.mark.parametrize('old, new', [
    ((37, 53), (20, 31)), ((20, 31), (37, 53)), ((40, 60), (20, 30)), ((40, 60), (20, 31)), ((10, 10), (100, 7)),
    ((5, 7), (1, 1)), ((1, 1), (4, 5)), ((6, 6), (6, 6))])
def test_decoding_greying_and_resizing_are_caffes(tmp_path, kind, old, new):
    pixels = np.random.RandomState(sum(old)).randint(0, 256, old + (3,)).astype(np.uint8)
    path = str(tmp_path / ('x.' + kind))
    Image.fromarray(pixels).save(path)
    for colour in (True, False):
        planes = pictures.planes(pictures.read(path, grey=not colour), 3 if colour else 1)
        assert np.array_equal(pictures.resize(planes, new), by_caffe(tmp_path, path, new, colour)), colour


def test_a_grey_picture_for_a_net_that_takes_colours(tmp_path):
    pixels = np.random.RandomState(0).randint(0, 256, (9, 8)).astype(np.uint8)
    Image.fromarray(pixels).save(str(tmp_path / 'x.png'))
    planes = pictures.planes(pictures.read(str(tmp_path / 'x.png')), 3)
    assert np.array_equal(planes, by_caffe(tmp_path, tmp_path / 'x.png', (9, 8), True))


def test_a_photo_is_turned_as_its_camera_says(tmp_path):
    """Orientation 6: the camera was turned, and Caffe's OpenCV turns the picture back."""
    pixels = np.random.RandomState(1).randint(0, 256, (4, 7, 3)).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    path = str(tmp_path / 'x.jpg')
    Image.fromarray(pixels).save(path, exif=exif.tobytes())
    planes = pictures.planes(pictures.read(path), 3)
    assert planes.shape == (3, 7, 4)
    assert np.array_equal(planes, by_caffe(tmp_path, path, (7, 4), True))


def test_sixteen_bits_a_pixel_are_not_cut_off():
    """PIL's own conversion takes everything above 255 for white."""
    file = io.BytesIO()
    Image.fromarray(np.array([[0, 255, 256], [32768, 65535, 1000]], np.uint16).astype(np.int32), 'I').save(file, 'PNG')
    assert pictures.decode(file.getvalue(), 'x').tolist() == [[0, 0, 1], [128, 255, 3]]


def test_colours_and_their_order():
    picture = np.array([[[1, 2, 3]]], np.uint8)
    assert pictures.planes(picture).ravel().tolist() == [3, 2, 1]
    assert pictures.planes(picture, order='rgb').ravel().tolist() == [1, 2, 3]
    assert pictures.planes(picture, 1).shape == (1, 1, 1)
    assert pictures.planes(np.array([[9]], np.uint8), 3).ravel().tolist() == [9, 9, 9]
    assert pictures.planes(np.array([[9]], np.uint8)).shape == (1, 1, 1)


def test_floats_are_resized_by_the_same_geometry():
    image = np.array([[[0.0, 1.0]]], np.float32)
    assert pictures.resize(image, (1, 4)).ravel().tolist() == [0, 0.25, 0.75, 1]
    again = np.random.RandomState(2).rand(2, 5, 6).astype(np.float32)
    close = pictures.resize((again * 255).astype(np.uint8), (8, 3)) - pictures.resize(np.floor(again * 255), (8, 3))
    assert np.abs(close).max() < 1.5
