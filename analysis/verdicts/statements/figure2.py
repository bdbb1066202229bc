"""Figure 2: which of the LeNets' curves end lower."""

import math
from typing import List

from records import names, smaller
from records.from_bcnn import paper
from records.load import Tables
from verdicts import comparing, deciding, statistics
from verdicts.judging import CONTRADICTED, SCHEDULE, SUPPORTED, UNDECIDED, Evidence, Statement, every, judge

IP, ALL, ALL_MC, IP_MC, NONE = (('lenet_ip', 'standard'), ('lenet_all', 'standard'), ('lenet_all', 'mc'),
                                ('lenet_ip', 'mc'), ('lenet_none', 'standard'))
SO_FAR = {SUPPORTED: 'so far for it', CONTRADICTED: 'so far against it', UNDECIDED: 'so far neither way'}


def statements(tables: Tables) -> List[Statement]:
    """What the paper says of Figure 2."""
    judged = []
    for dataset in ('mnist', 'cifar10'):
        title = paper.title(dataset)
        judged += [
            ends_below(tables, 'fig2', dataset, 'dropout-helps', IP, [NONE],
                       'On %s, Standard dropout after the inner-product layer (lenet-ip) makes fewer errors than no '
                       'dropout (lenet-none).' % title),
            ends_below(tables, 'fig2', dataset, 'standard-suffers', IP, [ALL],
                       'On %s, with Standard dropout, the test error suffers from dropout after convolutions.' % title),
            ends_below(tables, 'fig2', dataset, 'mc-below-standard', ALL_MC, [ALL],
                       'On %s, MC dropout makes fewer errors with lenet-all than Standard dropout does.' % title),
            ends_below(tables, 'fig2', dataset, 'mc-lowest', ALL_MC, [ALL, IP, IP_MC, NONE],
                       'On %s, lenet-all with MC dropout outperforms all other models.' % title)]
    return judged + [more_on_mnist(tables)]


def ends_below(tables: Tables, experiment: str, dataset: str, name: str, mine: comparing.Side,
               others: List[comparing.Side], text: str) -> Statement:
    """The statement that the curve `mine` ends below each of the others; contradicted if it ends above one of them."""
    key, sides = '%s-%s-%s' % (experiment, dataset, name), [mine] + others
    full = paper.schedule(experiment, dataset, mine[0])
    at = comparing.ends(tables, dataset, sides)
    if not at:
        return Statement(key=key, experiment=experiment, text=text, verdict=UNDECIDED,
                         numbers='the curves are not all recorded', scope=None,
                         decides=deciding.trainings(tables, dataset, sides, full))
    known = [comparing.below(tables, at, mine, other) for other in others]
    verdict = every([evidence.verdict() for evidence in known])
    numbers = '; '.join([_error(at, mine)] + [
        '%s (%s)' % (_error(at, other), evidence.words())
        for other, evidence in zip(others, known)])
    numbers += '; %s test images, at iteration %s' % (names.count(at.n), names.count(at.iteration))
    seeds = min(len(by_seed) for by_seed in at.errors.values())
    return compared(tables, Statement(
        key=key, experiment=experiment, text=text, verdict=verdict, numbers=numbers, scope=scope_of(at, full),
        share=smaller.share(at.iteration, full, at.schedule, at.n),
        rests=rests(seeds, known[0].noise())), at, sides, known, full)


def compared(tables: Tables, statement: Statement, at: comparing.Ends, sides: List[comparing.Side],
             known: List[Evidence], full: int) -> Statement:
    """The statement on a comparison of curves, undecided while it may not be judged, with why and what would decide."""
    why = open_because(tables, at, sides, full)
    if why:
        numbers = '%s: %s' % (SO_FAR[statement.verdict], statement.numbers)
        return statement._replace(verdict=UNDECIDED, numbers=numbers, why=why,
                                  decides=deciding.longer(tables, at, sides, full))
    if statement.verdict != UNDECIDED:
        return statement
    noises = sorted(set(evidence.noise() for evidence in known if evidence.verdict() == UNDECIDED))
    return statement._replace(why='within the noise of %s' % ' and '.join(noises),
                              decides=deciding.seeds(tables, at, sides, known))


def _error(at: comparing.Ends, side: comparing.Side) -> str:
    return '%s %.2f%%' % (names.curve(*side), 100.0 * comparing.mean(at.errors[side]) / at.n)


def scope_of(at: comparing.Ends, full: int) -> str:
    """How a comparison is smaller than the paper's."""
    parts = [smaller.length(at.iteration, full, at.schedule), smaller.images(at.n)]
    return '; '.join(part for part in parts if part)


def rests(seeds: int, noise: str) -> str:
    """'1 seed, noise of images': what a verdict on trainings rests on."""
    return '%s, noise of %s' % (names.plural(seeds, 'seed'), noise)


def open_because(tables: Tables, at: comparing.Ends, sides: List[comparing.Side], full: int) -> str:
    """Why a comparison of shorter runs gives no verdict, '' if it may: below 1% of the schedule, or, of a schedule that
    was cut off, while one of the curves still falls."""
    if at.iteration < SCHEDULE * full:
        return 'a verdict needs %s of the schedule' % names.percent(SCHEDULE)
    if at.iteration >= full or at.schedule:
        return ''
    falling = [names.curve(*side) for side in sides if comparing.falls(tables, at, side)]
    return 'still falling: %s' % ', '.join(falling) if falling else ''


def more_on_mnist(tables: Tables) -> Statement:
    """Of the gain of lenet-ip over lenet-none: relative to the error, for the errors of the two sets differ 40-fold.

    ln(e_none / e_ip) on MNIST less that on CIFAR-10; counts of errors as Poisson's, as if the two nets of a data set
    shared no error, which is cautious.
    """
    key, text = 'fig2-dropout-helps-more-on-mnist', ('Standard dropout after the inner-product layer gains more on '
                                                     'MNIST than on CIFAR-10.')
    both = [comparing.ends(tables, dataset, [IP, NONE]) for dataset in ('mnist', 'cifar10')]
    fulls = [paper.schedule('fig2', dataset, 'lenet_ip') for dataset in ('mnist', 'cifar10')]
    if not all(both) or any(comparing.mean(at.errors[side]) <= 0 for at in both for side in (IP, NONE)):
        return Statement(key=key, experiment='fig2', text=text, verdict=UNDECIDED,
                         numbers='the curves are not all recorded', scope=None,
                         decides=' '.join(deciding.trainings(tables, dataset, [IP, NONE], full)
                                          for dataset, full in zip(('mnist', 'cifar10'), fulls)))
    gains, variance = [], 0.0
    for at in both:
        ip, none = [comparing.mean(at.errors[side]) for side in (IP, NONE)]
        gains.append(math.log(none / ip))
        variance += 1 / ip + 1 / none
    gap, half = gains[0] - gains[1], statistics.normal() * math.sqrt(variance)
    difference = statistics.Difference(estimate=gap, low=gap - half, high=gap + half, noise='images',
                                       count='logarithms of error ratios')
    verdict = judge(difference)
    reasons = [open_because(tables, at, [IP, NONE], full) for at, full in zip(both, fulls)]
    why = '; '.join('%s: %s' % (paper.title(at.dataset), reason) for at, reason in zip(both, reasons) if reason)
    numbers = 'lenet-ip makes %s of lenet-none\'s errors on MNIST, %s on CIFAR-10 (difference of the logarithms %s)' % (
        names.percent(math.exp(-gains[0])), names.percent(math.exp(-gains[1])), statistics.words(difference))
    if why:
        numbers, verdict = '%s: %s' % (SO_FAR[verdict], numbers), UNDECIDED
    scope = '; '.join(sorted(set('%s: %s' % (paper.title(at.dataset), scope_of(at, full))
                                 for at, full in zip(both, fulls) if scope_of(at, full))))
    seeds = min(len(by_seed) for at in both for by_seed in at.errors.values())
    return Statement(key=key, experiment='fig2', text=text, verdict=verdict, numbers=numbers, scope=scope,
                     share='the two data sets at their shares', rests=rests(seeds, 'images'),
                     why='' if verdict != UNDECIDED else why or 'within the noise of images',
                     decides='' if verdict != UNDECIDED else ' '.join(
                         deciding.longer(tables, at, [IP, NONE], full) for at, full in zip(both, fulls)))
