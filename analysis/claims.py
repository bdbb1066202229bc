"""What the paper says, each statement checked against the results by a function: no verdict is typed by hand.

A verdict is `supported`, `contradicted` or `not enough data`. The rules, the same for every claim:

- Training noise: with three or more seeds, a difference counts when the 95% t-interval of the
  seed-wise differences leaves out zero. With fewer seeds only the test images can speak: a
  difference counts when it exceeds 1.96 standard errors. Where it is recorded which images are
  wrong (wrong.csv), these are of the images on which the two disagree; else of two independent
  test sets, which is cautious, because both methods see the same images. A second seed does
  not make this smaller: it sees the same images too.
- A statement that compares final errors is judged at the last iteration that both have, if
  that is at least 1% of the paper's schedule; shorter runs give no verdict, only numbers. Nor
  does a run shorter than the paper's while a curve of the comparison still falls: where it has
  fallen since the measurement before, by more than the noise. The verdict says how far the
  schedule went.
- A statement that something happens (over-fitting) may be supported by a shorter run, and can be
  contradicted only by one as long as the paper's.
"""

import math
from collections import namedtuple

import common
import fig4
import pairs
import table1

SUPPORTED, CONTRADICTED, UNKNOWN = 'supported', 'contradicted', 'not enough data'
SCHEDULE = 0.01  # the least share of the paper's schedule for a verdict
TOO_SHORT = 'a verdict needs %s of the schedule' % common.percent(SCHEDULE)
SEEDS = 3        # the least number of seeds for an interval over seeds
# Two-sided 95% quantiles of Student's t for 1, 2, ... degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)

# experiment: where in the paper. verdict: of the three. numbers: the evidence in words.
# scope: '' or how the evidence is smaller than the paper's; None where there is none.
Claim = namedtuple('Claim', 'key experiment statement verdict numbers scope')


def check(tables):
    """All claims of the paper with their verdicts."""
    found = []
    for dataset in ('mnist', 'cifar10'):
        found.append(standard_suffers(tables, dataset))
        found.append(mc_below_standard(tables, dataset))
        found.append(mc_lowest(tables, dataset))
    found += [ahead_on_little(tables, dataset) for dataset in ('mnist_4', 'mnist_32')]
    found.append(over_fits(tables, 'mnist_4', 'lenet_ip', 'standard'))
    found.append(over_fits(tables, 'mnist_32', 'lenet_ip', 'standard'))
    found.append(over_fits(tables, 'mnist_32', 'lenet_all', 'mc'))
    found += [improves(tables, net) for net in common.paper.TABLE1]
    found.append(twenty_passes(tables))
    return found


# --- differences -------------------------------------------------------------------------------

def interval(differences, noise):
    """(mean, half width of the 95% interval) of seed-wise differences.

    noise: the images' standard error, which is what there is for few seeds.
    """
    mean = sum(differences) / len(differences)
    if len(differences) < SEEDS:
        return mean, common.Z * noise
    std = math.sqrt(sum((value - mean) ** 2 for value in differences) / (len(differences) - 1))
    t = STUDENT[min(len(differences) - 1, len(STUDENT)) - 1]
    return mean, t * std / math.sqrt(len(differences))


def images_noise(first, second, n):
    """The standard error, in points, of the difference of two errors in percent, each on n images."""
    return math.sqrt(sum(error * (100.0 - error) / n for error in (first, second)))


def sign(mean, half):
    """+1 or -1 for a difference that counts, 0 for one that does not."""
    return 0 if abs(mean) <= half else 1 if mean > 0 else -1


VERDICTS = {1: SUPPORTED, -1: CONTRADICTED, 0: UNKNOWN}


# --- which of two curves ends lower ----------------------------------------------------------------

def curve(tables, dataset, net, method):
    """The rows of a curve, with the paper's number of passes where it is recorded."""
    return common.curve(tables, dataset, net, method, common.paper.find(dataset=dataset, net=net)[0].T)


def final_errors(tables, dataset, curves):
    """(iteration, {(net, method): {seed: error}}, n) at the last iteration that all these curves have, or None."""
    rows = {pair: curve(tables, dataset, *pair) for pair in curves}
    if not all(len(found) for found in rows.values()):
        return None
    shared = set.intersection(*[set(found['iteration']) for found in rows.values()])
    if not shared:
        return None
    last = max(shared)
    errors = {}
    for pair, found in rows.items():
        at = common.where(found, iteration=last)
        errors[pair] = dict(zip(at['seed'], at['error']))
    return last, errors, min(found['n'].iloc[0] for found in rows.values())


def compare(tables, dataset, at, lower, higher):
    """(mean, half): how far the curve `lower` is below `higher`, over the seeds of both; at: of final_errors()."""
    last, errors, n = at
    seeds = sorted(set(errors[lower]) & set(errors[higher]))
    noise = pairs.noise(tables, dataset, lower, higher, seeds, last)
    if noise is None:
        noise = images_noise(_mean(errors[lower]), _mean(errors[higher]), n)
    gaps = [errors[higher][seed] - errors[lower][seed] for seed in seeds]
    return interval(gaps or [_mean(errors[higher]) - _mean(errors[lower])], noise)


def _mean(by_seed):
    return sum(by_seed.values()) / len(by_seed)


def standard_suffers(tables, dataset):
    """The negative result: with Standard dropout, dropout after the convolutions too (lenet-all) costs errors."""
    return _below(tables, dataset, 'standard-suffers', ('lenet_ip', 'standard'),
                  [('lenet_all', 'standard')],
                  'On %s, with Standard dropout, the test error suffers from dropout after convolutions.'
                  % common.paper.title(dataset))


def mc_below_standard(tables, dataset):
    """lenet-all: MC dropout below Standard dropout on the same weights, at the last measurement."""
    return _below(tables, dataset, 'mc-below-standard', ('lenet_all', 'mc'),
                  [('lenet_all', 'standard')],
                  'On %s, MC dropout makes fewer errors with lenet-all than Standard dropout does.'
                  % common.paper.title(dataset))


def mc_lowest(tables, dataset):
    """lenet-all with MC dropout below each of the other four curves; contradicted if any of them is below it."""
    others = [('lenet_all', 'standard'), ('lenet_ip', 'standard'), ('lenet_ip', 'mc'), ('lenet_none', 'standard')]
    return _below(tables, dataset, 'mc-lowest', ('lenet_all', 'mc'), others,
                  'On %s, lenet-all with MC dropout outperforms all other models.' % common.paper.title(dataset))


def ahead_on_little(tables, dataset):
    """Figure 3: what the paper proposes below what was usual."""
    return _below(tables, dataset, 'mc-ahead', ('lenet_all', 'mc'), [('lenet_ip', 'standard')],
                  'On %s, lenet-all with MC dropout makes fewer errors than lenet-ip with Standard dropout.'
                  % common.paper.title(dataset))


def _below(tables, dataset, name, mine, others, statement):
    """The claim that the curve `mine` ends below each of the others; contradicted if it ends above one of them."""
    experiment = common.paper.experiment_of(dataset, mine[0])
    key = '%s-%s-%s' % (experiment, dataset, name)
    found = final_errors(tables, dataset, [mine] + others)
    if not found:
        return Claim(key, experiment, statement, UNKNOWN, 'the curves are not all recorded', None)
    last, errors, n = found
    gaps = [compare(tables, dataset, found, mine, other) for other in others]
    signs = [sign(*gap) for gap in gaps]
    verdict = VERDICTS[-1 if -1 in signs else 0 if 0 in signs else 1]
    numbers = '%s %.2f%%; ' % (common.curve_name(*mine), _mean(errors[mine])) + '; '.join(
        '%s %.2f%% (%+.2f +- %.2f)' % (common.curve_name(*other), _mean(errors[other]), gap[0], gap[1]) for other,
        gap in zip(others, gaps))
    numbers += '; %s, %s images, at iteration %s' % (_seeds(errors[mine]), common.count(n), common.count(last))
    full = common.paper.schedule(experiment, dataset, mine[0])
    claim = _scoped(Claim(key, experiment, statement, verdict, numbers, ''), last, full, n)
    return _settled(tables, dataset, claim, [mine] + others, last) if last < full else claim


def _seeds(by_seed):
    return '%d seed%s' % (len(by_seed), '' if len(by_seed) == 1 else 's')


def _scoped(claim, iterations, full, n):
    """The claim with how far the schedule went; without a verdict below the least share of it."""
    scope = [common.length(iterations, full)]
    if n < common.paper.TEST_IMAGES:
        scope.append('%s of %s test images' % (common.count(n), common.count(common.paper.TEST_IMAGES)))
    claim = claim._replace(scope='; '.join(part for part in scope if part))
    if iterations >= SCHEDULE * full:
        return claim
    return _open(claim, TOO_SHORT)


def _open(claim, why):
    """The claim without its verdict, which is in the words."""
    tendency = {SUPPORTED: 'so far for it', CONTRADICTED: 'so far against it',
                UNKNOWN: 'so far neither way'}[claim.verdict]
    return claim._replace(verdict=UNKNOWN, numbers='%s: %s (%s)' % (tendency, claim.numbers, why))


def _settled(tables, dataset, claim, curves, last):
    """The claim, without its verdict where one of these curves still falls at the iteration where they are compared."""
    falling = [common.curve_name(*pair) for pair in curves
               if falls(curve(tables, dataset, *pair), last)]
    if not falling or claim.verdict == UNKNOWN:
        return claim
    return _open(claim, 'still falling: %s' % ', '.join(falling))


def falls(rows, last):
    """Whether a curve's error at an iteration is below that of the measurement before, by more than the noise."""
    wide = rows[rows['iteration'] <= last].pivot_table(index='iteration', columns='seed', values='error').dropna()
    if len(wide) < 2:
        return False
    before, now = wide.iloc[-2], wide.iloc[-1]
    return sign(*interval(list(before - now), images_noise(before.mean(), now.mean(), rows['n'].iloc[0]))) > 0


# --- Figure 3 ----------------------------------------------------------------------------------

def over_fits(tables, dataset, net, method):
    """Over-fitting: the error at the end above the lowest one before it, by more than the noise.

    The lowest of many noisy points is too low by chance. With three or more seeds each seed's
    rise is therefore measured from where the mean of the *other* seeds is lowest; with fewer,
    errors are first averaged over three neighbouring measurements.
    """
    key = 'fig3-%s-%s-over-fits' % (dataset, net)
    statement = '%s with %s dropout over-fits on %s.' % (
        common.paper.title(net), {'standard': 'Standard', 'mc': 'MC'}[method], common.paper.title(dataset))
    rows = curve(tables, dataset, net, method)
    wide = rows.pivot_table(index='iteration', columns='seed', values='error').dropna() if len(rows) else rows
    if len(wide) < 4:
        return Claim(key, 'fig3', statement, UNKNOWN, 'fewer than four measurements recorded', None)
    n, last = rows['n'].iloc[0], int(wide.index[-1])
    rises, mean_curve = _rises(wide)
    low, end = mean_curve.min(), mean_curve.iloc[-1]
    mean, half = interval(rises, images_noise(end, low, n))
    full = common.paper.schedule('fig3', dataset, net)
    rose = sign(mean, half) > 0
    verdict = SUPPORTED if rose else CONTRADICTED if last >= full else UNKNOWN
    numbers = '%slowest %.2f%% at iteration %s, %.2f%% at the end (rise %+.2f +- %.2f); %s, %s images' % (
        '' if len(wide.columns) >= SEEDS else 'averaged over neighbouring measurements: ', low,
        common.count(mean_curve.idxmin()), end, mean, half, _seeds(wide.columns), common.count(n))
    if verdict == UNKNOWN:
        numbers += '; %s so far, but the run is shorter than the paper\'s' % (
            'a rise within the noise' if mean > 0 else 'no rise')
    return Claim(key, 'fig3', statement, verdict, numbers, common.length(last, full))


def _rises(wide):
    """([rise of each seed], the mean curve that its words are about)."""
    if len(wide.columns) >= SEEDS:
        rises = []
        for seed in wide.columns:
            low = wide.drop(columns=[seed]).mean(axis=1).idxmin()
            rises.append(wide[seed].iloc[-1] - wide[seed].loc[low])
        return rises, wide.mean(axis=1)
    smooth = wide.rolling(3, center=True, min_periods=2).mean()
    curve = smooth.mean(axis=1)
    return list(smooth.iloc[-1] - smooth.loc[curve.idxmin()]), curve


# --- Table 1 -----------------------------------------------------------------------------------

def improves(tables, net):
    """MC dropout below Standard dropout, by the paper's own yardstick: more than one std of the repetitions.

    That yardstick knows the noise of the masks, not that of the test images; McNemar's p
    stands beside it. On a part of the test set, or with one repetition, the images' noise is what
    matters, and p < 0.05 is required too. With several training seeds, the longest run is judged.
    """
    key = 'table1-%s-improves' % net
    statement = 'MC dropout improves on Standard dropout with %s.' % common.paper.title(net)
    chosen = common.evaluations(tables, 'cifar10', net)
    if not chosen:
        return Claim(key, 'table1', statement, UNKNOWN, 'not evaluated', None)
    group, line = chosen[0], table1.measured(chosen[0])
    gap = line['standard'] - line['mc']
    decided = abs(gap) > (line['std'] or 0.0) and beyond_images(line)
    verdict = VERDICTS[0 if not decided else 1 if gap > 0 else -1]
    published = common.paper.PUBLISHED[net]
    words = 'Standard %.2f%%, MC %s%% (paper %.2f and %s); T = %d, %d repetition%s, %s images, McNemar p = %.2g%s'
    numbers = words % (
        line['standard'], common.spread(line['mc'], line['std']), published.standard,
        common.spread(published.mc, published.std), line['T'], line['repetitions'],
        '' if line['repetitions'] == 1 else 's', common.count(line['n']), line['mcnemar_p'],
        '' if line['mcnemar_p'] < 0.05 else ': the difference is within what other test images could change')
    return _evaluated(Claim(key, 'table1', statement, verdict, numbers, ''), group)


def beyond_images(line):
    """Whether a Standard-MC difference may be judged by the masks' noise alone: on the whole test set, repeated.

    Otherwise McNemar's test on the images has to find it too.
    """
    return line['n'] >= common.paper.TEST_IMAGES and line['repetitions'] > 1 or line['mcnemar_p'] < 0.05


def _evaluated(claim, group):
    """The claim of an evaluation with its scope; without a verdict where the training was too short for one."""
    claim = claim._replace(scope='; '.join(fig4.shorter(group)))
    if common.share(group.iloc[0]) >= SCHEDULE:
        return claim
    return claim._replace(verdict=UNKNOWN, numbers='%s (%s)' % (claim.numbers, TOO_SHORT))


# --- Figure 4 ----------------------------------------------------------------------------------

def twenty_passes(tables, net='dsn_aug'):
    """After 20 passes the mean error of the repetitions is more than one of their stds below Standard dropout.

    On a part of the test set McNemar's test has to find a difference too, as for Table 1.
    """
    passes = common.paper.ENOUGH_PASSES
    key = 'fig4-%s-%d-passes' % (net, passes)
    statement = 'With %s, %d passes are enough for a gain of more than one standard deviation.' % (
        common.paper.title(net), passes)
    chosen = common.evaluations(tables, 'cifar10', net)
    if not chosen:
        return Claim(key, 'fig4', statement, UNKNOWN, 'not evaluated', None)
    group, mean = chosen[0], fig4.passes(tables, chosen[0])
    at = common.where(mean, t=passes)
    if not len(at) or at['count'].iloc[0] < 2:
        return Claim(key, 'fig4', statement, UNKNOWN, 'needs two repetitions with %d passes or more' % passes,
                     '; '.join(fig4.shorter(group)))
    standard = table1.measured(group)['standard']
    error, std = at['mean'].iloc[0], at['std'].iloc[0]
    numbers = 'after %d passes %.2f%% +- %.2f, Standard %.2f%%, after %d passes %.2f%%; %d repetitions, %s images' % (
        passes, error, std, standard, mean['t'].max(), mean['mean'].iloc[-1], at['count'].iloc[0],
        common.count(group['n'].max()))
    verdict = SUPPORTED if error + std < standard else CONTRADICTED
    if not beyond_images(table1.measured(group)):
        verdict = UNKNOWN
    return _evaluated(Claim(key, 'fig4', statement, verdict, numbers, ''), group)


if __name__ == '__main__':
    def show(tables, _):
        for claim in check(tables):
            print('%-16s %s %s%s'
                  % (claim.verdict, claim.statement, claim.numbers, ' [%s]' % claim.scope if claim.scope else ''))
        return []

    common.start('Which statements of the paper the results support.', show)
