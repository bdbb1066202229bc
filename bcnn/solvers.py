"""The solvers of the paper as Caffe messages, one a training run or stage."""

from collections import OrderedDict

from . import nets
from .engine import caffe_pb2
from .errors import UserError

# All LeNets: the authors' files.
LENET = dict(base_lr=0.01, lr_policy='inv', gamma=0.0001, power=0.75, weight_decay=0.0005)
MNIST = dict(LENET, max_iter=10000000, test_interval=5000, display=1000, snapshot=100000)
# Figure 3's runs are shorter: 1e6 in the authors' files, where the paper says 1e7 for all of MNIST.
SUBSET = dict(MNIST, max_iter=1000000, snapshot=10000)
CIFAR = dict(LENET, max_iter=100000, test_interval=500, display=100, snapshot=1000)
NIN = dict(base_lr=0.1, lr_policy='step', gamma=0.1, stepsize=100000, weight_decay=0.0001,
           max_iter=120000, test_interval=500, display=100, snapshot=10000)
# Three stages, each with a new iteration count and momentum, from the weights of the one before.
DSN = dict(weight_decay=0.0005, test_interval=500, display=100, snapshot=1000)
DSN_STAGES = (
    dict(DSN, base_lr=0.025, lr_policy='fixed', max_iter=50000),
    dict(DSN, base_lr=0.025, lr_policy='step', gamma=0.05, stepsize=100001, max_iter=120000),
    dict(DSN, base_lr=0.0001, lr_policy='fixed', max_iter=30000),
)


def stages(net, dataset):
    """The solvers of a run, in order, by file name: {'solver': message}, or one for each stage of DSN."""
    entry = nets.find(dataset, net)
    if entry.body is not nets.dsn:
        return OrderedDict([('solver', _message(entry, _values(entry), 'train_test', ''))])
    found = OrderedDict()
    for k, values in enumerate(DSN_STAGES, 1):
        file = 'train_test_stage1' if k == 1 else 'train_test'  # companions in stage 1 only
        found['solver_stage%d' % k] = _message(entry, values, file, '-stage%d' % k)
    return found


def solver(net, dataset, stage=None):
    """The SolverParameter of a run; for DSN that of stage 1, 2 or 3."""
    found = list(stages(net, dataset).values())
    if len(found) > 1 and stage not in range(1, len(found) + 1):
        raise UserError('%s is trained in stages 1 to %d: no stage %s' % (net, len(found), stage))
    return found[stage - 1 if len(found) > 1 else 0]


def _values(entry):
    if entry.net == 'nin':
        return NIN
    if entry.dataset == 'cifar10':
        return CIFAR
    if entry.dataset != entry.base:
        return SUBSET
    return MNIST if entry.where else dict(MNIST, snapshot=10000)  # lenet_none: the authors' own interval


def _message(entry, values, file, suffix):
    """A solver of SGD with momentum 0.9 that tests on all 10,000 images.

    CPU, because Caffe's default is GPU, and a CPU build aborts on that; `caffe train --gpu 0`
    overrides it.
    """
    return caffe_pb2.SolverParameter(
        net='prototxt/%s/%s/%s.prototxt' % (entry.dataset, entry.net, file), test_iter=[100], momentum=0.9,
        snapshot_prefix='runs/%s-%s%s' % (entry.dataset, entry.net, suffix),
        solver_mode=caffe_pb2.SolverParameter.CPU, **values)


# --- the companions' learning rate ------------------------------------------------------

COMPANIONS = ('ip_svm1', 'ip_svm2', 'ip_svm3')


def companion_decay(iteration):
    """What DSN multiplies the companions' learning rate with: 1 at the start, 0.261 after 50,000."""
    return (1 + 0.0001 * iteration) ** -0.75


def decay_companions(solver, message):
    """Make a stage-1 solver let its companions' learning rate decay as DSN does, at each step, exactly.

    Neither a prototxt nor pycaffe can change a learning rate multiplier of a running solver,
    but a callback may change the gradients before the update. Caffe then moves a weight w by
    lr * (g + decay * w), so putting d*g + (d-1)*decay*w in the place of g makes that
    d * lr * (g + decay * w), momentum untouched: the multiplier times d.
    """
    decays = [message.weight_decay, 0]  # decay_mult: 1 for weights, 0 for biases

    def slow_down():
        d = companion_decay(solver.iter + 1)  # DSN's Caffe counts from 1
        for name in COMPANIONS:
            for blob, decay in zip(solver.net.params[name], decays):
                blob.diff[...] = d * blob.diff + (d - 1) * decay * blob.data

    solver.add_callback(lambda: None, slow_down)
