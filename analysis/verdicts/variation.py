"""How much errors vary over masks, over trainings and over test images: the three noises of a net, side by side."""

import math
from typing import List, NamedTuple, Optional

from records import curves, evaluations
from records.from_bcnn import paper
from records.load import Tables, where
from verdicts import statistics


class Variation(NamedTuple):
    """The standard deviations of a net's error, in points; None where one was not measured."""
    dataset: str
    net: str
    method: str
    error: float              # in percent
    masks: Optional[float]    # from repetition to repetition
    seeds: Optional[float]    # from training to training
    images: float             # from one test set of this size to another


def of_net(tables: Tables, dataset: str, net: str) -> List[Variation]:
    """A line a method, [] where nothing is recorded."""
    return [line for line in (_of_method(tables, dataset, net, method) for method in ('standard', 'mc')) if line]


def _of_method(tables, dataset, net, method) -> Optional[Variation]:
    groups, masks = evaluations.chosen(tables, dataset, net), None
    run = paper.find(dataset=dataset, net=net)
    rows = curves.curve(tables, dataset, net, method, run[0].T if run else None)
    at_end = where(rows, iteration=rows['iteration'].max())
    if groups:
        line = evaluations.measured(groups[0])
        error, n = line['standard' if method == 'standard' else 'mc'], line['n']
        masks = line['std'] if method == 'mc' else None
    elif len(rows):
        error, n = at_end['error'].mean(), at_end['n'].iloc[0]
    else:
        return None
    seeds = statistics.deviation(list(at_end['error'])) if len(at_end) > 1 else None
    return Variation(dataset=dataset, net=net, method=method, error=error, masks=masks, seeds=seeds,
                     images=math.sqrt(error * (100.0 - error) / n))


def all_nets(tables: Tables) -> List[Variation]:
    """The lines of every net of the paper, and of others that were evaluated."""
    known = list(dict.fromkeys([(run.dataset, run.net) for run in paper.RUNS] + evaluations.targets(tables)))
    lines = [line for dataset, net in known for line in of_net(tables, dataset, net)]
    return [line for line in lines if not (line.net == 'lenet_none' and line.method == 'mc')]
