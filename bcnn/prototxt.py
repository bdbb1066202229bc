"""Reading and rewriting any net's prototxt: old formats upgraded, Standard and MC nets made of training nets.

A published file is written for training: data layers, phases, losses, dropout in place. What
comes out here has Input layers, ends in a softmax, and its dropout layers have tops of their
own, so that a pass can start at the first of them; layer names stay, so weights load.

Inside, a net is a list of Steps whose blobs are versions: an in-place layer reads (name, k)
and makes (name, k + 1). With that, layers can be dropped and moved without mixing up what was
read before and after an in-place layer.
"""

import os
import re
from collections import Counter, namedtuple

from google.protobuf import text_format

from . import files
from .engine import TEST, TRAIN, caffe_pb2, load_net
from .errors import UserError

# --- reading ----------------------------------------------------------------------------

# The authors' patched Caffe has this switch in dropout_param; here to_mc does its work.
PATCHED = re.compile(r'\bsample_weights_test\s*:\s*(true|false)')


def read(path):
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
        raise UserError('%s:%s' % (path, error))
    try:
        return upgrade(net)
    except UserError as error:
        raise UserError('%s: %s' % (path, error))


def parse(text, message=None):
    """The message written in `text`, a NetParameter unless one is given; errors begin with line:column."""
    message = caffe_pb2.NetParameter() if message is None else message
    text = PATCHED.sub(lambda match: ' ' * len(match.group()), text)
    try:
        return text_format.Parse(text, message)
    except text_format.ParseError as error:
        where, _, what = str(error).partition(' : ')
        # Protobuf may repeat the whole line between the position and the problem.
        raise UserError('%s: %s' % (where, ' '.join(re.sub(r"^'.*': ", '', what).split())))


def to_text(message, header=''):
    """The prototxt of a message, the same bytes on every version of protobuf, after a comment."""
    comment = ''.join('# %s\n' % line if line else '#\n' for line in header.splitlines())
    return comment + text_format.MessageToString(message, float_format='.7g')


# --- upgrading old formats ----------------------------------------------------------------

# V1 types are enums; their names are those of today after lower-casing, but for these.
V1_TYPES = {'ABSVAL': 'AbsVal', 'ARGMAX': 'ArgMax', 'BNLL': 'BNLL', 'HDF5_DATA': 'HDF5Data',
            'HDF5_OUTPUT': 'HDF5Output', 'IM2COL': 'Im2col', 'LRN': 'LRN', 'MVN': 'MVN', 'RELU': 'ReLU',
            'SOFTMAX_LOSS': 'SoftmaxWithLoss', 'TANH': 'TanH', 'NONE': ''}
# Where Caffe keeps what is now in transform_param, in files of 2014 and before.
MOVED = ('scale', 'mean_file', 'crop_size', 'mirror')


def upgrade(net):
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
    return [_input(name, shape) for name, shape in zip(net.input, shapes or [[] for _ in net.input])]


def _input(name, shape):
    layer = caffe_pb2.LayerParameter(name=name, type='Input', top=[name])
    layer.input_param.shape.add(dim=shape)
    return layer


def _from_v1(old):
    if old.HasField('layer'):
        raise UserError('layer %r is in the format of 2013 (V0): convert the file with Caffe\'s '
                        'upgrade_net_proto_text first' % old.layer.name)
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


def _move_params(old, new):
    """What V1 says of the learning of each blob, in four lists, is in one list of messages now."""
    for there, here in (('param', 'name'), ('blobs_lr', 'lr_mult'), ('weight_decay', 'decay_mult'),
                        ('blob_share_mode', 'share_mode')):
        for i, value in enumerate(getattr(old, there)):
            while len(new.param) <= i:
                new.param.add()
            setattr(new.param[i], here, value)


def _move_transform(layer):
    for name in ('data_param', 'image_data_param', 'window_data_param'):
        if layer.HasField(name):
            param = getattr(layer, name)
            for field in MOVED:
                if param.HasField(field):
                    setattr(layer.transform_param, field, getattr(param, field))
                    param.ClearField(field)


# --- what is in a net ----------------------------------------------------------------------

def dropouts(net):
    """The names of the Dropout layers, in order."""
    return [layer.name for layer in net.layer if layer.type == 'Dropout']


def samples_at_test(layer):
    """Whether this layer of a TEST net draws a new mask in each pass."""
    return layer.type == 'Dropout' and layer.HasField('phase') and layer.phase == TRAIN


def first_sampling(net):
    """The name of the first layer of an MC net that samples: a pass may start there. None if there is none."""
    return next((layer.name for layer in net.layer if samples_at_test(layer)), None)


def prob_blob(net):
    """The name of the blob with the class probabilities: the top of the last Softmax."""
    found = [layer.top[0] for layer in net.layer if layer.type == 'Softmax']
    if not found:
        raise UserError('the net %s has no Softmax layer' % net.name)
    return found[-1]


def score_blob(net):
    """The name of the blob that the last Softmax reads: logits, or the margins of a hinge-trained net."""
    prob = prob_blob(net)
    return next(layer.bottom[0] for layer in net.layer if layer.type == 'Softmax' and layer.top[0] == prob)


def preprocessing(net):
    """The TransformationParameter (scale, mean ...) of a training net's TEST data layer, None where there is none.

    A deploy net has no data layer, so whoever feeds it has to do this first.
    """
    for layer in upgrade(net).layer:
        if not layer.bottom and layer.HasField('transform_param') and _in_phase(net, layer, TEST):
            return layer.transform_param
    return None


# --- Standard and MC nets -------------------------------------------------------------------

def to_deploy(net, shape=None, batch=None, output=None):
    """The net for Standard dropout: Input in the place of data, no loss or accuracy, a softmax at the end.

    shape: of one image, (channels, height, width), where the data layer does not tell;
    {blob: shape} for several inputs. batch: images in a batch; the data layer's own if None.
    output: the blob of class scores (or of a Softmax), where the net has none or several.
    """
    return _write(net, _inference(net, shape, batch, output, sampling=False))


def to_mc(net, shape=None, batch=None, output=None):
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
    return _write(net, _prefix_first(steps))


def replicate(net, T):
    """An MC net that copies its batch T times (Tile) before the first dropout: row t * B + b is sample t of image b."""
    first = first_sampling(net)
    if first is None:
        raise UserError('the net %r has no layer that samples, so there is nothing to replicate for' % net.name)
    net = _write(net, _prefix_first(_steps(net.layer)))
    start = [layer.name for layer in net.layer].index(first_sampling(net))
    before, after = list(net.layer[:start]), list(net.layer[start:])
    made = set(top for layer in before for top in layer.top)
    copies = {}
    for blob in [bottom for layer in after for bottom in layer.bottom]:
        if blob in made and blob not in copies:
            copies[blob] = _free(blob + '_tile', made | set(top for layer in after for top in layer.top))
    tiles = [_layer(name, 'Tile', blob) for blob, name in sorted(copies.items())]
    for tile in tiles:
        tile.tile_param.axis, tile.tile_param.tiles = 0, T
    for layer in after:
        layer.bottom[:] = [copies.get(blob, blob) for blob in layer.bottom]
    new = caffe_pb2.NetParameter(name=net.name)
    new.layer.extend(before + tiles + after)
    return new


def convert(path, folder, **options):
    """(deploy net, MC net) made of the file `path`, loaded by Caffe to be sure, and written to `folder`."""
    net = read(path)
    made = []
    for make in (to_deploy, to_mc):
        try:
            made.append(make(net, **options))
            load_net(made[-1])
        except UserError as error:
            raise UserError('%s: %s' % (path, error))
    with files.folder(folder), files.lock(os.path.join(folder, '.lock')):
        files.sweep_folder(folder)
        for name, message in zip(('deploy', 'mc'), made):
            header = '%s dropout for %s\nMade of it by tools/convert_net.py.' % (
                'Standard' if name == 'deploy' else 'MC', os.path.basename(path))
            files.write_text(os.path.join(folder, name + '.prototxt'), to_text(message, header))
    return made


def _layer(name, kind, bottom):
    return caffe_pb2.LayerParameter(name=name, type=kind, bottom=[bottom], top=[name])


def _free(name, taken):
    """`name`, or the first of name_2, name_3 ... that is not taken."""
    k, free = 1, name
    while free in taken:
        k, free = k + 1, '%s_%d' % (name, k + 1)
    return free


def _inference(net, shape, batch, output, sampling):
    """The Steps from Inputs to the softmax, dropout as at test."""
    net = upgrade(net)
    layers = []
    for layer in net.layer:
        if _in_phase(net, layer, TEST) or sampling and _only_trains(net, layer):
            new = caffe_pb2.LayerParameter()
            new.CopyFrom(layer)
            for field in ('include', 'exclude') + (('phase',) if layer.type == 'Dropout' else ()):
                new.ClearField(field)
            layers.append(new)
    return _with_inputs(_to_softmax(net, _steps(layers), output), shape, batch)


def _in_phase(net, layer, phase):
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


def _only_trains(net, layer):
    """Whether it is a dropout that a file leaves out at test: in place, so that nothing misses its top."""
    return layer.type == 'Dropout' and list(layer.bottom) == list(layer.top) and _in_phase(net, layer, TRAIN)


# --- versions of blobs ------------------------------------------------------------------------

Step = namedtuple('Step', 'layer ins outs')  # ins, outs: versions (name, k) of its bottoms and tops


def _steps(layers):
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


def _needed(steps, version):
    """The steps that this version of a blob depends on, in order."""
    wanted, kept = {version}, []
    for step in reversed(steps):
        if wanted.intersection(step.outs):
            wanted.update(step.ins)
            kept.append(step)
    return kept[::-1]


def _prefix_first(steps):
    """The steps with all that depend on no sample before the first that samples, order else unchanged."""
    random, first, second = set(), [], []
    for step in steps:
        if step.layer.type == 'Dropout' or random.intersection(step.ins):
            random.update(step.outs)
            second.append(step)
        else:
            first.append(step)
    return first + second


def _write(net, steps):
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
                names[blob, k] = _free(layer.name, taken)
                taken.add(names[blob, k])
        layer.top[:] = [names[version] for version in step.outs]
    return new


# --- the end and the beginning of a net -------------------------------------------------------

LOSSES = ('SoftmaxWithLoss', 'HingeLoss', 'InfogainLoss')  # their first bottom has the class scores
OBSERVERS = LOSSES + ('MultinomialLogisticLoss', 'Accuracy', 'ArgMax', 'Silence')  # change nothing in the net


def _to_softmax(net, steps, output):
    """The steps needed for a Softmax of the class scores, and that Softmax.

    The scores are those that most layers work for: a companion loss sits on fewer layers than
    the main one.
    """
    softmaxes, scores = _ends(steps) if output is None else _asked_for(steps, output)
    if not softmaxes and not scores:
        raise UserError('the net %r ends in neither a Softmax nor a classification loss: name the blob of its class '
                        'scores as output; its last blob is %r' % (net.name, _last_blob(steps)))
    paths = [_needed(steps, step.outs[0]) for step in softmaxes]
    paths += [_needed(steps, version) + [_softmax(steps, version, loss)] for version, loss in scores]
    longest = max(len(path) for path in paths)
    own = [path for path in paths[:len(softmaxes)] if len(path) == longest]  # before one of our making
    return (own or [path for path in paths if len(path) == longest])[-1]


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
    found = [(step, version) for step in steps for version in step.outs if version[0] == output]
    if not found:
        raise UserError('no layer makes the blob %r asked for as output' % output)
    step, version = found[-1]
    return ([step], []) if step.layer.type == 'Softmax' else ([], [(version, step.layer)])


def _softmax(steps, scores, loss):
    taken = set(name for step in steps for name in [step.layer.name] + list(step.layer.top))
    layer = _layer(_free('prob', taken), 'Softmax', scores[0])
    if loss.HasField('softmax_param'):  # its axis
        layer.softmax_param.CopyFrom(loss.softmax_param)
    return Step(layer, [scores], [(layer.name, 0)])


def _last_blob(steps):
    return next((step.layer.top[-1] for step in reversed(steps) if step.layer.top), None)


def _with_inputs(steps, shape, batch):
    """The steps with an Input for each blob that comes from outside."""
    wanted = set(version for step in steps for version in step.ins)
    sources = [(step, i) for step in steps for i, version in enumerate(step.outs)
               if not step.layer.bottom and step.layer.type != 'Parameter' and version in wanted]
    if not sources:
        raise UserError('the net has no input: no layer in it is without a bottom')
    if shape is not None and not isinstance(shape, dict):
        if len(sources) > 1:
            raise UserError('the net has %d inputs (%s): give a shape for each' % (
                len(sources), ', '.join(step.layer.top[i] for step, i in sources)))
        shape = {sources[0][0].layer.top[sources[0][1]]: shape}
    inputs = []
    for step, i in sources:
        name = step.layer.top[i]
        inputs.append(Step(_input(name, _shape(step.layer, i, (shape or {}).get(name), batch)), [], [step.outs[i]]))
    return inputs + [step for step in steps if step.layer.bottom or step.layer.type == 'Parameter']


def _shape(layer, i, shape, batch):
    """The dimensions of the i-th top of a layer without bottoms: as asked, else as its own parameters tell."""
    own = _own_shape(layer, i)
    dims = [batch or own[0] or 1] + list(own[1:] if shape is None else shape)
    if not dims[1:] or any(not isinstance(dim, int) or dim < 1 for dim in dims):
        if shape is not None or batch is not None and batch < 1:
            raise UserError('not a shape for the input %r: %s images of %s' % (layer.top[i], batch, shape))
        raise UserError('layer %r (%s) does not tell the size of its images: give their shape, for example 3,32,32'
                        % (layer.name, layer.type))
    return dims


def _own_shape(layer, i):
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
    return [max(sizes)] + ([channels, crop, crop] if crop and channels > 1 else [])
