"""The door to Caffe: the only module that imports it.

Caffe ends the whole process on bad input, so what may fail runs in a forked child first
(bcnn.system.processes), with a limit on its memory. The environment is set before the import, because
OpenBLAS and glog read it only once.
"""

import contextlib
import os
import sys
import tempfile
import warnings
from collections import OrderedDict
from typing import Any, Dict, List, Optional, Tuple, Union

from . import imports
from .errors import CaffeError, UserError
from .system import blas, cuda, processes
from .system.processes import SIGNALS, call, last_words, work  # noqa: F401  (for those who use Caffe)

# 3: fatal messages only; one with CUDA calls it an error that it finds no GPU, also where none is wanted.
os.environ.setdefault('GLOG_minloglevel', '3')
# For `caffe` commands that we start: else glog keeps logs, for ever, under names in /tmp that anybody can foresee.
os.environ.setdefault('GLOG_logtostderr', '1')
blas.prepare()
imports.prepare()

import caffe  # noqa: E402
from caffe import Net as CaffeNet  # noqa: E402
from caffe import NetSpec, layers, params  # noqa: E402,F401  (for bcnn.nets)
from caffe._caffe import Solver as CaffeSolver  # noqa: E402
from caffe.net_spec import Top  # noqa: E402,F401
from caffe.proto import caffe_pb2  # noqa: E402
from caffe.proto.caffe_pb2 import LayerParameter, NetParameter, SolverParameter  # noqa: E402,F401
from google.protobuf import text_format  # noqa: E402
from google.protobuf.message import DecodeError, Message  # noqa: E402

TRAIN, TEST = caffe.TRAIN, caffe.TEST


# --- device, seed ------------------------------------------------------------------------

_device = []  # what this process computes on, once it does: None for the CPU, or the number of a GPU


def use_device(gpu: Optional[int] = None) -> None:
    """Compute on the CPU (None) or on GPU number `gpu` from now on; a process has one device for its whole life."""
    if gpu is None:
        _use_cpu()
        caffe.set_mode_cpu()
    else:
        _use_gpu(gpu)


def _use_cpu():
    """Make this process one of the CPU's, unless it has a GPU; comes before whatever makes Caffe begin.

    A Caffe with CUDA opens a GPU at its first call, whatever the mode. On the CPU that would take
    memory of the GPU's, and no process that has opened one may be forked: so GPUs are out of its sight.
    """
    if not _device:
        _device.append(None)
        os.environ[cuda.VISIBLE] = ''


def _use_gpu(gpu):
    if _device not in ([], [gpu]):
        raise RuntimeError('a process has one device: this one, or one that it was forked from, has begun with %s'
                           % ('the CPU' if _device[0] is None else 'GPU %d' % _device[0]))
    _device[:] = [gpu]
    processes.lift_memory_limit()
    caffe.set_device(gpu)
    caffe.set_mode_gpu()


def require_device(gpu: Optional[int] = None) -> None:
    """Refuse a GPU that is not there or does not compute, without opening it in this process."""
    if gpu is None:
        return
    try:
        call(_try_gpu, gpu)
    except CaffeError as error:
        raise UserError(cuda.missing(gpu, str(error), gpus()))


def _try_gpu(gpu):
    """Nothing: opens a GPU and computes on it, which is when CUDA tells what it lacks."""
    _use_gpu(gpu)
    load_net(text_format.Parse(ON_GPU, caffe_pb2.NetParameter())).forward()


ON_GPU = '''
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 2 } } }
layer { name: "y" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: 2 } }
layer { name: "z" type: "Dropout" bottom: "y" top: "z" phase: TRAIN }
'''


def on_gpu() -> bool:
    """Whether this process computes on a GPU."""
    return _device not in ([], [None])


def gpus() -> Optional[Dict[str, Any]]:
    """What cuda.ask() says."""
    def child():
        processes.lift_memory_limit()
        return cuda.ask()
    return call(child)


def has_gpu() -> bool:
    """Whether this Caffe can use GPU 0."""
    try:
        call(_try_gpu, 0)
    except CaffeError:
        return False
    return True


def set_seed(seed: int) -> None:
    """Seed Caffe's random numbers: initial weights, dropout masks and crops of this process."""
    _use_cpu()
    caffe.set_random_seed(int(seed))


# --- nets and solvers --------------------------------------------------------------------

def load_net(net: Union[str, caffe_pb2.NetParameter], weights: Optional[str] = None, phase: int = TEST,
             extra_weights: bool = False) -> CaffeNet:
    """A caffe.Net from a prototxt file or a NetParameter, with weights from a caffemodel file.

    A bad file raises a UserError with its name and the problem. Caffe itself takes weights
    by layer name and passes over what does not match; here every layer must get its weights,
    and the file may hold more than the net needs only with `extra_weights`.
    """
    _use_cpu()
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


def load_solver(solver: Union[str, caffe_pb2.SolverParameter]) -> CaffeSolver:
    """A caffe solver from a prototxt file or a SolverParameter; errors as in load_net."""
    _use_cpu()
    with _as_file(solver) as path:
        _try(_name(solver), caffe.get_solver, path)
        return caffe.get_solver(path)


def _try(name, load, *args):
    """Do load(*args) in a child; what goes wrong there is raised here with the name of the file.

    Not where a GPU is open: a fork of this process cannot use it. What Caffe aborts on then ends
    this process, which is a child of the one that reports it.
    """
    if on_gpu():
        return
    try:
        call(processes.forget, load, *args)
    except MemoryError:
        raise UserError('%s: %s' % (name, processes.out_of_memory('')))
    except (CaffeError, RuntimeError) as error:
        raise UserError('%s: %s' % (name, ' '.join(str(error).split())))
    except Exception as error:  # what a Python layer of the user's raises
        raise UserError('%s: %s' % (name, processes.python_layer_failure(error)))


def _blame(path, phase):
    """' (layer NAME)' for the layer at which Caffe gives up on a net, which its messages mostly leave out."""
    def loads(count):
        with _as_file(caffe_pb2.NetParameter(layer=net.layer[:count], input=net.input, input_dim=net.input_dim,
                                             input_shape=net.input_shape)) as start:
            try:
                call(processes.forget, caffe.Net, start, phase)
            except Exception:  # of Caffe's, or what a Python layer raises
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
    needed = _param_shapes(net)
    missing = sorted(set(needed) - set(stored))
    extra = sorted(set(stored) - set(needed))
    if missing:
        raise UserError('%s: no weights for %s; it has %s' % (weights, ', '.join(missing), ', '.join(sorted(stored))))
    if extra and not extra_ok:
        raise UserError('%s: weights for %s, which the net does not have' % (weights, ', '.join(extra)))
    _check_shapes(weights, stored, needed)


def fitting_layers(net: CaffeNet, weights: str) -> List[str]:
    """The layers of a net that a caffemodel has weights for; refuses where none fits, or one in another shape."""
    require_file(weights)
    stored, needed = weight_shapes(weights), _param_shapes(net)
    fitting = [name for name in needed if name in stored]
    if not fitting:
        raise UserError('%s: weights for %s, none of which the net has; its layers are %s'
                        % (weights, ', '.join(sorted(stored)), ', '.join(needed)))
    _check_shapes(weights, stored, OrderedDict((name, needed[name]) for name in fitting))
    return fitting


def _param_shapes(net):
    return OrderedDict((name, [tuple(blob.data.shape) for blob in blobs]) for name, blobs in net.params.items())


class ShapeError(UserError):
    """Weights of another shape than the net's: another net's, or the net was built for images of another size."""


def _check_shapes(weights, stored, needed):
    for name in needed:
        if not _same_shapes(stored[name], needed[name]):
            raise ShapeError('%s: layer %s has weights of shape %s, the net needs %s'
                             % (weights, name, _show(stored[name]), _show(needed[name])))


def weight_shapes(weights: str) -> Dict[str, List[Tuple[int, ...]]]:
    """The shapes of the blobs of each layer in a caffemodel file, old (V1) format or new."""
    if os.path.getsize(weights) >= 1 << 31:  # protobuf's own limit
        raise UserError('%s: not a caffemodel, which has less than 2 GB' % weights)
    try:
        # In a child, because protobuf writes what it dislikes to stderr.
        shapes = _shapes(weights) if on_gpu() else call(_shapes, weights)
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


def parse_bytes(message: Message, data: bytes) -> Message:
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


def require_file(path: str) -> None:
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

def describe() -> Dict[str, Any]:
    """What computed a result: versions, BLAS and its threads, for records."""
    import google.protobuf
    import lmdb
    import numpy
    return {
        'caffe': caffe.__version__,
        'caffe_path': os.path.dirname(caffe.__file__),
        'python': '%d.%d.%d' % sys.version_info[:3],
        'numpy': numpy.__version__, 'protobuf': google.protobuf.__version__, 'lmdb': lmdb.__version__,
        'blas': blas.loaded()[0],
        'blas_kernel': blas.loaded()[1],
        'threads': int(os.environ['OPENBLAS_NUM_THREADS']),
    }
