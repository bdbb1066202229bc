"""Every committed file in real Caffe: it loads, samples where it should, and trains."""

import glob
import os
import shutil
import subprocess

import lmdb
import numpy as np
import pytest

from bcnn import nets
from bcnn.engine import caffe, caffe_pb2, call, load_net, set_seed
from bcnn.errors import UserError
from bcnn.prototxt import facts, reading, rewriting
from bcnn.prototxt.reading import parse
from conftest import ROOT

pytestmark = pytest.mark.caffe

WHOLE = [(dataset, net) for dataset, net in nets.REGISTRY if dataset in ('mnist', 'cifar10')]
STOCHASTIC = [(dataset, net) for dataset, net in WHOLE if net != 'lenet_none']


def committed(dataset, net, name):
    return os.path.join(ROOT, 'prototxt', dataset, net, name + '.prototxt')


def images(dataset, count, seed=0):
    random = np.random.RandomState(seed)
    shape = (count, 1, 28, 28) if dataset == 'mnist' else (count, 3, 32, 32)
    return random.rand(*shape) if dataset == 'mnist' else random.randn(*shape)


def forward(net, data, seed=1, start=None):
    net.blobs['data'].reshape(*data.shape)
    net.reshape()
    net.blobs['data'].data[...] = data
    set_seed(seed)
    net.forward(start=start)
    return net.blobs['prob'].data.reshape(-1, 10).copy()


def seeded(path):
    set_seed(7)  # the weights of the fillers
    return load_net(path)


# --- deploy and MC nets -----------------------------------------------------------------------

@pytest.mark.parametrize('dataset, net', WHOLE)
def test_deploy_files_give_equal_rows_for_equal_images_at_any_batch_size(dataset, net):
    loaded = seeded(committed(dataset, net, 'deploy'))
    image = images(dataset, 1)
    one = forward(loaded, image)
    assert np.isclose(one.sum(), 1, atol=1e-5)
    many = forward(loaded, np.repeat(image, 5, axis=0), seed=2)
    # Not bit for bit: BLAS adds up in another order in the last rows, and for another batch size.
    assert np.allclose(many, one[0], atol=1e-6)
    assert len(np.unique(forward(loaded, images(dataset, 2)), axis=0)) == 2


@pytest.mark.parametrize('dataset, net', STOCHASTIC)
def test_mc_files_sample_a_mask_for_each_row_and_pass(dataset, net):
    loaded = seeded(committed(dataset, net, 'mc'))
    copies = np.repeat(images(dataset, 1), 4, axis=0)
    first = forward(loaded, copies)
    assert np.allclose(first.sum(1), 1, atol=1e-5)
    assert len(np.unique(first, axis=0)) == 4
    loaded.forward()
    assert not np.any(np.all(loaded.blobs['prob'].data.reshape(-1, 10) == first, axis=1))
    assert forward(loaded, copies).tobytes() == first.tobytes()  # the same seed: the same bytes
    assert len(np.unique(forward(loaded, copies[:2]), axis=0)) == 2


P = {'lenet_all_p10': 0.1, 'lenet_all_p25': 0.25, 'lenet_all_p75': 0.75}  # all others drop half


def plain(net):
    """The net of the paper that a net is a variation of."""
    return 'lenet_all' if net.startswith('lenet_all_') else net


@pytest.mark.parametrize('dataset, net', STOCHASTIC)
def test_each_dropout_of_an_mc_net_zeroes_its_share_and_scales_the_rest(dataset, net):
    message = nets.mc(net, dataset, batch=2)
    loaded = load_net(message)
    forward(loaded, images(dataset, 2))
    drops, p = [layer for layer in message.layer if layer.type == 'Dropout'], P.get(net, 0.5)
    assert [layer.name for layer in drops] == {
        'lenet_all': ['dropC1', 'dropC2', 'drop1'], 'lenet_ip': ['drop1']}.get(plain(net), ['drop3', 'drop6'])
    for layer in drops:
        before, after = loaded.blobs[layer.bottom[0]].data, loaded.blobs[layer.top[0]].data
        used = before != 0
        zeros = np.mean(after[used] == 0)
        assert abs(zeros - p) < 5 * 0.5 / np.sqrt(used.sum())
        kept = after != 0
        np.testing.assert_allclose(after[kept], before[kept] / (1 - p), rtol=1e-6)


def test_lenet_none_has_no_stochastic_layer():
    for dataset in ('mnist', 'cifar10'):
        message = nets.deploy('lenet_none', dataset)
        assert facts.dropouts(message) == [] and facts.first_sampling(message) is None
        assert not os.path.exists(committed(dataset, 'lenet_none', 'mc'))
        with pytest.raises(UserError, match='lenet_none has no dropout layer'):
            nets.mc('lenet_none', dataset)


@pytest.mark.parametrize('dataset, net', STOCHASTIC)
def test_a_pass_may_start_at_the_first_dropout(dataset, net):
    message = nets.mc(net, dataset, batch=3)
    loaded = load_net(message)
    data = images(dataset, 3)
    whole = forward(loaded, data, seed=5)
    loaded.forward()
    start = facts.first_sampling(message)
    assert start == {'lenet_all': 'dropC1', 'lenet_ip': 'drop1'}.get(plain(net), 'drop3')
    set_seed(5)
    loaded.forward(start=start)
    assert loaded.blobs['prob'].data.reshape(-1, 10).tobytes() == whole.tobytes()


@pytest.mark.parametrize('dataset, net', STOCHASTIC)
def test_replicating_inside_the_net_is_replicating_the_input(dataset, net):
    B, T = 2, 3
    data = images(dataset, B)
    inside, outside = [seeded_message(message) for message in (
        rewriting.replicate(nets.mc(net, dataset, batch=B), T), nets.mc(net, dataset, batch=B * T))]
    rows = forward(inside, data)
    assert rows.shape == (B * T, 10)
    assert len(np.unique(rows, axis=0)) == B * T
    assert np.allclose(rows, forward(outside, np.tile(data, (T, 1, 1, 1))), atol=1e-6)


def seeded_message(message):
    set_seed(7)
    return load_net(message)


@pytest.mark.parametrize('dataset, net', STOCHASTIC)
def test_replicate_files_give_t_samples_of_one_image(dataset, net):
    rows = forward(seeded(committed(dataset, net, 'mc_replicate')), images(dataset, 1))
    assert rows.shape == (50 if net.startswith('lenet') else 100, 10)  # Figure 2's T, and Table 1's
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_dsn_margins_stay_reachable():
    message = nets.deploy('dsn', 'cifar10', batch=2)
    assert (facts.prob_blob(message), facts.score_blob(message)) == ('prob', 'pool3')
    net = load_net(message)
    prob = forward(net, images('cifar10', 2))
    margins = net.blobs['pool3'].data.reshape(-1, 10)
    right = np.exp(margins) / np.exp(margins).sum(1, keepdims=True)
    assert np.allclose(prob, right, atol=1e-6)


# --- names --------------------------------------------------------------------------------------

@pytest.mark.parametrize('dataset, net, start', [
    ('mnst', 'lenet_all', "no data set 'mnst'; there are: mnist, cifar10"),
    ('cifar10', 'lenet_al', "no net 'lenet_al' for cifar10; there are: lenet_all, dsn"),
    ('mnist_4', 'nin', "no net 'nin' for mnist_4; there are: lenet_"),
    ('mnist', 'dsn_aug', "no net 'dsn_aug' for mnist; there are: lenet_all"),
    ('', '', "no data set ''; there are: cifar10, fashion_mnist, mnist"),
])
def test_unknown_names_are_refused_with_the_nearest(dataset, net, start):
    with pytest.raises(UserError) as error:
        nets.find(dataset, net)
    assert str(error.value).startswith(start)


# --- training -----------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def project(tmp_path_factory):
    """A folder as the project's, with small LMDBs in the place of the data."""
    folder = tmp_path_factory.mktemp('project')
    os.symlink(os.path.join(ROOT, 'prototxt'), str(folder / 'prototxt'))
    (folder / 'runs').mkdir()
    random = np.random.RandomState(3)
    names = ['mnist', 'fashion_mnist'] + ['mnist_%d' % k for k in (2, 4, 8, 16, 32)] + ['cifar10', 'cifar10_pad4']
    for name in names:
        for part in ('train', 'test'):
            write_lmdb(folder / 'data' / name / (part + '_lmdb'), name, random)
    return folder


def write_lmdb(path, name, random):
    path.mkdir(parents=True)
    with lmdb.open(str(path), map_size=1 << 26) as database, database.begin(write=True) as transaction:
        for i in range(12):
            datum = caffe_pb2.Datum(label=i % 10)
            if 'mnist' in name:
                datum.channels, datum.height, datum.width = 1, 28, 28
                datum.data = random.randint(0, 256, 784).astype(np.uint8).tobytes()
            else:
                image = np.zeros((3, 40, 40))
                # A pattern for each class, so that there is something to learn, and noise.
                pattern = np.random.RandomState(i % 10).randn(3, 32, 32)
                image[:, 4:-4, 4:-4] = 0.1 * pattern + 0.05 * random.randn(3, 32, 32)
                image = image if name.endswith('pad4') else image[:, 4:-4, 4:-4]
                datum.channels, datum.height, datum.width = image.shape
                datum.float_data.extend(image.ravel())
            transaction.put(b'%05d' % i, datum.SerializeToString())


def solver_files():
    found = sorted(glob.glob(os.path.join(ROOT, 'prototxt', '*', '*', 'solver*.prototxt')))
    return [os.path.relpath(path, ROOT) for path in found]


def train(folder, solver_path, steps):
    """Losses of some steps with a committed solver and net, and the weights' largest value; needs its own process.

    Testing is done once, on one batch. CIFAR nets run in small batches: 128 images take seconds a step.
    """
    os.chdir(str(folder))
    with open(solver_path) as file:
        message = parse(file.read(), caffe_pb2.SolverParameter())
    message.test_iter[:] = [1]
    if 'cifar10' in solver_path:
        net = reading.read(message.net)
        for layer in net.layer:
            if layer.type == 'Data':
                layer.data_param.batch_size = 4 if 'lenet' in solver_path else 2
        message.ClearField('net')
        message.net_param.CopyFrom(net)
    set_seed(1)
    with open('solver.prototxt', 'w') as file:
        file.write(reading.to_text(message))
    solver = caffe.get_solver('solver.prototxt')  # this process may abort: no need to try it in another first
    losses = []
    for _ in range(steps):
        solver.step(1)
        losses.append(float(solver.net.blobs['loss'].data))
    largest = max(abs(blob.data).max() for blobs in solver.net.params.values() for blob in blobs)
    return losses, float(largest), float(solver.test_nets[0].blobs['accuracy'].data), solver.iter


def test_there_is_a_solver_for_every_run():
    assert len(solver_files()) == 29 + 2 * 3  # 31 nets, of which two train in three stages


@pytest.mark.parametrize('path', solver_files())
def test_twenty_steps_without_nan(project, path):
    losses, largest, accuracy, iteration = call(train, project, path, 20)
    assert iteration == 20 and np.isfinite(losses).all() and np.isfinite(largest)
    assert len(set(losses)) > 1  # it learns something
    assert 0 <= accuracy <= 1
    assert 87 > max(losses)  # 87.3 is where a diverged softmax loss sticks, -ln(FLT_MIN)


# --- without our Python -----------------------------------------------------------------------------

def caffe_train(folder, solver, *options):
    """Runs plain `caffe train`, as a user without our code would."""
    command = shutil.which('caffe', path=os.path.join(ROOT, '.caffe', 'bin') + os.pathsep + os.environ['PATH'])
    return subprocess.run([command, 'train', '--solver=' + solver] + list(options), cwd=str(folder),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=300,
                          env=dict(os.environ, GLOG_minloglevel='0'))


def shortened(folder, solver_path, max_iter):
    """A copy of a committed solver file with another end, and one test on one batch."""
    with open(os.path.join(ROOT, solver_path)) as file:
        message = parse(file.read(), caffe_pb2.SolverParameter())
    message.max_iter, message.test_iter[:] = max_iter, [1]
    message.snapshot = max_iter
    if 'dsn' in solver_path:  # small batches
        net = reading.read(os.path.join(ROOT, message.net))
        for layer in net.layer:
            if layer.type == 'Data':
                layer.data_param.batch_size = 2
        message.net = os.path.basename(message.net)
        (folder / message.net).write_text(reading.to_text(net))
    path = folder / os.path.basename(solver_path)
    path.write_text(reading.to_text(message))
    return str(path), message.snapshot_prefix


def test_plain_caffe_trains_a_committed_net(project):
    path, prefix = shortened(project, 'prototxt/mnist/lenet_all/solver.prototxt', 20)
    result = caffe_train(project, path)
    assert result.returncode == 0, result.stdout[-2000:]
    assert 'Optimization Done.' in result.stdout
    trained = load_net(committed('mnist', 'lenet_all', 'mc'), weights=str(project / (prefix + '_iter_20.caffemodel')))
    assert np.isfinite(trained.params['ip2'][0].data).all()


def test_plain_caffe_goes_from_stage_to_stage_of_dsn(project):
    first, before = shortened(project, 'prototxt/cifar10/dsn_aug/solver_stage1.prototxt', 2)
    second, after = shortened(project, 'prototxt/cifar10/dsn_aug/solver_stage2.prototxt', 1)
    assert caffe_train(project, first).returncode == 0
    weights = str(project / (before + '_iter_2.caffemodel'))
    result = caffe_train(project, second, '--weights=' + weights)
    assert result.returncode == 0, result.stdout[-2000:]
    assert 'Finetuning from' in result.stdout and 'Ignoring source layer ip_svm1' in result.stdout
    deploy = committed('cifar10', 'dsn_aug', 'deploy')
    old = load_net(deploy, weights=weights, extra_weights=True).params['conv1'][0].data
    new = load_net(deploy, weights=str(project / (after + '_iter_1.caffemodel'))).params['conv1'][0].data
    assert 0 < np.abs(new - old).max() < 0.1 * np.abs(old).max()  # one step away, not begun anew
