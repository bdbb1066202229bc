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


def rows(tables):
    """The table's rows as text: every two of the evaluations, both methods, that were made on the same images."""
    sides = [(net, method) for net in common.evaluated(tables) + common.left_out(tables)
             for method in ('standard', 'mc')]
    chosen = {net: common.evaluations(tables, *net)[0] for net, _ in sides}
    found = []
    for sides_of_pair in itertools.combinations(sides, 2):
        pair = compare(tables, *[(chosen[net], method) for net, method in sides_of_pair])
        if pair:
            gap, error = points(pair)
            found.append([name(*side) for side in sides_of_pair] + [
                common.count(pair.n), '%.1f' % pair.only_first, '%.1f' % pair.only_second,
                '%+.2f +- %.2f' % (gap, common.Z * error)])
    return found


def name(net, method):
    """'lenet-all MC on MNIST'"""
    return '%s on %s' % (common.curve_name(net[1], method), common.paper.title(net[0]))


def section(tables):
    """The part of the report, '' where nothing can be compared."""
    found = rows(tables)
    if not found:
        return ''
    return '<h3>On the same images</h3>%s<p class="small">%s</p>' % (page.table(HEADS, found, left=2), page.text(NOTE))


NOTE = ('Final weights, evaluated image by image (tools/mc_eval.py); means over the repetitions. The interval of 95% '
        'is over test images; other training seeds may move the difference further.')


if __name__ == '__main__':
    def show(tables, _):
        for cells in [HEADS] + rows(tables):
            print('%-36s %-36s %7s  %16s  %17s  %s' % tuple(cells))
        return []

    common.start('Every two recorded evaluations of the same images, image by image.', show)
