"""The solvers of the paper as Caffe messages, one a training run or stage."""

from collections import OrderedDict
from typing import Dict

from . import beyond, nets, paper
from .engine import CaffeSolver, SolverParameter
from .errors import UserError

# All LeNets: the authors' files.
LENET = dict(base_lr=0.01, lr_policy='inv', gamma=0.0001, power=0.75, weight_decay=0.0005)
MNIST = dict(LENET, test_interval=5000, display=1000, snapshot=100000)
SUBSET = dict(MNIST, snapshot=10000)
CIFAR = dict(LENET, test_interval=500, display=100, snapshot=1000)
NIN = dict(base_lr=0.1, lr_policy='step', gamma=0.1, stepsize=100000, weight_decay=0.0001,
           test_interval=500, display=100, snapshot=10000)
# Three stages, each with a new iteration count and momentum, from the weights of the one before.
DSN = dict(weight_decay=0.0005, test_interval=500, display=100, snapshot=1000)
DSN_STAGES = (
    dict(DSN, base_lr=0.025, lr_policy='fixed'),
    dict(DSN, base_lr=0.025, lr_policy='step', gamma=0.05, stepsize=100001),
    dict(DSN, base_lr=0.0001, lr_policy='fixed'),
)


def stages(net: str, dataset: str, schedule: int = 1) -> Dict[str, SolverParameter]:
    """The solvers of a run, in order, by file name: {'solver': message}, or one for each stage of DSN.

    schedule: K for 1/K of the paper's, in proportion.
    """
    entry = nets.find(dataset, net)
    iterations = beyond.of_net(dataset, net).iterations
    solvers = OrderedDict()
    if len(iterations) == 1:
        solvers['solver'] = _message(entry, _values(entry), iterations[0], 'train_test', '')
    else:
        for k, (values, count) in enumerate(zip(DSN_STAGES, iterations), 1):
            file = 'train_test_stage1' if k == 1 else 'train_test'  # companions in stage 1 only
            solvers['solver_stage%d' % k] = _message(entry, values, count, file, '-stage%d' % k)
    return OrderedDict((name, in_proportion(message, schedule)) for name, message in solvers.items())


def in_proportion(solver: SolverParameter, schedule: int) -> SolverParameter:
    """1/`schedule` of a solver's schedule: at iteration i the learning rate is the paper's at `schedule` * i."""
    if schedule == 1:
        return solver
    shorter = SolverParameter()
    shorter.CopyFrom(solver)
    shorter.max_iter = solver.max_iter // schedule
    if not shorter.max_iter:
        raise UserError('--schedule 1/%d: a stage of %d iterations is left without one' % (schedule, solver.max_iter))
    if solver.lr_policy == 'step':
        shorter.stepsize = -(-solver.stepsize // schedule)  # up: the first iteration at or after the paper's drop
    if solver.lr_policy == 'inv':
        shorter.gamma = solver.gamma * schedule
    for interval in ('test_interval', 'snapshot'):
        setattr(shorter, interval, max(1, getattr(solver, interval) // schedule))
    return shorter


def _values(entry):
    if entry.net == 'nin':
        return NIN
    if entry.dataset == 'cifar10':
        return CIFAR
    if entry.dataset != entry.base:
        return SUBSET
    return MNIST if entry.where else dict(MNIST, snapshot=10000)  # lenet_none: the authors' own interval


def _message(entry, values, iterations, file, suffix):
    """A solver of SGD with momentum 0.9 that tests on all 10,000 images.

    CPU, because Caffe's default is GPU, and a CPU build aborts on that; `caffe train --gpu 0`
    overrides it.
    """
    return SolverParameter(
        net='prototxt/%s/%s/%s.prototxt' % (entry.dataset, entry.net, file), max_iter=iterations,
        test_iter=[paper.TEST_IMAGES // nets.TEST_BATCH], momentum=0.9,
        snapshot_prefix='runs/%s-%s%s' % (entry.dataset, entry.net, suffix),
        solver_mode=SolverParameter.CPU, **values)


# --- the companions' learning rate ------------------------------------------------------

COMPANIONS = ('ip_svm1', 'ip_svm2', 'ip_svm3')


def companion_decay(iteration: int) -> float:
    """What DSN multiplies the companions' learning rate with: 1 at the start, 0.261 after 50,000."""
    return (1 + 0.0001 * iteration) ** -0.75


def decay_companions(solver: CaffeSolver, message: SolverParameter, schedule: int = 1) -> None:
    """Make a stage-1 solver let its companions' learning rate decay as DSN does, at each step, exactly.

    schedule: K where the solver has 1/K of the paper's schedule.

    Neither a prototxt nor pycaffe can change a learning rate multiplier of a running solver,
    but a callback may change the gradients before the update. Caffe then moves a weight w by
    lr * (g + decay * w), so putting d*g + (d-1)*decay*w in the place of g makes that
    d * lr * (g + decay * w), momentum untouched: the multiplier times d.
    """
    decays = [message.weight_decay, 0]  # decay_mult: 1 for weights, 0 for biases

    def slow_down():
        d = companion_decay(schedule * (solver.iter + 1))  # DSN's Caffe counts from 1
        for name in COMPANIONS:
            for blob, decay in zip(solver.net.params[name], decays):
                blob.diff[...] = d * blob.diff + (d - 1) * decay * blob.data

    solver.add_callback(lambda: None, slow_down)
