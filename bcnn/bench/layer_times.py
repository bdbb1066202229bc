"""Where the time of an MC pass goes: each layer of a net by itself, beside the matrix products it is made of.

Processor time of this process is taken, not the clock, and all layers are measured in turn in each
of several rounds, so that other work on the machine disturbs little and all alike.
"""

from collections import OrderedDict
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from .. import engine, nets
from ..mc import forward
from .measuring import clock


def rows(name: str, dataset: str, batch: int = 100, rounds: int = 7,
         weights: Optional[str] = None) -> List[Dict[str, Any]]:
    """The rows of one net: a layer each, microseconds an image and pass, medians over the rounds.

    weights: a caffemodel; random ones where there is none, for the time hardly depends on them.
    """
    message = nets.mc(name, dataset, batch=batch)
    net, wiring = forward.load(message, weights)
    net.blobs[wiring.input].data[...] = np.random.RandomState(0).rand(*net.blobs[wiring.input].data.shape)
    net.forward()
    names, products = list(net._layer_names), [product(net, index) for index in range(len(net.layers))]
    spent = [[clock(lambda: net._forward(index, index)).cpu for index in range(len(names))]
             + [clock(multiply).cpu if multiply else 0.0 for multiply, _ in products] for _ in range(rounds)]
    layers, bare = np.split(1e6 * np.median(spent, axis=0) / batch, 2)
    sampled = sum(layers[wiring.first:])
    return [OrderedDict([
        ('net', '%s/%s' % (dataset, name)), ('index', index), ('layer', names[index]), ('type', net.layers[index].type),
        ('part', 'sampled' if index >= wiring.first else 'once'), ('time', float(layers[index])),
        ('share', 100 * float(layers[index] / sampled) if index >= wiring.first else None),
        ('gflops', flops / layers[index] / 1e3 if flops else None),
        ('product_time', float(bare[index]) if flops else None)]) for index, (_, flops) in enumerate(products)]


def product(net: engine.CaffeNet, index: int) -> Tuple[Optional[Callable[[], Any]], int]:
    """(a function that does only the matrix products of a layer's whole batch, operations an image); else (None, 0)."""
    name = net._layer_names[index]
    if net.layers[index].type not in ('Convolution', 'InnerProduct'):
        return None, 0
    weights, top = net.params[name][0].data, net.blobs[net.top_names[name][0]].data
    flat, batch = np.array(weights.reshape(weights.shape[0], -1)), top.shape[0]
    if top.ndim == 2:  # one product for the whole batch
        inputs = np.random.RandomState(0).rand(batch, flat.shape[1]).astype(np.float32)
        return (lambda: inputs @ flat.T), 2 * flat.size
    places = top.shape[2] * top.shape[3]
    columns, out = (np.zeros((size, places), np.float32) for size in flat.shape[::-1])

    def convolve():  # Caffe's order: an image at a time
        for _ in range(batch):
            np.dot(flat, columns, out=out)
    return convolve, 2 * flat.size * places


def lines(rows: Sequence[Dict[str, Any]]) -> Iterator[str]:
    """The table for people, of one net."""
    yield '%s, sampled part %.1f us an image and pass' % (
        rows[0]['net'], sum(row['time'] for row in rows if row['part'] == 'sampled'))
    yield '%-12s %-13s %-8s %9s %7s %9s  %s' % (
        'layer', 'type', 'part', 'us', 'share', 'GFLOP/s', 'its matrix product alone')
    for row in rows:
        yield '%-12s %-13s %-8s %9.2f %7s %9s  %s' % (
            row['layer'], row['type'], row['part'], row['time'], _cell(row['share'], '%.1f%%'),
            _cell(row['gflops'], '%.1f'), _cell(row['product_time'], '%.2f us'))


def _cell(value, form):
    return '' if value is None else form % value
