"""Which MC evaluations stand in the paper's rows, in which order, and what they measured.

The paper's protocol is T independent passes of every test image, as it is, with weights trained from scratch; also
where repetitions share masks, those of each are independent. What departs from it (random crops, adaptive T, weights
that a run was started from) never stands in its rows; what is only smaller (schedule, images, T, repetitions) does, and
is marked.
"""

from typing import List, NamedTuple, Optional, Tuple

import pandas as pd

from . import names
from .curves import over_seeds
from .from_bcnn import paper
from .load import Tables, where

PROTOCOL = ('stream', 'replicate', 'shared')  # modes with T independent passes
SMALL = 1000  # test images; of fewer, calibration and ranking say little

Target = Tuple[str, str]  # what is evaluated: (data set, net)


def chosen(tables: Tables, dataset: str, net: str) -> List[pd.DataFrame]:
    """One evaluation a training seed, the first by rank(), as the rows of evaluations.csv; seeds by rank too."""
    rows = where(tables['evaluations'], dataset=dataset, net=net)
    rows = rows[by_protocol(rows)]
    best_of_seeds = []
    for _, of_seed in rows.groupby(rows['seed'].fillna(-1)):
        complete = [group for group in _pooled(of_seed) if has_both_methods(group)]
        if complete:
            best_of_seeds.append(min(complete, key=rank))
    return sorted(best_of_seeds, key=rank)


def of_weights(tables: Tables, dataset: str, net: str, seed: int, iterations: int, schedule: str) -> List[pd.DataFrame]:
    """The evaluations of just these weights by rank, those of Standard dropout alone too."""
    rows = where(tables['evaluations'], dataset=dataset, net=net, seed=seed, iterations=iterations, schedule=schedule)
    rows = rows[by_protocol(rows)]
    return sorted(_pooled(rows), key=rank)


def by_protocol(rows: pd.DataFrame) -> pd.Series:
    """Which rows were evaluated as the paper did, though perhaps smaller."""
    return rows['mode'].isin(PROTOCOL) & rows['crops'].isnull() & rows['of_paper']


def departing(tables: Tables, of_table1: Optional[bool] = None) -> List[pd.DataFrame]:
    """The evaluations that are kept out of the paper's rows, each with both methods.

    of_table1: only those of Table 1's nets (True), or of all others (False).
    """
    rows = tables['evaluations']
    rows = rows[~by_protocol(rows).astype(bool)]
    groups = [group for _, of_seed in rows.groupby(['dataset', 'net', rows['seed'].fillna(-1)])
              for group in _pooled(of_seed) if has_both_methods(group)
              and of_table1 in (None, bool(paper.find('table1', *_target(group))))]
    return sorted(groups, key=lambda group: _target(group) + rank(group))


def _target(group):
    return group['dataset'].iloc[0], group['net'].iloc[0]


def from_weights(tables: Tables, dataset: str, net: str) -> List[pd.DataFrame]:
    """The evaluations of a net that depart only by the weights that its training was started from."""
    return [group for group in departing(tables) if _target(group) == (dataset, net) and group['init'].iloc[0]
            and group['mode'].iloc[0] in PROTOCOL and group['crops'].isnull().all()]


def has_both_methods(group: pd.DataFrame) -> bool:
    return len(where(group, method='mc', average='probs')) > 0 and 'standard' in set(group['method'])


def _pooled(rows: pd.DataFrame) -> List[pd.DataFrame]:
    """The evaluations among some rows of one training seed.

    Those that differ in nothing but the seed of the masks are one, with the repetitions of
    all: these may have been made on several days and machines.
    """
    pools = {}
    for config, group in rows.groupby('config'):
        first = group.iloc[0]
        what = (config if first['weights'] == 'unknown' else '', first['weights'], str(first['iterations']),
                first['schedule'], first['init'], group['T'].max(), first['mode'], str(first['crops']),
                group['n'].max(), first['device'])
        by_masks = pools.setdefault(what, {})
        # the same masks in other batches are no further repetitions: the longer of the two
        by_masks[first['mc_seed']] = max(by_masks.get(first['mc_seed'], group), group, key=len)
    return [pd.concat([by_masks[seed] for seed in sorted(by_masks)]) for by_masks in pools.values()]


def rank(group: pd.DataFrame) -> tuple:
    """The order in which evaluations are taken, least first: largest share of the schedule; in proportion before cut
    off; most images; the paper's T, then more, then fewer; most repetitions; stream before replicate; CPU before GPU;
    the least seeds of training and of masks. Weights of unknown origin may still be equal in all of these: then the
    name of the configuration, which is arbitrary, and on which no verdict rests."""
    first, mc = group.iloc[0], where(group, method='mc', average='probs')
    run, T = paper.run_of(first['experiment'], first['dataset'], first['net']), group['T'].max()
    paper_T = run.T if run else T
    return (-share(first), first['schedule'] == '', -group['n'].max(), T != paper_T, T < paper_T, abs(T - paper_T),
            -len(mc), first['mode'] != 'stream', first['device'],
            -1 if first['seed'] != first['seed'] else first['seed'], first['mc_seed'], first['config'])


def share(row: pd.Series) -> float:
    """How much of the paper's schedule the weights of a row saw: 1 for all of it, 0 where that is not known."""
    full = paper.schedule(row['experiment'], row['dataset'], row['net'])
    if row['weights'] == 'published':
        return 1.0
    return min(1.0, row['iterations'] / full) if full and row['iterations'] == row['iterations'] else 0.0


# --- which nets ----------------------------------------------------------------------------------

def targets(tables: Tables) -> List[Target]:
    """The nets with an MC evaluation to show, the paper's order first; without those of left_out()."""
    every = _all_targets(tables)
    return [target for target in every if not _is_small(tables, target)] or every


def left_out(tables: Tables) -> List[Target]:
    """The nets that targets() leaves out: on so few images that they would be noise beside the others."""
    shown = targets(tables)
    return [target for target in _all_targets(tables) if target not in shown]


def _is_small(tables: Tables, target: Target) -> bool:
    return chosen(tables, *target)[0]['n'].max() < SMALL


def _all_targets(tables: Tables) -> List[Target]:
    rows = where(tables['evaluations'], method='mc')
    order = [(run.dataset, run.net) for run in paper.RUNS]
    found = [target for target in sorted(set(zip(rows['dataset'], rows['net']))) if chosen(tables, *target)]
    return sorted(found, key=lambda target: (order.index(target) if target in order else len(order), target))


def rows_of(table: pd.DataFrame, groups: List[pd.DataFrame]) -> pd.DataFrame:
    """The rows of a table that belong to these evaluations."""
    return table[table['config'].isin([config for group in groups for config in group['config']])]


# --- what an evaluation measured ---------------------------------------------------------------------

def measured(group: pd.DataFrame) -> dict:
    """The numbers of an evaluation, errors in percent; what the paper calls MC is the mean of probabilities.

    McNemar's p is the median over the repetitions, each tested against Standard on the same
    images: one p would depend on which repetition is taken.
    """
    standard, mc = where(group, method='standard').iloc[0], where(group, method='mc', average='probs')
    mean, std, lowest = _spread(mc)
    mean_scores, std_scores, _ = _spread(where(group, method='mc', average='scores'))
    return dict(standard=error_of_standard(group), mc=mean, std=std, lowest=lowest, mc_scores=mean_scores,
                std_scores=std_scores, T=int(mc['T'].max()), n=int(standard['n']), repetitions=len(mc),
                mcnemar_p=mc['mcnemar_p'].median(),
                seed=None if standard['seed'] != standard['seed'] else int(standard['seed']))


def _spread(rows: pd.DataFrame) -> Tuple[Optional[float], Optional[float], Optional[float]]:
    """Mean, standard deviation and lowest error of repetitions, None for what there is too little for."""
    errors = 100.0 * rows['errors'] / rows['n']
    if not len(rows):
        return None, None, None
    return errors.mean(), errors.std(ddof=1) if len(rows) > 1 else None, errors.min()


def error_of_standard(group: pd.DataFrame) -> float:
    """The error of Standard dropout in an evaluation, in percent."""
    row = where(group, method='standard').iloc[0]
    return 100.0 * row['errors'] / row['n']


def passes(tables: Tables, group: pd.DataFrame) -> pd.DataFrame:
    """Mean and std over the repetitions after each pass of an evaluation."""
    rows = where(rows_of(tables['convergence'], [group]), average='probs')
    rows = rows.assign(error=100.0 * rows['errors'] / rows['n'])
    return over_seeds(rows, x='t')


def below_from(mean: pd.DataFrame, level: float) -> Optional[int]:
    """The number of passes from which on the mean error stays below a level; None where it does not."""
    last = mean['t'][mean['mean'] >= level].max()  # NaN where it never is above
    after = mean['t'] if pd.isnull(last) else mean['t'][mean['t'] > last]
    return int(after.min()) if len(after) else None


def with_passes(tables: Tables, dataset: str, net: str) -> Optional[pd.DataFrame]:
    """The best evaluation of a net if its errors after each pass are recorded, else None."""
    for group in chosen(tables, dataset, net)[:1]:
        if len(passes(tables, group)):
            return group
    return None


class ByPasses(NamedTuple):
    """What Figure 4 may show."""
    name: str                      # in words
    net: str
    group: Optional[pd.DataFrame]  # None where errors after each pass are not recorded
    of_paper: bool                 # not started from given weights


def by_passes(tables: Tables) -> List[ByPasses]:
    """Every net of Table 1, the last first; behind a net what was started from given weights."""
    every = []
    for net in reversed(paper.TABLE1):
        every.append(ByPasses(paper.title(net), net, with_passes(tables, 'cifar10', net), True))
        every += [ByPasses('%s from %s' % (paper.title(net), names.start(group['init'].iloc[0])), net, group, False)
                  for group in from_weights(tables, 'cifar10', net) if len(passes(tables, group))]
    return every
