"""An MC net whose masks are inputs, with the linear layers that follow its first dropout found, and cut into groups.

Stock Caffe's dropout draws its own masks. Here each dropout layer is replaced by a product with an input blob, which is
given 2 for what is kept and 0 for what is dropped, as Caffe scales them, or the reverse. bcnn.mc.antithetic says what
the linear layers are good for.
"""

from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..engine import caffe_pb2, params
from ..errors import UserError
from . import ends, facts, reading, versions

MASK = '_mask'

Shapes = Dict[str, Tuple[int, ...]]  # by blob


class Masked(NamedTuple):
    """A net whose masks are inputs."""

    message: caffe_pb2.NetParameter
    drop: str                     # the layer that is its first dropout
    masks: Tuple[str, ...]        # the blobs of the masks, that of the first dropout first
    parts: Tuple[str, ...]        # blobs that are linear in what the first dropout lets pass; their sum is
    end: str                      # this blob, which all other layers are computed from
    last: str                     # the layer that makes it
    cut: Optional[str] = None     # the layer whose weights are shared out among the parts, if there are several
    points: Tuple[int, ...] = ()  # the first input channel of each part, and the number of channels
    pool: int = 0                 # not 0: `end` has the maxima over windows of so many rows and columns, side by side


def dropouts(message: caffe_pb2.NetParameter) -> List[caffe_pb2.LayerParameter]:
    """The dropout layers of an MC net that sample; refuses one that does not drop half."""
    drops = [layer for layer in message.layer if facts.samples_at_test(layer)]
    for layer in drops:
        if layer.dropout_param.dropout_ratio != 0.5:
            raise UserError('layer %r drops a share of %g: only at 0.5 is a mask as likely as its complement'
                            % (layer.name, layer.dropout_param.dropout_ratio))
    return drops


# --- what is linear ---------------------------------------------------------------------------------

MIXING = ('Convolution', 'InnerProduct')  # linear layers that add up channels; the others keep each by itself


def is_linear(layer: caffe_pb2.LayerParameter) -> bool:
    """Whether a layer's output is a linear function of its one input, but for a constant."""
    if len(layer.bottom) != 1 or len(layer.top) != 1:
        return False
    if layer.type == 'Power':
        return layer.power_param.power == 1
    if layer.type == 'Pooling':
        return layer.pooling_param.pool == layer.pooling_param.AVE
    return layer.type in MIXING + ('Scale', 'Flatten')


def chain_after(steps: Sequence[versions.Step], drop: versions.Step) -> List[versions.Step]:
    """The steps that are linear in what a dropout step makes: one after the other, each the only reader of the last."""
    readers = Counter(version for step in steps for version in step.ins)
    chain, version = [], drop.outs[0]
    while readers[version] == 1:
        step = next(step for step in steps if version in step.ins)
        if not is_linear(step.layer):
            break
        chain.append(step)
        version = step.outs[0]
    return chain


def window_after(steps: Sequence[versions.Step], drop: versions.Step,
                 shapes: Shapes) -> Tuple[Optional[versions.Step], int]:
    """(step, rows) of the MAX pooling over square windows side by side that alone reads a dropout; else (None, 0)."""
    readers = [step for step in steps if drop.outs[0] in step.ins]
    if len(readers) != 1 or readers[0].layer.type != 'Pooling' or len(readers[0].layer.top) > 1:
        return None, 0
    form, shape = readers[0].layer.pooling_param, shapes[drop.layer.bottom[0]]
    said = set(field.name for field, value in form.ListFields() if value)  # MAX and no padding are 0
    if said - {'engine'} != {'kernel_size', 'stride'} or form.kernel_size != form.stride:
        return None, 0
    fits = form.stride > 1 and all(side % form.stride == 0 for side in shape[2:])
    return (readers[0], form.stride) if fits else (None, 0)


def can_be_cut(layer: caffe_pb2.LayerParameter) -> bool:
    """Whether each input channel of a layer has weights of its own, which Slice and smaller layers can share."""
    if layer.type == 'Convolution':
        return layer.convolution_param.group == 1 and layer.convolution_param.axis == 1
    return (layer.type == 'InnerProduct' and layer.inner_product_param.axis == 1
            and not layer.inner_product_param.transpose)


# --- the net -----------------------------------------------------------------------------------------

def masked(message: caffe_pb2.NetParameter, shapes: Shapes, groups: int = 1) -> Masked:
    """The Masked net of an MC net; shapes: {blob: shape} of that. groups: parts to cut the first linear layers into."""
    steps = versions.steps_of(message.layer)
    drops = dropouts(message)
    first = next(step for step in steps if step.layer.name == drops[0].name)
    chain, rows = _behind(steps, first, shapes, groups)
    # right behind the first dropout, so that a pass can go on behind them; they wait for nothing else
    rest = [step for step in steps if step not in chain]
    here = rest.index(first) + 1
    message = versions.to_net(message, rest[:here] + chain + rest[here:])
    layers = {layer.name: layer for layer in message.layer}
    last = layers[(chain or [first])[-1].layer.name]
    taken = set(name for layer in message.layer for name in list(layer.top) + [layer.name])
    names = {layer.name: versions.free(layer.name + MASK, taken) for layer in drops}
    net = Masked(message=caffe_pb2.NetParameter(name=message.name), drop=first.layer.name,
                 masks=tuple(names[layer.name] for layer in drops), parts=(last.top[0],), end=last.top[0],
                 last=last.name, pool=rows)
    net.message.layer.extend(reading.input_layer(name, shapes[layers[drop].bottom[0]]) for drop, name in names.items())
    for layer in message.layer:
        if groups > 1 and layer.name == last.name:
            net = _cut(net, layer, shapes, groups, taken)
        else:
            net.message.layer.add().CopyFrom(_product(layer, names[layer.name]) if layer.name in names else layer)
    return net


def _behind(steps, first, shapes, groups):
    """(steps behind the first dropout that are computed once for a group of passes, rows of a window to pool)."""
    chain = chain_after(steps, first)
    if groups > 1:
        return chain[:_mixing(chain, first, shapes, groups) + 1], 0
    window, rows = (None, 0) if chain else window_after(steps, first, shapes)
    return ([window], rows) if rows else (chain, 0)


def _mixing(chain, first, shapes, groups):
    """The place in the chain of the layer to cut; refuses where there is none, or too few channels."""
    place = next((k for k, step in enumerate(chain) if step.layer.type in MIXING), None)
    if place is None or not can_be_cut(chain[place].layer):
        raise UserError('no convolution or inner product follows the dropout layer %r directly that could be computed '
                        'in groups of its channels: pairs only (--groups 1)' % first.layer.name)
    channels = shapes[chain[place].layer.bottom[0]][1]
    if channels < groups:
        raise UserError('layer %r has %d input channels: no %d groups of them'
                        % (chain[place].layer.name, channels, groups))
    return place


def _product(drop, mask):
    return caffe_pb2.LayerParameter(name=drop.name, type='Eltwise', bottom=[drop.bottom[0], mask], top=drop.top,
                                    eltwise_param=dict(operation=params.Eltwise.PROD))


def _cut(net, layer, shapes, groups, taken):
    """The Masked net, after adding a layer as the sum of smaller ones, each with some of its input channels."""
    channels = shapes[layer.bottom[0]][1]
    points = tuple(channels * g // groups for g in range(groups + 1))
    slices, parts = ([versions.free('%s_%s%d' % (layer.name, kind, g + 1), taken) for g in range(groups)]
                     for kind in ('channels', 'group'))
    new = net.message.layer.add(name=slices[0], type='Slice', bottom=layer.bottom, top=slices)
    new.slice_param.axis = 1
    new.slice_param.slice_point.extend(points[1:-1])
    for g, (bottom, part) in enumerate(zip(slices, parts)):
        new = net.message.layer.add()
        new.CopyFrom(layer)
        new.ClearField('param')  # names of shared weights, which are whole
        new.name, new.bottom[0], new.top[0] = part, bottom, part
        if g:  # the first has the constants
            (new.convolution_param if new.type == 'Convolution' else new.inner_product_param).bias_term = False
    total = ends.new_layer(layer.name, 'Eltwise', parts[0])
    total.bottom.extend(parts[1:])
    total.top[:] = layer.top
    net.message.layer.add().CopyFrom(total)
    return net._replace(parts=tuple(parts), cut=layer.name, points=points)
