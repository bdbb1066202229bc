"""The networks of the paper as Caffe messages: one function an architecture, a line a layer.

Two choices are independent of each other and of the architecture: where dropout is (the
names of the Dropout layers that exist) and whether it samples at test (Standard dropout,
or MC dropout by `phase: TRAIN` on those layers, which stock Caffe obeys in a TEST net).
Layer and blob names are the published ones, so that weights trained elsewhere load. Dropout
never works in place: a pass that starts at the first dropout layer needs its input intact.

Sources: LeNet from the authors' yaringal/DropoutUncertaintyCaffeModels, NIN from the Caffe
model zoo, DSN from s9xie/DSN (examples/best_cifar10_9.65).
"""

import difflib
from collections import OrderedDict
from functools import partial
from math import sqrt
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

from . import beyond, paper
from .engine import TEST, TRAIN, NetSpec, Top, caffe_pb2
from .engine import layers as L
from .engine import params as P
from .errors import UserError

CLASSES = 10

# --- what a layer is made of ------------------------------------------------------------

# LeNet leaves decay_mult at Caffe's default of 1, for biases too.
XAVIER = dict(weight_filler=dict(type='xavier'), bias_filler=dict(type='constant'),
              param=[dict(lr_mult=1), dict(lr_mult=2)])


def gaussian(weight_lr: float = 1, bias_lr: float = 2) -> Dict[str, Any]:
    """How NIN and DSN start and learn: std 0.05, biases without weight decay."""
    return dict(weight_filler=dict(type='gaussian', std=0.05), bias_filler=dict(type='constant'),
                param=[dict(lr_mult=weight_lr, decay_mult=1), dict(lr_mult=bias_lr, decay_mult=0)])


def conv(x: Top, size: int, maps: int, pad: int, learning: Dict[str, Any]) -> Top:
    return L.Convolution(x, num_output=maps, kernel_size=size, pad=pad, **learning)


def conv_relu(n: NetSpec, name: str, x: Top, size: int, maps: int, pad: int = 0,
              learning: Dict[str, Any] = gaussian()) -> Top:  # noqa: B008  (read only)
    """A convolution and its ReLU, in place: nothing else reads what is before the ReLU."""
    n[name] = conv(x, size, maps, pad, learning)
    relu = name.replace('conv', 'relu') if name.startswith('conv') else 'relu_' + name
    n[relu] = L.ReLU(n[name], in_place=True)
    return n[relu]


def pool(x: Top, kind: int, size: int, stride: int) -> Top:
    return L.Pooling(x, pool=kind, kernel_size=size, stride=stride)


MAX, AVE = P.Pooling.MAX, P.Pooling.AVE


def dropout(where: Tuple[str, ...], samples: bool, p: float = 0.5) -> Callable[[NetSpec, str, Top], Top]:
    """drop(n, name, x): x through a dropout layer, or x itself where the net has none of that name."""
    def drop(n, name, x):
        if name not in where:
            return x
        n[name] = L.Dropout(x, dropout_ratio=p, **(dict(phase=TRAIN) if samples else {}))
        return n[name]
    return drop


# --- the architectures ------------------------------------------------------------------

def lenet(n: NetSpec, drop: Callable, maps: Tuple[int, int, int], pads: Tuple[int, int], pooling: int = MAX) -> Top:
    """The class scores of LeNet; `maps` are the outputs of conv1, conv2 and ip1, `pads` of conv1 and conv2."""
    x = n.conv1 = conv(n.data, 5, maps[0], pads[0], XAVIER)
    x = drop(n, 'dropC1', x)
    x = n.pool1 = pool(x, pooling, 2, 2)  # no non-linearity after a convolution but this
    x = n.conv2 = conv(x, 5, maps[1], pads[1], XAVIER)
    x = drop(n, 'dropC2', x)
    x = n.pool2 = pool(x, pooling, 2, 2)
    x = n.ip1 = L.InnerProduct(x, num_output=maps[2], **XAVIER)
    x = n.relu1 = L.ReLU(x)
    x = drop(n, 'drop1', x)
    n.ip2 = L.InnerProduct(x, num_output=CLASSES, **XAVIER)
    return n.ip2


def nin(n: NetSpec, drop: Callable) -> Top:
    """The class scores of Network in Network."""
    x = conv_relu(n, 'conv1', n.data, 5, 192, pad=2)
    x = conv_relu(n, 'cccp1', x, 1, 160)
    x = conv_relu(n, 'cccp2', x, 1, 96)
    x = n.pool1 = pool(x, MAX, 3, 2)
    x = drop(n, 'drop3', x)
    x = conv_relu(n, 'conv2', x, 5, 192, pad=2)
    x = conv_relu(n, 'cccp3', x, 1, 192)
    x = conv_relu(n, 'cccp4', x, 1, 192)
    x = n.pool2 = pool(x, AVE, 3, 2)  # AVE in the model zoo, MAX in the original code and in DSN
    x = drop(n, 'drop6', x)
    x = conv_relu(n, 'conv3', x, 3, 192, pad=1)
    x = conv_relu(n, 'cccp5', x, 1, 192)
    x = conv_relu(n, 'cccp6', x, 1, CLASSES, learning=gaussian(0.1, 0.1))
    n.pool3 = pool(x, AVE, 8, 1)
    return n.pool3


def dsn(n: NetSpec, drop: Callable, companions: bool = False) -> Top:
    """The class margins of a Deeply Supervised Net; with its three companion losses in stage 1.

    The ReLUs after conv1, conv2 and conv3 have tops of their own, because the companions read
    what is before them (two readers of a blob share its memory in Caffe).
    """
    supervise = partial(companion, n) if companions else lambda *unused: None
    x = n.conv1 = conv(n.data, 5, 192, 2, gaussian())
    supervise(1, n.conv1, 192 * 32 * 32)
    x = n.relu1 = L.ReLU(x)
    x = conv_relu(n, 'cccp1', x, 1, 160)
    x = conv_relu(n, 'cccp2', x, 1, 96)
    x = n.pool1 = pool(x, MAX, 3, 2)
    x = drop(n, 'drop3', x)
    x = n.mask3 = not_inverted(x)
    x = n.conv2 = conv(x, 5, 192, 2, gaussian())
    supervise(2, n.conv2, 192 * 16 * 16)
    x = n.relu2 = L.ReLU(x)
    x = conv_relu(n, 'cccp3', x, 1, 192)
    x = conv_relu(n, 'cccp4', x, 1, 192)
    x = n.pool2 = pool(x, MAX, 3, 2)
    x = drop(n, 'drop6', x)
    x = n.mask6 = not_inverted(x)
    x = n.conv3 = conv(x, 3, 192, 1, gaussian())
    supervise(3, n.conv3, 192 * 8 * 8)
    x = n.relu3 = L.ReLU(x)
    x = conv_relu(n, 'cccp5', x, 1, 192)
    x = n.cccp6 = conv(x, 1, CLASSES, 0, gaussian(0.1, 0.2))  # no ReLU after it, unlike NIN
    n.pool3 = pool(x, AVE, 8, 1)
    return n.pool3


def not_inverted(x: Top) -> Top:
    """Half of x: with stock Caffe's inverted dropout before it, DSN's own dropout.

    DSN's Caffe multiplies by the mask in training and by 0.5 at test; stock Caffe by
    twice the mask, and by 1. Half of that is the same in both phases, gradients included,
    when the dropout samples at test too, and with weights that DSN's Caffe has trained.
    (Weights re-parameterised by 2 would be exact as well, but load no one else's weights.)
    """
    return L.Power(x, scale=0.5)


def companion(n: NetSpec, k: int, x: Top, size: int) -> None:
    """Add companion k: a linear SVM that reads the maps x of `size` values an image.

    All losses have weight 1; what is small is the learning rate of the SVM's weights. In
    DSN it also decays as (1 + 0.0001 iter)^-0.75, which a stock prototxt cannot say: a
    plain `caffe train` keeps it fixed; our driver adds the decay, see
    solvers.decay_companions. Only the SVMs themselves learn slower by it (they are thrown
    away after stage 1), so the fixed form is the nearest that a file can hold.
    """
    # Xavier in DSN's Caffe takes the fan-in from a blob shaped 1 x 1 x outputs x inputs.
    bound = round(sqrt(3.0 / (CLASSES * size)), 7)
    ip = n['ip_svm%d' % k] = L.InnerProduct(
        x, num_output=CLASSES, weight_filler=dict(type='uniform', min=-bound, max=bound),
        bias_filler=dict(type='constant'),
        param=[dict(lr_mult=0.001, decay_mult=1), dict(lr_mult=0.002, decay_mult=0)])
    n['loss_svm%d' % k] = squared_hinge(ip, n.label)


def squared_hinge(scores: Top, label: Top) -> Top:
    return L.HingeLoss(scores, label, norm=P.HingeLoss.L2)


# --- the data sets and which nets the paper trains on them --------------------------------

class Data(NamedTuple):
    """The data layers of a net."""

    layer: str                      # their name
    shape: Tuple[int, int, int]     # of an image, as the net gets it
    scale: Optional[float]
    train: str                      # the LMDBs
    test: str
    crop: Optional[int]             # random in training, the centre at test


_MNIST = Data(layer='mnist', shape=(1, 28, 28), scale=1 / 256.0, train='data/mnist/train_lmdb',
              test='data/mnist/test_lmdb', crop=None)
# Not of the paper: the same format and size, for machines that cannot get MNIST.
_FASHION = _MNIST._replace(train='data/fashion_mnist/train_lmdb', test='data/fashion_mnist/test_lmdb')
# GCN and ZCA whitening are in the LMDB: no transform here.
_CIFAR = Data(layer='cifar', shape=(3, 32, 32), scale=None, train='data/cifar10/train_lmdb',
              test='data/cifar10/test_lmdb', crop=None)
# The whitened images with 4 zeros on each side: random crops and mirrors for Augmented-DSN.
_PAD4 = _CIFAR._replace(train='data/cifar10_pad4/train_lmdb', test='data/cifar10_pad4/test_lmdb', crop=32)

TEST_BATCH = 100  # images a test step, in all of the authors' files
LENET_DROPOUT = OrderedDict([
    ('lenet_all', ('dropC1', 'dropC2', 'drop1')), ('lenet_ip', ('drop1',)), ('lenet_none', ())])


class Net(NamedTuple):
    """A net of the paper on a data set: the folder prototxt/<dataset>/<net>."""

    dataset: str
    net: str
    body: Callable            # the architecture
    where: Tuple[str, ...]    # its dropout layers
    data: Data
    batch: int                # images a training step
    loss: Callable            # what is trained on
    base: str                 # the data set whose deploy and MC nets these are
    p: float = 0.5            # of its dropout, the paper's everywhere


def _net(dataset, net, body, where, data, loss):
    return Net(dataset=dataset, net=net, body=body, where=where, data=data, batch=paper.batch(dataset, net), loss=loss,
               base=paper.base_of(dataset))


def _registry():
    nets = []
    for name, where in LENET_DROPOUT.items():
        body = partial(lenet, maps=(20, 50, 500), pads=(0, 0))
        for dataset, data in (('mnist', _MNIST), ('fashion_mnist', _FASHION)):
            nets.append(_net(dataset, name, body, where, data, L.SoftmaxWithLoss))
        for k in paper.FRACTIONS:
            subset = _MNIST._replace(train='data/mnist_%d/train_lmdb' % k)
            nets.append(_net('mnist_%d' % k, name, body, where, subset, L.SoftmaxWithLoss))
        # The authors' lenet_all has no pad at conv1, the other two have 2: 28x28 against 32x32 maps.
        body = partial(lenet, maps=(192, 192, 1000), pads=(0 if name == 'lenet_all' else 2, 2))
        nets.append(_net('cifar10', name, body, where, _CIFAR, L.SoftmaxWithLoss))
    for variation in beyond.VARIATIONS.values():
        body = partial(lenet, maps=(20, 50, 500), pads=(0, 0), pooling=getattr(P.Pooling, variation.pooling))
        nets.append(_net('mnist', variation.net, body, LENET_DROPOUT[beyond.NET], _MNIST, L.SoftmaxWithLoss)
                    ._replace(p=variation.p))
    drops = ('drop3', 'drop6')
    nets.append(_net('cifar10', 'nin', nin, drops, _CIFAR, L.SoftmaxWithLoss))
    nets.append(_net('cifar10', 'dsn', dsn, drops, _CIFAR, squared_hinge))
    nets.append(_net('cifar10', 'dsn_aug', dsn, drops, _PAD4, squared_hinge))
    return OrderedDict(((net.dataset, net.net), net) for net in sorted(nets, key=_by_name))


def _by_name(net):
    dataset, _, fraction = net.dataset.rpartition('_')
    return (dataset, int(fraction), net.net) if fraction.isdigit() else (net.dataset, 1, net.net)


REGISTRY = _registry()
DATASETS = tuple(OrderedDict.fromkeys(dataset for dataset, _ in REGISTRY))
NETS = tuple(OrderedDict.fromkeys(net for _, net in REGISTRY))


def find(dataset: str, net: str) -> Net:
    """The Net of these names; refuses unknown ones with the nearest that exist."""
    first = paper.first_draw(dataset)
    if first not in DATASETS:
        raise UserError('no data set %r; there are: %s' % (dataset, nearest_first(dataset, DATASETS)))
    here = tuple(name for data, name in REGISTRY if data == first)
    if net not in here:
        raise UserError('no net %r for %s; there are: %s' % (net, dataset, nearest_first(net, here)))
    entry = REGISTRY[first, net]
    if dataset == first:
        return entry
    # another draw of a fraction: the same net on other images, without files of its own in prototxt/
    return entry._replace(dataset=dataset, data=entry.data._replace(train='data/%s/train_lmdb' % dataset))


def default_dataset(net: str) -> str:
    """The data set a net is for: its only one, or mnist."""
    datasets = [dataset for dataset, name in REGISTRY if name == net]
    return datasets[0] if len(datasets) == 1 else 'mnist'


def nearest_first(word: str, words: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(word), words, n=1, cutoff=0.5)
    return ', '.join(near + [other for other in words if other not in near])


# --- the nets ---------------------------------------------------------------------------

def train_test(net: str, dataset: str, companions: bool = False) -> caffe_pb2.NetParameter:
    """The net for training: LMDB data in both phases, loss, and accuracy at test. DSN stage 1 has companions."""
    entry = find(dataset, net)
    n = NetSpec()
    n.data, n.label = _lmdb(entry, TEST)
    scores = _scores(entry, n, companions)
    n.accuracy = L.Accuracy(scores, n.label, include=dict(phase=TEST))
    n.loss = entry.loss(scores, n.label)
    train = NetSpec()  # of its own: a NetSpec holds one blob `data`
    train.data, train.label = _lmdb(entry, TRAIN)
    return _message(entry, list(train.to_proto().layer) + list(n.to_proto().layer))


def fed(net: str, dataset: str, batch: int, companions: bool = False) -> caffe_pb2.NetParameter:
    """The net for training without a data set: Inputs `data` and `label`, to be filled by hand, and its losses."""
    entry = find(dataset, net)
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[batch] + list(entry.data.shape)))
    n.label = L.Input(shape=dict(dim=[batch]))
    n.loss = entry.loss(_scores(entry, n, companions), n.label)
    return _message(entry, n.to_proto().layer)


def _scores(entry, n, companions):
    return entry.body(n, dropout(entry.where, False, entry.p), **(dict(companions=True) if companions else {}))


def _lmdb(entry, phase):
    data, training = entry.data, phase == TRAIN
    transform = OrderedDict()
    if data.scale:
        transform['scale'] = data.scale
    if data.crop:  # Caffe crops at random in TRAIN and the centre in TEST, but mirrors in both
        transform['crop_size'] = data.crop
        if training:
            transform['mirror'] = True
    return L.Data(ntop=2, name=data.layer, include=dict(phase=phase), source=data.train if training else data.test,
                  batch_size=entry.batch if training else TEST_BATCH, backend=P.Data.LMDB,
                  **(dict(transform_param=transform) if transform else {}))


def deploy(net: str, dataset: str, batch: int = TEST_BATCH) -> caffe_pb2.NetParameter:
    """The net for Standard dropout: Input `data`, the scores, and their softmax `prob`."""
    return _deploy(find(dataset, net), batch, samples=False)


def mc(net: str, dataset: str, batch: int = TEST_BATCH) -> caffe_pb2.NetParameter:
    """The net for MC dropout: as deploy, but its dropout samples, for each image and pass."""
    return _deploy(_stochastic(find(dataset, net)), batch, samples=True)


def _deploy(entry, batch, samples):
    n = NetSpec()
    n.data = L.Input(shape=dict(dim=[batch] + list(entry.data.shape)))
    n.prob = L.Softmax(entry.body(n, dropout(entry.where, samples, entry.p)))
    return _message(entry, n.to_proto().layer)


def _stochastic(entry):
    if not entry.where:
        raise UserError('%s has no dropout layer, so there is nothing to sample: evaluate it with Standard dropout'
                        % entry.net)
    return entry


def _message(entry, layers):
    net = caffe_pb2.NetParameter(name='%s/%s' % (entry.dataset, entry.net))
    net.layer.extend(layers)
    return net
