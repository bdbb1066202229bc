"""The door to Caffe: the only module that imports it.

Caffe ends the whole process on bad input (glog's FATAL), which Python cannot catch. So
what may fail runs in a forked child first (`call`), and its last words come back as a
CaffeError with one line. The environment is set before the import, because OpenBLAS and
glog read it only once.
"""

import contextlib
import ctypes
import multiprocessing
import os
import re
import signal
import sys
import tempfile

# 2: errors only; fatal messages are printed in any case.
os.environ.setdefault('GLOG_minloglevel', '2')
# One BLAS thread a process: two such processes beat one with two threads, and
# oversubscription is ruinous. The launcher sets these from --threads.
for _variable in ('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'OMP_NUM_THREADS'):
    os.environ.setdefault(_variable, '1')

import caffe  # noqa: E402
from caffe import NetSpec, layers, params  # noqa: E402,F401  (for bcnn.nets)
from caffe.proto import caffe_pb2  # noqa: E402,F401
from google.protobuf import text_format  # noqa: E402

from .errors import CaffeError, UserError  # noqa: E402

TRAIN, TEST = caffe.TRAIN, caffe.TEST


# --- a child process that Caffe may abort -------------------------------------------------

def call(function, *args):
    """What function(*args) returns, computed in a forked child; raises what it raises.

    An abort of Caffe's, or any other death of the child, becomes a CaffeError here. SIGINT
    and SIGTERM are passed on, so that a child that handles them ends in its own way, and a
    killed parent takes its child along.
    """
    context = multiprocessing.get_context('fork')
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryFile() as log:
        child = context.Process(target=_serve, args=(sender, log.fileno(), os.getpid(), function, args))
        child.start()
        sender.close()
        with _signals_passed_to(child):
            try:
                outcome = receiver.recv()
            except EOFError:
                outcome = None
            child.join()
        if outcome is None:
            log.seek(0)
            _raise_death(child.exitcode, log.read().decode('utf-8', 'replace'))
    result, error = outcome
    if error is not None:
        raise error
    return result


def _serve(sender, log, parent, function, args):
    """The child's whole life: function's result or exception goes into the pipe."""
    _die_with(parent)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Python's messages (progress bars) keep the real stderr; what Caffe's C++ code
    # writes to file descriptor 2 goes to the log.
    sys.stderr = os.fdopen(os.dup(2), 'w', 1)
    os.dup2(log, 2)
    try:
        outcome = function(*args), None
    except BaseException as error:  # noqa: B902  (KeyboardInterrupt and SystemExit travel too)
        outcome = None, error
    try:
        sender.send(outcome)
    except Exception:  # an exception or a result that cannot travel: its text can
        sender.send((None, RuntimeError('%s from the Caffe process: %r' % (type(outcome[1]).__name__, outcome))))
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
def _signals_passed_to(child):
    def forward(number, _frame):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, number)

    try:
        old = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not the main thread, which alone gets signals
        old = {}
    try:
        yield
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
    parse = re.search(r'\[libprotobuf (?:ERROR|FATAL) [^\]]*\] (.*)', log)
    fatal = re.search(r'^F\d{4} [^\]]*\] (.*?)(?=^\*\*\* |\Z)', log, re.MULTILINE | re.DOTALL)
    thrown = re.search(r'what\(\):\s*(.*)', log)
    found = [match.group(1) for match in (parse, fatal) if match] or ([thrown.group(1)] if thrown else [])
    return ' '.join(': '.join(found).split())


# --- device, seed ------------------------------------------------------------------------

def use_device(gpu=None):
    """Compute on the CPU (None) or on GPU number `gpu` from now on; refuses one that is not there."""
    if gpu is None:
        caffe.set_mode_cpu()
        return
    try:
        call(_open_gpu, gpu)
    except CaffeError as error:
        if 'CPU-only' in str(error):
            raise UserError('GPU %d asked for, but this Caffe is built without GPU support: use --cpu, '
                            'or the gpu target of the Dockerfile' % gpu)
        raise UserError('GPU %d cannot be used: %s' % (gpu, error))
    _open_gpu(gpu)


def _open_gpu(gpu):
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

def load_net(net, weights=None, phase=TEST):
    """A caffe.Net from a prototxt file or a NetParameter, with weights from a caffemodel file.

    Bad files raise a CaffeError that names the file and the problem.
    """
    with _as_file(net) as path:
        _try(_net, path, weights, phase, name=_name(net), weights=weights)
        return _net(path, weights, phase)


def load_solver(solver):
    """A caffe solver from a prototxt file or a SolverParameter; errors as in load_net."""
    with _as_file(solver) as path:
        _try(caffe.get_solver, path, name=_name(solver))
        return caffe.get_solver(path)


def _net(path, weights, phase):
    net = caffe.Net(path, phase)
    if weights is not None:
        net.copy_from(os.fspath(weights))
    return net


def _try(load, *args, name, weights=None):
    """Do `load` in a child; what goes wrong there is raised here with the name of the file."""
    for path in [weights] if weights is not None else []:
        _require_file(path)
    try:
        call(_forget, load, *args)
    except (CaffeError, RuntimeError) as error:
        where = name if weights is None else '%s with weights %s' % (name, weights)
        raise CaffeError('%s: %s' % (where, ' '.join(str(error).split())))


def _forget(function, *args):
    """function(*args) for its effects: a net cannot travel through a pipe."""
    function(*args)


def _require_file(path):
    if not os.path.isfile(path):
        raise UserError('%s: no such file' % path)


def _name(net):
    return net.name or type(net).__name__ if hasattr(net, 'DESCRIPTOR') else os.fspath(net)


@contextlib.contextmanager
def _as_file(net):
    """The path of a prototxt file with `net` in it: Caffe reads nets from files only."""
    if not hasattr(net, 'DESCRIPTOR'):
        _require_file(net)
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
        'blas': blas(),
        'threads': int(os.environ['OPENBLAS_NUM_THREADS']),
    }


def blas():
    """The name of the BLAS library that Caffe computes with."""
    with open('/proc/self/maps') as maps:
        loaded = maps.read()
    for name in ('openblas', 'mkl', 'blis', 'atlas'):
        if re.search(r'/lib%s[^/]*\.so' % name, loaded):
            return name
    return 'unknown'
