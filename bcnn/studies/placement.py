"""The same weights with dropout sampling in other places: does an MC error depend on where it samples?

The variants are made of a net's MC message, so that its weights load as they are; Standard dropout is the same for
all. Sampled once with adaptive T, at a fraction of the time: a class may settle otherwise than after T passes, for at
most 1 image in 100 by its promise. Differences of a few images between places are noise of the masks.
"""

import copy
import os
from collections import OrderedDict
from typing import Any, Dict, Iterator

from ..engine import NetParameter
from ..errors import UserError
from ..mc import adaptive, evaluation
from ..mc.targets import Target
from ..prototxt import facts
from ..system import places, provenance, store

AS_IT_IS = 'as it is'


def variants(net: NetParameter) -> Dict[str, NetParameter]:
    """{placement: MC net}: as it is, all dropout before the pooling that it follows, each layer alone."""
    drops = [layer.name for layer in net.layer if facts.samples_at_test(layer)]
    if not drops:
        raise UserError('the net %s has no layer that samples, so there is nothing to move' % net.name)
    placements = OrderedDict([(AS_IT_IS, net), ('before pooling', before_pooling(net))])
    if placements['before pooling'] == net:
        del placements['before pooling']
    if len(drops) > 1:
        placements.update(('%s alone' % name, alone(net, name)) for name in drops)
    return placements


def before_pooling(net: NetParameter) -> NetParameter:
    """The net in which a dropout layer that reads a pooling layer changes places with it."""
    net = copy.deepcopy(net)
    pools = {layer.top[0]: layer for layer in net.layer if layer.type == 'Pooling'}
    for k, drop in enumerate(net.layer):
        pool = pools.get(drop.bottom[0]) if facts.samples_at_test(drop) else None
        # not where somebody else reads the pooled maps without dropout
        if pool is not None and sum(pool.top[0] in layer.bottom for layer in net.layer) == 1:
            for layer in net.layer[k + 1:]:
                layer.bottom[:] = [pool.top[0] if blob == drop.top[0] else blob for blob in layer.bottom]
            drop.bottom[0], pool.bottom[0] = pool.bottom[0], drop.top[0]
            before = copy.deepcopy(pool)
            pool.CopyFrom(drop)
            drop.CopyFrom(before)
    return net


def alone(net: NetParameter, name: str) -> NetParameter:
    """The net in which only this dropout layer samples."""
    net = copy.deepcopy(net)
    for layer in net.layer:
        if facts.samples_at_test(layer) and layer.name != name:
            layer.ClearField('phase')
    return net


def measure(target: Target, T: int, seed: int, folder: str, jobs: int = 1) -> Iterator[Dict[str, Any]]:
    """A row of the table `placement` for each variant, as it is done; evaluations are stored below `folder`."""
    settings = evaluation.Settings(T=T, repeats=1, seed=seed, mode='adaptive', rule=adaptive.Rule())
    for placement, sampling in variants(target.sampling).items():
        # under a name of its own: to tools/record.py it is not the paper's net
        moved = target._replace(name='%s, %s' % (target.name.split('/')[-1], placement), sampling=sampling)
        place = os.path.join(folder, placement.replace(' ', '_'))
        result = evaluation.run(moved, evaluation.prepare(moved, settings), place, jobs)
        yield row(target.name, placement, result, place)


def row(net: str, placement: str, result: Dict[str, Any], folder: str) -> Dict[str, Any]:
    """The row of one variant, from its stored evaluation."""
    config, mc = result['config'], result['mc']['probs']
    test = mc['mcnemar']
    return OrderedDict([
        ('net', net), ('placement', placement), ('T', config['T']), ('n', config['count']),
        ('mc_seed', config['seed']), ('passes', result['adaptive']['passes'][0]['mean']),
        ('standard_errors', result['standard']['errors']), ('errors', mc['summary']['errors']),
        ('only_standard_right', test['only_standard_right']), ('only_mc_right', test['only_mc_right']),
        ('config', store.identity(config)[:8]),
        ('commit', provenance.short_commit(store.read_json(os.path.join(folder, places.PROVENANCE)) or {}))])


def line(row: Dict[str, Any]) -> str:
    """A row for people."""
    return '%-16s %-20s Standard %5.2f%%, MC %5.2f%% (T=%d, %.1f passes an image, %d images)' % (
        row['net'], row['placement'], 100.0 * row['standard_errors'] / row['n'], 100.0 * row['errors'] / row['n'],
        row['T'], row['passes'], row['n'])
