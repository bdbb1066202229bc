"""Two evaluations of the same images, image by image: which are right in one and wrong in the other.

Nets that are tested on the same images share most of their errors. Where it is recorded which images are wrong
(wrong.csv), the noise of a difference is that of the images on which the two disagree, which are far fewer.
"""

import itertools
import math
from collections import namedtuple

import common
import page
import reliability

# n: images; only_first, only_second: right in one of the two alone, a mean over the repetitions of both.
Pair = namedtuple('Pair', 'n only_first only_second')
HEADS = ['first', 'second', 'images', 'only first right', 'only second right', "second's error less first's, points"]


def compare(tables, first, second):
    """The Pair of two (rows of an evaluation, method), None where it is not recorded or the images are not the same."""
    lists = [reliability.rows_of(common.of_evaluations(tables['wrong'], [group]), method) for group, method in
             (first, second)]
    if not all(len(rows) for rows in lists) or len(set(data for rows in lists for data in rows['data'])) > 1:
        return None
    wrong = [[set(numbers.split()) for numbers in rows['wrong']] for rows in lists]
    both = list(itertools.product(*wrong))
    return Pair(int(lists[0]['n'].iloc[0]), sum(len(b - a) for a, b in both) / float(len(both)),
                sum(len(a - b) for a, b in both) / float(len(both)))


def points(pair):
    """(difference, its standard error) in points; positive where the first is better."""
    gap, disagree = pair.only_first - pair.only_second, pair.only_first + pair.only_second
    return 100.0 * gap / pair.n, 100.0 * math.sqrt(disagree - gap ** 2 / float(pair.n)) / pair.n


def noise(tables, dataset, first, second, seeds, iterations):
    """The standard error of the difference of two curves (net, method) at an iteration, a mean over training seeds;
    None unless final weights of just that many iterations were evaluated for each of them."""
    variances = []
    for seed in seeds:
        sides = [(group, method) for net, method in (first, second)
                 for group in common.evaluations(tables, dataset, net)
                 if (group['seed'].iloc[0], group['iterations'].iloc[0]) == (seed, iterations)]
        pair = compare(tables, *sides) if len(sides) == 2 else None
        if pair is None:
            return None
        variances.append(points(pair)[1] ** 2)
    return math.sqrt(sum(variances) / len(variances)) if variances else None


def section(tables):
    """The part of the report: every two curves of Figure 2 whose final weights were evaluated; '' for none."""
    rows = []
    for dataset in ('mnist', 'cifar10'):
        sides = [(run.net, method) for run in common.paper.find('fig2', dataset) for method in run.methods]
        chosen = {net: common.evaluations(tables, dataset, net) for net, _ in sides}
        for one, other in itertools.combinations([side for side in sides if chosen[side[0]]], 2):
            pair = compare(tables, *[(chosen[net][0], method) for net, method in (one, other)])
            if pair:
                rows.append(_cells(dataset, one, other, pair))
    if not rows:
        return ''
    return '<h3>On the same images</h3>%s<p class="small">%s</p>' % (page.table(HEADS, rows, left=2), page.text(NOTE))


NOTE = ('Of the final weights, evaluated image by image (tools/mc_eval.py); means over the repetitions. The interval '
        'of 95% is over test images; other training seeds may move the difference further.')


def _cells(dataset, one, other, pair):
    gap, error = points(pair)
    names = ['%s, %s' % (common.curve_name(*side), common.paper.title(dataset)) for side in (one, other)]
    return names + [common.count(pair.n), '%.1f' % pair.only_first, '%.1f' % pair.only_second,
                    '%+.2f +- %.2f' % (gap, 1.96 * error)]
