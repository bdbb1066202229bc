"""A user's own net with weights worked out by hand, and pictures for it, for the tests of own nets.

The net has two classes and sees images of 4 x 4 pixels: class 1 where their mean, times a scale of 1/256, is above 0.5.
Its hidden layer has 40 units, half of which each mask drops, so that passes differ and their mean hardly does.
"""

import numpy as np
from PIL import Image

from bcnn import engine
from bcnn.prototxt import reading, rewriting

UNITS = 40
BODY = '''
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1" inner_product_param { num_output: 40 } }
layer { name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" dropout_param { dropout_ratio: 0.5 } }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param { num_output: 2 } }
'''
INPUT = 'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 dim: 4 dim: 4 } } }\n'
SOFTMAX = 'layer { name: "prob" type: "Softmax" bottom: "ip2" top: "prob" }\n'
DATA = '''layer { name: "data" type: "Data" top: "data" top: "label" transform_param { %s }
        data_param { source: "nowhere" batch_size: 4 backend: LMDB } }
'''
LOSS = 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }\n'
DEPLOY = 'name: "bright"\n' + INPUT + BODY + SOFTMAX
TRAIN_VAL = 'name: "bright"\n' + DATA % 'scale: 0.00390625' + BODY + LOSS


def make_place(tmp_path_factory):
    """A new folder `bright` with a deploy net, its weights, and pictures in class folders."""
    place = tmp_path_factory.mktemp('own') / 'bright'
    place.mkdir()
    write_net(place)
    write_class_folders(place / 'pictures')
    return place


def write_net(folder):
    """Writes deploy.prototxt and bright.caffemodel."""
    (folder / 'deploy.prototxt').write_text(DEPLOY)
    save(rewriting.to_deploy(reading.parse(DEPLOY)), folder / 'bright.caffemodel')


def save(message, path, change=lambda params: None):
    """Saves the weights of a net with this body: class 1 by brightness; change: does more to its params."""
    def child():
        net = engine.load_net(message)
        weights, bias = (blob.data for blob in net.params['ip1'])
        weights[...], bias[...] = 1.0 / weights.shape[1], 0  # each unit has the mean of the image
        weights, bias = (blob.data for blob in net.params['ip2'])
        weights[0], weights[1], bias[...] = 0, 10.0 / UNITS, (5, 0)
        change(net.params)
        net.save(str(path))
    engine.call(child)


def grey(level, size=(4, 4)):
    """A picture of one brightness, a little uneven."""
    return (np.arange(size[0] * size[1]).reshape(size) % 3 + level).astype(np.uint8)


def write_pictures(folder, levels, size=(4, 4)):
    """Writes a picture each of these brightnesses: 000.png ..."""
    folder.mkdir(parents=True, exist_ok=True)
    for i, level in enumerate(levels):
        Image.fromarray(grey(level, size)).save(str(folder / ('%03d.png' % i)))


def digit():
    """A one in ink on white paper, as a photo would have it."""
    paper = np.full((60, 50), 235, np.uint8)
    paper[12:48, 22:28] = 20
    return paper


DARK, LIGHT = (10, 30, 60, 90), (150, 180, 210, 240)  # classes 0 and 1, where the scale is as in training


def write_class_folders(folder, size=(4, 4)):
    """Writes dark pictures into 0/, light ones into 1/."""
    write_pictures(folder / '0', DARK, size)
    write_pictures(folder / '1', LIGHT, size)


# --- a layer of Python ---------------------------------------------------------------------------------------

LAYERS = '''
import caffe


class Halve(caffe.Layer):
    def setup(self, bottom, top):
        pass

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom, top):
        top[0].data[...] = bottom[0].data / 2.0

    def backward(self, top, propagate, bottom):
        pass


class Broken(Halve):
    def forward(self, bottom, top):
        raise KeyError('of the user')
'''
PYTHON = 'layer { name: "%s" type: "Python" bottom: "data" top: "half" python_param { module: "%s" layer: "%s" } }\n'


def python_net(name, module='mylayers', kind='Halve'):
    """The net with a layer of the user's own after the input."""
    return INPUT + PYTHON % (name, module, kind) + BODY.replace('bottom: "data"', 'bottom: "half"') + SOFTMAX
