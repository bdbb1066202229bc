"""How the cost of an MC evaluation grows: seconds and memory of whole mc_eval.py commands.

One of T, the number of images and the number of processes is changed at a time. The batch is
fixed, so that memory can only grow with what should not make it grow.
"""

import os
import shutil
import tempfile
from statistics import median
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from .. import engine, nets
from ..results import writing
from ..system import progress
from . import benchmark, measuring

ROUNDS = 3
BATCH = 100
NETS = ('lenet_ip', 'lenet_all')
FULL = dict(T=(1, 3, 10, 30, 100, 300, 1000), images=(100, 300, 1000, 3000, 10000), at=dict(T=20, images=200))
QUICK = dict(T=(1, 3), images=(100,), at=dict(T=2, images=200))


class Point(NamedTuple):
    """An evaluation to measure."""

    net: str
    vary: str      # what is changed: T or images
    T: int
    images: int
    jobs: int      # processes


class Growth(NamedTuple):
    """A row of the table `growth`: a Point and what it took."""

    net: str
    vary: str
    T: int
    images: int
    jobs: int
    seconds: float     # the median of the rounds
    low: float         # the least of them
    high: float        # and the most
    megabytes: float   # the largest resident size of any process of the command
    batch: int
    rounds: int


def points(sizes: Dict[str, Any]) -> List[Point]:
    """The Points to measure."""
    fixed = sizes['at']
    return [Point(net=net, jobs=jobs, **dict(fixed, vary=vary, **{vary: size}))
            for net in NETS for jobs in (1, 2) for vary in ('T', 'images') for size in sizes[vary]]


def run(rounds: int, quick: bool = False) -> List[Growth]:
    """The Growths of all points, a round of all of them at a time."""
    chosen = points(QUICK if quick else FULL)
    costs = {point: [] for point in chosen}
    with tempfile.TemporaryDirectory() as folder:
        weights = {net: _weights(net, folder) for net in NETS}
        with progress.bar('growth', total=rounds * len(chosen), unit='measurements') as step:
            for _ in range(rounds):
                for point in chosen:
                    costs[point].append(cost(point, weights[point.net], os.path.join(folder, 'out')))
                    step(1, '%s T=%d, %d images, --jobs %d' % (point.net, point.T, point.images, point.jobs))
    return [summary(point, costs[point]) for point in chosen]


def summary(point: Point, costs: Sequence[Tuple[float, int]]) -> Growth:
    """The Growth of a point from its (seconds, kilobytes) of each round."""
    seconds, kilobytes = zip(*costs)
    return Growth(seconds=median(seconds), low=min(seconds), high=max(seconds), megabytes=max(kilobytes) / 1024.0,
                  batch=BATCH, rounds=len(costs), **point._asdict())


def _weights(net, folder):
    path = os.path.join(folder, net + '.caffemodel')
    engine.call(lambda: engine.load_net(nets.deploy(net, 'mnist')).save(path))
    return path


def cost(point: Point, weights: str, out: str) -> Tuple[float, int]:
    """(seconds, kilobytes of the largest process) of one evaluation."""
    shutil.rmtree(out, ignore_errors=True)
    spent, kilobytes = measuring.resources(measuring.tool(
        'mc_eval.py', net=point.net, weights=weights, T=point.T, limit=point.images, jobs=point.jobs, batch=BATCH,
        repeats=1, out=out))
    return spent.wall, kilobytes


def lines(rows: Sequence[Growth]) -> Iterator[str]:
    """The table as lines of text."""
    yield '%-10s %-6s %6s %7s %5s %10s %21s %9s' % (
        'net', 'varied', 'T', 'images', 'jobs', 'seconds', 'least ... most', 'MB')
    for row in rows:
        yield '%-10s %-6s %6d %7d %5d %10.2f %21s %9.0f' % (
            row.net, row.vary, row.T, row.images, row.jobs, row.seconds, '%.2f ... %.2f' % (row.low, row.high),
            row.megabytes)


def recorder(folder: str) -> Callable[[Sequence[Growth]], None]:
    """A function that writes rows as the table `growth` of the recorded results, replacing it as a whole."""
    here = benchmark.machine()
    return lambda rows: writing.write('growth', [dict(row._asdict(), machine=here) for row in rows], folder)
