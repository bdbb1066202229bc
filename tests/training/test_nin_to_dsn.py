"""NIN's weights carried over to DSN: real weights and images, the same scores, the same predictions, margins to train on."""

import os

import numpy as np
import pytest

import trainhelp
from bcnn import engine, nets
from bcnn.data import records, sets
from bcnn.errors import UserError
from bcnn.mc import forward
from bcnn.training import nin_to_dsn, trainees
from conftest import one_clear_line

pytestmark = pytest.mark.caffe
IMAGES = 200


@pytest.fixture(scope='module')
def published():
    """The published weights and whitened training images, both real."""
    if not all(map(sets.manifest, ('nin_weights', 'cifar10'))):
        pytest.skip('the published NIN weights and CIFAR-10 are not prepared here')
    return os.path.join(sets.DATA, 'nin_weights', 'cifar10_nin.caffemodel'), os.path.join(sets.DATA, 'cifar10', 'train_lmdb')


@pytest.fixture(scope='module')
def carried(published, tmp_path_factory):
    """(the Fit, the path of the caffemodel)."""
    path = str(tmp_path_factory.mktemp('carried') / 'new' / 'margins.caffemodel')
    return nin_to_dsn.carry_over(published[0], published[1], IMAGES, path), path


def original(weights, images):
    """Scores of NIN with DSN's pooling, and without the ReLU after its last convolution, which DSN does not have."""
    message = nets.deploy('nin', 'cifar10', len(images))
    for layer in message.layer:
        if layer.name == 'pool2':
            layer.pooling_param.pool = nets.MAX
    kept = [layer for layer in message.layer if layer.name != 'relu_cccp6']
    assert len(kept) == len(message.layer) - 1
    changed = engine.caffe_pb2.NetParameter(layer=kept)
    net = engine.load_net(changed, weights)
    return forward.standard(net, forward.wiring_of(changed, net), images)[1]


def test_the_trunk_gives_nins_scores_and_the_file_its_predictions(published, carried):
    weights, lmdb = published
    fit, path = carried
    images, labels = records.load(lmdb, 0, IMAGES)
    right = original(weights, images)
    before, _ = nin_to_dsn.scores(nin_to_dsn.trunk(weights), lmdb, IMAGES)
    np.testing.assert_allclose(before, right, rtol=1e-4, atol=1e-3)  # of tens
    after, _ = nin_to_dsn.scores(engine.load_net(nets.deploy('dsn', 'cifar10'), path), lmdb, IMAGES)
    assert (after.argmax(axis=1) == right.argmax(axis=1)).all()
    np.testing.assert_allclose(after, fit.a * right + fit.c, atol=1e-4)
    assert fit.images == IMAGES and fit.error == pytest.approx(100.0 * np.mean(right.argmax(axis=1) != labels))
    assert 0.01 < fit.a < 0.02 and -1.6 < fit.c < -1.2  # as in the trial of issue 27
    assert fit.loss < 3 < 100 < fit.loss_before


def test_without_doubling_the_scores_are_others(published):
    """That the test above would see it."""
    weights, lmdb = published
    net = nin_to_dsn.trunk(weights)
    for name in nin_to_dsn.DOUBLED:
        net.params[name][0].data[...] /= 2
    images, _ = records.load(lmdb, 0, 20)
    assert np.abs(nin_to_dsn.scores(net, lmdb, 20)[0] - original(weights, images)).max() > 1


def test_the_file_holds_weights_and_nothing_of_a_machine(published, carried):
    old, new = engine.caffe_pb2.NetParameter(), engine.caffe_pb2.NetParameter()
    with open(published[0], 'rb') as file:
        old.ParseFromString(file.read())
    with open(carried[1], 'rb') as file:
        new.ParseFromString(file.read())
    assert len(old.layers) > 0 and len(old.layer) == 0  # V1
    assert {layer.name for layer in new.layer if layer.blobs} == {layer.name for layer in old.layers if layer.blobs}
    assert not [layer.type for layer in new.layer if 'Data' in layer.type or layer.HasField('data_param')]
    assert [name for name in os.listdir(os.path.dirname(carried[1]))] == ['margins.caffemodel']


def test_dsn_starts_from_it(carried, tmp_path):
    data = trainhelp.make_data(tmp_path)
    trainee = trainhelp.trainee(data, 'dsn', init=carried[1])
    fitting, others = engine.call(trainees.fitting_layers, trainee, 1)
    assert len(fitting) == 9 and others == ['ip_svm1', 'ip_svm2', 'ip_svm3']


def test_the_fit_by_hand():
    """Scores that are margins of -1 and 1 on another scale."""
    labels = np.array([0, 2, 1])
    signs = np.array([[1, -1, -1], [-1, -1, 1], [-1, 1, -1.]])
    fit = nin_to_dsn.fit((signs + 1.5) / 0.02, labels)
    assert (fit.a, fit.c, fit.error, fit.loss) == pytest.approx((0.02, -1.5, 0, 0))
    assert fit.loss_before == pytest.approx(2 * 26 ** 2)  # two wrong classes of 25, the right one above 1
    with pytest.raises(UserError, match='do not rise with the right class'):
        nin_to_dsn.fit(-signs, labels)


def test_the_loss_is_that_of_dsns_own_layer():
    rng = np.random.RandomState(0)
    scores, labels = rng.randn(7, 4) * 2, rng.randint(0, 4, 7)
    n = engine.NetSpec()
    n.scores, n.label = (engine.layers.Input(shape=dict(dim=shape)) for shape in ([7, 4], [7]))
    n.loss = nets.squared_hinge(n.scores, n.label)
    net = engine.load_net(n.to_proto())
    net.blobs['scores'].data[...], net.blobs['label'].data[...] = scores, labels
    assert nin_to_dsn.squared_hinge(scores, labels) == pytest.approx(float(net.forward()['loss']), rel=1e-5)


def test_the_command(tool, published, tmp_path):
    said = tool('nin_to_dsn.py', '--images', 100, '--out', tmp_path / 'x.caffemodel')
    assert said.returncode == 0, said.stderr
    assert 'the first 100 training images: a = 0.01' in said.stdout and 'squared hinge' in said.stdout
    assert (tmp_path / 'x.caffemodel').stat().st_size < 4e6


def test_bad_input_is_one_line_and_nothing_is_written(tool, published, tmp_path):
    engine.load_net(nets.deploy('lenet_ip', 'mnist')).save(str(tmp_path / 'lenet.caffemodel'))
    (tmp_path / 'noise.caffemodel').write_bytes(b'\x08\xff' * 50)
    out = tmp_path / 'out.caffemodel'
    for words, parts in ((('--weights', tmp_path / 'lenet.caffemodel'), ['lenet.caffemodel', 'no weights for cccp1']),
                         (('--weights', tmp_path / 'noise.caffemodel'), ['not a caffemodel']),
                         (('--weights', tmp_path / 'none.caffemodel'), ['no such file']),
                         (('--images', 0), ['50000 images', '--images 0']), (('--images', 50001), ['--images 50001'])):
        one_clear_line(tool('nin_to_dsn.py', *(words + ('--out', out))), *parts)
        assert not out.exists()
