"""What the training driver costs over `caffe train`: the same solver and threads, no evaluations."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import namedtuple

from . import engine, prototxt, runs
from .errors import UserError

Cost = namedtuple('Cost', 'wall cpu')  # seconds; cpu: of the process and its children


def compare(net, iterations, rounds):
    """Yields lines: seconds of `caffe train` and of the driver for the same iterations, interleaved.

    Each is measured for 1 and for 1 + iterations, and the difference is what is compared: the
    start of a process does not count. CPU time is the better measure on a machine that does
    other things as well.
    """
    if iterations < 1 or rounds < 1:
        raise UserError('--iters and --rounds must be 1 or more')
    costs = {'caffe train': [], 'driver': []}
    yield '%-6s %-12s %10s %10s' % ('round', '', 'wall s', 'CPU s')
    with tempfile.TemporaryDirectory() as folder:
        _driver(net, 1, os.path.join(folder, 'solver'))  # for its solver, and to warm the disk
        solver = os.path.join(folder, 'solver', 'solver.prototxt')
        for k in range(rounds):
            for name in ('caffe train', 'driver') if k % 2 == 0 else ('driver', 'caffe train'):
                found = [_caffe(solver, n, folder) if name == 'caffe train'
                         else _driver(net, n, os.path.join(folder, 'run')) for n in (1, 1 + iterations)]
                costs[name].append(Cost(found[1].wall - found[0].wall, found[1].cpu - found[0].cpu))
                yield '%-6d %-12s %10.2f %10.2f' % ((k + 1, name) + costs[name][-1])
    for kind in Cost._fields:
        for how, best in (('median', statistics.median), ('least', min)):
            theirs, ours = (best([getattr(cost, kind) for cost in costs[name]]) for name in ('caffe train', 'driver'))
            yield '%-4s time, %-6s of %d: caffe train %.2f, driver %.2f ms an iteration: %+.1f%%' % (
                kind, how, rounds, 1e3 * theirs / iterations, 1e3 * ours / iterations, 100 * (ours / theirs - 1))


def _driver(net, iterations, folder):
    shutil.rmtree(folder, ignore_errors=True)
    return _cost([sys.executable, os.path.join(runs.ROOT, 'tools', 'train.py'), '--net', net, '--cpu',
                  '--iters', str(iterations), '--eval-points', 'none',
                  '--threads', os.environ['OPENBLAS_NUM_THREADS'], '--out', folder])


def _caffe(path, iterations, folder):
    with open(path) as file:
        solver = prototxt.parse(file.read(), engine.caffe_pb2.SolverParameter())
    solver.max_iter, solver.snapshot_after_train = iterations, True  # the driver stores its weights too
    solver.snapshot_prefix = os.path.join(folder, 'caffe')
    copy = os.path.join(folder, 'caffe.prototxt')
    with open(copy, 'w') as file:
        file.write(prototxt.to_text(solver))
    return _cost([caffe_command(), 'train', '--solver=' + copy])


def caffe_command():
    """The `caffe` command that belongs to this Python: the prefix's, or the one on PATH."""
    for place in (os.path.join(os.environ.get('CAFFE_PREFIX', os.path.join(runs.ROOT, '.caffe')), 'bin'), None):
        found = shutil.which('caffe', path=place)
        if found:
            return found
    raise UserError('no caffe command: run tools/setup.sh')


def _cost(command):
    """The Cost of a command."""
    start = time.time()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise UserError('%s failed: run it to see why' % ' '.join(command))
    return Cost(time.time() - start, used.ru_utime + used.ru_stime)
