"""The paper as a table: every run of Figures 2, 3, 4 and Table 1, and the figures it published.

Plain data and a few look-ups, for the workflow, the recorder and the analysis. Knows nothing
of Caffe and imports nothing of this package, so that it loads on any Python from 3.6 on.
"""

from collections import OrderedDict, namedtuple

TEST_IMAGES = 10000  # of MNIST and of CIFAR-10
LENETS = ('lenet_all', 'lenet_ip', 'lenet_none')
TABLE1 = ('nin', 'dsn', 'dsn_aug')
FIGURE3 = ('mnist', 'mnist_4', 'mnist_32')  # all, 1/4 and 1/32 of the training images
REPETITIONS = 5  # of an MC evaluation in Table 1 and Figure 4

# experiment: of EXPERIMENTS. iterations: of each training stage. T: stochastic passes.
# repetitions: of the MC evaluation of the final weights; 0 where a curve is all there is.
# methods: what the paper draws. weights: 'published' where it evaluated released weights.
Run = namedtuple('Run', 'experiment dataset net iterations T repetitions methods weights')

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
            yield Run('fig2', dataset, net, (iterations,), 50, 0, standard if net == 'lenet_none' else both, 'trained')
    # 1e6 iterations in the authors' files, the panel with all of MNIST included; the paper's text says 1e7
    for dataset in FIGURE3:
        yield Run('fig3', dataset, 'lenet_ip', (1000000,), 10, 0, standard, 'trained')
        yield Run('fig3', dataset, 'lenet_all', (1000000,), 10, 0, ('mc',), 'trained')
    # Its 10.43 are exactly the 1043 errors of the model zoo's weights: five evaluations of one net
    yield Run('table1', 'cifar10', 'nin', (120000,), 100, REPETITIONS, both, 'published')
    for net in ('dsn', 'dsn_aug'):
        yield Run('table1', 'cifar10', net, (50000, 120000, 30000), 100, REPETITIONS, both, 'trained')
    yield Run('fig4', 'cifar10', 'dsn_aug', (50000, 120000, 30000), 100, REPETITIONS, both, 'trained')


RUNS = tuple(_runs())


def find(experiment=None, dataset=None, net=None):
    """The runs of an experiment, a data set, a net; None takes all."""
    wanted = (('experiment', experiment), ('dataset', dataset), ('net', net))
    return [run for run in RUNS if all(value is None or getattr(run, name) == value for name, value in wanted)]


def run_of(experiment, dataset, net):
    """The one run of these names, or None."""
    found = find(experiment, dataset, net)
    return found[0] if found else None


def schedule(experiment, dataset, net):
    """The iterations of the paper's run, all stages together; None for a run the paper does not have."""
    run = run_of(experiment, dataset, net)
    return sum(run.iterations) if run else None


def experiment_of(dataset, net):
    """The experiment that a training run or an evaluation belongs to first; 'other' for none of the paper's.

    LeNets on all of MNIST belong to Figure 2; Figure 3's first row takes the same runs.
    """
    for experiment in EXPERIMENTS:
        if run_of(experiment, dataset, net):
            return experiment
    return 'other'


def fraction_of(dataset):
    """How much of the training set a data set's name means: 'mnist_4' is '1/4', 'mnist' is '1'."""
    k = dataset.rpartition('_')[2]
    return '1/' + k if k.isdigit() else '1'


def base_of(dataset):
    """The data set whose test images are used: that of 'mnist_4' is 'mnist'."""
    base, _, k = dataset.rpartition('_')
    return base if k.isdigit() else dataset


# --- what was published ------------------------------------------------------------------------

# Test errors in percent, T=100, mean and std of 5 repetitions. lowest: only given for one net.
Published = namedtuple('Published', 'standard mc std lowest')
PUBLISHED = OrderedDict([
    ('nin', Published(10.43, 10.27, 0.05, None)),
    ('dsn', Published(9.37, 9.32, 0.02, None)),
    ('dsn_aug', Published(7.95, 7.71, 0.09, 7.51))])
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


def title(name):
    """How the paper writes a net or a data set: 'lenet-all', '1/4 of MNIST'."""
    if base_of(name) != name:
        return '%s of %s' % (fraction_of(name), title(base_of(name)))
    return TITLES.get(name, name)
