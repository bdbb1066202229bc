"""Which of two curves ends lower, whether a curve still falls, and how far one rises: with all noises kept apart."""

from typing import Dict, List, NamedTuple, Optional, Tuple

import pandas as pd

from records import curves, names, same_images
from records.from_bcnn import paper
from records.load import Tables, where
from verdicts import statistics
from verdicts.judging import SUPPORTED, Evidence, judge
from verdicts.statistics import LEVEL, SEEDS

Side = Tuple[str, str]  # a curve: (net, method)
FALL = 0.1  # a curve still falls if it lost at least this share of its error since the measurement before


class Ends(NamedTuple):
    """Where some curves of a data set are compared."""
    dataset: str
    schedule: str                        # '' cut off, '1/20' in proportion
    iteration: int                       # the last that all of them have
    errors: Dict[Side, Dict[int, int]]   # of each curve and seed, in images
    n: int                               # test images


def rows_of(tables: Tables, dataset: str, side: Side, schedule: str) -> pd.DataFrame:
    """The rows of a curve, with the paper's number of passes where it is recorded."""
    return curves.curve(tables, dataset, side[0], side[1], paper.find(dataset=dataset, net=side[0])[0].T, schedule)


def ends(tables: Tables, dataset: str, sides: List[Side]) -> Optional[Ends]:
    """The last iteration that all these curves have, and their errors there; None where one is missing."""
    schedule = curves.schedule_for(tables, dataset, sides)
    rows = {side: rows_of(tables, dataset, side, schedule) for side in sides}
    shared = set.intersection(*[set(table['iteration']) for table in rows.values()])
    if not shared or len(set(table['n'].iloc[0] for table in rows.values())) > 1:
        return None
    last, errors = max(shared), {}
    for side, table in rows.items():
        at = where(table, iteration=last)
        errors[side] = dict(zip(at['seed'], at['errors']))
    return Ends(dataset=dataset, schedule=schedule, iteration=int(last), errors=errors,
                n=int(rows[sides[0]]['n'].iloc[0]))


def mean(by_seed: Dict[int, float]) -> float:
    return sum(by_seed.values()) / float(len(by_seed))


def evidence(pairs_of_errors: List[Tuple[float, float]], pair: Optional[same_images.Pair], n: int,
             low_level: float = LEVEL, high_level: float = LEVEL) -> Evidence:
    """How far the second of two errors is above the first, given both (in images) for each training seed; pair: of the
    same images, None where it is not known which are wrong."""
    first, second = [sum(values) / float(len(values)) for values in zip(*pairs_of_errors)]
    if pair:
        images = statistics.paired(pair.only_first, pair.only_second, pair.n, low_level, high_level)
    else:
        images = statistics.independent(first, second, n, low_level, high_level)
    seeds = None
    if len(pairs_of_errors) >= SEEDS:
        seeds = statistics.over([100.0 * (b - a) / n for a, b in pairs_of_errors], 'seeds',
                                names.plural(len(pairs_of_errors), 'seed'))
    return Evidence(seeds, images, n)


def below(tables: Tables, at: Ends, lower: Side, higher: Side) -> Evidence:
    """How far `lower` ends below `higher`, over the seeds that both have."""
    seeds = sorted(set(at.errors[lower]) & set(at.errors[higher]))
    wrong = [[same_images.at_iteration(tables, at.dataset, net, method, seed, at.iteration, at.schedule)
              for net, method in (lower, higher)] for seed in seeds]
    pair = same_images.mean([same_images.pair(*both) for both in wrong])
    errors = [(at.errors[lower][seed], at.errors[higher][seed]) for seed in seeds]
    return evidence(errors or [(mean(at.errors[lower]), mean(at.errors[higher]))], pair, at.n)


# --- along a curve ---------------------------------------------------------------------------------------

def by_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """Errors in images, a row an iteration that all seeds have, a column a seed."""
    if not len(rows):
        return pd.DataFrame()
    return rows.pivot_table(index='iteration', columns='seed', values='errors').dropna()


def _pair_of_points(tables, dataset, side, schedule, seeds, first, second):
    """The Pair of one curve at two iterations, a mean over seeds; None where it is not recorded."""
    def wrong(seed, iteration):
        return same_images.at_iteration(tables, dataset, side[0], side[1], seed, iteration, schedule)

    return same_images.mean([same_images.pair(wrong(seed, first), wrong(seed, second)) for seed in seeds])


def falls(tables: Tables, at: Ends, side: Side) -> bool:
    """Whether a curve still falls where it is compared: since the measurement before, by a tenth of its error or more,
    and, where it is known which images were wrong or there are seeds enough, by more than that noise."""
    rows = rows_of(tables, at.dataset, side, at.schedule)
    wide = by_seed(rows[rows['iteration'] <= at.iteration])
    if len(wide) < 2:
        return False
    before, now = wide.index[-2], wide.index[-1]
    pair = _pair_of_points(tables, at.dataset, side, at.schedule, wide.columns, now, before)
    known = evidence(list(zip(wide.loc[now], wide.loc[before])), pair, at.n)
    margin = FALL * 100.0 * wide.loc[now].mean() / at.n - 1e-9  # a tenth counts, whatever rounding does to it
    if known.about is None and not pair:  # two independent sets could never tell: the fall itself decides
        return known.images.estimate >= margin and known.images.estimate > 0
    return judge(known.about or known.images, margin) == SUPPORTED


class Rise(NamedTuple):
    """How far a curve ends above its lowest error."""
    evidence: Evidence
    lowest: float        # error in percent, a mean over seeds
    lowest_at: int       # iteration
    end: float           # error in percent
    last: int            # iteration
    seeds: int
    points: int          # measurements before the end


def rise(tables: Tables, dataset: str, side: Side, longest: Optional[int] = None) -> Optional[Rise]:
    """The Rise of a curve, None where fewer than four measurements are recorded; longest: iterations to look at.

    The lowest of many noisy points is too low by chance. With three or more seeds each seed's rise is therefore
    measured from where the mean of the *other* seeds is lowest. With fewer, that the end is above *any* of k points
    is a claim with k chances: the lower limit has the level 5% / k (Bonferroni), the upper one 5%.
    """
    schedule = curves.schedule_for(tables, dataset, [side])
    rows = rows_of(tables, dataset, side, schedule)
    if longest:
        rows = rows[rows['iteration'] <= longest]
    wide = by_seed(rows)
    if len(wide) < 4:
        return None
    n, average = int(rows['n'].iloc[0]), wide.mean(axis=1)
    low, last, points = average.iloc[:-1].idxmin(), wide.index[-1], len(wide) - 1
    errors = [(wide[seed].loc[_lowest_of_others(wide, seed)], wide[seed].iloc[-1]) for seed in wide.columns]
    pair = _pair_of_points(tables, dataset, side, schedule, wide.columns, low, last)
    known = evidence(errors, pair, n, low_level=LEVEL / points)
    return Rise(evidence=known, lowest=100.0 * average.loc[low] / n, lowest_at=int(low),
                end=100.0 * average.iloc[-1] / n, last=int(last), seeds=len(wide.columns), points=points)


def _lowest_of_others(wide: pd.DataFrame, seed: int) -> int:
    """The iteration, before the end, where the other seeds' mean is lowest; of all seeds where they are too few."""
    others = wide.drop(columns=[seed]) if len(wide.columns) >= SEEDS else wide
    return others.iloc[:-1].mean(axis=1).idxmin()
