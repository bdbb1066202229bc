"""The door to Caffe: the only module that imports it.

Caffe ends the whole process on bad input (glog's FATAL), which Python cannot catch. So
what may fail runs in a forked child first (`call`), and its last words come back as a
CaffeError with one line. The environment is set before the import, because OpenBLAS and
glog read it only once.
"""

import contextlib
import ctypes
import faulthandler
import itertools
import multiprocessing
import multiprocessing.connection
import os
import re
import signal
import sys
import tempfile
import traceback
import warnings

from . import blas

# 2: errors only; fatal messages are printed in any case.
os.environ.setdefault('GLOG_minloglevel', '2')
blas.prepare()

import caffe  # noqa: E402
from caffe import NetSpec, layers, params  # noqa: E402,F401  (for bcnn.nets)
from caffe.proto import caffe_pb2  # noqa: E402,F401
from google.protobuf import text_format  # noqa: E402
from google.protobuf.message import DecodeError  # noqa: E402

from .errors import CaffeError, UserError  # noqa: E402

TRAIN, TEST = caffe.TRAIN, caffe.TEST


# --- child processes that Caffe may abort --------------------------------------------------

SIGNALS = (signal.SIGINT, signal.SIGTERM)  # passed on to children


def call(function, *args):
    """What function(*args) returns, computed in a forked child; raises what it raises.

    An abort of Caffe's, or any other death of the child, becomes a CaffeError here. SIGINT
    and SIGTERM are passed on, so that a child that handles them ends in its own way, and a
    killed parent takes its children along.
    """
    for _, result in work(lambda: lambda _: function(*args), [None], jobs=1):
        return result


def work(make, tasks, jobs):
    """Yield (task, result) as they come: make() in each of `jobs` children gives a function to do tasks with.

    Each task goes to the next child that is free. Errors are raised here as in `call`, and
    end the other children.
    """
    tasks = iter(tasks)
    children = []
    with _signals_passed_to(children) as signals:
        try:
            for _ in range(jobs):
                children.append(_Child(make))
            idle, busy = list(children), {}
            while True:
                for number in signals:  # nothing new is begun after one
                    _raise_death(-number, '')
                for task in itertools.islice(tasks, len(idle)):
                    child = idle.pop()
                    with contextlib.suppress(ConnectionError):  # it died: receive() tells why
                        child.pipe.send((task,))
                    busy[child.pipe] = child, task
                if not busy:
                    return
                for pipe in multiprocessing.connection.wait(list(busy)):
                    child, task = busy.pop(pipe)
                    yield task, child.receive()
                    idle.append(child)
        finally:
            for child in children:
                child.end()


class _Child:
    """A forked process that does one task after another; what Caffe says on dying is kept in a file."""

    def __init__(self, make):
        context = multiprocessing.get_context('fork')
        self.log = tempfile.TemporaryFile()
        self.pipe, inner = context.Pipe()
        self.process = context.Process(target=_serve, args=(inner, self.pipe, self.log.fileno(), os.getpid(), make))
        # A signal for a child that has no handlers of its own yet waits for them: Python forgets
        # those that come before a fork is complete.
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        inner.close()

    def receive(self):
        """The result of the task in hand; raises what went wrong."""
        try:
            result, error, trace = self.pipe.recv()
        except (EOFError, ConnectionError):  # a reset where it died with its task unread
            self.process.join()
            self.log.seek(0)
            _raise_death(self.process.exitcode, self.log.read().decode('utf-8', 'replace'))
        if error is not None:
            raise error from RuntimeError('in the Caffe process:\n' + trace)
        return result

    def end(self):
        with contextlib.suppress(OSError):
            self.pipe.send(())  # an idle child ends by itself
        if not multiprocessing.connection.wait([self.process.sentinel], timeout=0.2):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()
        self.pipe.close()
        self.log.close()


def _serve(pipe, parents_end, log, parent, make):
    """A child's whole life: a function from make(), then tasks from the pipe and results into it."""
    _die_with(parent)
    parents_end.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Python's messages (progress bars) keep the real stderr; what Caffe's C++ code
    # writes to file descriptor 2 goes to the log.
    sys.stderr = os.fdopen(os.dup(2), 'w', 1)
    os.dup2(log, 2)
    faulthandler.disable()  # pytest's; the log has the cause
    function = None
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        for task in iter(pipe.recv, ()):
            try:
                function = function or make()
                outcome = function(*task), None, ''
            except BaseException as error:  # KeyboardInterrupt and SystemExit travel too
                outcome = None, error, traceback.format_exc()
            try:
                pipe.send(outcome)
            except Exception as error:  # a result or an exception that cannot be pickled
                stuck = RuntimeError('%r cannot leave the Caffe process: %s' % (outcome[:2], error))
                pipe.send((None, stuck, outcome[2]))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except (EOFError, OSError):
        pass  # the parent has gone, or is going
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)  # no destructors: Caffe's are neither needed nor safe after a fork


def _die_with(parent):
    """Ask the kernel to kill this process when its parent dies, even by kill -9."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the request
        os._exit(1)


@contextlib.contextmanager
def _signals_passed_to(children):
    signals = []

    def forward(number, _frame):
        signals.append(number)
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.process.pid, number)

    try:
        old = {number: signal.signal(number, forward) for number in SIGNALS}
    except ValueError:  # not the main thread, which alone gets signals
        old = {}
    try:
        yield signals
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _raise_death(exitcode, log):
    """Raise what an aborted child's exit code and log amount to."""
    if exitcode == -signal.SIGINT:
        raise KeyboardInterrupt
    if exitcode == -signal.SIGTERM:
        raise SystemExit(128 + signal.SIGTERM)
    if exitcode == -signal.SIGKILL:
        raise CaffeError('the Caffe process was killed (signal 9), most often because memory ran out')
    message = last_words(log)
    if message:
        raise CaffeError(message)
    how = 'by signal %d' % -exitcode if exitcode < 0 else 'with exit code %d' % exitcode
    raise CaffeError('the Caffe process ended %s without a message' % how)


def last_words(log):
    """The cause of an abort, from what glog and protobuf wrote, in one line ('' if none)."""
    for pattern in (r'\[libprotobuf (?:ERROR|FATAL) [^\]]*\] ([^\n]*)',     # says more than the abort it leads to
                    r'^F\d{4} [^\]]*\] (.*?)(?=^\*\*\* |\Z)',
                    r'what\(\):\s*([^\n]*)'):
        match = re.search(pattern, log, re.MULTILINE | re.DOTALL)
        if match:
            return ' '.join(match.group(1).split())
    return ''


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
            except (CaffeError, RuntimeError):
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
    try:
        with open(weights, 'rb') as file:
            model = parse_bytes(caffe_pb2.NetParameter(), file.read())
    except ValueError:
        raise UserError('%s: not a caffemodel, or damaged' % weights)
    shapes = {layer.name: [_shape(blob) for blob in layer.blobs]
              for layer in list(model.layer) + list(model.layers) if layer.blobs}
    if not shapes:
        raise UserError('%s: no weights in this file; is it a caffemodel?' % weights)
    return shapes


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


def _name(net):
    if hasattr(net, 'DESCRIPTOR'):
        return getattr(net, 'name', '') or type(net).__name__
    return os.fspath(net)


@contextlib.contextmanager
def _as_file(net):
    """The path of a prototxt file with `net` in it: Caffe reads nets from files only."""
    if not hasattr(net, 'DESCRIPTOR'):
        require_file(net)
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
    import numpy
    return {
        'caffe': caffe.__version__,
        'caffe_path': os.path.dirname(caffe.__file__),
        'python': '%d.%d.%d' % sys.version_info[:3],
        'numpy': numpy.__version__,
        'protobuf': google.protobuf.__version__,
        'blas': blas.loaded()[0],
        'blas_kernel': blas.loaded()[1],
        'threads': int(os.environ['OPENBLAS_NUM_THREADS']),
    }
