"""The door to Caffe: the only module that imports it.

Caffe ends the whole process on bad input, so what may fail runs in a forked child first
(bcnn.children), with a limit on its memory. The environment is set before the import, because
OpenBLAS and glog read it only once.
"""

import contextlib
import os
import sys
import tempfile
import warnings

from . import blas

# 2: errors only; fatal messages are printed in any case.
os.environ.setdefault('GLOG_minloglevel', '2')
# For `caffe` commands that we start: else glog keeps logs, for ever, under names in /tmp that anybody can foresee.
os.environ.setdefault('GLOG_logtostderr', '1')
blas.prepare()

import caffe  # noqa: E402
from caffe import NetSpec, layers, params  # noqa: E402,F401  (for bcnn.nets)
from caffe.proto import caffe_pb2  # noqa: E402,F401
from google.protobuf import text_format  # noqa: E402
from google.protobuf.message import DecodeError  # noqa: E402

from . import children  # noqa: E402
from .children import SIGNALS, call, last_words, work  # noqa: E402,F401  (for those who use Caffe)
from .errors import CaffeError, UserError  # noqa: E402

TRAIN, TEST = caffe.TRAIN, caffe.TEST


# --- device, seed ------------------------------------------------------------------------

def use_device(gpu=None):
    """Compute on the CPU (None) or on GPU number `gpu` from now on; refuses one that is not there."""
    require_device(gpu)
    if gpu is None:
        caffe.set_mode_cpu()
    else:
        _open_gpu(gpu)


def require_device(gpu=None):
    """Refuse a GPU that is not there, without opening it here: CUDA does not survive a fork."""
    if gpu is None:
        return
    try:
        call(_open_gpu, gpu)
    except CaffeError as error:
        if 'CPU-only' in str(error):
            raise UserError('GPU %d asked for, but this Caffe is built without GPU support: use --cpu, '
                            'or the gpu target of the Dockerfile' % gpu)
        raise UserError('GPU %d cannot be used: %s' % (gpu, error))


_opened = set()  # the GPUs that this process has opened


def _open_gpu(gpu):
    children.lift_memory_limit()
    _opened.add(gpu)
    caffe.set_device(gpu)
    caffe.set_mode_gpu()


def has_gpu():
    """Whether this Caffe can use GPU 0."""
    try:
        call(_open_gpu, 0)
    except CaffeError:
        return False
    return True


def set_seed(seed):
    """Seed Caffe's random numbers: initial weights, dropout masks and crops of this process."""
    caffe.set_random_seed(int(seed))


# --- nets and solvers --------------------------------------------------------------------

def load_net(net, weights=None, phase=TEST, extra_weights=False):
    """A caffe.Net from a prototxt file or a NetParameter, with weights from a caffemodel file.

    A bad file raises a UserError with its name and the problem. Caffe itself takes weights
    by layer name and passes over what does not match; here every layer must get its weights,
    and the file may hold more than the net needs only with `extra_weights`.
    """
    with _as_file(net) as path:
        try:
            _try(_name(net), caffe.Net, path, phase)
        except UserError as error:
            raise UserError('%s%s' % (error, _blame(path, phase)))
        loaded = caffe.Net(path, phase)
    if weights is not None:
        require_file(weights)
        _check_fit(loaded, weights, extra_weights)
        _try(weights, loaded.copy_from, os.fspath(weights))
        loaded.copy_from(os.fspath(weights))
    return loaded


def load_solver(solver):
    """A caffe solver from a prototxt file or a SolverParameter; errors as in load_net."""
    with _as_file(solver) as path:
        _try(_name(solver), caffe.get_solver, path)
        return caffe.get_solver(path)


def _try(name, load, *args):
    """Do load(*args) in a child; what goes wrong there is raised here with the name of the file.

    Not where a GPU is open: a fork of this process cannot use it. What Caffe aborts on then ends
    this process, which is a child of the one that reports it.
    """
    if _opened:
        return
    try:
        call(_forget, load, *args)
    except MemoryError:
        raise UserError('%s: %s' % (name, children.out_of_memory('')))
    except (CaffeError, RuntimeError) as error:
        raise UserError('%s: %s' % (name, ' '.join(str(error).split())))


def _forget(function, *args):
    """Nothing: function(*args) is done for its effects, as a net cannot travel through a pipe."""
    function(*args)


def _blame(path, phase):
    """' (layer NAME)' for the layer at which Caffe gives up on a net, which its messages mostly leave out."""
    def loads(count):
        with _as_file(caffe_pb2.NetParameter(layer=net.layer[:count], input=net.input, input_dim=net.input_dim,
                                             input_shape=net.input_shape)) as start:
            try:
                call(_forget, caffe.Net, start, phase)
            except (CaffeError, RuntimeError, MemoryError):
                return False
            return True

    net = caffe_pb2.NetParameter()
    try:
        with open(path) as file:
            text_format.Parse(file.read(), net)
    except (text_format.ParseError, UnicodeDecodeError):
        return ''  # Caffe's message has line and column
    good, bad = 0, len(net.layer)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if loads(middle) else (good, middle)
    return ' (layer %s)' % net.layer[bad - 1].name if net.layer else ''


def _check_fit(net, weights, extra_ok):
    """Raise unless the caffemodel has, for each layer of the net, blobs of the right shapes."""
    with open(weights, 'rb') as file:
        if file.read(8) == b'\x89HDF\r\n\x1a\n':
            return  # HDF5 weights: Caffe itself insists on every layer there
    stored = weight_shapes(weights)
    needed = {name: [tuple(blob.data.shape) for blob in blobs] for name, blobs in net.params.items()}
    missing = sorted(set(needed) - set(stored))
    extra = sorted(set(stored) - set(needed))
    if missing:
        raise UserError('%s: no weights for %s; it has %s' % (weights, ', '.join(missing), ', '.join(sorted(stored))))
    if extra and not extra_ok:
        raise UserError('%s: weights for %s, which the net does not have' % (weights, ', '.join(extra)))
    for name in needed:
        if not _same_shapes(stored[name], needed[name]):
            raise UserError('%s: layer %s has weights of shape %s, the net needs %s'
                            % (weights, name, _show(stored[name]), _show(needed[name])))


def weight_shapes(weights):
    """The shapes of the blobs of each layer in a caffemodel file, old (V1) format or new."""
    if os.path.getsize(weights) >= 1 << 31:  # protobuf's own limit
        raise UserError('%s: not a caffemodel, which has less than 2 GB' % weights)
    try:
        # In a child, because protobuf writes what it dislikes to stderr.
        shapes = _shapes(weights) if _opened else call(_shapes, weights)
    except (ValueError, CaffeError, MemoryError):
        raise UserError('%s: not a caffemodel, or damaged' % weights)
    if not shapes:
        raise UserError('%s: no weights in this file; is it a caffemodel?' % weights)
    return shapes


def _shapes(weights):
    with open(weights, 'rb') as file:
        model = parse_bytes(caffe_pb2.NetParameter(), file.read())
    if any(isinstance(layer.name, bytes) for layer in list(model.layer) + list(model.layers)):
        raise ValueError('a name that is no text')  # which protobuf hands out as bytes
    return {layer.name: [_shape(blob) for blob in layer.blobs]
            for layer in list(model.layer) + list(model.layers) if layer.blobs}


def parse_bytes(message, data):
    """The message, filled from its serialised form; ValueError where that is damaged."""
    with warnings.catch_warnings(record=True) as warned:  # of some damage protobuf only warns
        warnings.simplefilter('always')
        try:
            message.ParseFromString(data)
        except DecodeError as error:
            raise ValueError(error)
    if warned:
        raise ValueError(warned[0].message)
    return message


def _shape(blob):
    """The shape of a BlobProto; files before 2014 have always four dimensions."""
    if blob.HasField('shape'):
        return tuple(blob.shape.dim)
    return blob.num, blob.channels, blob.height, blob.width


def _same_shapes(stored, needed):
    """Whether blobs fit as Caffe sees it: an old four-dimensional shape may lead with ones."""
    def fits(old, new):
        return old == new or (len(old) == 4 and (1,) * (4 - len(new)) + new == old)
    return len(stored) == len(needed) and all(map(fits, stored, needed))


def _show(shapes):
    return ' and '.join('x'.join(map(str, shape)) for shape in shapes)


def require_file(path):
    """Refuse a path at which there is no file."""
    if not os.path.isfile(path):
        raise UserError('%s: no such file' % path)


def _require_text(path):
    """Refuse bytes that are no text: Caffe takes them as names, which Python then cannot read."""
    try:
        with open(path, encoding='utf-8') as file:
            for _ in file:
                pass
    except UnicodeDecodeError as error:
        raise UserError('%s: not a prototxt (Invalid text: %s)' % (path, error))


def _name(net):
    if hasattr(net, 'DESCRIPTOR'):
        return getattr(net, 'name', '') or type(net).__name__
    return os.fspath(net)


@contextlib.contextmanager
def _as_file(net):
    """The path of a prototxt file with `net` in it: Caffe reads nets from files only."""
    if not hasattr(net, 'DESCRIPTOR'):
        require_file(net)
        _require_text(net)
        yield os.fspath(net)
        return
    with tempfile.NamedTemporaryFile('w', suffix='.prototxt') as file:
        file.write(text_format.MessageToString(net))
        file.flush()
        yield file.name


# --- what this Caffe is ------------------------------------------------------------------

def describe():
    """What computed a result: versions, BLAS and its threads, for records."""
    import google.protobuf
    import lmdb
    import numpy
    return {
        'caffe': caffe.__version__,
        'caffe_path': os.path.dirname(caffe.__file__),
        'python': '%d.%d.%d' % sys.version_info[:3],
        'numpy': numpy.__version__,
        'protobuf': google.protobuf.__version__,
        'lmdb': lmdb.__version__,
        'blas': blas.loaded()[0],
        'blas_kernel': blas.loaded()[1],
        'threads': int(os.environ['OPENBLAS_NUM_THREADS']),
    }
