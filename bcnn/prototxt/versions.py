"""A net as a list of Steps whose blobs are versions.

An in-place layer reads (name, k) and makes (name, k + 1). With that, layers can be dropped and
moved without mixing up what was read before and after an in-place layer.
"""

from collections import Counter
from typing import Container, Iterable, List, NamedTuple, Sequence, Tuple

from ..engine import caffe_pb2
from ..errors import UserError


def free(name: str, taken: Container[str]) -> str:
    """`name`, or the first of name_2, name_3 ... that is not taken."""
    k, free = 1, name
    while free in taken:
        k, free = k + 1, '%s_%d' % (name, k + 1)
    return free


# --- versions of blobs ------------------------------------------------------------------------

Version = Tuple[str, int]  # the name of a blob, and how often a layer has changed it in place


class Step(NamedTuple):
    """A layer and the versions of its blobs."""

    layer: caffe_pb2.LayerParameter
    ins: List[Version]     # of its bottoms
    outs: List[Version]    # of its tops


def steps_of(layers: Iterable[caffe_pb2.LayerParameter]) -> List[Step]:
    """The layers with versioned blobs; refuses names that no layer, or two layers, make."""
    current, maker, steps = {}, {}, []
    for layer in layers:
        for blob in layer.bottom:
            if blob not in current:
                raise UserError('layer %r reads the blob %r, which no layer before it makes' % (layer.name, blob))
        ins = [(blob, current[blob]) for blob in layer.bottom]
        for blob in layer.top:
            if blob in current and blob not in layer.bottom:
                raise UserError('the blob %r is made by both layers %r and %r' % (blob, maker[blob], layer.name))
            current[blob] = current.get(blob, -1) + 1
            maker[blob] = layer.name
        steps.append(Step(layer, ins, [(blob, current[blob]) for blob in layer.top]))
    return steps


def needed(steps: Sequence[Step], version: Version) -> List[Step]:
    """The steps that this version of a blob depends on, in order."""
    wanted, kept = {version}, []
    for step in reversed(steps):
        if wanted.intersection(step.outs):
            wanted.update(step.ins)
            kept.append(step)
    return kept[::-1]


def prefix_first(steps: Iterable[Step]) -> List[Step]:
    """The steps with all that depend on no sample before the first that samples, order else unchanged."""
    random, first, second = set(), [], []
    for step in steps:
        if step.layer.type == 'Dropout' or random.intersection(step.ins):
            random.update(step.outs)
            second.append(step)
        else:
            first.append(step)
    return first + second


def to_net(net: caffe_pb2.NetParameter, steps: Sequence[Step]) -> caffe_pb2.NetParameter:
    """A NetParameter of these steps: in place as before, but for dropout, for a softmax (scores stay readable), and
    where others read the old version too (Caffe itself allows a layer in place only as the one reader)."""
    readers = Counter(version for step in steps for version in step.ins)
    taken = set(blob for step in steps for blob in list(step.layer.bottom) + list(step.layer.top))
    names = {}
    new = caffe_pb2.NetParameter(name=net.name)
    for step in steps:
        layer = new.layer.add()
        layer.CopyFrom(step.layer)
        layer.bottom[:] = [names[version] for version in step.ins]
        for blob, k in step.outs:
            old = (blob, k - 1)
            if old not in step.ins:
                names[blob, k] = blob
            elif layer.type not in ('Dropout', 'Softmax') and readers[old] == 1:
                names[blob, k] = names[old]
            else:
                names[blob, k] = free(layer.name, taken)
                taken.add(names[blob, k])
        layer.top[:] = [names[version] for version in step.outs]
    return new
