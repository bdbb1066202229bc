"""The work that passes are: multiplications and additions, and bytes that layers read and write."""

import numpy as np

from .. import engine
from ..mc import antithetic, forward
from .measuring import Work


def plain(message: engine.NetParameter, T: int, prefix_once: bool) -> Work:
    """The Work of T passes of an MC net, with what lies before the first dropout once or in each."""
    def child():
        net, wiring = forward.load(message)
        return _sum([(1 if prefix_once else T, of_layers(net, 0, wiring.first)),
                     (T, of_layers(net, wiring.first, len(net.layers)))])
    return engine.call(child)


def in_groups(message: engine.NetParameter, T: int, groups: int) -> Work:
    """The same with antithetic masks: what is linear behind the first dropout once a group, and once without it."""
    def child():
        net, wiring = antithetic.load(message, None, groups)
        return _sum([(1, of_layers(net, 0, wiring.first)),
                     (1 + T // wiring.size, of_layers(net, wiring.first, wiring.rest)),
                     (T, of_layers(net, wiring.rest, len(net.layers)))])
    return engine.call(child)


def _sum(parts):
    return Work(flops=sum(times * work.flops for times, work in parts),
                bytes=sum(times * work.bytes for times, work in parts))


def of_layers(net: engine.CaffeNet, first: int, last: int) -> Work:
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
    return Work(flops=flops, bytes=size)
