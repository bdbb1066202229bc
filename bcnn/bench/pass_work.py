"""The work that passes are: multiplications and additions, and bytes that layers read and write."""

from collections import namedtuple

import numpy as np

from .. import engine, nets
from ..mc import antithetic, forward

Work = namedtuple('Work', 'flops bytes')


def plain(case, T, prefix_once):
    """The Work of T passes over the images of a case, with what lies before the first dropout once or in each."""
    def child():
        message = nets.mc(case.name, case.dataset, batch=len(case.pixels))
        net = engine.load_net(message)
        first = forward.wiring_of(message, net).first
        return _sum([(1 if prefix_once else T, of_layers(net, 0, first)), (T, of_layers(net, first, len(net.layers)))])
    return engine.call(child)


def in_groups(case, T, groups):
    """The same with antithetic masks: what is linear behind the first dropout once a group, and once without it."""
    def child():
        net, wiring = antithetic.load(nets.mc(case.name, case.dataset, batch=len(case.pixels)), None, groups)
        return _sum([(1, of_layers(net, 0, wiring.first)),
                     (1 + T // wiring.size, of_layers(net, wiring.first, wiring.rest)),
                     (T, of_layers(net, wiring.rest, len(net.layers)))])
    return engine.call(child)


def _sum(parts):
    return Work(*(sum(times * amount for times, amount in one)
                  for one in zip(*([(times, amount) for amount in work] for times, work in parts))))


def of_layers(net, first, last):
    """The Work of the layers first to last of a loaded net, as if no cache kept anything between two layers."""
    flops = size = 0
    for name, layer in list(zip(net._layer_names, net.layers))[first:last]:
        tops, bottoms = net.top_names[name], net.bottom_names[name]
        blobs = [net.blobs[blob].count for blob in list(tops) + list(bottoms)]
        weights = [blob.count for blob in layer.blobs]
        size += 4 * (sum(blobs) + sum(weights))
        if layer.type in ('Convolution', 'InnerProduct'):
            top = net.blobs[tops[0]].data
            places = int(np.prod(top.shape[2:])) if top.ndim > 2 else 1
            flops += 2 * len(top) * weights[0] * places
    return Work(flops, size)
