"""NIN's MC error beside the paper's: what could make a difference, each with what was measured here.

NIN is the one net whose exact weights are public, so that the whole of a difference has to come from the evaluation.
"""

from pages.html import Html, fill, table
from records import evaluations, names
from records.from_bcnn import paper
from records.load import where
from verdicts.statistics import welch

NET = 'nin'
HEADS = ['what could differ', 'tried here', 'MC error, %', "less the paper's"]


def part(tables):
    """The part of Table 1's section, '' where nothing was evaluated."""
    groups = evaluations.chosen(tables, 'cifar10', NET)
    if not groups:
        return Html('')
    line = evaluations.measured(groups[0])
    return fill('nin', verdict=verdict(line), table=table(HEADS, rows(tables, groups[0], line), left=2))


def verdict(line):
    """In words: whether the masks alone can explain the difference from the paper, and whether Standard agrees."""
    published = paper.PUBLISHED[NET]
    words = 'Standard dropout makes %.2f%% errors, the paper\'s net %.2f%%. ' % (line['standard'], published.standard)
    gap = line['mc'] - published.mc
    words += 'MC dropout is %+.2f points from the paper\'s mean of %d repetitions' % (gap, paper.REPETITIONS)
    if line['std'] is None:
        return words + '; one repetition tells nothing of the spread here.'
    half = welch(line['std'], line['repetitions'], published.std, paper.REPETITIONS)
    return words + ', with a 95%% interval of +- %.2f from the repetitions of both: %s.' % (
        half, 'the masks alone can explain it' if abs(gap) <= half else 'more than the masks can explain')


def rows(tables, group, line):
    """The table's rows as text."""
    n = line['repetitions']
    lines = [['the masks', 'other masks: %s' % names.plural(n, 'repetition')] + _cells(line['mc'], line['std']),
             ['what is averaged', 'scores in the place of probabilities']
             + _cells(line['mc_scores'], line['std_scores'])]
    curve = evaluations.passes(tables, group)
    for t in (20, 50):
        at = where(curve, t=t)
        if len(at) and t < line['T']:
            lines.append(['passes', 'T = %d in the place of %d' % (t, line['T'])]
                         + _cells(at['mean'].iloc[0], at['std'].iloc[0] if n > 1 else None))
    for _, row in where(tables['placement'], net='cifar10/' + NET).iterrows():
        place = {'as it is': 'as it is, with adaptive T'}.get(row['placement'], row['placement'])
        part_of_set = '' if row['n'] == paper.TEST_IMAGES else ' (%s images)' % names.count(row['n'])
        lines.append(['where dropout samples', place + part_of_set] + _cells(100.0 * row['errors'] / row['n'], None))
    return lines


def _cells(mean, std):
    """The error with its spread, and how far it is from the paper's mean."""
    return [names.spread(mean, std), '%+.2f' % (mean - paper.PUBLISHED[NET].mc)]
