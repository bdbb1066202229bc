"""Every two evaluations of the same images: how many are right in one alone, and the difference's interval."""

from pages.html import Html, fill, table
from records import names, same_images
from records.from_bcnn import paper
from verdicts.statistics import mcnemar, paired

HEADS = ['first', 'second', 'images', 'only first right', 'only second right', "second's error less first's, points",
         'exact p']


def part(tables):
    """The part of the section on uncertainty, '' where nothing can be compared."""
    lines = rows(tables)
    return fill('same_images', table=table(HEADS, lines, left=2)) if lines else Html('')


def rows(tables):
    """The table's rows as text."""
    lines = []
    for first, second, pair in same_images.every_two(tables):
        gap = paired(pair.only_first, pair.only_second, pair.n)
        lines.append([name(*first), name(*second), names.count(pair.n), '%.1f' % pair.only_first,
                      '%.1f' % pair.only_second, '%+.2f [%+.2f, %+.2f]' % gap[:3],
                      '%.2g' % mcnemar(pair.only_first, pair.only_second)])
    return lines


def name(target, method):
    """'lenet-all MC on MNIST'"""
    return '%s on %s' % (names.curve(target[1], method), paper.title(target[0]))
