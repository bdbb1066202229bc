"""Rewriting any net's prototxt: Standard and MC nets made of training nets.

A published file is written for training: data layers, phases, losses, dropout in place. What
comes out here has Input layers, ends in a softmax, and its dropout layers have tops of their
own, so that a pass can start at the first of them; layer names stay, so weights load.
"""

import os
from typing import Any, List, Optional, Tuple

from ..engine import TEST, TRAIN, NetParameter, caffe_pb2, load_net
from ..errors import UserError
from ..system import files, locks
from . import ends, facts, reading, versions

# --- Standard and MC nets -------------------------------------------------------------------


def to_deploy(net: NetParameter, shape: ends.Shapes = None, batch: Optional[int] = None,
              output: Optional[str] = None) -> NetParameter:
    """The net for Standard dropout: Input in the place of data, no loss or accuracy, a softmax at the end.

    shape: of one image, (channels, height, width), where the data layer does not tell;
    {blob: shape} for several inputs. batch: images in a batch; the data layer's own if None.
    output: the blob of class scores (or of a Softmax), where the net has none or several.
    """
    return versions.to_net(net, _inference(net, shape, batch, output, sampling=False))


def to_mc(net: NetParameter, shape: ends.Shapes = None, batch: Optional[int] = None,
          output: Optional[str] = None) -> NetParameter:
    """The net for MC dropout: as to_deploy, but each dropout layer samples, and all that does not depend on
    dropout comes before the first of them."""
    steps = _inference(net, shape, batch, output, sampling=True)
    drops = [step.layer for step in steps if step.layer.type == 'Dropout']
    if not drops:
        raise UserError('the net %r has no dropout layer before its output, so there is nothing to sample' % net.name)
    for layer in drops:
        if not 0 <= layer.dropout_param.dropout_ratio < 1:  # Caffe itself does not check, and gives NaN
            raise UserError('layer %r drops a share of %g: it has to be at least 0 and below 1'
                            % (layer.name, layer.dropout_param.dropout_ratio))
        layer.phase = TRAIN
    return versions.to_net(net, versions.prefix_first(steps))


def input_shape(net: NetParameter, output: Optional[str] = None) -> Tuple[int, ...]:
    """The shape of an image as far as the prototxt tells, 0 for what it does not, () for nothing.

    Refuses a net that takes more than images.
    """
    inputs = ends.inputs_of(ends.to_softmax(net, _steps(net, sampling=False), output))
    if len(inputs) > 1:
        raise UserError('the net %r has %d inputs (%s), and images go into one only' % (
            net.name, len(inputs), ', '.join(step.layer.top[i] for step, i in inputs)))
    return tuple(ends.told_shape(inputs[0][0].layer, inputs[0][1])[1:])


def replicate(net: NetParameter, T: int) -> NetParameter:
    """An MC net that copies its batch T times (Tile) before the first dropout: row t * B + b is sample t of image b."""
    first = facts.first_sampling(net)
    if first is None:
        raise UserError('the net %r has no layer that samples, so there is nothing to replicate for' % net.name)
    net = versions.to_net(net, versions.prefix_first(versions.steps_of(net.layer)))
    start = [layer.name for layer in net.layer].index(facts.first_sampling(net))
    before, after = list(net.layer[:start]), list(net.layer[start:])
    deterministic = set(top for layer in before for top in layer.top)
    copies = {}
    for blob in [bottom for layer in after for bottom in layer.bottom]:
        if blob in deterministic and blob not in copies:
            taken = deterministic | set(top for layer in after for top in layer.top)
            copies[blob] = versions.free(blob + '_tile', taken)
    tiles = [ends.new_layer(name, 'Tile', blob) for blob, name in sorted(copies.items())]
    for tile in tiles:
        tile.tile_param.axis, tile.tile_param.tiles = 0, T
    for layer in after:
        layer.bottom[:] = [copies.get(blob, blob) for blob in layer.bottom]
    new = NetParameter(name=net.name)
    new.layer.extend(before + tiles + after)
    return new


def convert(path: str, folder: str, **options: Any) -> List[NetParameter]:
    """(deploy net, MC net) made of the file `path`, loaded by Caffe to be sure, and written to `folder`."""
    net = reading.read(path)
    messages = []
    for make in (to_deploy, to_mc):
        try:
            messages.append(make(net, **options))
            load_net(messages[-1])
        except UserError as error:
            raise UserError('%s: %s' % (path, error))
    with files.folder(folder), locks.lock(os.path.join(folder, '.lock')):
        files.sweep_folder(folder)
        for name, message in zip(('deploy', 'mc'), messages):
            header = '%s dropout for %s\nMade of it by tools/convert_net.py.' % (
                'Standard' if name == 'deploy' else 'MC', os.path.basename(path))
            files.write_text(os.path.join(folder, name + '.prototxt'), reading.to_text(message, header))
    return messages


def _inference(net, shape, batch, output, sampling):
    """The Steps from Inputs to the softmax, dropout as at test."""
    return ends.with_inputs(ends.to_softmax(net, _steps(net, sampling), output), shape, batch)


def _steps(net, sampling):
    """The Steps of a TEST net; with sampling also of dropout that is for training only."""
    net = reading.upgrade(net)
    layers = []
    for layer in net.layer:
        if facts.in_phase(net, layer, TEST) or sampling and _only_trains(net, layer):
            new = caffe_pb2.LayerParameter()
            new.CopyFrom(layer)
            for field in ('include', 'exclude') + (('phase',) if layer.type == 'Dropout' else ()):
                new.ClearField(field)
            layers.append(new)
    return versions.steps_of(layers)


def _only_trains(net, layer):
    """Whether it is a dropout that a file leaves out at test: in place, so that nothing misses its top."""
    return layer.type == 'Dropout' and list(layer.bottom) == list(layer.top) and facts.in_phase(net, layer, TRAIN)
