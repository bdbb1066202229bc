"""Which rows make a curve of test errors against iterations, and its mean over seeds."""

from typing import List, Optional, Sequence, Tuple

import pandas as pd

from .from_bcnn import paper
from .load import Tables, by_probabilities, where


def curve(tables: Tables, dataset: str, net: str, method: str, T: Optional[int] = None,
          schedule: Optional[str] = None) -> pd.DataFrame:
    """The rows of one curve, all seeds: error in percent on the most test images there are.

    MC takes the asked T where it is recorded, else the largest; and points with T passes of every image where there are
    any, else those with adaptive T. schedule: of schedule_for() where not given. Iterations of later stages count on
    from the stage before.
    """
    if schedule is None:
        schedule = schedule_for(tables, dataset, [(net, method)])
    rows = where(by_probabilities(where(tables['curves'], of_paper=True, dataset=dataset, net=net), method),
                 schedule=schedule)
    if len(rows) and method == 'mc':
        rows = where(rows, T=T if T in set(rows['T']) else rows['T'].max())
        full = rows[rows['adaptive'].isna()]
        rows = full if len(full) else rows
    if len(rows):
        rows = where(rows, n=rows['n'].max())
    rows = rows.assign(error=100.0 * rows['errors'] / rows['n'], iteration=_cumulative(rows))
    return rows.sort_values(['seed', 'iteration'])


def schedule_for(tables: Tables, dataset: str, sides: Sequence[Tuple[str, str]]) -> str:
    """The schedule ('' cut off, '1/20' in proportion) under which these curves (net, method) are shown together.

    Curves under different schedules are never compared. The order: that which most of the curves have, then
    the longest of the shortest run, then in proportion before cut off.
    """
    recorded = where(tables['curves'], of_paper=True, dataset=dataset)
    schedules, ranks = sorted(set(recorded['schedule'])), []
    if len(schedules) == 1:
        return schedules[0]
    for schedule in schedules:
        last = [_last(where(by_probabilities(recorded, method), net=net, schedule=schedule)) for net, method in sides]
        there = [iteration for iteration in last if iteration]
        ranks.append((len(there), min(there or [0]), schedule != '', schedule))
    return max(ranks)[-1] if ranks else ''


def _last(rows: pd.DataFrame) -> int:
    """How far the longest run among some rows went, stages added up; 0 for none."""
    return max([0] + [of_seed.groupby('stage')['iteration'].max().sum() for _, of_seed in rows.groupby('seed')])


def _cumulative(rows: pd.DataFrame) -> List[int]:
    """The iteration of each row, those of the stages before it included."""
    before = {}
    for seed, of_seed in rows.groupby('seed'):
        total = 0
        for stage in sorted(set(of_seed['stage'])):
            before[seed, stage] = total
            total += of_seed[of_seed['stage'] == stage]['iteration'].max()
    return [iteration + before[seed, stage] for seed, stage,
            iteration in zip(rows['seed'], rows['stage'], rows['iteration'])]


def of_paper(tables: Tables, experiment: str, dataset: str, net: str, method: str) -> pd.DataFrame:
    """The curve of an experiment: with its T, under the schedule that the curves of its data set share, and no longer
    than the paper's where a run of another figure went on."""
    run = paper.run_of(experiment, dataset, net)
    rows = curve(tables, dataset, net, method, run.T, panel_schedule(tables, experiment, dataset))
    return rows[rows['iteration'] <= sum(run.iterations)]


def panel_schedule(tables: Tables, experiment: str, dataset: str) -> str:
    """The schedule of all curves that an experiment draws of a data set."""
    return schedule_for(tables, dataset, [(run.net, method) for run in paper.find(experiment, dataset)
                                          for method in run.methods])


def over_seeds(rows: pd.DataFrame, x: str = 'iteration', y: str = 'error') -> pd.DataFrame:
    """Mean and standard deviation (0 for one) of y over the seeds, where all have a value; columns x, mean, std, count.

    Seeds that share no x at all are kept as they are.
    """
    groups = rows.groupby(x)[y]
    mean = pd.DataFrame({'mean': groups.mean(), 'std': groups.std(ddof=1).fillna(0.0), 'count': groups.count()})
    return mean[mean['count'] == mean['count'].max()].reset_index()
