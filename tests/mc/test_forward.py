"""MC passes on real Caffe: both modes against the exact Bayesian average, and against each other."""

import itertools

import numpy as np
import pytest
from google.protobuf import text_format

from bcnn import engine, nets, seeds
from bcnn.mc import forward, metrics, running_sums
from bcnn.prototxt import rewriting

pytestmark = pytest.mark.caffe

# Two inputs, dropout on each, two classes: four masks, so the exact average can be enumerated.
TINY = '''
name: "tiny"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 3 dim: 2 dim: 1 dim: 1 } } }
layer { name: "drop" type: "Dropout" bottom: "data" top: "drop" phase: TRAIN dropout_param { dropout_ratio: 0.5 } }
layer { name: "ip" type: "InnerProduct" bottom: "drop" top: "ip" inner_product_param { num_output: 2 } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
'''
WEIGHTS = np.array([[1.0, -0.5], [-0.3, 0.8]], np.float32)
BIAS = np.array([0.1, -0.2], np.float32)
IMAGES = np.array([[1, 2], [0.5, -1], [-2, 1.5]], np.float32).reshape(3, 2, 1, 1)


def tiny():
    message = text_format.Parse(TINY, engine.caffe_pb2.NetParameter())
    return message, with_weights(engine.load_net(message))


def with_weights(net):
    net.params['ip'][0].data[...] = WEIGHTS
    net.params['ip'][1].data[...] = BIAS
    return net


def exact_average():
    """The mean of the softmax over all four masks, in numpy."""
    total = np.zeros((3, 2))
    for mask in itertools.product((0, 2), repeat=2):  # kept inputs are doubled
        scores = (IMAGES.reshape(3, 2) * mask) @ WEIGHTS.T + BIAS
        powers = np.exp(scores)
        total += powers / powers.sum(axis=1, keepdims=True)
    return total / 4


def run(net, message, passes, T, seed=1):
    seeds.use_seed(seed)
    return running_sums.sample(passes(net, forward.wiring_of(message, net), IMAGES, T), np.array([0, 1, 1]), classes=2)


@pytest.mark.parametrize('mode', ['stream', 'replicate'])
def test_the_average_is_the_exact_one_within_its_standard_error(mode):
    message, net = tiny()
    T = 4000
    if mode == 'replicate':
        message = rewriting.replicate(message, T)
        net = with_weights(engine.load_net(message))
    sums = run(net, message, getattr(forward, mode), T)
    mean = sums.probs / T
    standard_error = np.sqrt((sums.squares / T - mean ** 2) / T)
    assert (standard_error > 0).all()
    assert (np.abs(mean - exact_average()) < 4 * standard_error).all()


def test_the_standard_error_falls_as_one_over_root_T():
    message, net = tiny()
    exact = exact_average()
    distances = []
    for T in (25, 400):
        runs = [run(net, message, forward.stream, T, seed).probs / T for seed in range(60)]
        distances.append(np.sqrt(np.mean([(probs - exact) ** 2 for probs in runs])))
    assert distances[0] / distances[1] == pytest.approx(4, rel=0.25)  # sqrt(400 / 25)


def test_standard_is_not_the_average():
    """The deterministic pass differs from the Bayesian average: softmax is not linear. (What the paper is about.)"""
    message, net = tiny()
    message.layer[1].ClearField('phase')
    standard = with_weights(engine.load_net(message))
    probs, _ = forward.standard(standard, forward.wiring_of(message, standard), IMAGES)
    scores = IMAGES.reshape(3, 2) @ WEIGHTS.T + BIAS
    assert probs == pytest.approx(np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True), abs=1e-6)
    assert np.abs(probs - exact_average()).max() > 0.02


def test_stream_and_replicate_give_the_same_bytes_where_one_dropout_layer_draws():
    """One dropout layer: T batches of masks are the same numbers as one batch of T copies."""
    T = 7
    message, net = tiny()
    copied = rewriting.replicate(message, T)
    first = run(net, message, forward.stream, T)
    second = run(with_weights(engine.load_net(copied)), copied, forward.replicate, T)
    for name, array in first.arrays().items():
        assert np.array_equal(array, second.arrays()[name]), name


@pytest.mark.parametrize('name', ['lenet_ip', 'lenet_all'])
def test_modes_agree_on_the_papers_nets(name):
    """lenet_ip: the same masks, so the same rows up to the rounding of another matrix size. lenet_all: its three
    layers draw in another order, so only the distribution is the same."""
    T, B = 300, 5
    message, copied = nets.mc(name, 'mnist', batch=B), rewriting.replicate(nets.mc(name, 'mnist', batch=B), T)
    engine.set_seed(3)
    net, many = engine.load_net(message), engine.load_net(copied)
    many.share_with(net)
    pixels = np.random.RandomState(0).rand(B, 1, 28, 28).astype(np.float32)

    def mean_and_error(model, wiring, passes):
        seeds.use_seed(5)
        sums = running_sums.sample(passes(model, wiring, pixels, T), np.zeros(B, int), 10)
        return sums.probs / T, np.sqrt(np.maximum(sums.squares / T - (sums.probs / T) ** 2, 0) / T)

    first, error = mean_and_error(net, forward.wiring_of(message, net), forward.stream)
    second, other = mean_and_error(many, forward.wiring_of(copied, many), forward.replicate)
    if name == 'lenet_ip':
        assert np.abs(first - second).max() < 1e-6
    else:
        assert not np.array_equal(first, second)
        assert (np.abs(first - second) < 5 * np.hypot(error, other)).all()


def test_the_cached_prefix_changes_nothing():
    """A stream pass is bitwise a full pass at the same seed."""
    message = nets.mc('lenet_all', 'mnist', batch=3)
    engine.set_seed(1)
    net = engine.load_net(message)
    wiring = forward.wiring_of(message, net)
    pixels = np.random.RandomState(1).rand(3, 1, 28, 28).astype(np.float32)
    seeds.use_seed(2)
    streamed = [np.array(probs) for probs, _ in forward.stream(net, wiring, pixels, 4)]
    seeds.use_seed(2)
    forward.fill(net, wiring, pixels)
    for probs in streamed:
        net.forward()
        assert np.array_equal(net.blobs['prob'].data, probs)


def test_a_smaller_last_batch():
    message, net = tiny()
    wiring = forward.wiring_of(message, net)
    for count in (3, 1, 2, 3):
        rows = [np.array(probs) for probs, _ in forward.stream(net, wiring, IMAGES[:count], 2)]
        assert rows[0].shape == (count, 2)


def test_sums_by_hand():
    sums = running_sums.Sums(np.array([0, 1]), classes=2)
    sums.add(np.array([[0.6, 0.4], [0.9, 0.1]], np.float32), np.array([[1.0, 2.0], [3.0, 0.0]], np.float32))
    sums.add(np.array([[0.2, 0.8], [0.2, 0.8]], np.float32), np.array([[5.0, 0.0], [0.0, 4.0]], np.float32))
    assert sums.probs == pytest.approx(np.array([[0.8, 1.2], [1.1, 0.9]]))
    assert sums.squares == pytest.approx(np.array([[0.40, 0.80], [0.85, 0.65]]))
    assert sums.votes.tolist() == [[1, 1], [1, 1]]
    assert sums.wrong_probs == [1, 2]    # after one pass the second is wrong, after two both are
    assert sums.wrong_scores == [2, 0]
    assert sums.entropy == pytest.approx(metrics.entropy(np.array([[.6, .4], [.9, .1]])) + metrics.entropy(np.array([.2, .8])))


def test_seeds_differ_by_every_part():
    made = {seeds.seed_for(a, b, c) for a in range(10) for b in range(10) for c in range(10)}
    assert len(made) == 1000
    assert all(0 <= seed < 2 ** 31 for seed in made)
    assert seeds.seed_for(1, 2, 3) == 1324654167  # for ever: stored results depend on it
