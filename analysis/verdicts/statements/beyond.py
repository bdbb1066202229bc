"""Beyond the paper: its open questions, judged by the rules that were written before their runs (verdicts/rules.py).

A list of their own, never counted with the paper's statements nor with what we ask of its figures.
"""

from typing import Dict, List, Optional

from records import names
from records import open_questions as runs
from records.from_bcnn import beyond, paper
from records.load import Tables, where
from verdicts import statistics
from verdicts.judging import CONTRADICTED, SUPPORTED, UNDECIDED, Statement, judge
from verdicts.statistics import SEEDS, Difference, words

HALF = 0.5         # of the gap with MAX, by which it has to shrink
POINTS = 0.1       # of error, by which another p has to be better
GAIN = 0.01        # of AUROC
FEW = 'fewer than three seeds'


def statements(tables: Tables) -> List[Statement]:
    """All questions that were asked, in their order."""
    asked = {'pooling': pooling, 'off_data': off_data, 'probability': probability, 'less_data': less_data}
    return [statement for question in beyond.QUESTIONS if runs.was_asked(tables, question)
            for statement in asked[question](tables)]


def _statement(question: str, key: str, text: str, verdict: str, numbers: str, rests: str, why: str = '') -> Statement:
    return Statement(key='beyond-' + key, experiment=question, text=text, verdict=verdict, numbers=numbers, scope='',
                     rests=rests, why=why)


def _seeds(*by_seed: Dict[int, float]) -> str:
    return names.plural(min(len(values) for values in by_seed), 'seed')


# --- 1: pooling ------------------------------------------------------------------------------------------

def pooling(tables: Tables) -> List[Statement]:
    """That the gap is smaller with AVE pooling, by half of that with MAX or more; Welch's interval over seeds."""
    most, average = (runs.gaps(tables, net) for net in (beyond.NET, beyond.AVERAGE))
    difference, margin = decrease(most, average), HALF * runs.mean(most)
    numbers = 'Standard less MC: MAX %s, AVE %s points; it shrinks by %s; half of it is %.2f' % (
        spread(most), spread(average), words(difference) if difference else
        '%+.2f' % (runs.mean(most) - runs.mean(average)), margin)
    verdict = judge(difference, margin) if difference else UNDECIDED
    return [_statement('pooling', 'pooling', 'The non-linearity of pooling is why Standard dropout fails after '
                       'convolutions.', verdict, numbers, '%s each; judged over seeds' % _seeds(most, average),
                       _why(verdict, difference))]


def decrease(first: runs.BySeed, second: runs.BySeed) -> Optional[Difference]:
    """How far the mean of the first is above that of the second, Welch's interval; None for fewer than three seeds."""
    if min(len(first), len(second)) < SEEDS:
        return None
    estimate = runs.mean(first) - runs.mean(second)
    half = statistics.welch(statistics.deviation(list(first.values())), len(first),
                            statistics.deviation(list(second.values())), len(second))
    return Difference(estimate=estimate, low=estimate - half, high=estimate + half, noise='seeds',
                      count='%d and %d seeds' % (len(first), len(second)))


def spread(values: runs.BySeed) -> str:
    """'1.23 +- 0.04' over seeds."""
    return names.spread(runs.mean(values), statistics.deviation(list(values.values())) if len(values) > 1 else None)


def _why(verdict: str, difference: Optional[Difference]) -> str:
    if verdict != UNDECIDED:
        return ''
    return 'the interval holds both answers' if difference else FEW


# --- 2: less data ----------------------------------------------------------------------------------------

def less_data(tables: Tables) -> List[Statement]:
    """That lenet-all with MC dropout needs at most half of the images to reach lenet-ip's error on all."""
    half = runs.errors_by_part(tables, beyond.NET, 'mc')[2]
    whole = runs.errors_by_part(tables, 'lenet_ip', 'standard')[1]
    both = runs.minus(whole, half)
    difference = statistics.over(list(both.values()), 'seeds', _seeds(both)) if len(both) >= SEEDS else None
    verdict = UNDECIDED if difference is None else judge(difference)
    numbers = 'lenet-all MC on 1/2 of MNIST %s%%, lenet-ip Standard on all of it %s%% (%s); %s' % (
        spread(half), spread(whole), words(difference) if difference else FEW, runs.read_off_words(tables))
    return [_statement('less_data', 'less-data', 'lenet-all with MC dropout reaches the error of lenet-ip with '
                       'Standard dropout on all of MNIST with at most half of the images.', verdict, numbers,
                       '%s; judged over seeds' % _seeds(both or half), _why(verdict, difference))]


# --- 3: dropout probability --------------------------------------------------------------------------------

def probability(tables: Tables) -> List[Statement]:
    """That no other p is better than 0.5 by 0.1 points."""
    ours, verdicts, said = runs.errors_of(tables, 'probability', beyond.NET, 'mc'), [], []
    for p in runs.probabilities(tables):
        if p == 0.5:
            continue
        theirs = runs.errors_of(tables, 'probability', beyond.PROBABILITIES[p], 'mc')
        both = runs.minus(theirs, ours)
        difference = statistics.over(list(both.values()), 'seeds', _seeds(both)) if len(both) >= SEEDS else None
        verdicts.append(_against(difference))
        said.append('p = %g: %s%% (%s)' % (p, spread(theirs), words(difference) if difference else FEW))
    verdict = CONTRADICTED if CONTRADICTED in verdicts else UNDECIDED if UNDECIDED in verdicts else SUPPORTED
    return [_statement('probability', 'probability', 'p = 0.5 is among the best dropout probabilities for lenet-all '
                       'with MC dropout.', verdict, 'p = 0.5: %s%%; %s' % (spread(ours), '; '.join(said)),
                       '%s; judged over seeds' % _seeds(ours), '' if verdict != UNDECIDED else
                       'an interval holds both a better and an equal p, or there are too few seeds')]


def _against(difference: Optional[Difference]) -> str:
    """What another p says of p = 0.5: contradicted where it is certainly lower, and by 0.1 points."""
    if difference is None:
        return UNDECIDED
    if difference.high < 0 and difference.estimate <= -POINTS:
        return CONTRADICTED
    return SUPPORTED if difference.low > -POINTS else UNDECIDED


# --- 4: off the data -----------------------------------------------------------------------------------------

SETS = {'fashion_mnist': 'Fashion-MNIST', 'rotated': 'rotated digits'}
COMPARED = (('entropy', 'The entropy of MC dropout tells %s from the test images better than that of Standard dropout'),
            ('mutual_information', 'Mutual information tells %s from the test images better than the entropy of MC '
                                   'dropout'))


def off_data(tables: Tables) -> List[Statement]:
    """For each net and kind of image: MC's entropy beside Standard's, mutual information beside MC's entropy."""
    return [_told_apart(runs.off_data(tables, net), net, against, measure, text)
            for net in runs.off_data_nets(tables) for against in SETS for measure, text in COMPARED]


def _told_apart(rows, net: str, against: str, measure: str, text: str) -> Statement:
    rows = where(rows, against=against)
    rows = rows[rows['angle'].isna()]
    row = where(rows, method='mc', measure=measure).iloc[0]
    before = where(rows, measure='entropy', method='standard' if measure == 'entropy' else 'mc').iloc[0]
    difference = Difference(estimate=row['gain'], low=row['gain_low'], high=row['gain_high'], noise='images', count='')
    verdict = judge(difference, GAIN)
    numbers = 'AUROC %.3f against %.3f: %+.4f [%+.4f, %+.4f], %s and %s images; the margin is %.2f' % (
        row['auroc'], before['auroc'], row['gain'], row['gain_low'], row['gain_high'], names.count(row['n']),
        names.count(row['others']), GAIN)
    return _statement('off_data', 'off-data-%s-%s-%s' % (net, against, measure), '%s: %s.' % (
        paper.title(net), text % SETS[against]), verdict, numbers, '%s iterations, T=%d; judged over images' % (
        names.count(row['iterations']), row['T']), _why(verdict, difference))
