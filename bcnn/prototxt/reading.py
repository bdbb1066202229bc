"""Reading any net's prototxt: old formats upgraded, errors with their line; and writing one."""

import hashlib
import os
import re
import shutil
from typing import Optional, Sequence

from google.protobuf import text_format

from ..engine import Message, caffe_pb2
from ..errors import UserError
from ..system import places

# --- reading ----------------------------------------------------------------------------

# The authors' patched Caffe has this switch in dropout_param; here to_mc does its work.
PATCHED = re.compile(r'\bsample_weights_test\s*:\s*(true|false)')


def read(path: str) -> caffe_pb2.NetParameter:
    """The NetParameter in a prototxt file, upgraded to the present format; refuses bad files in one line."""
    with open(path, 'rb') as file:
        data = file.read()
    try:
        text = data.decode('utf-8')
    except UnicodeDecodeError:
        text = '\0'
    if '\0' in text:
        raise UserError('%s: not a prototxt but a binary file (a caffemodel holds weights, not the net to run)' % path)
    try:
        net = parse(text)
    except UserError as error:  # it begins with line:column
        raise UserError(_solver(path, text) or '%s:%s' % (path, error))
    try:
        return upgrade(net)
    except UserError as error:
        raise UserError('%s: %s' % (path, error))


def _solver(path, text):
    """What to say of a solver's prototxt; None where it is none."""
    try:
        solver = parse(text, caffe_pb2.SolverParameter())
    except UserError:
        return None
    named = solver.net or solver.train_net
    return '%s: a solver file, which says how to train; give the net%s' % (path, ' that it names, ' + named if named
                                                                           else '')


def parse(text: str, message: Optional[Message] = None) -> Message:
    """The message written in `text`, a NetParameter unless one is given; errors begin with line:column."""
    message = caffe_pb2.NetParameter() if message is None else message
    text = PATCHED.sub(lambda match: ' ' * len(match.group()), text)
    try:
        return text_format.Parse(text, message)
    except text_format.ParseError as error:
        where, _, problem = str(error).partition(' : ')
        # Protobuf may repeat the whole line between the position and the problem.
        raise UserError('%s: %s' % (where, ' '.join(re.sub(r"^'.*': ", '', problem).split())))


def to_text(message: Message, header: str = '') -> str:
    """The prototxt of a message, the same bytes on every version of protobuf, after a comment."""
    comment = ''.join('# %s\n' % line if line else '#\n' for line in header.splitlines())
    return comment + text_format.MessageToString(message, float_format='.7g')


def digest(message: Message) -> str:
    """The SHA-256 of a message as text: nets and solvers are told apart by it."""
    return hashlib.sha256(to_text(message).encode()).hexdigest()


# --- upgrading old formats ----------------------------------------------------------------

# V1 types are enums; their names are those of today after lower-casing, but for these.
V1_TYPES = {'ABSVAL': 'AbsVal', 'ARGMAX': 'ArgMax', 'BNLL': 'BNLL', 'HDF5_DATA': 'HDF5Data',
            'HDF5_OUTPUT': 'HDF5Output', 'IM2COL': 'Im2col', 'LRN': 'LRN', 'MVN': 'MVN', 'RELU': 'ReLU',
            'SOFTMAX_LOSS': 'SoftmaxWithLoss', 'TANH': 'TanH', 'NONE': ''}
# Where Caffe keeps what is now in transform_param, in files of 2014 and before.
MOVED = ('scale', 'mean_file', 'crop_size', 'mirror')


def upgrade(net: caffe_pb2.NetParameter) -> caffe_pb2.NetParameter:
    """A copy in which V1 `layers`, `input` fields and old data transforms are written as `layer`s of today."""
    if net.layer and net.layers:
        raise UserError('has both `layer` and `layers`: Caffe refuses that, use one')
    new = caffe_pb2.NetParameter()
    new.CopyFrom(net)
    for field in ('layer', 'layers', 'input', 'input_dim', 'input_shape'):
        new.ClearField(field)
    new.layer.extend(_inputs(net))
    new.layer.extend(_from_v1(layer) for layer in net.layers)
    new.layer.extend(net.layer)
    if not new.layer:
        raise UserError('no layer in it')
    for layer in new.layer:
        _move_transform(layer)
    return new


def _inputs(net):
    shapes = [list(shape.dim) for shape in net.input_shape]
    if net.input_dim:
        shapes = [list(net.input_dim[i:i + 4]) for i in range(0, len(net.input_dim), 4)]
    if shapes and len(shapes) != len(net.input) or any(len(shape) != 4 for shape in shapes if net.input_dim):
        raise UserError('%d `input` but dimensions for %d' % (len(net.input), len(shapes)))
    return [input_layer(name, shape) for name, shape in zip(net.input, shapes or [[] for _ in net.input])]


def input_layer(name: str, shape: Sequence[int]) -> caffe_pb2.LayerParameter:
    layer = caffe_pb2.LayerParameter(name=name, type='Input', top=[name])
    layer.input_param.shape.add(dim=shape)
    return layer


def _from_v1(old):
    if old.HasField('layer'):
        raise UserError('layer %r is in the format of 2013 (V0): convert the file first, %s OLD.prototxt NEW.prototxt'
                        % (old.layer.name, _upgrade_tool()))
    kind = caffe_pb2.V1LayerParameter.LayerType.Name(old.type)
    new = caffe_pb2.LayerParameter(type=V1_TYPES.get(kind, kind.title().replace('_', '')))
    for field, value in old.ListFields():
        if field.name in ('type', 'param', 'blobs_lr', 'weight_decay', 'blob_share_mode'):
            continue
        if field.label == field.LABEL_REPEATED:
            getattr(new, field.name).extend(value)
        elif field.message_type:
            getattr(new, field.name).CopyFrom(value)
        else:
            setattr(new, field.name, value)
    _move_params(old, new)
    return new


def _upgrade_tool():
    """The path of Caffe's own converter, its name alone where it is not found."""
    name = 'upgrade_net_proto_text'
    prefix = os.environ.get('CAFFE_PREFIX') or os.path.join(places.ROOT, '.caffe')
    return shutil.which(name, path=os.pathsep.join([os.path.join(prefix, 'bin'), os.environ.get('PATH', '')])) or name


def _move_params(old, new):
    """What V1 says of the learning of each blob, in four lists, is in one list of messages now."""
    for old_name, new_name in (('param', 'name'), ('blobs_lr', 'lr_mult'), ('weight_decay', 'decay_mult'),
                               ('blob_share_mode', 'share_mode')):
        for i, value in enumerate(getattr(old, old_name)):
            while len(new.param) <= i:
                new.param.add()
            setattr(new.param[i], new_name, value)


def _move_transform(layer):
    for name in ('data_param', 'image_data_param', 'window_data_param'):
        if layer.HasField(name):
            param = getattr(layer, name)
            for field in MOVED:
                if param.HasField(field):
                    setattr(layer.transform_param, field, getattr(param, field))
                    param.ClearField(field)
