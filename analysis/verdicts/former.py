"""The rules that held before, kept to say what each verdict would have been under them: a frozen copy, verdicts alone.

Three sets of them were in force, each only hours long, and the last two were written after results were seen
(rules.py has the dates): no guard and unpaired noise; the guard against falling curves; paired noise.
"""

import math
from typing import Dict, List, NamedTuple

from records import curves, evaluations, same_images
from records.from_bcnn import paper
from records.load import Tables, where
from verdicts.judging import CONTRADICTED, SUPPORTED, UNDECIDED

Z, SEEDS, SCHEDULE = 1.96, 3, 0.01
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
VERDICTS = {1: SUPPORTED, -1: CONTRADICTED, 0: UNDECIDED}
IP, ALL, ALL_MC, IP_MC, NONE = (('lenet_ip', 'standard'), ('lenet_all', 'standard'), ('lenet_all', 'mc'),
                                ('lenet_ip', 'mc'), ('lenet_none', 'standard'))


class Rules(NamedTuple):
    """One of the sets."""
    commit: str
    guard: bool    # no verdict while a curve falls by more than unpaired noise
    paired: bool   # noise of the images on which two nets disagree
    since: List[str]  # names of the comparisons that had become statements


FORMER = (
    Rules('aca054c', False, False, ['mc-below-standard', 'mc-lowest']),
    Rules('a2bb4c5', True, False, ['mc-below-standard', 'mc-lowest']),
    Rules('98764db', True, True, ['mc-below-standard', 'mc-lowest', 'standard-suffers', 'mc-ahead']))


def verdicts(tables: Tables, rules: Rules) -> Dict[str, str]:
    """{key: verdict} of the statements of that time, by the results of today."""
    found = {}
    for experiment, dataset, name, mine, others in _comparisons():
        if name in rules.since:
            found['%s-%s-%s' % (experiment, dataset, name)] = _below(tables, rules, experiment, dataset, mine, others)
    for dataset, side in (('mnist_4', IP), ('mnist_32', IP), ('mnist_32', ALL_MC)):
        found['fig3-%s-%s-over-fits' % (dataset, side[0])] = _over_fits(tables, dataset, side)
    for net in paper.TABLE1:
        found['table1-%s-improves' % net] = _improves(tables, net)
    found['fig4-dsn_aug-%d-passes' % paper.ENOUGH_PASSES] = _twenty_passes(tables, 'dsn_aug')
    return found


def _comparisons():
    for dataset in ('mnist', 'cifar10'):
        yield 'fig2', dataset, 'standard-suffers', IP, [ALL]
        yield 'fig2', dataset, 'mc-below-standard', ALL_MC, [ALL]
        yield 'fig2', dataset, 'mc-lowest', ALL_MC, [ALL, IP, IP_MC, NONE]
    for dataset in ('mnist_4', 'mnist_32'):
        yield 'fig3', dataset, 'mc-ahead', ALL_MC, [IP]


# --- intervals of that time ------------------------------------------------------------------------------

def interval(differences, noise):
    """(mean, half width of the 95% interval) of seed-wise differences; noise: the images' standard error, which is
    what there is for few seeds."""
    mean = sum(differences) / len(differences)
    if len(differences) < SEEDS:
        return mean, Z * noise
    std = math.sqrt(sum((value - mean) ** 2 for value in differences) / (len(differences) - 1))
    return mean, STUDENT[min(len(differences) - 1, len(STUDENT)) - 1] * std / math.sqrt(len(differences))


def images_noise(first, second, n):
    """The standard error, in points, of the difference of two errors in percent, each on n images."""
    return math.sqrt(sum(error * (100.0 - error) / n for error in (first, second)))


def sign(mean, half):
    """+1 or -1 for a difference that counts, 0 for one that does not."""
    return 0 if abs(mean) <= half else 1 if mean > 0 else -1


def _paired_noise(tables, dataset, first, second, seeds, iterations):
    variances = []
    for seed in seeds:
        wrong = [same_images.at_iteration(tables, dataset, net, method, seed, iterations, '')
                 for net, method in (first, second)]
        pair = same_images.pair(*wrong)
        if not pair:
            return None
        gap, disagree = pair.only_first - pair.only_second, pair.only_first + pair.only_second
        variances.append((100.0 / pair.n) ** 2 * (disagree - gap ** 2 / float(pair.n)))
    return math.sqrt(sum(variances) / len(variances)) if variances else None


# --- statements of that time -------------------------------------------------------------------------------

def _curve(tables, dataset, side):
    return curves.curve(tables, dataset, side[0], side[1], paper.find(dataset=dataset, net=side[0])[0].T, '')


def _mean(by_seed):
    return sum(by_seed.values()) / len(by_seed)


def _below(tables, rules, experiment, dataset, mine, others):
    rows = {side: _curve(tables, dataset, side) for side in [mine] + others}
    shared = set.intersection(*[set(table['iteration']) for table in rows.values()])
    if not shared:
        return UNDECIDED
    last, n = max(shared), min(table['n'].iloc[0] for table in rows.values())
    errors = {}
    for side, table in rows.items():
        at = where(table, iteration=last)
        errors[side] = dict(zip(at['seed'], at['error']))
    signs = []
    for other in others:
        seeds = sorted(set(errors[mine]) & set(errors[other]))
        noise = _paired_noise(tables, dataset, mine, other, seeds, last) if rules.paired else None
        if noise is None:
            noise = images_noise(_mean(errors[mine]), _mean(errors[other]), n)
        gaps = [errors[other][seed] - errors[mine][seed] for seed in seeds]
        signs.append(sign(*interval(gaps or [_mean(errors[other]) - _mean(errors[mine])], noise)))
    full = paper.schedule(experiment, dataset, mine[0])
    if last < SCHEDULE * full or rules.guard and last < full and any(_falls(table, last) for table in rows.values()):
        return UNDECIDED
    return VERDICTS[-1 if -1 in signs else 0 if 0 in signs else 1]


def _falls(rows, last):
    wide = rows[rows['iteration'] <= last].pivot_table(index='iteration', columns='seed', values='error').dropna()
    if len(wide) < 2:
        return False
    before, now = wide.iloc[-2], wide.iloc[-1]
    return sign(*interval(list(before - now), images_noise(before.mean(), now.mean(), rows['n'].iloc[0]))) > 0


def _over_fits(tables, dataset, side):
    rows = _curve(tables, dataset, side)
    wide = rows.pivot_table(index='iteration', columns='seed', values='error').dropna() if len(rows) else rows
    if len(wide) < 4:
        return UNDECIDED
    if len(wide.columns) >= SEEDS:
        lows = [wide.drop(columns=[seed]).mean(axis=1).idxmin() for seed in wide.columns]
        rises = [wide[seed].iloc[-1] - wide[seed].loc[low] for seed, low in zip(wide.columns, lows)]
        average = wide.mean(axis=1)
    else:
        smooth = wide.rolling(3, center=True, min_periods=2).mean()
        average = smooth.mean(axis=1)
        rises = list(smooth.iloc[-1] - smooth.loc[average.idxmin()])
    rose = sign(*interval(rises, images_noise(average.iloc[-1], average.min(), rows['n'].iloc[0]))) > 0
    whole = wide.index[-1] >= paper.schedule('fig3', dataset, side[0])
    return SUPPORTED if rose else CONTRADICTED if whole else UNDECIDED


def _beyond_images(line):
    return line['n'] >= paper.TEST_IMAGES and line['repetitions'] > 1 or line['mcnemar_p'] < 0.05


def _improves(tables, net):
    groups = evaluations.chosen(tables, 'cifar10', net)
    if not groups or evaluations.share(groups[0].iloc[0]) < SCHEDULE:
        return UNDECIDED
    line = evaluations.measured(groups[0])
    gap = line['standard'] - line['mc']
    decided = abs(gap) > (line['std'] or 0.0) and _beyond_images(line)
    return VERDICTS[0 if not decided else 1 if gap > 0 else -1]


def _twenty_passes(tables, net):
    groups = evaluations.chosen(tables, 'cifar10', net)
    at = where(evaluations.passes(tables, groups[0]), t=paper.ENOUGH_PASSES) if groups else ()
    if not len(at) or at['count'].iloc[0] < 2 or evaluations.share(groups[0].iloc[0]) < SCHEDULE:
        return UNDECIDED
    line = evaluations.measured(groups[0])
    if not _beyond_images(line):
        return UNDECIDED
    return SUPPORTED if at['mean'].iloc[0] + at['std'].iloc[0] < line['standard'] else CONTRADICTED
