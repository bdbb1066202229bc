"""The end and the beginning of a net: which scores its softmax is made of, and its inputs."""

from collections import OrderedDict
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ..engine import caffe_pb2
from ..errors import UserError
from . import reading, versions
from .versions import Step

# Of an image, where the net does not tell; by the name of the blob where a net has several inputs.
Shapes = Union[None, Sequence[int], Dict[str, Sequence[int]]]


def new_layer(name: str, kind: str, bottom: str) -> caffe_pb2.LayerParameter:
    return caffe_pb2.LayerParameter(name=name, type=kind, bottom=[bottom], top=[name])


# --- the end and the beginning of a net -------------------------------------------------------

LOSSES = ('SoftmaxWithLoss', 'HingeLoss', 'InfogainLoss')  # their first bottom has the class scores
OBSERVERS = LOSSES + ('MultinomialLogisticLoss', 'Accuracy', 'ArgMax', 'Silence')  # change nothing in the net


class Head(NamedTuple):
    """An end of a net that gives class scores."""

    scores: tuple    # the version of their blob
    steps: list      # needed for a Softmax of them, and that Softmax
    labels: set      # the blobs that its losses compare them with


def to_softmax(net: caffe_pb2.NetParameter, steps: List[Step], output: Optional[str]) -> List[Step]:
    """The steps needed for a Softmax of the class scores, and that Softmax.

    Of several heads that are trained on the same labels, the one that most layers work for: the others are
    companions. Where that decides nothing, the user has to.
    """
    softmaxes, scores = _ends(steps) if output is None else _asked_for(steps, output)
    heads = _heads(steps, softmaxes, scores)
    if not heads:
        raise UserError(_no_head(net, steps))
    main = max(heads, key=lambda head: len(head.steps))
    for head in heads:
        companion = len(head.steps) < len(main.steps) and head.labels & main.labels
        if head is not main and not companion:
            raise UserError('the net %r has several outputs with class scores (%s): choose one with --output'
                            % (net.name, ', '.join(head.scores[0] for head in heads)))
    return main.steps


def _heads(steps, softmaxes, scores):
    """A Head for each version of a blob with class scores; a Softmax of the net's own comes before one of ours."""
    heads = OrderedDict()
    for step in softmaxes:
        heads.setdefault(step.ins[0], Head(step.ins[0], versions.needed(steps, step.outs[0]), set()))
    for version, layer in scores:
        if version not in heads:
            path = versions.needed(steps, version) + [_softmax(steps, version, layer)]
            heads[version] = Head(version, path, set())
        heads[version].labels.update(layer.bottom[1:])
    return list(heads.values())


# Losses that are no classification: what such a net is.
OTHER_LOSSES = {'EuclideanLoss': 'a regression net', 'SigmoidCrossEntropyLoss': 'a net for labels that do not exclude '
                'each other', 'ContrastiveLoss': 'a net that learns distances'}


def _no_head(net, steps):
    """Why there is no Softmax to be had, and what to do."""
    for layer in net.layer:
        if layer.type in OTHER_LOSSES:
            return ('the net %r is %s (layer %r is of type %s): it has no class probabilities, which MC dropout '
                    'averages here' % (net.name, OTHER_LOSSES[layer.type], layer.name, layer.type))
    return ('the net %r ends in neither a Softmax nor a classification loss: name the blob of its class scores with '
            '--output; its last blob is %r' % (net.name, _last_blob(steps)))


def _ends(steps):
    """The Softmax steps at the end of a branch, and (version, loss layer) of all class scores.

    Where a file has an Accuracy but no loss at test, its scores are taken.
    """
    read_by = {}
    for step in steps:
        for version in step.ins:
            read_by.setdefault(version, set()).add(step.layer.type)
    softmaxes = [step for step in steps if step.layer.type == 'Softmax' and step.ins and step.outs
                 and read_by.get(step.outs[0], set()).issubset(OBSERVERS)]
    for kinds in (LOSSES, ('Accuracy',)):
        scores = [(step.ins[0], step.layer) for step in steps if step.layer.type in kinds and step.ins]
        if softmaxes or scores:
            return softmaxes, scores
    return [], []


def _asked_for(steps, output):
    """As _ends, for the blob that the caller names."""
    makers = [(step, version) for step in steps for version in step.outs if version[0] == output]
    if not makers:
        raise UserError('no layer makes the blob %r asked for as output' % output)
    step, version = makers[-1]
    return ([step], []) if step.layer.type == 'Softmax' else ([], [(version, step.layer)])


def _softmax(steps, scores, loss):
    taken = set(name for step in steps for name in [step.layer.name] + list(step.layer.top))
    layer = new_layer(versions.free('prob', taken), 'Softmax', scores[0])
    if loss.HasField('softmax_param'):  # its axis
        layer.softmax_param.CopyFrom(loss.softmax_param)
    return Step(layer, [scores], [(layer.name, 0)])


def _last_blob(steps):
    return next((step.layer.top[-1] for step in reversed(steps) if step.layer.top), None)


def inputs_of(steps: List[Step]) -> List[Tuple[Step, int]]:
    """(step, number of its top) for each blob that comes from outside."""
    wanted = set(version for step in steps for version in step.ins)
    sources = [(step, i) for step in steps for i, version in enumerate(step.outs)
               if not step.layer.bottom and step.layer.type != 'Parameter' and version in wanted]
    if not sources:
        raise UserError('the net has no input: no layer in it is without a bottom')
    return sources


def with_inputs(steps: List[Step], shape: Shapes, batch: Optional[int]) -> List[Step]:
    """The steps with an Input for each blob that comes from outside."""
    sources = inputs_of(steps)
    names = [step.layer.top[i] for step, i in sources]
    if shape is not None and not isinstance(shape, dict):
        if len(sources) > 1:
            raise UserError('the net has %d inputs (%s): give a shape for each, %s' % (
                len(names), ', '.join(names), ' '.join('--shape %s=3,32,32' % name for name in names)))
        shape = {names[0]: shape}
    unknown = [name for name in shape or {} if name not in names]
    if unknown:
        raise UserError('--shape: the net has no input %r; it has %s' % (unknown[0], ', '.join(names)))
    inputs = []
    for step, i in sources:
        name = step.layer.top[i]
        layer = reading.input_layer(name, _shape(step.layer, i, (shape or {}).get(name), batch))
        inputs.append(Step(layer, [], [step.outs[i]]))
    return inputs + [step for step in steps if step.layer.bottom or step.layer.type == 'Parameter']


def _shape(layer, i, shape, batch):
    """The dimensions of the i-th top of a layer without bottoms: as asked, else as its own parameters tell."""
    own = told_shape(layer, i)
    own = own if all(own[1:]) else own[:1]
    dims = [batch or own[0] or 1] + list(own[1:] if shape is None else shape)
    if not dims[1:] or any(not isinstance(dim, int) or dim < 1 for dim in dims):
        if shape is not None or batch is not None and batch < 1:
            raise UserError('not a shape for the input %r: %s images of %s' % (layer.top[i], batch, shape))
        raise UserError('layer %r (%s) does not tell the size of its images: give their shape, for example '
                        '--shape 3,32,32' % (layer.name, layer.type))
    return dims


def told_shape(layer: caffe_pb2.LayerParameter, i: int) -> List[int]:
    """[batch, channels, height, width] as far as a data layer says; 0 for what it does not."""
    if layer.type == 'Input' and layer.input_param.shape:
        return list(layer.input_param.shape[min(i, len(layer.input_param.shape) - 1)].dim) or [0]
    if layer.type == 'DummyData' and layer.dummy_data_param.shape:
        return list(layer.dummy_data_param.shape[min(i, len(layer.dummy_data_param.shape) - 1)].dim)
    if layer.type == 'MemoryData':
        memory = layer.memory_data_param
        return [memory.batch_size, memory.channels, memory.height, memory.width]
    crop, channels = layer.transform_param.crop_size, len(layer.transform_param.mean_value)
    if layer.type == 'ImageData':
        image = layer.image_data_param
        return [image.batch_size, 3 if image.is_color else 1, crop or image.new_height, crop or image.new_width]
    sizes = [getattr(layer, name).batch_size for name in ('data_param', 'window_data_param', 'hdf5_data_param')]
    # Three mean values are one a channel; a single one may stand for any number of channels.
    return [max(sizes)] + ([channels if channels > 1 else 0, crop, crop] if crop else [])
