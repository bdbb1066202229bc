"""Standard and MC dropout by hand: a net of two pixels, all masks enumerated; and the published NIN weights."""

import itertools
import os

import numpy as np
import pytest

from bcnn import nets
from bcnn.engine import caffe_pb2, load_net, set_seed
from bcnn.prototxt import reading, rewriting
from conftest import ROOT

pytestmark = pytest.mark.caffe

TWO_PIXELS = '''
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 2 } } }
layer { name: "drop0" type: "Dropout" bottom: "data" top: "drop0" dropout_param { dropout_ratio: 0.5 } }
layer { name: "ip1" type: "InnerProduct" bottom: "drop0" top: "ip1" inner_product_param { num_output: 2 } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" dropout_param { dropout_ratio: %(p)g } }
HALF
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2" inner_product_param { num_output: 2 } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
'''
LABEL = 'layer { name: "label" type: "Input" top: "label" input_param { shape { dim: 1 } } }'
POWER = 'layer { name: "mask1" type: "Power" bottom: "ip1" top: "ip1" power_param { scale: 0.5 } }'
W1 = np.array([[1, -1], [0.5, 1]])
W2 = np.array([[1, 0.5], [-1, 0.25]])
PIXELS = np.array([1.0, 2])
SAMPLES = 40000


def by_hand(mask0, mask1):
    """The first class's probability with these factors on the two pixels and the two hidden units."""
    hidden = np.maximum(W1 @ (PIXELS * mask0), 0) * mask1
    scores = W2 @ hidden
    return 1 / (1 + np.exp(scores[1] - scores[0]))


def enumerated(p, half):
    """(mean, standard deviation, values) of that probability over all 16 masks."""
    values, weights = [], []
    for mask in itertools.product((0, 1), repeat=4):
        keep1 = np.array(mask[2:])
        values.append(by_hand(2 * np.array(mask[:2]), half * keep1 / (1 - p)))
        weights.append(0.25 * np.prod(np.where(keep1, 1 - p, p)))
    mean = np.dot(weights, values)
    return mean, np.sqrt(np.dot(weights, (np.array(values) - mean) ** 2)), np.array(values)


def two_pixels(make, p, half, count):
    text = LABEL + TWO_PIXELS.replace('HALF', POWER if half == 0.5 else '') % dict(p=p)
    net = load_net(make(reading.parse(text), batch=count))
    net.params['ip1'][0].data[...] = W1
    net.params['ip2'][0].data[...] = W2
    net.blobs['data'].data[...] = PIXELS
    set_seed(1)
    net.forward()
    return net.blobs['prob'].data[:, 0]


def test_standard_by_hand():
    # hidden: relu(1 - 2) = 0, relu(0.5 + 2) = 2.5; scores 1.25 and 0.625; 1 / (1 + e^-0.625)
    assert two_pixels(rewriting.to_deploy, 0.5, 1, 3) == pytest.approx(0.6513549, abs=1e-6)
    # with the fork's dropout the hidden units are halved: scores 0.625 and 0.3125
    assert two_pixels(rewriting.to_deploy, 0.5, 0.5, 3) == pytest.approx(0.5774954, abs=1e-6)


@pytest.mark.parametrize('p, half', [(0.5, 1), (0.5, 0.5), (0.2, 1)])
def test_mc_mean_converges_to_the_expectation_over_all_masks(p, half):
    mean, deviation, values = enumerated(p, half)
    assert abs(mean - by_hand(1, half)) > 0.01  # MC and Standard do differ here
    samples = two_pixels(rewriting.to_mc, p, half, SAMPLES)
    assert abs(samples.mean() - mean) < 4 * deviation / np.sqrt(SAMPLES)
    assert samples.std() == pytest.approx(deviation, rel=0.03)
    nearest = np.abs(samples[:, None] - values[None]).min(1)
    assert nearest.max() < 1e-6  # no value that no mask gives
    for value in np.unique(values.round(6)):
        assert np.any(np.abs(samples - value) < 1e-5)  # and each that one does


def test_dropout_of_no_share_is_standard():
    text = LABEL + TWO_PIXELS.replace('HALF', '').replace('dropout_ratio: 0.5', 'dropout_ratio: 0') % dict(p=0)
    net = load_net(rewriting.to_mc(reading.parse(text), batch=5))
    net.params['ip1'][0].data[...], net.params['ip2'][0].data[...] = W1, W2
    net.blobs['data'].data[...] = PIXELS
    net.forward()
    assert net.blobs['prob'].data[:, 0] == pytest.approx(0.6513549, abs=1e-6)


# --- the published weights ------------------------------------------------------------------------

def nin_weights():
    return os.environ.get('BCNN_NIN_WEIGHTS') or os.path.join(ROOT, 'data', 'nin_weights', 'cifar10_nin.caffemodel')


@pytest.mark.skipif(not os.path.exists(nin_weights()), reason='no published NIN weights here: set BCNN_NIN_WEIGHTS')
def test_published_nin_weights_fit_with_nothing_left_over_or_missing():
    published = caffe_pb2.NetParameter()
    with open(nin_weights(), 'rb') as file:
        published.ParseFromString(file.read())
    stored = {layer.name: [np.array(blob.data, np.float32) for blob in layer.blobs]
              for layer in list(published.layers) + list(published.layer) if layer.blobs}
    for make in (nets.deploy, nets.mc):
        net = load_net(make('nin', 'cifar10', batch=1), weights=nin_weights())
        assert set(net.params) == set(stored)
        for name, blobs in net.params.items():
            assert len(blobs) == len(stored[name])
            for blob, right in zip(blobs, stored[name]):
                assert np.array_equal(blob.data.ravel(), right)
    assert sum(blob.size for blobs in stored.values() for blob in blobs) == 966986
    # The published net itself, with its dropout in place, through the rewriter: our layers.
    for layer in published.layers:
        layer.ClearField('include')  # it was saved while training
    made = rewriting.to_deploy(published, shape=(3, 32, 32))
    assert [layer.name for layer in made.layer] == [layer.name for layer in nets.deploy('nin', 'cifar10').layer]
