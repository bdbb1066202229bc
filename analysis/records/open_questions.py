"""What was measured beyond the paper: errors by seed, layer by layer, off the data.

The paper's own runs serve here too (all of MNIST, MAX pooling, p = 0.5): a point of a curve is the same measurement,
whatever run it was recorded of.
"""

import math
from typing import Dict, List, Optional

import pandas as pd

from . import names
from .from_bcnn import beyond, paper
from .load import Tables, by_probabilities, where

BySeed = Dict[int, float]  # {training seed: value}
TRAINING_IMAGES = 60000    # of all of MNIST


def errors(tables: Tables, net: str, method: str, iteration: int) -> Dict[str, BySeed]:
    """{training set: test errors in percent} at an iteration of the paper's schedule, all seeds that are recorded."""
    passes = beyond.PASSES if method == 'mc' else 0  # not Figure 3's T = 10, though its runs are of the same nets
    rows = where(by_probabilities(where(tables['curves'], net=net, iteration=iteration, T=passes), method), schedule='',
                 init='')
    found = {}
    for dataset, here in rows[rows['adaptive'].isna()].groupby('dataset'):
        here = where(here, n=here['n'].max())
        found[dataset] = {int(seed): 100.0 * wrong / n for seed, wrong, n in zip(
            here['seed'], here['errors'], here['n'])}
    return found


def errors_of(tables: Tables, question: str, net: str, method: str) -> BySeed:
    """The errors of a net on all of MNIST at the iteration of a question."""
    return errors(tables, net, method, beyond.ITERATIONS[question]).get('mnist', {})


def errors_by_part(tables: Tables, net: str, method: str) -> Dict[int, BySeed]:
    """{k: errors of a net trained on 1/k of MNIST}, each seed with its own draw; parts that were not run are left
    out."""
    found, parts = errors(tables, net, method, beyond.ITERATIONS['less_data']), {}
    for k in (1,) + paper.FRACTIONS:
        here = {seed: error for dataset, by_seed in found.items() for seed, error in sorted(by_seed.items())
                if dataset == beyond.drawn(k, seed)}
        if here:
            parts[k] = here
    return parts


def minus(first: BySeed, second: BySeed) -> BySeed:
    """The difference of two, for the seeds that both have."""
    return {seed: first[seed] - second[seed] for seed in sorted(first) if seed in second}


def gaps(tables: Tables, net: str) -> BySeed:
    """How far Standard dropout is above MC dropout, in points."""
    return minus(*[errors_of(tables, 'pooling', net, method) for method in ('standard', 'mc')])


def mean(values: BySeed) -> float:
    return sum(values.values()) / float(len(values))


# --- layer by layer --------------------------------------------------------------------------------------

def layers(tables: Tables, net: str) -> pd.DataFrame:
    """Squared relative distances and their growth, a row a layer: means over seeds, with intervals over images."""
    rows = where(tables['approximation'], net=net, iterations=beyond.ITERATIONS['pooling'])
    found = []
    for _, of_layer in rows.groupby('index'):
        first, seeds = of_layer.iloc[0], len(of_layer)
        row = {'layer': first['layer'], 'type': first['type'], 'seeds': seeds, 'n': first['n'], 'T': first['T']}
        for name in ('distance', 'growth'):
            half = 1.96 * math.sqrt((of_layer[name + '_se'] ** 2).sum()) / seeds
            row.update({name: of_layer[name].mean(), name + '_low': of_layer[name].mean() - half,
                        name + '_high': of_layer[name].mean() + half})
        found.append(row)
    return pd.DataFrame(found)


def percent_of_size(squared: float) -> float:
    """A squared relative distance as a distance in percent; below zero, by chance, is zero."""
    return 100.0 * math.sqrt(max(0.0, squared))


# --- off the data ------------------------------------------------------------------------------------------

def off_data(tables: Tables, net: str) -> pd.DataFrame:
    """The rows of a net's weights that were trained longest, of the first seed."""
    rows = where(tables['off_data'], net=net)
    if len(rows):
        rows = where(rows, iterations=rows['iterations'].max())
        rows = where(rows, seed=rows['seed'].min())
        rows = where(rows, config=sorted(rows['config'])[0])
    return rows


def off_data_nets(tables: Tables) -> List[str]:
    """Those that were asked, lenet-all first."""
    return [net for net in paper.LENETS if len(off_data(tables, net))]


def rotation(tables: Tables) -> pd.DataFrame:
    """What the passes of lenet-all say of the rotated digit; of the weights above."""
    chosen = off_data(tables, beyond.NET)
    return where(tables['rotation'], config=chosen['config'].iloc[0]) if len(chosen) else tables['rotation'][:0]


# --- which questions were asked ----------------------------------------------------------------------------

def quality(tables: Tables, net: str, method: str, column: str) -> BySeed:
    """A column of the table `quality` by seed, at the iteration of the question of p."""
    rows = where(tables['quality'], net=net, dataset='mnist', method=method,
                 iterations=beyond.ITERATIONS['probability'])
    return {int(seed): value for seed, value in zip(rows['seed'], rows[column])}


def probabilities(tables: Tables) -> List[float]:
    """The dropout probabilities that were trained with."""
    return [p for p, net in beyond.PROBABILITIES.items() if errors_of(tables, 'probability', net, 'mc')]


def was_asked(tables: Tables, question: str) -> bool:
    """Whether there are runs enough to show something of a question: more than the paper's own."""
    if question == 'pooling':
        return bool(gaps(tables, beyond.NET)) and bool(gaps(tables, beyond.AVERAGE))
    if question == 'off_data':
        return bool(off_data_nets(tables))
    if question == 'probability':
        return 0.5 in probabilities(tables) and len(probabilities(tables)) > 1
    return 2 in errors_by_part(tables, beyond.NET, 'mc') and 1 in errors_by_part(tables, 'lenet_ip', 'standard')


def reached(images: List[float], values: List[float], wanted: float) -> Optional[float]:
    """With how many images an error is reached, interpolated in their logarithm; None where it never is.

    images: growing; the first place, from few images on, where the error is no longer above what is wanted.
    """
    for k, value in enumerate(values):
        if value <= wanted:
            if k == 0:
                return images[0]
            share = (values[k - 1] - wanted) / (values[k - 1] - value)
            return images[k - 1] * (images[k] / float(images[k - 1])) ** share
    return None


def read_off(tables: Tables) -> Dict[int, Optional[float]]:
    """With how many images each seed's lenet-all MC reaches lenet-ip's error on all of them; None where it does not.

    Of the parts that a seed was trained on; of seeds with all of MNIST and a part of it or more.
    """
    parts = sorted(errors_by_part(tables, beyond.NET, 'mc').items(), reverse=True)  # from few images on
    found = {}
    for seed, error in errors_by_part(tables, 'lenet_ip', 'standard')[1].items():
        mine = [(TRAINING_IMAGES / float(k), errors[seed]) for k, errors in parts if seed in errors]
        if len(mine) > 1 and mine[-1][0] == TRAINING_IMAGES:
            found[seed] = reached([images for images, _ in mine], [value for _, value in mine], error)
    return found


def read_off_words(tables: Tables) -> str:
    """'reached with 9,000 to 12,000 images'"""
    found = list(read_off(tables).values())
    if not found:
        return 'no seed has runs on all images and on a part'
    there = sorted(value for value in found if value is not None)
    if len(there) < len(found):
        return 'reached by %d of %s' % (len(there), names.plural(len(found), 'seed'))
    middle = pd.Series(there).median()
    return 'reached with %s images (%s to %s over %s)' % (
        names.count(round(middle, -1)), names.count(round(there[0], -1)), names.count(round(there[-1], -1)),
        names.plural(len(there), 'seed'))
