"""The paper as a table: every run of Figures 2, 3, 4 and Table 1, and the figures it published.

Plain data and a few look-ups, for the workflow, the recorder and the analysis. Knows nothing
of Caffe and imports nothing of this package, so that it loads on any Python from 3.6 on.
"""

import re
from collections import OrderedDict
from typing import List, NamedTuple, Optional, Tuple

TEST_IMAGES = 10000  # of MNIST and of CIFAR-10
LENETS = ('lenet_all', 'lenet_ip', 'lenet_none')
TABLE1 = ('nin', 'dsn', 'dsn_aug')
FRACTIONS = (2, 4, 8, 16, 32)  # 1/2 ... 1/32 of MNIST's training images, in the authors' files
FIGURE3 = ('mnist', 'mnist_4', 'mnist_32')  # all, 1/4 and 1/32: what the paper shows of them
REPETITIONS = 5  # of an MC evaluation in Table 1 and Figure 4
DSN_STAGES = (50000, 120000, 30000)  # iterations: with companion losses, without, and at a small learning rate


class Run(NamedTuple):
    """A run of the paper."""

    experiment: str                # of EXPERIMENTS
    dataset: str
    net: str
    iterations: Tuple[int, ...]    # of each training stage
    T: int                         # stochastic passes
    repetitions: int               # of the MC evaluation of the final weights; 0 where a curve is all there is
    methods: Tuple[str, ...]       # what the paper draws: standard, mc
    weights: str                   # 'published' where it evaluated released weights, else 'trained'


# fig2: error against iterations. fig3: the same on fractions of MNIST. table1: the three
# CIFAR-10 nets; fig4 is the error of one of its evaluations after each pass.
EXPERIMENTS = OrderedDict([
    ('fig2', 'Figure 2: LeNet on MNIST and CIFAR-10'),
    ('fig3', 'Figure 3: LeNet on fractions of MNIST'),
    ('table1', 'Table 1: NIN, DSN and Augmented-DSN on CIFAR-10'),
    ('fig4', 'Figure 4: how many passes are enough')])


# --- the runs --------------------------------------------------------------------------------

def _runs():
    standard, both = ('standard',), ('standard', 'mc')
    for dataset, iterations in (('mnist', 10000000), ('cifar10', 100000)):
        for net in LENETS:
            yield Run(experiment='fig2', dataset=dataset, net=net, iterations=(iterations,), T=50, repetitions=0,
                      methods=standard if net == 'lenet_none' else both, weights='trained')
    # 1e6 iterations in the authors' files, the panel with all of MNIST included; the paper's text says 1e7
    for dataset in FIGURE3:
        for net, methods in (('lenet_ip', standard), ('lenet_all', ('mc',))):
            yield Run(experiment='fig3', dataset=dataset, net=net, iterations=(1000000,), T=10, repetitions=0,
                      methods=methods, weights='trained')
    # NIN's 10.43 are exactly the 1043 errors of the model zoo's weights: five evaluations of one net
    for experiment, net, iterations, weights in (
            ('table1', 'nin', (120000,), 'published'), ('table1', 'dsn', DSN_STAGES, 'trained'),
            ('table1', 'dsn_aug', DSN_STAGES, 'trained'), ('fig4', 'dsn_aug', DSN_STAGES, 'trained')):
        yield Run(experiment=experiment, dataset='cifar10', net=net, iterations=iterations, T=100,
                  repetitions=REPETITIONS, methods=both, weights=weights)


RUNS = tuple(_runs())


def find(experiment: Optional[str] = None, dataset: Optional[str] = None, net: Optional[str] = None) -> List[Run]:
    """The runs of an experiment, a data set, a net; None takes all."""
    wanted = (('experiment', experiment), ('dataset', dataset), ('net', net))
    return [run for run in RUNS if all(value is None or getattr(run, name) == value for name, value in wanted)]


def run_of(experiment: str, dataset: str, net: str) -> Optional[Run]:
    """The one run of these names, or None."""
    runs = find(experiment, dataset, net)
    return runs[0] if runs else None


def schedule(experiment: str, dataset: str, net: str) -> Optional[int]:
    """The iterations of the paper's run, all stages together; None for a run the paper does not have."""
    run = run_of(experiment, dataset, net)
    return sum(run.iterations) if run else None


def experiment_of(dataset: str, net: str) -> str:
    """The experiment that a training run or an evaluation belongs to first; 'other' for none of the paper's.

    LeNets on all of MNIST belong to Figure 2; Figure 3's first row takes the same runs.
    """
    for experiment in EXPERIMENTS:
        if run_of(experiment, dataset, net):
            return experiment
    return 'other'


def of_net(dataset: str, net: str) -> Optional[Run]:
    """The Run that gives a net on a data set its schedule and passes, shown by the paper or not.

    The authors' files have the fractions that Figure 3 leaves out too. Fashion-MNIST is ours, and so is lenet-none on
    fractions: as MNIST.
    """
    if dataset == 'fashion_mnist':
        dataset = 'mnist'
    if base_of(dataset) != dataset:
        dataset = FIGURE3[-1]
    return run_of(experiment_of(dataset, net), dataset, net) or run_of('fig2', 'mnist', net)


def batch(dataset: str, net: str) -> int:
    """Images of a training step."""
    if net.startswith('dsn'):
        return 100
    return 128 if dataset == 'cifar10' else 64


_PART = re.compile(r'(?P<base>.+?)_(?P<k>\d+)(?:_draw(?P<draw>\d+))?$')  # mnist_4, and other draws: mnist_4_draw2


def fraction_of(dataset: str) -> str:
    """How much of the training set a data set's name means: 'mnist_4' is '1/4', 'mnist' is '1'."""
    part = _PART.match(dataset)
    return '1/' + part.group('k') if part else '1'


def base_of(dataset: str) -> str:
    """The data set whose test images are used: that of 'mnist_4' is 'mnist'."""
    part = _PART.match(dataset)
    return part.group('base') if part else dataset


def first_draw(dataset: str) -> str:
    """The set of which a data set is another draw: that of 'mnist_4_draw2' is 'mnist_4'; any other is its own."""
    part = _PART.match(dataset)
    return '%s_%s' % part.group('base', 'k') if part else dataset


# --- what was published ------------------------------------------------------------------------

class Published(NamedTuple):
    """Test errors in percent: T=100, mean and std of 5 repetitions."""

    standard: float
    mc: float
    std: float
    lowest: Optional[float]  # only given for one net


PUBLISHED = OrderedDict([
    ('nin', Published(standard=10.43, mc=10.27, std=0.05, lowest=None)),
    ('dsn', Published(standard=9.37, mc=9.32, std=0.02, lowest=None)),
    ('dsn_aug', Published(standard=7.95, mc=7.71, std=0.09, lowest=7.51))])
ENOUGH_PASSES = 20  # Figure 4: by then the gain is more than one standard deviation

# What others measured, for comparison: (dataset, net, Standard, MC T=100, who).
ELSEWHERE = (
    ('cifar10', 'nin', 10.43, 10.37, 'one evaluation of the released weights (ambrishrawat/CaffeBayesianCNN)'),
    ('cifar10', 'lenet_all', 41.8, 16.0,
     'weights of unknown origin at 100,000 iterations (ambrishrawat/CaffeBayesianCNN)'),
    ('cifar10', 'dsn', 9.65, None, "DSN's authors, their own Caffe"),
    ('cifar10', 'dsn_aug', 7.97, None, "DSN's authors, their own Caffe"))

# --- names for people ----------------------------------------------------------------------------

TITLES = {'lenet_all': 'lenet-all', 'lenet_ip': 'lenet-ip', 'lenet_none': 'lenet-none', 'nin': 'NIN', 'dsn': 'DSN',
          'dsn_aug': 'Augmented-DSN', 'mnist': 'MNIST', 'cifar10': 'CIFAR-10', 'fashion_mnist': 'Fashion-MNIST'}


def title(name: str) -> str:
    """How the paper writes a net or a data set: 'lenet-all', '1/4 of MNIST'."""
    part = _PART.match(name)
    if part:
        return '%s of %s' % (fraction_of(name), title(base_of(name))) + (
            ', draw ' + part.group('draw') if part.group('draw') else '')
    return TITLES.get(name, name)
