"""The nets are the published ones, layer by layer; the tables are written by hand from the sources.

A line: name, type, what it reads; then size, pad and outputs of a convolution, outputs of an
inner product, or kind, size and stride of a pooling; fillers; lr and decay multipliers of
weights/biases. An own top has the layer's name; "in place" says otherwise.
"""

import pytest

from bcnn import nets
from bcnn.engine import caffe_pb2, load_net
from bcnn.prototxt import rewriting

pytestmark = pytest.mark.caffe

LEARN = 'xavier lr 1/2 decay 1/1'  # decay_mult left at its default, biases too

LENET = '''
conv1 Convolution data k5 pad%(pad1)d %(conv1)d LEARN
[all] dropC1 Dropout conv1 0.5
pool1 Pooling conv1[all:dropC1] MAX k2 s2
conv2 Convolution pool1 k5 pad%(pad2)d %(conv2)d LEARN
[all] dropC2 Dropout conv2 0.5
pool2 Pooling conv2[all:dropC2] MAX k2 s2
ip1 InnerProduct pool2 %(ip1)d LEARN
relu1 ReLU ip1
[all ip] drop1 Dropout relu1 0.5
ip2 InnerProduct relu1[all ip:drop1] 10 LEARN
'''.replace('LEARN', LEARN)
MNIST = dict(conv1=20, conv2=50, ip1=500, pad1=0, pad2=0)
CIFAR = dict(conv1=192, conv2=192, ip1=1000, pad1=2, pad2=2)

GAUSS = 'gaussian 0.05 lr 1/2 decay 1/0'
NIN = '''
conv1 Convolution data k5 pad2 192 GAUSS
relu1 ReLU conv1 in place
cccp1 Convolution conv1 k1 pad0 160 GAUSS
relu_cccp1 ReLU cccp1 in place
cccp2 Convolution cccp1 k1 pad0 96 GAUSS
relu_cccp2 ReLU cccp2 in place
pool1 Pooling cccp2 MAX k3 s2
drop3 Dropout pool1 0.5
conv2 Convolution drop3 k5 pad2 192 GAUSS
relu2 ReLU conv2 in place
cccp3 Convolution conv2 k1 pad0 192 GAUSS
relu_cccp3 ReLU cccp3 in place
cccp4 Convolution cccp3 k1 pad0 192 GAUSS
relu_cccp4 ReLU cccp4 in place
pool2 Pooling cccp4 AVE k3 s2
drop6 Dropout pool2 0.5
conv3 Convolution drop6 k3 pad1 192 GAUSS
relu3 ReLU conv3 in place
cccp5 Convolution conv3 k1 pad0 192 GAUSS
relu_cccp5 ReLU cccp5 in place
cccp6 Convolution cccp5 k1 pad0 10 gaussian 0.05 lr 0.1/0.1 decay 1/0
relu_cccp6 ReLU cccp6 in place
pool3 Pooling cccp6 AVE k8 s1
'''.replace('GAUSS', GAUSS)
DSN = '''
conv1 Convolution data k5 pad2 192 GAUSS
[1] ip_svm1 InnerProduct conv1 10 uniform -0.0012353 0.0012353 lr 0.001/0.002 decay 1/0
[1] loss_svm1 HingeLoss ip_svm1 label L2
relu1 ReLU conv1
cccp1 Convolution relu1 k1 pad0 160 GAUSS
relu_cccp1 ReLU cccp1 in place
cccp2 Convolution cccp1 k1 pad0 96 GAUSS
relu_cccp2 ReLU cccp2 in place
pool1 Pooling cccp2 MAX k3 s2
drop3 Dropout pool1 0.5
mask3 Power drop3 0.5
conv2 Convolution mask3 k5 pad2 192 GAUSS
[1] ip_svm2 InnerProduct conv2 10 uniform -0.0024705 0.0024705 lr 0.001/0.002 decay 1/0
[1] loss_svm2 HingeLoss ip_svm2 label L2
relu2 ReLU conv2
cccp3 Convolution relu2 k1 pad0 192 GAUSS
relu_cccp3 ReLU cccp3 in place
cccp4 Convolution cccp3 k1 pad0 192 GAUSS
relu_cccp4 ReLU cccp4 in place
pool2 Pooling cccp4 MAX k3 s2
drop6 Dropout pool2 0.5
mask6 Power drop6 0.5
conv3 Convolution mask6 k3 pad1 192 GAUSS
[1] ip_svm3 InnerProduct conv3 10 uniform -0.0049411 0.0049411 lr 0.001/0.002 decay 1/0
[1] loss_svm3 HingeLoss ip_svm3 label L2
relu3 ReLU conv3
cccp5 Convolution relu3 k1 pad0 192 GAUSS
relu_cccp5 ReLU cccp5 in place
cccp6 Convolution cccp5 k1 pad0 10 gaussian 0.05 lr 0.1/0.2 decay 1/0
pool3 Pooling cccp6 AVE k8 s1
'''.replace('GAUSS', GAUSS)

SOFTMAX = 'accuracy Accuracy %s label TEST\nloss SoftmaxWithLoss %s label'
HINGE = 'accuracy Accuracy pool3 label TEST\nloss HingeLoss pool3 label L2'


def pick(table, case):
    """The lines of a table for one case: '[a b] line' only for a and b; 'x[a:y]' is y for a, else x."""
    lines = []
    for line in table.strip().splitlines():
        if line.startswith('['):
            cases, line = line[1:].split('] ', 1)
            if case not in cases.split():
                continue
        words = []
        for word in line.replace('[all ip:', '[all,ip:').split():
            if '[' in word:
                plain, special = word.rstrip(']').split('[')
                cases, other = special.split(':')
                word = other if case in cases.split(',') else plain
            words.append(word)
        lines.append(' '.join(words))
    return lines


def describe(layer):
    """One line of the tables above, read from a layer's message alone."""
    in_place = list(layer.top) == list(layer.bottom)
    assert in_place or list(layer.top) == [layer.name]
    parts = [layer.name, layer.type] + list(layer.bottom) + (['in place'] if in_place else [])
    parts += {'Convolution': of_convolution, 'InnerProduct': of_inner_product, 'Pooling': of_pooling,
              'Dropout': lambda l: ['%g' % l.dropout_param.dropout_ratio], 'Power': of_power,
              'HingeLoss': lambda l: [caffe_pb2.HingeLossParameter.Norm.Name(l.hinge_loss_param.norm)],
              'Accuracy': lambda l: [caffe_pb2.Phase.Name(rule.phase) for rule in l.include]
              }.get(layer.type, lambda l: [])(layer)
    return ' '.join(parts)


def of_convolution(layer):
    conv = layer.convolution_param
    assert list(conv.kernel_size) and not conv.stride and conv.group == 1 and conv.bias_term
    return ['k%d' % conv.kernel_size[0], 'pad%d' % (conv.pad[0] if conv.pad else 0), str(conv.num_output)] + \
        learning(layer, conv)


def of_inner_product(layer):
    return [str(layer.inner_product_param.num_output)] + learning(layer, layer.inner_product_param)


def learning(layer, param):
    filler, bias, (weights, biases) = param.weight_filler, param.bias_filler, layer.param
    assert (bias.type, bias.value) == ('constant', 0)
    values = {'xavier': [], 'gaussian': ['%g' % filler.std], 'uniform': ['%.7f' % filler.min, '%.7f' % filler.max]}
    return [filler.type] + values[filler.type] + [
        'lr', '%g/%g' % (weights.lr_mult, biases.lr_mult), 'decay', '%g/%g' % (weights.decay_mult, biases.decay_mult)]


def of_pooling(layer):
    pool = layer.pooling_param
    assert pool.pad == 0
    return [caffe_pb2.PoolingParameter.PoolMethod.Name(pool.pool), 'k%d' % pool.kernel_size, 's%d' % pool.stride]


def of_power(layer):
    assert (layer.power_param.power, layer.power_param.shift) == (1, 0)
    return ['%g' % layer.power_param.scale]


def body(net):
    return [describe(layer) for layer in net.layer if layer.type not in ('Data', 'Input')]


def expected(dataset, net):
    if net == 'nin':
        return pick(NIN, '') + (SOFTMAX % ('pool3', 'pool3')).splitlines()
    if net.startswith('dsn'):
        return pick(DSN, '') + HINGE.splitlines()
    sizes = dict(CIFAR, pad1=0 if net == 'lenet_all' else 2) if dataset == 'cifar10' else MNIST
    table = LENET % sizes
    if net in VARIED:
        net, was, now = ('lenet_all',) + VARIED[net]
        table = table.replace(was, now)
    return pick(table, net[len('lenet_'):]) + (SOFTMAX % ('ip2', 'ip2')).splitlines()


# Beyond the paper: lenet_all with one thing changed. (what the paper has, what this has)
VARIED = {'lenet_all_ave': ('MAX', 'AVE'), 'lenet_all_p10': (' 0.5', ' 0.1'), 'lenet_all_p25': (' 0.5', ' 0.25'),
          'lenet_all_p75': (' 0.5', ' 0.75')}


def test_the_nets_are_those_of_the_paper_the_lenets_on_fashion_mnist_and_the_variations():
    subsets = {('mnist_%d' % k, net) for k in (2, 4, 8, 16, 32) for net in ('lenet_all', 'lenet_ip', 'lenet_none')}
    whole = {(data, net) for data in ('mnist', 'fashion_mnist', 'cifar10') for net in ('lenet_all', 'lenet_ip', 'lenet_none')}
    varied = {('mnist', net) for net in VARIED}
    assert set(nets.REGISTRY) == subsets | whole | varied | {('cifar10', net) for net in ('nin', 'dsn', 'dsn_aug')}


def test_another_draw_of_a_fraction_is_the_same_net_on_other_images():
    first, second = nets.train_test('lenet_ip', 'mnist_4'), nets.train_test('lenet_ip', 'mnist_4_draw2')
    assert [layer.data_param.source for layer in second.layer[:2]] == ['data/mnist_4_draw2/train_lmdb', 'data/mnist/test_lmdb']
    assert body(first) == body(second) and nets.find('mnist_4_draw2', 'lenet_ip').base == 'mnist'


@pytest.mark.parametrize('dataset, net', nets.REGISTRY)
def test_train_test_net_is_as_published(dataset, net):
    assert body(nets.train_test(net, dataset)) == expected(dataset, net)


@pytest.mark.parametrize('net', ['dsn', 'dsn_aug'])
def test_dsn_stage_1_has_three_companions(net):
    found = nets.train_test(net, 'cifar10', companions=True)
    assert body(found) == pick(DSN, '1') + HINGE.splitlines()
    assert not any(layer.loss_weight for layer in found.layer)  # all losses have Caffe's default weight, 1


@pytest.mark.parametrize('dataset, net', nets.REGISTRY)
def test_deploy_and_mc_nets_have_the_same_layers_but_the_end(dataset, net):
    scores = 'ip2' if net.startswith('lenet') else 'pool3'
    right = expected(dataset, net)[:-2] + ['prob Softmax ' + scores]
    assert body(nets.deploy(net, dataset)) == right
    if net != 'lenet_none':
        assert body(nets.mc(net, dataset)) == right
        assert body(rewriting.replicate(nets.mc(net, dataset, batch=1), 100))[0] == right[0]


DATA = {  # train source, test source, train batch, scale, train crop and mirror
    ('mnist', 'lenet_all'): ('data/mnist/train_lmdb', 'data/mnist/test_lmdb', 64, 0.00390625, 0, False),
    ('fashion_mnist', 'lenet_all'): ('data/fashion_mnist/train_lmdb', 'data/fashion_mnist/test_lmdb', 64, 0.00390625, 0,
                                     False),
    ('mnist_4', 'lenet_ip'): ('data/mnist_4/train_lmdb', 'data/mnist/test_lmdb', 64, 0.00390625, 0, False),
    ('mnist_32', 'lenet_all'): ('data/mnist_32/train_lmdb', 'data/mnist/test_lmdb', 64, 0.00390625, 0, False),
    ('cifar10', 'lenet_none'): ('data/cifar10/train_lmdb', 'data/cifar10/test_lmdb', 128, 1, 0, False),
    ('cifar10', 'nin'): ('data/cifar10/train_lmdb', 'data/cifar10/test_lmdb', 128, 1, 0, False),
    ('cifar10', 'dsn'): ('data/cifar10/train_lmdb', 'data/cifar10/test_lmdb', 100, 1, 0, False),
    ('cifar10', 'dsn_aug'): ('data/cifar10_pad4/train_lmdb', 'data/cifar10_pad4/test_lmdb', 100, 1, 32, True),
}


@pytest.mark.parametrize('dataset, net', DATA)
def test_data_layers(dataset, net):
    train_source, test_source, batch, scale, crop, mirror = DATA[dataset, net]
    train, test = [layer for layer in nets.train_test(net, dataset).layer if layer.type == 'Data']
    assert train.name == test.name == ('cifar' if dataset == 'cifar10' else 'mnist')
    for layer, phase, source, size in ((train, 'TRAIN', train_source, batch), (test, 'TEST', test_source, 100)):
        assert list(layer.top) == ['data', 'label']
        assert [caffe_pb2.Phase.Name(rule.phase) for rule in layer.include] == [phase]
        assert (layer.data_param.source, layer.data_param.batch_size) == (source, size)
        assert layer.data_param.backend == caffe_pb2.DataParameter.LMDB
        assert (layer.transform_param.scale, layer.transform_param.crop_size) == (scale, crop)
        assert not layer.transform_param.mean_value and not layer.transform_param.mean_file
    assert (train.transform_param.mirror, test.transform_param.mirror) == (mirror, False)


@pytest.mark.parametrize('dataset, net', nets.REGISTRY)
def test_dropout_is_never_in_place_and_standard_while_training(dataset, net):
    for layer in nets.train_test(net, dataset).layer:
        if layer.type == 'Dropout':
            assert list(layer.top) == [layer.name] and not layer.HasField('phase') and not layer.include


SIZES = {  # maps x height x width (or units) of each blob, and the number of parameters
    ('mnist', 'lenet_all'): (431080, dict(conv1=(20, 24, 24), pool1=(20, 12, 12), conv2=(50, 8, 8), pool2=(50, 4, 4),
                                          ip1=(500,), ip2=(10,), prob=(10,))),
    ('mnist', 'lenet_ip'): (431080, dict(conv1=(20, 24, 24), pool2=(50, 4, 4))),
    ('mnist', 'lenet_none'): (431080, dict(conv1=(20, 24, 24), pool2=(50, 4, 4))),
    ('cifar10', 'lenet_all'): (10355394, dict(conv1=(192, 28, 28), pool1=(192, 14, 14), conv2=(192, 14, 14),
                                              pool2=(192, 7, 7), ip1=(1000,))),
    ('cifar10', 'lenet_ip'): (13235394, dict(conv1=(192, 32, 32), pool1=(192, 16, 16), conv2=(192, 16, 16),
                                             pool2=(192, 8, 8), ip1=(1000,))),
    ('cifar10', 'lenet_none'): (13235394, dict(conv1=(192, 32, 32), pool2=(192, 8, 8))),
    ('cifar10', 'nin'): (966986, dict(conv1=(192, 32, 32), cccp1=(160, 32, 32), cccp2=(96, 32, 32), pool1=(96, 16, 16),
                                      conv2=(192, 16, 16), pool2=(192, 8, 8), conv3=(192, 8, 8), cccp6=(10, 8, 8),
                                      pool3=(10, 1, 1), prob=(10, 1, 1))),
    ('cifar10', 'dsn'): (966986, dict(conv1=(192, 32, 32), pool1=(96, 16, 16), pool2=(192, 8, 8), pool3=(10, 1, 1))),
    ('cifar10', 'dsn_aug'): (966986, dict(conv1=(192, 32, 32), pool3=(10, 1, 1))),
}


@pytest.mark.parametrize('dataset, net', SIZES)
def test_sizes_in_caffe(dataset, net):
    count, shapes = SIZES[dataset, net]
    loaded = load_net(nets.deploy(net, dataset, batch=2))
    assert sum(blob.data.size for blobs in loaded.params.values() for blob in blobs) == count
    for blob, shape in shapes.items():
        assert tuple(loaded.blobs[blob].shape) == (2,) + shape
