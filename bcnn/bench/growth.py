"""How the cost of an MC evaluation grows: seconds and memory of whole mc_eval.py commands.

One of T, the number of images and the number of processes is changed at a time. The batch is
fixed, so that memory can only grow with what should not make it grow.
"""

import os
import shutil
import sys
import tempfile
from collections import namedtuple
from statistics import median

from .. import engine, nets
from ..results import writing
from ..system import places, progress
from . import benchmark

ROUNDS = 3
BATCH = 100
NETS = ('lenet_ip', 'lenet_all')
# vary: what is changed, T or images
Point = namedtuple('Point', 'net vary T images jobs')
# seconds: the median of the rounds; megabytes: the largest resident size of any process of the command
Growth = namedtuple('Growth', Point._fields + ('seconds', 'low', 'high', 'megabytes', 'batch', 'rounds'))
FULL = dict(T=(1, 3, 10, 30, 100, 300, 1000), images=(100, 300, 1000, 3000, 10000), at=dict(T=20, images=200))
QUICK = dict(T=(1, 3), images=(100,), at=dict(T=2, images=200))


def points(sizes):
    """The Points to measure."""
    found = []
    for net in NETS:
        for jobs in (1, 2):
            found += [Point(net, 'T', T, sizes['at']['images'], jobs) for T in sizes['T']]
            found += [Point(net, 'images', sizes['at']['T'], images, jobs) for images in sizes['images']]
    return found


def run(rounds, quick=False):
    """The Growths of all points, a round of all of them at a time."""
    chosen = points(QUICK if quick else FULL)
    found = {point: [] for point in chosen}
    with tempfile.TemporaryDirectory() as folder:
        weights = {net: _weights(net, folder) for net in NETS}
        with progress.bar('growth', total=rounds * len(chosen), unit='measurements') as step:
            for _ in range(rounds):
                for point in chosen:
                    found[point].append(cost(point, weights[point.net], os.path.join(folder, 'out')))
                    step(1, '%s T=%d, %d images, --jobs %d' % (point.net, point.T, point.images, point.jobs))
    return [summary(point, found[point]) for point in chosen]


def summary(point, costs):
    """The Growth of a point from its (seconds, kilobytes)."""
    seconds = [pair[0] for pair in costs]
    return Growth(*point + (median(seconds), min(seconds), max(seconds), max(pair[1] for pair in costs) / 1024.0, BATCH,
                            len(costs)))


def _weights(net, folder):
    path = os.path.join(folder, net + '.caffemodel')
    engine.call(lambda: engine.load_net(nets.deploy(net, 'mnist')).save(path))
    return path


def cost(point, weights, out):
    """(seconds, kilobytes of the largest process) of one evaluation."""
    shutil.rmtree(out, ignore_errors=True)
    tool = os.path.join(places.ROOT, 'tools', 'mc_eval.py')
    command = [sys.executable, tool, '--net', point.net, '--weights', weights,
               '--T', str(point.T), '--limit', str(point.images), '--jobs', str(point.jobs), '--batch', str(BATCH),
               '--repeats', '1', '--out', out]
    spent, kilobytes = benchmark.resources(command)
    return spent.wall, kilobytes


def lines(found):
    """The table as lines of text."""
    yield '%-10s %-6s %6s %7s %5s %10s %21s %9s' % (
        'net', 'varied', 'T', 'images', 'jobs', 'seconds', 'least ... most', 'MB')
    for row in found:
        yield '%-10s %-6s %6d %7d %5d %10.2f %21s %9.0f' % (
            row.net, row.vary, row.T, row.images, row.jobs, row.seconds, '%.2f ... %.2f' % (row.low, row.high),
            row.megabytes)


def record(found, folder):
    """Write the table `growth` of the recorded results, replacing it as a whole."""
    here = benchmark.machine()
    writing.write('growth', [dict(row._asdict(), machine=here) for row in found], folder)
