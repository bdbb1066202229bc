"""What is in a net: its dropout layers, where it samples, which blobs have the class probabilities and scores."""

from typing import List, Optional, Set

from ..engine import TEST, TRAIN, LayerParameter, NetParameter, caffe_pb2
from ..errors import UserError
from . import reading

# --- what is in a net ----------------------------------------------------------------------


def dropouts(net: NetParameter) -> List[str]:
    """The names of the Dropout layers, in order."""
    return [layer.name for layer in net.layer if layer.type == 'Dropout']


def samples_at_test(layer: LayerParameter) -> bool:
    """Whether this layer of a TEST net draws a new mask in each pass."""
    return layer.type == 'Dropout' and layer.HasField('phase') and layer.phase == TRAIN


def first_sampling(net: NetParameter) -> Optional[str]:
    """The name of the first layer of an MC net that samples: a pass may start there. None if there is none."""
    return next((layer.name for layer in net.layer if samples_at_test(layer)), None)


def prob_blob(net: NetParameter) -> str:
    """The name of the blob with the class probabilities: the top of the last Softmax."""
    tops = [layer.top[0] for layer in net.layer if layer.type == 'Softmax']
    if not tops:
        raise UserError('the net %s has no Softmax layer' % net.name)
    return tops[-1]


def score_blob(net: NetParameter) -> str:
    """The name of the blob that the last Softmax reads: logits, or the margins of a hinge-trained net."""
    prob = prob_blob(net)
    return next(layer.bottom[0] for layer in net.layer if layer.type == 'Softmax' and layer.top[0] == prob)


DATA_LAYERS = ('Data', 'ImageData', 'WindowData', 'MemoryData')  # those that change the images on the way


def data_layer(net: NetParameter) -> Optional[LayerParameter]:
    """A training net's TEST data layer, which says what is done to the images; None where there is none.

    A deploy net has no data layer, so whoever feeds it has to know.
    """
    for layer in reading.upgrade(net).layer:
        if not layer.bottom and in_phase(net, layer, TEST) and (
                layer.type in DATA_LAYERS or layer.HasField('transform_param')):
            return layer
    return None


def preprocessing(net: NetParameter) -> Optional[caffe_pb2.TransformationParameter]:
    """The TransformationParameter (scale, mean ...) of a training net's TEST data layer, None where there is none."""
    layer = data_layer(net)
    return layer.transform_param if layer is not None and layer.HasField('transform_param') else None


def python_layers(net: NetParameter) -> List[str]:
    """The names of the layers that are the user's own Python code."""
    return [layer.name for layer in net.layer if layer.type == 'Python']


def learned(net: NetParameter) -> Set[str]:
    """The names of the layers that most weights are in."""
    return {layer.name for layer in net.layer if layer.type in ('Convolution', 'InnerProduct', 'Deconvolution')}


def in_phase(net: NetParameter, layer: LayerParameter, phase: int) -> bool:
    """Whether Caffe takes the layer into a net of this phase: NetStateRule's conditions."""
    def holds(rule):
        stages = set(net.state.stage)
        return ((not rule.HasField('phase') or rule.phase == phase)
                and (not rule.HasField('min_level') or net.state.level >= rule.min_level)
                and (not rule.HasField('max_level') or net.state.level <= rule.max_level)
                and stages.issuperset(rule.stage) and stages.isdisjoint(rule.not_stage))

    if layer.include:
        return any(holds(rule) for rule in layer.include)
    return not any(holds(rule) for rule in layer.exclude)
