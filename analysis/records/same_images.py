"""Two results on the same images, image by image: which are right in one and wrong in the other.

Nets that are tested on the same images share most of their errors. Where it is recorded which images are wrong, the
noise of a difference is that of the images on which the two disagree, which are far fewer. wrong.csv has them for
evaluations of final weights, curve_wrong.csv for points of a training curve.
"""

import itertools
from typing import FrozenSet, List, NamedTuple, Optional, Tuple

import pandas as pd

from . import evaluations
from .load import Tables, by_probabilities, where

Side = Tuple[pd.DataFrame, str]  # (rows of an evaluation, method)


class Wrong(NamedTuple):
    """Which images are wrong."""
    data: str                     # SHA-256 of all the images as the net got them; of a user's own also as stored
    n: int                        # how many they are
    lists: List[FrozenSet[str]]   # of each repetition the numbers of the wrong ones

    def errors(self) -> float:
        """How many are wrong, a mean over the repetitions."""
        return sum(len(numbers) for numbers in self.lists) / float(len(self.lists))


class Pair(NamedTuple):
    """How two results on the same images differ; counts are means over the repetitions of both."""
    n: int               # images
    only_first: float    # right in the first alone
    only_second: float   # right in the second alone


# --- which images are wrong --------------------------------------------------------------------------

def _wrong(rows: pd.DataFrame) -> Optional[Wrong]:
    if not len(rows) or rows['data'].nunique() > 1:
        return None
    return Wrong(rows['data'].iloc[0], int(rows['n'].iloc[0]),
                 [frozenset(numbers.split()) for numbers in rows['wrong']])


def of_evaluation(tables: Tables, group: pd.DataFrame, method: str) -> Optional[Wrong]:
    """Which images an evaluation has wrong, None where that is not recorded."""
    return _wrong(by_probabilities(evaluations.rows_of(tables['wrong'], [group]), method))


def at_iteration(tables: Tables, dataset: str, net: str, method: str, seed: int, iteration: int,
                 schedule: str) -> Optional[Wrong]:
    """Which images a run has wrong at an iteration: by an evaluation of just these weights, else by its curve."""
    known = where(tables['wrong'], dataset=dataset, net=net, seed=seed, method=method)
    for group in evaluations.of_weights(tables, dataset, net, seed, iteration, schedule) if len(known) else ():
        wrong = of_evaluation(tables, group, method)
        if wrong:
            return wrong
    # of runs with one stage, whose iterations count through
    rows = where(tables['curve_wrong'], of_paper=True, dataset=dataset, net=net, seed=seed, iteration=iteration,
                 stage=1, schedule=schedule)
    rows = by_probabilities(rows, method)
    return _wrong(where(rows, n=rows['n'].max(), T=rows['T'].max()))


# --- two of them ---------------------------------------------------------------------------------------

def pair(first: Optional[Wrong], second: Optional[Wrong]) -> Optional[Pair]:
    """The Pair of two, None where one is not recorded or the images are not the same."""
    if not first or not second or first.n != second.n or not set(first.data.split()) & set(second.data.split()):
        return None
    both = list(itertools.product(first.lists, second.lists))
    return Pair(first.n, sum(len(b - a) for a, b in both) / float(len(both)),
                sum(len(a - b) for a, b in both) / float(len(both)))


def mean(pairs: List[Optional[Pair]]) -> Optional[Pair]:
    """The mean of the pairs of several training seeds, None unless all are known.

    More seeds are not more images: the counts of one evaluation stay what they are.
    """
    if not pairs or None in pairs or len(set(one.n for one in pairs)) > 1:
        return None
    return Pair(pairs[0].n, sum(one.only_first for one in pairs) / len(pairs),
                sum(one.only_second for one in pairs) / len(pairs))


def every_two(tables: Tables) -> List[Tuple[tuple, tuple, Pair]]:
    """[(first, second, Pair)] of every two evaluations, both methods, of the same images; a side: (target, method)."""
    sides = [(target, method) for target in evaluations.targets(tables) + evaluations.left_out(tables)
             for method in ('standard', 'mc')]
    wrong = {side: of_evaluation(tables, evaluations.chosen(tables, *side[0])[0], side[1]) for side in sides}
    compared = [(first, second, pair(wrong[first], wrong[second]))
                for first, second in itertools.combinations(sides, 2)]
    return [line for line in compared if line[2]]
