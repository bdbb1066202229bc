"""DSN in stock Caffe is DSN in its own fork: the same values and the same SGD trajectory, with the same masks."""

import os
import tempfile

import numpy as np
import pytest
from fork_dsn import Fork

import trainhelp
from bcnn import nets, solvers
from bcnn.engine import load_net, load_solver, set_seed
from bcnn.prototxt import rewriting

pytestmark = pytest.mark.caffe

N = 2


def images(seed):
    random = np.random.RandomState(seed)
    return random.randn(N, 3, 32, 32).astype(np.float32), random.randint(0, 10, N)


def stage(k):
    """(solver of stage k with Input layers in the place of the LMDB, its message)."""
    message = solvers.stages('dsn', 'cifar10')['solver_stage%d' % k]
    net = nets.fed('dsn', 'cifar10', N, companions=k == 1)
    for field in ('net', 'test_iter', 'test_interval', 'display'):
        message.ClearField(field)
    message.net_param.CopyFrom(net)
    message.snapshot_prefix = os.path.join(tempfile.gettempdir(), 'unused')
    set_seed(11)
    return load_solver(message), message


def copy_of_weights(net):
    return {name: [blob.data.copy() for blob in blobs] for name, blobs in net.params.items()}


def stock_step(solver, data, label):
    solver.net.blobs['data'].data[...] = data
    solver.net.blobs['label'].data[...] = label
    solver.step(1)


def masks(net):
    """What the dropout layers kept. Where their input is 0 a mask changes nothing, not even a gradient: a ReLU
    with output 0 passes none."""
    return [net.blobs['drop%d' % k].data != 0 for k in (3, 6)]


def assert_same_weights(net, fork, start):
    """Equal, but for single against double precision: 5 parts in 1000 of the way from the start (where a ReLU or a
    pooling is at a tie, rounding decides), and the rounding of the weights themselves."""
    for name, blobs in fork.weights.items():
        for stock, right, begin in zip(net.params[name], blobs, start[name]):
            moved = np.abs(right - begin).max()
            assert moved > 0, name
            assert np.abs(stock.data - right).max() < 5e-3 * moved + 2e-7 * np.abs(right).max(), name


@pytest.mark.parametrize('k, lr', [(1, 0.025), (2, 0.025), (3, 0.0001)])
def test_each_stage_follows_the_forks_trajectory(k, lr):
    solver, _ = stage(k)
    start = copy_of_weights(solver.net)
    fork = Fork(start)
    for i in range(4):
        data, label = images(i)
        stock_step(solver, data, label)
        losses = fork.step(data, label, masks(solver.net), lr, companions=k == 1)
        blobs = ['loss'] + ['loss_svm%d' % c for c in (1, 2, 3)][:len(losses) - 1]
        assert np.allclose([solver.net.blobs[blob].data for blob in blobs], losses, rtol=1e-4)
        assert_same_weights(solver.net, fork, start)
    assert 0.4 < np.mean(masks(solver.net)[0][solver.net.blobs['pool1'].data != 0]) < 0.6  # they were real masks


def test_standard_and_mc_values_are_the_forks():
    data, _ = images(0)
    set_seed(3)
    standard = load_net(nets.deploy('dsn', 'cifar10', batch=N))
    fork = Fork(copy_of_weights(standard))
    standard.blobs['data'].data[...] = data
    standard.forward()
    assert np.allclose(standard.blobs['pool3'].data.reshape(N, 10), fork.scores(data), rtol=1e-3, atol=1e-5)

    mc = load_net(nets.mc('dsn', 'cifar10', batch=N))
    mc.share_with(standard)
    mc.blobs['data'].data[...] = data
    mc.forward()
    assert np.allclose(mc.blobs['pool3'].data.reshape(N, 10), fork.scores(data, masks(mc)), rtol=1e-3, atol=1e-5)


def test_the_companions_learning_rate_decays_as_in_the_fork(tmp_path):
    assert [round(solvers.companion_decay(i), 3) for i in (0, 10000, 50000)] == [1, 0.595, 0.261]
    solver, message = at_iteration(40000, tmp_path, weight_decay=5)  # much of it, so that its part shows
    solvers.decay_companions(solver, message)
    start = copy_of_weights(solver.net)
    fork = Fork(start, decay=5)
    for i in range(3):
        data, label = images(i)
        stock_step(solver, data, label)
        fork.step(data, label, masks(solver.net), 0.025,
                  companion_decay=(1 + 0.0001 * (40000 + i + 1)) ** -0.75)  # the fork counts from 1
        assert_same_weights(solver.net, fork, start)


def test_the_companions_decay_in_proportion(tmp_path):
    """A twentieth of the schedule: at iteration 2,000 the decay is that of the paper's iteration 40,000."""
    solver, message = at_iteration(2000, tmp_path, weight_decay=0)
    solvers.decay_companions(solver, message, schedule=20)
    start = copy_of_weights(solver.net)
    fork = Fork(start, decay=0)
    data, label = images(0)
    stock_step(solver, data, label)
    fork.step(data, label, masks(solver.net), 0.025, companion_decay=(1 + 0.0001 * 20 * 2001) ** -0.75)
    assert_same_weights(solver.net, fork, start)


def at_iteration(iteration, folder, weight_decay):
    """A new stage-1 solver that has this iteration and no momentum yet."""
    _, message = stage(1)
    message.weight_decay = weight_decay
    set_seed(11)
    return trainhelp.solver_at(iteration, message, folder), message


def test_stage_1_weights_load_into_the_trunk_by_name(tmp_path):
    solver, _ = stage(1)
    path = str(tmp_path / 'stage1.caffemodel')
    solver.net.save(path)
    trunk = load_net(nets.deploy('dsn', 'cifar10', batch=1), weights=path, extra_weights=True)
    stage1 = copy_of_weights(solver.net)
    assert set(stage1) - set(trunk.params) == {'ip_svm1', 'ip_svm2', 'ip_svm3'}
    for name, blobs in trunk.params.items():
        assert all(np.array_equal(blob.data, right) for blob, right in zip(blobs, stage1[name]))


def test_the_rewriter_makes_the_deploy_net_of_stage_1():
    made = rewriting.to_deploy(nets.train_test('dsn', 'cifar10', companions=True), shape=(3, 32, 32))
    assert [layer.name for layer in made.layer] == [layer.name for layer in nets.deploy('dsn', 'cifar10').layer]
