"""NIN's MC error beside the paper's: what could make a difference, each with what was measured here.

NIN is the one net whose exact weights are public, so that the whole of a difference has to come from the evaluation.
"""

import math

import claims
import common
import fig4
import page
import table1

NET = 'nin'
HEADS = ['what could differ', 'tried here', 'MC error, %', "less the paper's"]


def section(tables):
    """The part of the report, '' where nothing was evaluated."""
    chosen = common.evaluations(tables, 'cifar10', NET)
    if not chosen:
        return ''
    line = table1.measured(chosen[0])
    return '<h3>NIN beside the paper: where a difference may come from</h3><p>%s</p>%s<p class="small">%s</p>' % (
        page.text(verdict(line)), page.table(HEADS, rows(tables, chosen[0], line), left=2), page.text(NOTES))


NOTES = ('Preprocessing and weights: other channel orders, axes or whitening change the Standard error by whole '
         'percents, so an equal Standard error leaves no room for them. The version of Caffe: dropout computes the '
         'same in all, from another random stream, which is what repetitions with other masks show. Moved or single '
         'dropout layers were sampled with adaptive T (tools/placement.py).')


def verdict(line):
    """In words: whether the masks alone can explain the difference from the paper, and whether Standard agrees."""
    published = common.paper.PUBLISHED[NET]
    words = 'Standard dropout makes %.2f%% errors, the paper\'s net %.2f%%. ' % (line['standard'], published.standard)
    gap = line['mc'] - published.mc
    words += 'MC dropout is %+.2f points from the paper\'s mean of %d repetitions' % (gap, common.paper.REPETITIONS)
    if line['std'] is None:
        return words + '; one repetition tells nothing of the spread here.'
    half = welch(line['std'], line['repetitions'], published.std, common.paper.REPETITIONS)
    return words + ', with a 95%% interval of +- %.2f from the repetitions of both: %s.' % (
        half, 'the masks alone can explain it' if abs(gap) <= half else 'more than the masks can explain')


def welch(std, n, other_std, other_n):
    """Half the width of the 95% interval of the difference of two means, by Welch's t."""
    parts = [(std ** 2 / n, n - 1), (other_std ** 2 / other_n, other_n - 1)]
    variance = sum(part for part, _ in parts)
    if not variance:
        return 0.0
    freedom = variance ** 2 / sum(part ** 2 / df for part, df in parts)
    # the smaller whole number of degrees of freedom: the wider interval
    return claims.STUDENT[min(int(freedom), len(claims.STUDENT)) - 1] * math.sqrt(variance)


def rows(tables, group, line):
    """The table's rows as text."""
    n = line['repetitions']
    found = [['the masks', 'other masks: %d repetition%s' % (n, 's' if n > 1 else '')]
             + _cells(line['mc'], line['std']),
             ['what is averaged', 'scores in the place of probabilities']
             + _cells(line['mc_scores'], line['std_scores'])]
    curve = fig4.passes(tables, group)
    for t in (20, 50):
        at = common.where(curve, t=t)
        if len(at) and t < line['T']:
            found.append(['passes', 'T = %d in the place of %d' % (t, line['T'])]
                         + _cells(at['mean'].iloc[0], at['std'].iloc[0] if n > 1 else None))
    for _, row in common.where(tables['placement'], net='cifar10/' + NET).iterrows():
        place = {'as it is': 'as it is, with adaptive T'}.get(row['placement'], row['placement'])
        part = '' if row['n'] == common.paper.TEST_IMAGES else ' (%s images)' % common.count(row['n'])
        found.append(['where dropout samples', place + part] + _cells(100.0 * row['errors'] / row['n'], None))
    return found


def _cells(mean, std):
    """The error with its spread, and how far it is from the paper's mean."""
    return [common.spread(mean, std), '%+.2f' % (mean - common.paper.PUBLISHED[NET].mc)]
