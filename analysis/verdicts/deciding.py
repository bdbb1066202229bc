"""What would decide an undecided statement: which run, how long, how many seeds, and its core hours.

Computed from the recorded noise and from the speeds that tools/bench.py recorded.
"""

import math
from typing import List, Optional, Sequence

from records import evaluations, names
from records.from_bcnn import cost, durations, paper
from records.load import Tables
from verdicts import statistics
from verdicts.judging import UNDECIDED, Evidence
from verdicts.statistics import SEEDS, Difference

MOST = 1000  # seeds or images beyond which a difference is called too small to be decided
IN_PROPORTION = 20  # the part of the schedule that a shorter run would take


def hours(seconds: Optional[float]) -> str:
    """'about 3.1 core hours'; 'cost not measured' for None."""
    return 'cost not measured' if seconds is None else 'about ' + durations.core_time(seconds)


def _steps(tables: Tables, dataset: str, nets: Sequence[str], iterations: float) -> Optional[float]:
    """Seconds of training each of these nets for so many iterations, None where a speed is not recorded."""
    speeds = cost.speeds(tables['bench'].to_dict('records'))
    steps = [cost.of_step(speeds, dataset, net) for net in nets]
    return None if None in steps else sum(steps) * max(0, iterations)


def _nets(sides) -> List[str]:
    return sorted(set(net for net, _ in sides))


def trainings(tables: Tables, dataset: str, sides, full: int) -> str:
    """The runs of a comparison that is not recorded at all."""
    nets = _nets(sides)
    return '%s on %s, %s iterations (%s), or the schedule in proportion, 1/%d (%s).' % (
        ', '.join(paper.title(net) for net in nets), paper.title(dataset), names.count(full),
        hours(_steps(tables, dataset, nets, full)), IN_PROPORTION,
        hours(_steps(tables, dataset, nets, full / IN_PROPORTION)))


def longer(tables: Tables, at, sides, full: int) -> str:
    """The same runs, to the end of the paper's schedule."""
    nets = _nets(sides)
    return '%s on %s to %s iterations (%s), or from new in proportion, 1/%d (%s).' % (
        ', '.join(paper.title(net) for net in nets), paper.title(at.dataset), names.count(full),
        hours(_steps(tables, at.dataset, nets, full - at.iteration)), IN_PROPORTION,
        hours(_steps(tables, at.dataset, nets, full / IN_PROPORTION)))


def needed(difference: float, spread: float, margin: float = 0.0) -> Optional[int]:
    """The least number of seeds or repetitions, three or more, at which a difference would be judged if it stayed and
    had this standard deviation from one to the next; None for more than MOST."""
    room = difference if difference >= margin else margin - difference  # to what it has to exclude
    if room <= 0:
        return None
    for number in range(SEEDS, MOST + 1):
        if statistics.student(number - 1) * spread / math.sqrt(number) < room:
            return number
    return None


def spread_of(evidence: Evidence) -> float:
    """The standard deviation of seed-wise differences: as recorded from three seeds on, else the standard error over
    test images in its place."""
    if evidence.about:
        seeds = int(evidence.about.count.split()[0])
        half = evidence.about.high - evidence.about.estimate
        return half * math.sqrt(seeds) / statistics.student(seeds - 1)
    return (evidence.images.high - evidence.images.low) / (2 * statistics.normal())


def seeds(tables: Tables, at, sides, known: List[Evidence]) -> str:
    """How many seeds would decide a comparison of curves that is within the noise."""
    worst = max(needed((evidence.about or evidence.images).estimate, spread_of(evidence)) or MOST + 1
                for evidence in known if evidence.verdict() == UNDECIDED)
    if worst > MOST:
        return 'No number of seeds up to %s: the present difference is too small.' % names.count(MOST)
    present, nets = min(len(by_seed) for by_seed in at.errors.values()), _nets(sides)
    seconds = _steps(tables, at.dataset, nets, at.iteration * (worst - present))
    return '%d seeds of %s on %s at %s iterations, %d more than there are (%s), if the difference stays.' % (
        worst, ', '.join(paper.title(net) for net in nets), paper.title(at.dataset), names.count(at.iteration),
        worst - present, hours(seconds))


def over_fitting(tables: Tables, dataset: str, side, rise, full: int, margin: float) -> str:
    """What would decide whether a curve rises."""
    title = '%s on %s' % (paper.title(side[0]), paper.title(dataset))
    if rise.last < full:
        return '%s to %s iterations (%s).' % (title, names.count(full),
                                              hours(_steps(tables, dataset, [side[0]], full - rise.last)))
    best = rise.evidence.about or rise.evidence.images
    number = needed(best.estimate, spread_of(rise.evidence), margin)
    if not number:
        return 'No number of seeds up to %s: the present rise is too near to the margin.' % names.count(MOST)
    return '%d seeds of %s at %s iterations (%s each), if the rise stays.' % (
        number, title, names.count(full), hours(_steps(tables, dataset, [side[0]], full)))


def evaluation(tables: Tables, net: str, repetitions: int = paper.REPETITIONS) -> str:
    """The training (where it is short) and the repeated evaluation of a net of Table 1."""
    run = paper.run_of('table1', 'cifar10', net)
    groups = evaluations.chosen(tables, 'cifar10', net)
    speeds = cost.speeds(tables['bench'].to_dict('records'))
    a_pass = cost.of_pass(speeds, 'cifar10', net)
    passes = None if a_pass is None else a_pass * run.T * repetitions * paper.TEST_IMAGES
    evaluated = 'MC evaluation of %s, T = %d, %d repetitions, %s images (%s)' % (
        paper.title(net), run.T, repetitions, names.count(paper.TEST_IMAGES), hours(passes))
    if run.weights == 'published' or groups and evaluations.share(groups[0].iloc[0]) >= 1:
        return evaluated + '.'
    full = sum(run.iterations)
    return '%s, after training of %s iterations (%s) or in proportion, 1/%d (%s).' % (
        evaluated, names.count(full), hours(_steps(tables, 'cifar10', [net], full)), IN_PROPORTION,
        hours(_steps(tables, 'cifar10', [net], full / IN_PROPORTION)))


def more_repetitions(tables: Tables, net: str, masks: Difference, margin: float = 0.0) -> str:
    """How many repetitions would decide what those that there are leave open."""
    there = int(masks.count.split()[0])
    spread = (masks.high - masks.estimate) * math.sqrt(there) / statistics.student(there - 1)
    number = needed(masks.estimate, spread, margin)
    if not number or number > MOST:
        return 'No number of repetitions up to %s: too near to the margin.' % names.count(MOST)
    return evaluation(tables, net, max(number, there + 1))


def images_needed(difference: Difference, n: int) -> str:
    """How many test images would show a difference over images that the present ones leave open."""
    if not difference.estimate:
        return 'No number of test images: the present difference is zero.'
    error = (difference.high - difference.low) / (2 * statistics.normal())
    needed = n * (statistics.normal() * error / abs(difference.estimate)) ** 2
    return 'About %s test images of the same kind, if the difference stays; the set has %s.' % (
        names.count(round(needed, 2 - len('%d' % needed))), names.count(paper.TEST_IMAGES))
