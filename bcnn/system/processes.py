"""Child processes for what may abort: a death becomes one line, a memory limit holds, none outlives its parent.

Caffe ends the whole process on bad input (glog's FATAL), LMDB's library on a damaged file
(SIGBUS); Python can catch neither. So what may fail runs in a forked child (`call`, `work`), and
its last words come back as an error with one line. Standard library only: bcnn.engine is what
adds Caffe.
"""

import contextlib
import ctypes
import faulthandler
import io
import itertools
import multiprocessing
import multiprocessing.connection
import os
import re
import resource
import signal
import sys
import tempfile
import traceback
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, Tuple

from ..errors import CaffeError, UserError

SIGNALS = (signal.SIGINT, signal.SIGTERM)  # passed on to children
LOG = 1 << 16  # bytes at the end of what a child's libraries wrote that are searched for the cause of its death


def call(function: Callable, *args: Any, answers: Callable[[Any], bool] = lambda result: False) -> Any:
    """What function(*args) returns, computed in a forked child; raises what it raises.

    An abort of Caffe's, or any other death of the child, becomes a CaffeError here. SIGINT
    and SIGTERM are passed on, and end this process as they would have without a child, unless
    answers(result) says that the child has ended in its own way because of them. A killed
    parent takes its children along.
    """
    (_, result), = work(lambda: lambda _: function(*args), [None], 1, answers)
    return result


def work(make: Callable[[], Callable], tasks: Iterable[Any], jobs: int,
         answers: Callable[[Any], bool] = lambda result: False) -> Iterator[Tuple[Any, Any]]:
    """Yield (task, result) as they come: make() in each of `jobs` children gives a function to do tasks with.

    Each task goes to the next child that is free. Errors are raised here as in `call`, and
    end the other children. To be taken to its end: signals that come while the children are
    being ended count too.
    """
    tasks = iter(tasks)
    children, answered = [], 0
    with _signals_passed_to(children) as signals:
        try:
            for _ in range(jobs):
                children.append(_Child(make))
            idle, busy = list(children), {}
            while True:
                for number in signals[answered:]:  # nothing new is begun after one
                    _raise_death(-number, '')
                for task in itertools.islice(tasks, len(idle)):
                    child = idle.pop()
                    with contextlib.suppress(ConnectionError):  # it died: receive() tells why
                        child.pipe.send((task,))
                    busy[child.pipe] = child, task
                if not busy:
                    break
                for pipe in multiprocessing.connection.wait(list(busy)):
                    child, task = busy.pop(pipe)
                    result = child.receive()
                    answered = len(signals) if answers(result) else answered
                    yield task, result
                    idle.append(child)
        finally:
            for child in children:
                child.end()
    for number in signals[answered:]:
        os.kill(os.getpid(), number)


class _Child:
    """A forked process that does one task after another; what Caffe says on dying is kept in a file."""

    def __init__(self, make):
        context = multiprocessing.get_context('fork')
        self.log = tempfile.TemporaryFile()
        self.pipe, inner = context.Pipe()
        self.process = context.Process(target=_serve, args=(
            inner, self.pipe, self.log.fileno(), os.getpid(), memory_limit(), make))
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
        except (EOFError, OSError):  # it died: idle, with its task unread, or with half a result sent
            self.process.join()
            self.log.seek(max(0, self.log.seek(0, os.SEEK_END) - LOG))
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


def _serve(pipe, parents_end, log, parent, limit, make):
    """A child's whole life: a function from make(), then tasks from the pipe and results into it."""
    die_with(parent)
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
        _limit_memory(limit)
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


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Ask the kernel to send this process a signal when its parent dies, even by kill -9."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)
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
    if _is_lack_of_memory(message):
        raise CaffeError(out_of_memory(message))
    if message:
        raise CaffeError(message)
    how = 'by signal %d' % -exitcode if exitcode < 0 else 'with exit code %d' % exitcode
    raise CaffeError('the Caffe process ended %s without a message' % how)


def last_words(log: str) -> str:
    """The cause of an abort, from what glog and protobuf wrote, in one line ('' if none)."""
    for pattern in (r'\[libprotobuf (?:ERROR|FATAL) [^\]]*\] ([^\n]*)',     # says more than the abort it leads to
                    r'^F\d{4} [^\]]*\] (.*?)(?=^\*\*\* |\Z)',
                    r'what\(\):\s*([^\n]*)'):
        match = re.search(pattern, log, re.MULTILINE | re.DOTALL)
        if match:
            return ' '.join(match.group(1).split())
    return ''


def forget(function: Callable, *args: Any) -> None:
    """Nothing: function(*args) is done for its effects, as a net cannot travel through a pipe."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            function(*args)
    except SystemError:  # a Python layer has failed: Caffe has printed its error, and lost it
        raise SystemError(said.getvalue().strip().rpartition('\n')[2])


def python_layer_failure(error: BaseException, layers: Sequence[str] = ()) -> str:
    """What to say of an exception that a Python layer of the user's raised in a child: its words, file and line."""
    frames = ['File "%s", line %d' % (frame.filename, frame.lineno) for frame in
              traceback.extract_tb(error.__traceback__)]
    trace = '\n'.join([str(error.__cause__ or '')] + frames)
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    places = [place for place in re.findall(r'File "([^"<]+)", line (\d+)', trace)
              if not place[0].startswith(own) and os.sep + 'caffe' + os.sep not in place[0]]
    words = ' '.join(str(error).split())
    if not isinstance(error, SystemError):  # in which there are kind and words already
        words = '%s: %s%s' % (type(error).__name__, words, ' (%s, line %s)' % places[-1] if places else '')
    if 'ModuleNotFoundError' in words:
        words += ': PYTHONPATH has to name the folder of this module'
    return 'Python layer%s: %s' % (' ' + ' or '.join(layers) if layers else '', words)


# --- memory --------------------------------------------------------------------------------

MEMORY = 'BCNN_MEMORY'  # environment: the most bytes of memory a child may have, such as 8G; 0 for no limit
UNITS = {'': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}
_before = []  # the limits that a child had before its own


def memory_limit() -> Optional[int]:
    """The bytes of memory that a child may have: BCNN_MEMORY, or all of the machine or container; None for any."""
    text = os.environ.get(MEMORY, '').strip()
    if not text:
        return _machine_memory()
    match = re.match(r'(\d{1,15})\s*([KMGT]?)(i?B)?$', text, re.IGNORECASE)
    if not match:
        raise UserError('%s=%s: not an amount of memory like 8G or 500M' % (MEMORY, text))
    return int(match.group(1)) * UNITS[match.group(2).upper()] or None


def _machine_memory():
    """The machine's memory with its swap, or the container's limit if that is less; None where neither is told."""
    limits = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open('/proc/meminfo') as file:
            lines = dict(line.split(':', 1) for line in file)
        limits.append(sum(int(lines[name].split()[0]) << 10 for name in ('MemTotal', 'SwapTotal') if name in lines))
    for path in ('/sys/fs/cgroup/memory.max', '/sys/fs/cgroup/memory/memory.limit_in_bytes'):
        with contextlib.suppress(OSError, ValueError):  # 'max' is no number
            with open(path) as file:
                limits.append(int(file.read()))
    return min(limits) if limits else None


def _limit_memory(limit):
    """Make allocations beyond the limit fail in this process, so that its library says so before the machine suffers.

    RLIMIT_DATA and not RLIMIT_AS: files mapped for reading (an LMDB may map a terabyte) cost nothing.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if limit is None or _before or soft != resource.RLIM_INFINITY and soft <= limit:  # or a child of a limited one
        return
    _before.append((soft, hard))
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def lift_memory_limit() -> None:
    """Undo the limit in this process: CUDA reserves far more address space than any machine has memory."""
    if _before:
        resource.setrlimit(resource.RLIMIT_DATA, _before.pop())


def _is_lack_of_memory(message):
    return 'host allocation of size' in message or 'bad_alloc' in message


def out_of_memory(message: str) -> str:
    """What to say where an allocation failed; message: the library's own words, '' for none."""
    limit = memory_limit()
    allowed = ' than the %d MB it may have (%s allows more)' % (limit >> 20, MEMORY) if limit else ''
    return 'needs more memory%s%s' % (allowed, ': ' + message if message else '')
