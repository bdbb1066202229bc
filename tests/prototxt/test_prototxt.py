"""Published prototxts of all shapes become Standard and MC nets that compute the same with the same weights."""

import os
import shutil
import subprocess

import numpy as np
import pytest

from bcnn.engine import caffe_pb2, load_net, set_seed
from bcnn.errors import UserError
from bcnn.prototxt import facts, reading, rewriting
from conftest import ROOT

pytestmark = pytest.mark.caffe

DATA = 'input: "data" input_dim: 2 input_dim: 3 input_dim: 6 input_dim: 6 input: "label" ' \
       'input_dim: 2 input_dim: 1 input_dim: 1 input_dim: 1 '
ONE_INPUT = 'input: "data" input_dim: 2 input_dim: 3 input_dim: 6 input_dim: 6 '


def conv(name, bottom, out=4, extra=''):
    return ('layer { name: "%s" type: "Convolution" bottom: "%s" top: "%s" convolution_param { num_output: %d '
            'kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } %s } ' % (name, bottom, name, out, extra))


def ip(name, bottom, out=5):
    return ('layer { name: "%s" type: "InnerProduct" bottom: "%s" top: "%s" inner_product_param { num_output: %d '
            'weight_filler { type: "xavier" } } } ' % (name, bottom, name, out))


def layer(name, kind, bottom, top=None, extra=''):
    bottoms = ''.join('bottom: "%s" ' % blob for blob in bottom.split())
    return 'layer { name: "%s" type: "%s" %s top: "%s" %s } ' % (name, kind, bottoms, top or name, extra)


def drop(name, bottom, top=None, extra=''):
    return layer(name, 'Dropout', bottom, top, extra)


LOSS = layer('loss', 'SoftmaxWithLoss', 'fc label')

NETS = {
    'in place, as NIN': (DATA + conv('conv1', 'data') + layer('relu1', 'ReLU', 'conv1', 'conv1') +
                         layer('pool1', 'Pooling', 'conv1', extra='pooling_param { kernel_size: 2 stride: 2 }') +
                         drop('drop3', 'pool1', 'pool1') + conv('conv2', 'pool1') + ip('fc', 'conv2') + LOSS),
    'several in a row': (DATA + conv('conv1', 'data') + drop('a', 'conv1', 'conv1') + drop('b', 'conv1', 'conv1') +
                         drop('c', 'conv1') + drop('d', 'c') + ip('fc', 'd') + LOSS),
    'feeding two layers': (DATA + conv('conv1', 'data') + drop('a', 'conv1', 'conv1') + conv('left', 'conv1') +
                           conv('right', 'conv1') + layer('sum', 'Eltwise', 'left right') + ip('fc', 'sum') + LOSS),
    'in-place layers before and after': (
        DATA + conv('conv1', 'data') + layer('relu1', 'ReLU', 'conv1', 'conv1') + drop('a', 'conv1', 'conv1') +
        layer('double', 'Power', 'conv1', 'conv1', 'power_param { scale: 2 shift: 1 }') +
        layer('squash', 'Sigmoid', 'conv1', 'conv1') + ip('fc', 'conv1') + LOSS),
    'a reader before and one after the dropout': (
        DATA + conv('conv1', 'data') + conv('before', 'conv1') + drop('a', 'conv1') + conv('after', 'a') +
        layer('sum', 'Eltwise', 'before after') + ip('fc', 'sum') + LOSS),
    'a deterministic branch after the dropout': (
        DATA + conv('conv1', 'data') + conv('side', 'data') + drop('a', 'conv1', 'conv1') +
        layer('double', 'Power', 'side', 'side', 'power_param { scale: 2 shift: 1 }') +
        layer('sum', 'Eltwise', 'conv1 side') + ip('fc', 'sum') + LOSS),
    'companion losses': (
        DATA + conv('conv1', 'data') + ip('svm1', 'conv1') + layer('loss1', 'HingeLoss', 'svm1 label') +
        layer('relu1', 'ReLU', 'conv1') + drop('a', 'relu1', 'relu1') + ip('fc', 'relu1') + drop('b', 'fc', 'fc') +
        ip('svm2', 'relu1') + layer('loss', 'HingeLoss', 'fc label', extra='hinge_loss_param { norm: L2 }') +
        layer('loss2', 'HingeLoss', 'svm2 label')),
    'both phases': (
        'layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TRAIN } '
        'data_param { source: "x" batch_size: 9 } transform_param { crop_size: 6 mean_value: 1 mean_value: 2 '
        'mean_value: 3 } } '
        'layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TEST } '
        'data_param { source: "x" batch_size: 2 } transform_param { crop_size: 6 mean_value: 1 mean_value: 2 '
        'mean_value: 3 } } ' + conv('conv1', 'data') + drop('a', 'conv1', 'conv1') + ip('fc', 'conv1') +
        layer('top1', 'Accuracy', 'fc label', extra='include { phase: TEST }') +
        layer('top5', 'Accuracy', 'fc label', extra='include { phase: TEST } accuracy_param { top_k: 5 }') + LOSS),
    'loss in TRAIN only, dropout in TRAIN only': (
        DATA + conv('conv1', 'data') + drop('a', 'conv1', 'conv1', 'include { phase: TRAIN }') + ip('fc', 'conv1') +
        layer('loss', 'SoftmaxWithLoss', 'fc label', extra='include { phase: TRAIN }') +
        layer('accuracy', 'Accuracy', 'fc label', extra='exclude { phase: TRAIN }')),
    'a deploy net that ends in a softmax of another name': (
        ONE_INPUT + conv('conv1', 'data') + drop('a', 'conv1', 'conv1') + ip('fc', 'conv1') +
        layer('softmax', 'Softmax', 'fc')),
    'a softmax in place': (
        ONE_INPUT + conv('conv1', 'data') + drop('a', 'conv1', 'conv1') + ip('fc', 'conv1') +
        layer('prob', 'Softmax', 'fc', 'fc')),
    'softmax and loss together': (
        DATA + conv('conv1', 'data') + drop('a', 'conv1') + ip('fc', 'a') + layer('p', 'Softmax', 'fc') +
        layer('best', 'ArgMax', 'p') + LOSS),
    'input_shape': ('input: "data" input_shape { dim: 2 dim: 3 dim: 6 dim: 6 } ' + drop('a', 'data') + ip('fc', 'a') +
                    layer('prob', 'Softmax', 'fc')),
    'V1': ('''
        input: "data" input_dim: 2 input_dim: 3 input_dim: 6 input_dim: 6
        layers { name: "conv1" type: CONVOLUTION bottom: "data" top: "conv1" blobs_lr: 1 blobs_lr: 2 weight_decay: 1
                 weight_decay: 0 convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
        layers { name: "relu1" type: RELU bottom: "conv1" top: "conv1" }
        layers { name: "drop" type: DROPOUT bottom: "conv1" top: "conv1" dropout_param { dropout_ratio: 0.5 } }
        layers { name: "fc" type: INNER_PRODUCT bottom: "conv1" top: "fc"
                 inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
        layers { name: "prob" type: SOFTMAX bottom: "fc" top: "prob" }'''),
    'the authors\' switch for sampling': (
        ONE_INPUT + conv('conv1', 'data') +
        drop('a', 'conv1', extra='dropout_param { dropout_ratio: 0.5 sample_weights_test: true }') + ip('fc', 'a') +
        layer('prob', 'Softmax', 'fc')),
}


def run(net, weights=None, seed=1):
    """(net, its probabilities) on the same seeded images."""
    set_seed(3)
    loaded = load_net(net)
    for name, blobs in (weights or {}).items():
        for mine, right in zip(loaded.params[name], blobs):
            mine.data[...] = right.data
    shape = loaded.blobs['data'].data.shape
    loaded.blobs['data'].data[...] = np.random.RandomState(0).randn(*shape)
    set_seed(seed)
    loaded.forward()
    return loaded


def with_dummy_data(net):
    """The net with images and labels of the right shape in the place of a database."""
    for each in net.layer:
        if each.type == 'Data':
            each.type = 'DummyData'
            for dims in ((2, 3, 6, 6), (2,)):
                each.dummy_data_param.shape.add(dim=dims)
    return net


def softmax(scores):
    scores = scores.reshape(len(scores), -1)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


@pytest.mark.parametrize('name', NETS)
def test_standard_net_computes_what_the_file_does(name):
    text = NETS[name].replace('sample_weights_test: true', '')
    file = load_file_as_caffe_reads_it(text)
    made = rewriting.to_deploy(reading.parse(NETS[name]))
    ours = run(made, file.params_used(made))
    scores = ours.blobs[facts.score_blob(made)].data
    assert np.allclose(ours.blobs[facts.prob_blob(made)].data, file.prob, atol=1e-6)
    assert np.allclose(softmax(scores), file.prob, atol=1e-6)
    assert file.scores is None or np.array_equal(scores, file.scores)
    check_shape_of_result(made)


class load_file_as_caffe_reads_it:
    """The original text, not rewritten, in Caffe's TEST phase: its scores `fc` and its weights."""

    def __init__(self, text):
        net = reading.parse(text)
        self.net = run(with_dummy_data(net))
        self.scores = self.net.blobs['fc'].data.copy()
        if 'Softmax" bottom: "fc"  top: "fc"' in text:  # in place: the scores are gone
            self.scores = None
            self.prob = self.net.blobs['fc'].data.copy()
        else:
            self.prob = softmax(self.scores)

    def params_used(self, made):
        names = [each.name for each in made.layer]
        return {name: blobs for name, blobs in self.net.params.items() if name in names}


def check_shape_of_result(made):
    assert not [each.type for each in made.layer if each.type in ('Data', 'Accuracy', 'ArgMax')
                or each.type.endswith('Loss')]
    assert not any(each.include or each.exclude for each in made.layer)
    for each in made.layer:
        if each.type == 'Dropout':
            assert list(each.top) != list(each.bottom)
    assert [each.name for each in made.layer if each.type == 'Input'] == ['data']


@pytest.mark.parametrize('name', NETS)
def test_mc_net_samples_and_its_prefix_does_not(name):
    made = rewriting.to_mc(reading.parse(NETS[name]))
    check_shape_of_result(made)
    drops = [each for each in made.layer if each.type == 'Dropout']
    assert drops and all(facts.samples_at_test(each) for each in drops)
    loaded = run(made)
    prob = facts.prob_blob(made)
    whole = loaded.blobs[prob].data.copy()
    tops = [top for each in made.layer for top in each.top]
    for each in [each for each in drops if tops.count(each.top[0]) == 1]:  # nothing changes it in place later
        before, after = loaded.blobs[each.bottom[0]].data, loaded.blobs[each.top[0]].data
        assert np.array_equal(after[after != 0], 2 * before[after != 0])
    loaded.forward(start=facts.first_sampling(made))
    assert not np.array_equal(loaded.blobs[prob].data, whole)
    set_seed(1)
    loaded.forward(start=facts.first_sampling(made))
    assert np.array_equal(loaded.blobs[prob].data, whole)
    # Everything that could come before the first dropout does.
    random = set()
    names = [each.name for each in made.layer]
    for each in made.layer[names.index(facts.first_sampling(made)):]:
        assert each.type == 'Dropout' or random.intersection(each.bottom), each.name
        random.update(each.top)


def test_the_companions_and_nothing_else_are_removed():
    made = rewriting.to_mc(reading.parse(NETS['companion losses']))
    assert [each.name for each in made.layer] == ['data', 'conv1', 'relu1', 'a', 'fc', 'b', 'prob']
    assert facts.score_blob(made) == 'b'  # the dropout in place on fc, out of place


def test_names_of_layers_stay_and_new_blobs_are_named_after_the_dropout():
    made = rewriting.to_deploy(reading.parse(NETS['several in a row']))
    assert [(each.name, list(each.bottom), list(each.top)) for each in made.layer] == [
        ('data', [], ['data']), ('conv1', ['data'], ['conv1']), ('a', ['conv1'], ['a']), ('b', ['a'], ['b']),
        ('c', ['b'], ['c']), ('d', ['c'], ['d']), ('fc', ['d'], ['fc']), ('prob', ['fc'], ['prob'])]


def test_a_dropout_named_as_another_blob_gets_a_free_name():
    text = ONE_INPUT + conv('x', 'data') + drop('x', 'x', 'x') + ip('prob', 'x') + layer('end', 'Softmax', 'prob')
    made = rewriting.to_mc(reading.parse(text))
    assert [list(each.top) for each in made.layer] == [['data'], ['x'], ['x_2'], ['prob'], ['end']]
    run(made)


def test_a_blob_changed_in_place_that_others_read_before_becomes_two():
    # Caffe itself refuses such a file; what it means is clear, though.
    text = (ONE_INPUT + conv('conv1', 'data') + layer('half', 'Power', 'conv1', extra='power_param { scale: 0.5 }') +
            layer('relu1', 'ReLU', 'conv1', 'conv1') + drop('a', 'conv1', 'conv1') +
            layer('sum', 'Eltwise', 'half conv1') + ip('fc', 'sum') + layer('prob', 'Softmax', 'fc'))
    loaded = run(rewriting.to_deploy(reading.parse(text)))
    before = loaded.blobs['conv1'].data
    assert before.min() < 0
    assert np.allclose(loaded.blobs['sum'].data, 0.5 * before + np.maximum(before, 0), atol=1e-6)


def test_input_shape_and_preprocessing_come_from_the_test_data_layer():
    made = rewriting.to_mc(reading.parse(NETS['both phases']), batch=7)
    assert list(made.layer[0].input_param.shape[0].dim) == [7, 3, 6, 6]
    assert facts.preprocessing(reading.parse(NETS['both phases'])).mean_value[:] == [1, 2, 3]
    assert facts.preprocessing(reading.parse(NETS['V1'])) is None


@pytest.mark.parametrize('params, kind, dims', [
    ('memory_data_param { batch_size: 2 channels: 1 height: 3 width: 4 }', 'MemoryData', [2, 1, 3, 4]),
    ('image_data_param { batch_size: 2 new_height: 5 new_width: 4 }', 'ImageData', [2, 3, 5, 4]),
    ('image_data_param { batch_size: 2 is_color: false } transform_param { crop_size: 4 }', 'ImageData', [2, 1, 4, 4]),
    ('dummy_data_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } shape { dim: 2 } }', 'DummyData', [2, 3, 4, 4]),
])
def test_data_layers_that_tell_their_shape(params, kind, dims):
    net = 'layer { name: "d" type: "%s" top: "data" top: "label" %s } ' % (kind, params)
    made = rewriting.to_mc(reading.parse(net + drop('a', 'data') + ip('fc', 'a') + LOSS))
    assert list(made.layer[0].input_param.shape[0].dim) == dims


def test_stages_and_levels_follow_caffes_rules():
    text = ('state { level: 2 stage: "deploy" } ' + ONE_INPUT + ip('fc', 'data') +
            drop('low', 'fc', 'fc', 'include { max_level: 1 }') + drop('high', 'fc', 'fc', 'include { min_level: 2 }') +
            drop('not', 'fc', 'fc', 'include { not_stage: "deploy" }') +
            drop('in', 'fc', 'fc', 'include { stage: "deploy" }') +
            drop('both', 'fc', 'fc', 'include { stage: "deploy" stage: "b" }') +
            drop('out', 'fc', 'fc', 'exclude { stage: "deploy" }') + layer('prob', 'Softmax', 'fc'))
    assert facts.dropouts(rewriting.to_mc(reading.parse(text))) == ['high', 'in']


def test_output_may_be_named():
    text = ONE_INPUT + conv('conv1', 'data') + drop('a', 'conv1') + ip('one', 'a') + ip('two', 'one')
    with pytest.raises(UserError, match="neither a Softmax nor a classification loss.*last blob is 'two'"):
        rewriting.to_deploy(reading.parse(text))
    made = rewriting.to_deploy(reading.parse(text), output='one')
    assert facts.score_blob(made) == 'one' and 'two' not in [each.name for each in made.layer]
    with pytest.raises(UserError, match="no layer makes the blob 'three'"):
        rewriting.to_deploy(reading.parse(text), output='three')


@pytest.mark.parametrize('text, message', [
    (ONE_INPUT + ip('fc', 'data') + layer('prob', 'Softmax', 'fc'), 'has no dropout layer before its output'),
    (DATA + conv('conv1', 'data') + ip('fc', 'conv1') + ip('side', 'conv1') + drop('a', 'side') +
     layer('quiet', 'Silence', 'a') + LOSS, 'has no dropout layer before its output'),
    (ONE_INPUT + drop('a', 'nowhere') + layer('prob', 'Softmax', 'a'), "'a' reads the blob 'nowhere', which no layer"),
    (ONE_INPUT + drop('a', 'b') + drop('b', 'a') + layer('prob', 'Softmax', 'b'), "'a' reads the blob 'b', which no"),
    (ONE_INPUT + drop('a', 'data') + ip('a', 'data') + layer('prob', 'Softmax', 'a'), "by both layers 'a' and 'a'"),
    ('layer { name: "d" type: "Data" top: "data" top: "label" data_param { batch_size: 3 } } ' + drop('a', 'data') +
     ip('fc', 'a') + LOSS, "layer 'd' (Data) does not tell the size of its images: give their shape"),
    ('layer { name: "d" type: "HDF5Data" top: "data" top: "label" hdf5_data_param { batch_size: 3 } } ' +
     drop('a', 'data') + ip('fc', 'a') + LOSS, "layer 'd' (HDF5Data) does not tell"),
    ('input: "data" input_dim: 2 input_dim: 3 ' + drop('a', 'data'), '1 `input` but dimensions for 1'),
    (ONE_INPUT + drop('a', 'data', extra='dropout_param { dropout_ratio: 1.5 }') + layer('p', 'Softmax', 'a'),
     "layer 'a' drops a share of 1.5"),
    ('name: "nothing"', 'no layer in it'),
    ('layers { layer { name: "old" type: "conv" } }', "layer 'old' is in the format of 2013 (V0)"),
    ('layer { name: "a" } layers { name: "b" }', 'both `layer` and `layers`'),
])
def test_clear_errors(text, message):
    with pytest.raises(UserError) as error:
        rewriting.to_mc(reading.parse(text))
    assert message in str(error.value) and '\n' not in str(error.value)


def test_two_inputs_need_two_shapes():
    text = ''.join('layer { name: "%s" type: "Data" top: "%s" data_param { batch_size: 2 } } ' % (name, name)
                   for name in 'xy') + layer('sum', 'Eltwise', 'x y') + drop('a', 'sum') + layer('p', 'Softmax', 'a')
    with pytest.raises(UserError, match=r'2 inputs \(x, y\): give a shape for each'):
        rewriting.to_mc(reading.parse(text), shape=(3, 4, 4))
    made = rewriting.to_mc(reading.parse(text), shape={'x': (3, 4, 4), 'y': (3, 4, 4)})
    assert [list(each.input_param.shape[0].dim) for each in made.layer[:2]] == [[2, 3, 4, 4]] * 2


@pytest.mark.parametrize('bad', [(0, 4, 4), (3, -1, 4), ('3', 4), ()])
def test_shapes_that_are_none_are_refused(bad):
    with pytest.raises(UserError, match='not a shape for the input'):
        rewriting.to_mc(reading.parse(NETS['both phases']), shape=bad)


def test_replicate_copies_each_blob_that_crosses_into_the_random_part():
    made = rewriting.replicate(rewriting.to_mc(reading.parse(NETS['a deterministic branch after the dropout'])), 3)
    assert [each.top[0] for each in made.layer if each.type == 'Tile'] == ['conv1_tile', 'side_tile']
    loaded = run(made)
    plain = rewriting.to_mc(reading.parse(NETS['a deterministic branch after the dropout']), batch=6)
    set_seed(3)
    outside = load_net(plain)
    outside.blobs['data'].data[...] = np.tile(loaded.blobs['data'].data, (3, 1, 1, 1))
    set_seed(1)
    outside.forward()
    assert np.allclose(loaded.blobs['prob'].data, outside.blobs['prob'].data, atol=1e-6)


def test_replicate_needs_a_layer_that_samples():
    with pytest.raises(UserError, match='no layer that samples'):
        rewriting.replicate(rewriting.to_deploy(reading.parse(NETS['V1'])), 3)


# --- V1 -------------------------------------------------------------------------------------------------

def upgrade_tool():
    return shutil.which('upgrade_net_proto_text', path=os.path.join(ROOT, '.caffe', 'bin') + ':' + os.environ['PATH'])


def v1_net_of_everything():
    """A V1 net with each layer type, and each field of a V1 layer that holds parameters."""
    net = caffe_pb2.NetParameter(name='everything')
    for name, number in caffe_pb2.V1LayerParameter.LayerType.items():
        net.layers.add(name=name, type=number, bottom=['in'], top=['out'], blobs_lr=[1, 2], weight_decay=[1, 0],
                       param=['shared', ''], blob_share_mode=[0, 1], loss_weight=[0.5])
        net.layers[-1].include.add(phase=caffe_pb2.TEST)
    for field in caffe_pb2.V1LayerParameter.DESCRIPTOR.fields:
        if field.name.endswith('_param') and field.message_type:
            made = net.layers.add(name=field.name, type=caffe_pb2.V1LayerParameter.POWER)
            fill(getattr(made, field.name))
    made = net.layers.add(name='old transform', type=caffe_pb2.V1LayerParameter.DATA)
    made.data_param.scale, made.data_param.crop_size, made.data_param.mirror = 0.5, 7, True
    made.data_param.mean_file = 'mean'
    return net


def fill(message):
    """Set each plain field of a message to something."""
    message.SetInParent()
    for field in message.DESCRIPTOR.fields:
        if field.label != field.LABEL_REPEATED and not field.message_type and field.name not in reading.MOVED:
            value = {field.CPPTYPE_STRING: 'text', field.CPPTYPE_BOOL: True}.get(field.cpp_type, 1)
            setattr(message, field.name, field.enum_type.values[-1].number if field.enum_type else value)


@pytest.mark.skipif(upgrade_tool() is None, reason='no upgrade_net_proto_text of Caffe\'s here')
def test_v1_upgrade_is_caffes_own(tmp_path):
    old, new = str(tmp_path / 'old.prototxt'), str(tmp_path / 'new.prototxt')
    with open(old, 'w') as file:
        file.write(reading.to_text(v1_net_of_everything()))
    subprocess.run([upgrade_tool(), old, new], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(new) as file:
        right = reading.parse(file.read())
    ours = reading.read(old)
    assert len(ours.layer) == len(right.layer) > 60
    for mine, theirs in zip(ours.layer, right.layer):
        for field, value in theirs.ListFields():  # Caffe leaves empty messages where it has looked
            if field.message_type and field.label != field.LABEL_REPEATED and not value.ByteSize():
                if not mine.HasField(field.name):
                    theirs.ClearField(field.name)
        assert mine == theirs
