"""Table 1: NIN, DSN and Augmented-DSN, each in three parts that are answered apart.

Do our numbers agree with the published ones? Can the masks alone explain Standard's error less MC's? Could other
test images? The paper's "statistically significant" is about the masks alone: so is the statement's verdict.
"""

from typing import List, NamedTuple, Optional

import pandas as pd

from records import evaluations, names, smaller
from records.from_bcnn import paper
from records.load import Tables, where
from verdicts import deciding, statistics
from verdicts.judging import (CONTRADICTED, SCHEDULE, SUPPORTED, UNDECIDED, Evidence, Part, Statement, equal, every,
                              judge)
from verdicts.statistics import Difference

AGREEMENT = 0.2  # points: published numbers and ours agree if they are certainly closer than this
ANSWERS = {SUPPORTED: 'yes', CONTRADICTED: 'no', UNDECIDED: 'undecided'}


class Gain(NamedTuple):
    """What an evaluation says of MC dropout against Standard dropout, in points; above zero where MC is better."""
    group: pd.DataFrame
    evidence: Evidence    # about: over masks
    p: float              # McNemar's, exact; the median of the repetitions: one p would depend on which is taken
    repetitions: int


def gain(tables: Tables, net: str, dataset: str = 'cifar10') -> Optional[Gain]:
    """The Gain of the first evaluation of a net, None where there is none."""
    groups = evaluations.chosen(tables, dataset, net)
    return gain_of(groups[0]) if groups else None


def gain_of(group: pd.DataFrame) -> Gain:
    """The Gain of an evaluation."""
    standard, mc = where(group, method='standard').iloc[0], where(group, method='mc', average='probs')
    n = int(standard['n'])
    gaps = [100.0 * (standard['errors'] - errors) / n for errors in mc['errors']]
    masks = None
    if len(gaps) > 1:
        masks = statistics.over(gaps, 'masks', names.plural(len(gaps), 'repetition'))
    only_mc, only_standard = mc['only_mc_right'].mean(), mc['only_standard_right'].mean()
    p = statistics.median([statistics.mcnemar(*counts)
                           for counts in zip(mc['only_mc_right'], mc['only_standard_right'])])
    return Gain(group, Evidence(masks, statistics.paired(only_mc, only_standard, n, p=p), n), p, len(gaps))


def statements(tables: Tables) -> List[Statement]:
    """What the paper says of Table 1."""
    return [improves(tables, net) for net in paper.TABLE1] + [largest_gain(tables), crops(tables)]


def questions(tables: Tables) -> List[Statement]:
    """What we ask of Table 1: whether numbers agree, and whether gains would hold on other test images."""
    return [ask(tables, net) for ask in (agrees, holds_on_other_images) for net in paper.TABLE1]


def improves(tables: Tables, net: str) -> Statement:
    """MC dropout below Standard dropout, by the noise that the paper speaks of: that of the masks."""
    key, text = 'table1-%s-improves' % net, 'MC dropout improves on Standard dropout with %s.' % paper.title(net)
    known = gain(tables, net)
    if not known:
        return not_evaluated(tables, key, text, net)
    line, published = evaluations.measured(known.group), paper.PUBLISHED[net]
    numbers = 'Standard %.2f%%, MC %s%% (paper %.2f and %s); gain %s; T = %d, %s test images' % (
        line['standard'], names.spread(line['mc'], line['std']), published.standard,
        names.spread(published.mc, published.std), known.evidence.words(), line['T'],
        names.count(line['n']))
    parts = [agreement(known.group, net), of_masks(known), of_images(known)]
    statement = Statement(key=key, experiment='table1', text=text, verdict=known.evidence.verdict(), numbers=numbers,
                          scope='', parts=parts)
    return judged(tables, statement, known, net)


def not_evaluated(tables: Tables, key: str, text: str, net: str, experiment: str = 'table1') -> Statement:
    """The statement on a net that was not evaluated."""
    return Statement(key=key, experiment=experiment, text=text, verdict=UNDECIDED, numbers='not evaluated', scope=None,
                     decides=deciding.evaluation(tables, net))


def judged(tables: Tables, statement: Statement, known: Gain, net: str, margin: float = 0.0) -> Statement:
    """The statement on an evaluation with its scope, undecided where the training was too short, with what would
    decide it."""
    statement = statement._replace(scope='; '.join(smaller.evaluation(known.group)), share=share_of(known),
                                   rests=rests(known))
    if evaluations.share(known.group.iloc[0]) < SCHEDULE:
        return statement._replace(verdict=UNDECIDED, why='a verdict needs %s of the schedule' % names.percent(SCHEDULE),
                                  decides=deciding.evaluation(tables, net))
    if statement.verdict != UNDECIDED:
        return statement
    complete = known.evidence.about and known.evidence.n >= paper.TEST_IMAGES
    return statement._replace(
        why=statement.why or 'within the noise of %s' % known.evidence.noise(),
        decides=deciding.more_repetitions(tables, net, known.evidence.about, margin) if complete else
        deciding.evaluation(tables, net))


def share_of(known: Gain) -> str:
    """'published weights', '1% of the schedule, 200 test images'"""
    row = known.group.iloc[0]
    full = paper.schedule(row['experiment'], row['dataset'], row['net']) if row['weights'] == 'trained' else None
    words = smaller.share(row['iterations'], full, row['schedule'], known.evidence.n)
    return words if full else words.replace('the whole schedule', '%s weights' % row['weights'])


def rests(known: Gain) -> str:
    """'1 seed, 5 repetitions, noise of masks': what a verdict on an evaluation rests on."""
    seeds = '' if known.group['seed'].isnull().any() else '1 seed, '
    return '%s%s, noise of %s' % (seeds, names.plural(known.repetitions, 'repetition'), known.evidence.noise())


# --- the three parts -----------------------------------------------------------------------------------

def agreement(group: pd.DataFrame, net: str) -> Part:
    """Do our numbers agree with the published ones? Standard is one count; MC has the masks' noise on both sides."""
    line, published = evaluations.measured(group), paper.PUBLISHED[net]
    gap = line['standard'] - published.standard
    gaps = {'Standard': Difference(estimate=gap, low=gap, high=gap, noise='', count='')}
    if line['std'] is not None:
        gap = line['mc'] - published.mc
        half = statistics.welch(line['std'], line['repetitions'], published.std, paper.REPETITIONS)
        gaps['MC'] = Difference(estimate=gap, low=gap - half, high=gap + half, noise='masks', count='')
    verdicts = [equal(gap.low, gap.high, AGREEMENT) for gap in gaps.values()] + ([] if 'MC' in gaps else [UNDECIDED])
    numbers = ', '.join('%s %+.2f%s' % (name, gap.estimate, '' if gap.low == gap.high else ' [%+.2f, %+.2f]' % (
        gap.low, gap.high)) for name, gap in gaps.items())
    return Part('Do our numbers agree with the published ones?', ANSWERS[every(verdicts)],
                'ours less the paper\'s: %s; the margin is %.2f' % (numbers, AGREEMENT))


def of_masks(known: Gain) -> Part:
    """Can masks alone explain the difference?"""
    question = 'Can other masks alone explain the difference of Standard and MC dropout?'
    if not known.evidence.about:
        return Part(question, 'undecided', 'one repetition tells nothing of masks')
    counts = judge(known.evidence.about) != UNDECIDED
    return Part(question, 'no' if counts else 'yes', 'gain %s' % statistics.words(known.evidence.about))


def of_images(known: Gain) -> Part:
    """Could other test images explain it?"""
    counts = judge(known.evidence.images) != UNDECIDED
    return Part('Could other test images explain it?', 'no' if counts else 'yes',
                'gain %s; McNemar\'s exact p = %.2g' % (statistics.words(known.evidence.images), known.p))


def agrees(tables: Tables, net: str) -> Statement:
    """Our question: do the numbers agree?"""
    key, text = 'table1-%s-agrees' % net, 'Our errors with %s agree with the published ones (within %.1f points).' % (
        paper.title(net), AGREEMENT)
    known = gain(tables, net)
    if not known:
        return not_evaluated(tables, key, text, net)
    part = agreement(known.group, net)
    verdict = {answer: verdict for verdict, answer in ANSWERS.items()}[part.answer]
    statement = judged(tables, Statement(key=key, experiment='table1', text=text, verdict=verdict,
                                         numbers=part.numbers, scope=''), known, net)
    if evaluations.share(known.group.iloc[0]) < 1:  # a shorter training is not the paper's, however its errors are
        return statement._replace(verdict=UNDECIDED, why='the training is shorter than the paper\'s',
                                  decides=deciding.evaluation(tables, net))
    return statement


def holds_on_other_images(tables: Tables, net: str) -> Statement:
    """Our question: would the gain hold on other test images?"""
    key = 'table1-%s-other-images' % net
    text = 'With %s, the gain of MC dropout is more than other test images could change.' % paper.title(net)
    known = gain(tables, net)
    if not known:
        return not_evaluated(tables, key, text, net)
    images = known._replace(evidence=known.evidence._replace(about=None))
    verdict, numbers = judge(known.evidence.images), of_images(known).numbers
    statement = judged(tables, Statement(key=key, experiment='table1', text=text, verdict=verdict, numbers=numbers,
                                         scope=''), images, net)
    if statement.verdict == UNDECIDED and evaluations.share(known.group.iloc[0]) >= SCHEDULE:
        return statement._replace(decides=deciding.images_needed(known.evidence.images, known.evidence.n))
    return statement


# --- between nets -----------------------------------------------------------------------------------------

def largest_gain(tables: Tables) -> Statement:
    """The gain of Augmented-DSN above that of each other net, over the masks of both; the images' noise beside it."""
    key, text = 'table1-largest-gain', 'The largest gain of MC dropout is that of Augmented-DSN.'
    gains = {net: gain(tables, net) for net in paper.TABLE1}
    missing = [net for net, known in gains.items() if not known or not known.evidence.about]
    if missing:
        return Statement(key=key, experiment='table1', text=text, verdict=UNDECIDED, scope=None,
                         numbers='not evaluated twice: %s' % ', '.join(paper.title(net) for net in missing),
                         decides=deciding.evaluation(tables, missing[0]))
    mine, said, verdicts = gains['dsn_aug'], [], []
    for net in paper.TABLE1[:2]:
        gap = _gap_of_gains(mine, gains[net])
        verdicts.append(gap.verdict())
        said.append('less that of %s %s' % (paper.title(net), gap.words()))
    numbers = 'gain %+.2f points; %s' % (mine.evidence.about.estimate, '; '.join(said))
    shortest = min(gains.values(), key=lambda known: evaluations.share(known.group.iloc[0]))
    statement = Statement(key=key, experiment='table1', text=text, verdict=every(verdicts), numbers=numbers, scope='')
    return judged(tables, whole_set_only(statement, min(known.evidence.n for known in gains.values())), shortest,
                  'dsn_aug')


def whole_set_only(statement: Statement, n: int) -> Statement:
    """The statement, undecided on a part of the test set where only the masks' noise is known."""
    if n >= paper.TEST_IMAGES:
        return statement
    return statement._replace(verdict=UNDECIDED, why='on a part of the test set')


def _gap_of_gains(mine: Gain, other: Gain) -> Evidence:
    spreads = []
    for known in (mine, other):
        mc = where(known.group, method='mc', average='probs')
        spreads += [statistics.deviation(list(100.0 * mc['errors'] / mc['n'])), len(mc)]
    gap, half = mine.evidence.about.estimate - other.evidence.about.estimate, statistics.welch(*spreads)
    masks = Difference(estimate=gap, low=gap - half, high=gap + half, noise='masks', count='repetitions of both')
    images = statistics.between(mine.evidence.images, other.evidence.images)
    return Evidence(masks, images, min(mine.evidence.n, other.evidence.n))


def crops(tables: Tables) -> Statement:
    """Augmented-DSN: MC dropout against Standard dropout that averages random crops, which the test set allows too."""
    key = 'table1-dsn_aug-crops'
    text = 'With Augmented-DSN, MC dropout makes fewer errors than Standard dropout averaged over stochastic crops.'
    groups = [group for group in evaluations.departing(tables) if group['net'].iloc[0] == 'dsn_aug'
              and group['crops'].iloc[0] == group['crops'].iloc[0] and not group['init'].iloc[0]]
    if not groups:
        return Statement(key=key, experiment='table1', text=text, verdict=UNDECIDED,
                         numbers='no evaluation with crops recorded', scope=None,
                         decides='`python tools/mc_eval.py --net dsn_aug --T 100 --crops 10`, of the same weights.')
    known = gain_of(min(groups, key=evaluations.rank))
    numbers = '%d crops: Standard %.2f%%, MC %.2f%%; gain %s' % (
        known.group['crops'].iloc[0], evaluations.error_of_standard(known.group),
        evaluations.measured(known.group)['mc'], known.evidence.words())
    return judged(tables, Statement(key=key, experiment='table1', text=text, verdict=known.evidence.verdict(),
                                    numbers=numbers, scope=''), known, 'dsn_aug')
