"""Figure 3: over-fitting on fractions of MNIST, and who is ahead there."""

from typing import List

from records import curves, names, same_images, smaller
from records.from_bcnn import paper
from records.load import Tables
from verdicts import comparing, deciding
from verdicts.judging import CONTRADICTED, OPPOSITE, UNDECIDED, Statement, every
from verdicts.statements import figure2
from verdicts.statements.figure2 import ALL_MC, IP
from verdicts.statistics import LEVEL

MARGIN = 0.1  # a rise below this share of the lowest error is no over-fitting


def statements(tables: Tables) -> List[Statement]:
    """What the paper says of Figure 3."""
    return [no_over_fitting(tables), over_fits(tables, 'mnist_4', IP), ahead_of_the_best(tables),
            over_fits(tables, 'mnist_32', IP), over_fits(tables, 'mnist_32', ALL_MC)]


def questions(tables: Tables) -> List[Statement]:
    """What we ask of Figure 3: the paper says of 1/32 only that both over-fit."""
    return [figure2.ends_below(tables, 'fig3', 'mnist_32', 'mc-ahead', ALL_MC, [IP],
                               'On 1/32 of MNIST, lenet-all with MC dropout makes fewer errors than lenet-ip with '
                               'Standard dropout.')]


# --- over-fitting ------------------------------------------------------------------------------------

def over_fits(tables: Tables, dataset: str, side: comparing.Side) -> Statement:
    """The error at the end is above the lowest one before it."""
    key = 'fig3-%s-%s-over-fits' % (dataset, side[0])
    text = '%s over-fits on %s.' % (_with_dropout(side), paper.title(dataset))
    full = paper.schedule('fig3', dataset, side[0])
    rise = comparing.rise(tables, dataset, side, full)
    if not rise:
        return Statement(key=key, experiment='fig3', text=text, verdict=UNDECIDED,
                         numbers='fewer than four measurements recorded', scope=None,
                         decides=deciding.trainings(tables, dataset, [side], full))
    verdict = _judged(rise, full)
    schedule = curves.schedule_for(tables, dataset, [side])
    return Statement(
        key=key, experiment='fig3', text=text, verdict=verdict, numbers=_numbers(rise),
        scope=smaller.length(rise.last, full, schedule),
        share=smaller.share(rise.last, full, schedule, rise.evidence.n),
        rests=figure2.rests(rise.seeds, rise.evidence.noise()),
        why='' if verdict != UNDECIDED else _why(rise, full),
        decides='' if verdict != UNDECIDED else deciding.over_fitting(
            tables, dataset, side, rise, full, MARGIN * rise.lowest))


def _judged(rise: comparing.Rise, full: int) -> str:
    """The verdict on over-fitting: a shorter run may show it, and only one as long as the paper's may exclude it."""
    verdict = rise.evidence.verdict(MARGIN * rise.lowest)
    return UNDECIDED if verdict == CONTRADICTED and rise.last < full else verdict


def _with_dropout(side: comparing.Side) -> str:
    return '%s with %s dropout' % (paper.title(side[0]), {'standard': 'Standard', 'mc': 'MC'}[side[1]])


def _numbers(rise: comparing.Rise) -> str:
    return 'lowest %.2f%% at iteration %s, %.2f%% at the end (rise %s; %s, the margin is %.2f)' % (
        rise.lowest, names.count(rise.lowest_at), rise.end, rise.evidence.words(),
        'each seed from where the others are lowest' if rise.evidence.about else
        'the lower limit allows for the lowest of %d points' % rise.points, MARGIN * rise.lowest)


def _why(rise: comparing.Rise, full: int) -> str:
    if rise.last < full:
        return '%s so far, and the run is shorter than the paper\'s' % (
            'a rise within the noise' if rise.evidence.required()[0].estimate > 0 else 'no rise')
    return 'the interval holds both zero and the margin'


def no_over_fitting(tables: Tables) -> Statement:
    """Neither lenet-ip with Standard nor lenet-all with MC dropout over-fits on all of MNIST."""
    key, text = 'fig3-mnist-no-over-fitting', 'On all of MNIST, neither lenet-ip nor lenet-all over-fits.'
    full = paper.schedule('fig3', 'mnist', 'lenet_ip')
    rises = [comparing.rise(tables, 'mnist', side, full) for side in (IP, ALL_MC)]
    if None in rises:
        return Statement(key=key, experiment='fig3', text=text, verdict=UNDECIDED,
                         numbers='fewer than four measurements recorded', scope=None,
                         decides=deciding.trainings(tables, 'mnist', [IP, ALL_MC], full))
    verdict = every([OPPOSITE[_judged(rise, full)] for rise in rises])
    numbers = '; '.join('%s: %s' % (names.curve(*side), _numbers(rise)) for side, rise in zip((IP, ALL_MC), rises))
    last = min(rise.last for rise in rises)
    schedule = curves.schedule_for(tables, 'mnist', [IP])
    return Statement(key=key, experiment='fig3', text=text, verdict=verdict, numbers=numbers,
                     scope=smaller.length(last, full, schedule),
                     share=smaller.share(last, full, schedule, rises[0].evidence.n),
                     rests=figure2.rests(min(rise.seeds for rise in rises), rises[0].evidence.noise()),
                     why='' if verdict != UNDECIDED else '; '.join(sorted(set(_why(rise, full) for rise in rises))),
                     decides='' if verdict != UNDECIDED else ' '.join(
                         deciding.over_fitting(tables, 'mnist', side, rise, full, MARGIN * rise.lowest)
                         for side, rise in zip((IP, ALL_MC), rises)))


# --- ahead of the best ---------------------------------------------------------------------------------

def ahead_of_the_best(tables: Tables, dataset: str = 'mnist_4') -> Statement:
    """On 1/4 the paper compares with the *best* result of lenet-ip, not with its end.

    To be below the best of k points is to be below every one of them, each at 5%; to be above the best is to be
    above any one of them: that limit has the level 5% / k.
    """
    key = 'fig3-%s-mc-ahead' % dataset
    text = 'On %s, lenet-all with MC dropout makes fewer errors than the best of lenet-ip with Standard dropout.' % (
        paper.title(dataset))
    full, sides = paper.schedule('fig3', dataset, 'lenet_all'), [ALL_MC, IP]
    at = comparing.ends(tables, dataset, sides)
    theirs = comparing.by_seed(comparing.rows_of(tables, dataset, IP, at.schedule)) if at else ()
    if not len(theirs) or theirs.index[0] > at.iteration:
        return Statement(key=key, experiment='fig3', text=text, verdict=UNDECIDED,
                         numbers='the curves are not all recorded', scope=None,
                         decides=deciding.trainings(tables, dataset, sides, full))
    theirs = theirs[theirs.index <= at.iteration]
    best = int(theirs.mean(axis=1).idxmin())
    seeds = sorted(set(at.errors[ALL_MC]) & set(theirs.columns))
    wrong = [(same_images.at_iteration(tables, dataset, *ALL_MC, seed, at.iteration, at.schedule),
              same_images.at_iteration(tables, dataset, *IP, seed, best, at.schedule)) for seed in seeds]
    errors = [(at.errors[ALL_MC][seed], theirs[seed].loc[best]) for seed in seeds]
    known = comparing.evidence(
        errors or [(comparing.mean(at.errors[ALL_MC]), theirs.mean(axis=1).loc[best])],
        same_images.mean([same_images.pair(*both) for both in wrong]), at.n, high_level=LEVEL / len(theirs))
    numbers = '%s %.2f%% at iteration %s; best of %s %.2f%% at iteration %s (%s); %s test images' % (
        names.curve(*ALL_MC), 100.0 * comparing.mean(at.errors[ALL_MC]) / at.n, names.count(at.iteration),
        names.curve(*IP), 100.0 * theirs.mean(axis=1).loc[best] / at.n, names.count(best),
        known.words(), names.count(at.n))
    return figure2.compared(
        tables, Statement(key=key, experiment='fig3', text=text, verdict=known.verdict(), numbers=numbers,
                          scope=figure2.scope_of(at, full),
                          share=smaller.share(at.iteration, full, at.schedule, at.n),
                          rests=figure2.rests(max(1, len(seeds)), known.noise())),
        at, sides, [known], full)
