"""Beyond the paper: its open questions as a table of runs, and the variations of its nets that they take.

Plain data like bcnn/paper.py, for nets, workflow, recorder and analysis: no Caffe, any Python from 3.6 on. What is
not said here of a variation (solver, batch, passes) is that of the paper's net.
"""

from collections import OrderedDict
from typing import NamedTuple, Optional, Tuple

from . import paper

NAME = 'beyond'  # the profile that runs them, and the experiment under which they are recorded
NET = 'lenet_all'  # the paper's net that all variations are of

# Under these names runs are asked for (run_all.sh --only pooling), and sections stand in the report.
QUESTIONS = OrderedDict([
    ('pooling', 'Why does Standard dropout fail after convolutions?'),
    ('off_data', 'Is the uncertainty worth something off the data?'),
    ('probability', 'Which dropout probability?'),
    ('less_data', 'How much less data?')])
ITERATIONS = {'pooling': 20000, 'off_data': 20000, 'probability': 10000, 'less_data': 10000}
PASSES = 50  # T of every measurement, the paper's of Figure 2


class Variation(NamedTuple):
    """A net of the paper with something changed."""

    net: str         # its name
    pooling: str     # MAX or AVE, of both its pooling layers
    p: float         # the probability with which dropout drops a unit
    title: str


VARIATIONS = OrderedDict((variation.net, variation) for variation in (
    Variation('lenet_all_ave', pooling='AVE', p=0.5, title='lenet-all, AVE pooling'),
    Variation('lenet_all_p10', pooling='MAX', p=0.1, title='lenet-all, p = 0.1'),
    Variation('lenet_all_p25', pooling='MAX', p=0.25, title='lenet-all, p = 0.25'),
    Variation('lenet_all_p75', pooling='MAX', p=0.75, title='lenet-all, p = 0.75')))
AVERAGE = 'lenet_all_ave'
PROBABILITIES = OrderedDict([(0.1, 'lenet_all_p10'), (0.25, 'lenet_all_p25'), (0.5, NET), (0.75, 'lenet_all_p75')])


# --- studies of their weights (tools/study.py) ----------------------------------------------------

class Study(NamedTuple):
    """What is asked of trained weights."""

    question: str    # whose runs it is for
    iteration: int   # of the weights
    seeds: int       # of the training, 1 to this
    T: int
    images: int      # of the test set
    passed: int      # all images that pass through the net, those of other kinds included
    sets: Tuple[str, ...]  # whose test images they are


ROTATED, ANGLES = 2000, tuple(range(30, 181, 30))  # test images that are rotated, by so many degrees
STUDIES = OrderedDict([
    ('approximation', Study('pooling', ITERATIONS['pooling'], 5, T=100, images=1000, passed=1000, sets=('mnist',))),
    ('off_data', Study('off_data', ITERATIONS['pooling'], 1, T=PASSES, images=paper.TEST_IMAGES,
                       passed=2 * paper.TEST_IMAGES + len(ANGLES) * ROTATED, sets=('mnist', 'fashion_mnist'))),
    ('quality', Study('probability', ITERATIONS['probability'], 3, T=PASSES, images=paper.TEST_IMAGES,
                      passed=paper.TEST_IMAGES, sets=('mnist',)))])


# --- look-ups ----------------------------------------------------------------------------------

def paper_net(net: str) -> str:
    """The net of the paper that a net is, or varies."""
    return NET if net in VARIATIONS else net


def of_net(dataset: str, net: str) -> Optional[paper.Run]:
    """The paper.Run that gives a net on a data set its schedule and passes: of a variation that of its own net."""
    return paper.of_net(dataset, paper_net(net))


def title(net: str) -> str:
    """How a net is called: 'lenet-all, p = 0.1'."""
    return VARIATIONS[net].title if net in VARIATIONS else paper.title(net)


def drawn(fraction: int, seed: int) -> str:
    """The training set of a seed: all of MNIST for 1, else the seed's own draw of 1/fraction ('mnist_4_draw2')."""
    if fraction == 1:
        return 'mnist'
    return 'mnist_%d' % fraction + ('_draw%d' % seed if seed > 1 else '')


# --- the runs ----------------------------------------------------------------------------------

def _runs():
    """(question, data set, net), the questions in order of worth; runs of several are one."""
    for net in (NET, AVERAGE):
        yield 'pooling', 'mnist', net
    for net in (NET, 'lenet_ip'):
        yield 'off_data', 'mnist', net
    for net in PROBABILITIES.values():
        yield 'probability', 'mnist', net
    for fraction in (1,) + paper.FRACTIONS:
        for net in paper.LENETS:
            yield 'less_data', drawn(fraction, 1), net


RUNS = tuple(paper.Run(
    experiment=question, dataset=dataset, net=net, iterations=(ITERATIONS[question],), T=PASSES, repetitions=0,
    methods=('standard',) if net == 'lenet_none' else ('standard', 'mc'), weights='trained')
    for question, dataset, net in _runs())
