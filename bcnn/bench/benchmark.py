"""How fast things are here, beside what people would use instead: which measurements there are, and their table."""

import fnmatch
import functools
import tempfile
from collections import OrderedDict
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .. import engine
from ..errors import UserError
from ..results import csv_tables, writing
from ..system import progress, provenance
from . import comparable, device_rates, mc_ways, measuring, peers, surroundings, train_steps
from .measuring import SGEMM_SIZE, Measurement, Rates, Row, Spent, Work, label


class Sizes(NamedTuple):
    """How much is measured."""

    passes: Tuple[int, ...]               # values of T; in fours, which antithetic masks make groups of
    images: Dict[str, int]                # of each net
    training: Dict[Tuple[str, str], int]  # iterations of each (data set, net)
    data: int                             # images to prepare
    check: int                            # passes with which the ways are checked against each other


# All nets that the paper trains: the report estimates from these steps what its schedules cost.
TRAINING = OrderedDict([(('mnist', name), 150) for name in ('lenet_all', 'lenet_ip', 'lenet_none')] + [
    (('cifar10', name), 3) for name in ('lenet_all', 'lenet_ip', 'lenet_none', 'nin', 'dsn', 'dsn_aug')])
FULL = Sizes(passes=(20, 100), images=dict(lenet_ip=1000, lenet_all=200, nin=20), training=TRAINING, data=5000,
             check=52)
QUICK = Sizes(passes=(4,), images=dict(lenet_ip=8, lenet_all=8, nin=2), training={('mnist', 'lenet_none'): 20},
              data=200, check=32)
ROUNDS = 5


# --- what is measured -------------------------------------------------------------------------------------

def all_measurements(sizes: Sizes, peer: peers.Peer, folder: str, gpu: Optional[int] = None) -> List[Measurement]:
    """Every measurement of the table, in its order; on a GPU those in which it has a part."""
    measurements = limits(peer, gpu) + evaluations(sizes, peer, folder, gpu)
    measurements += train_steps.measurements(sizes.training, peer, folder, gpu)
    if gpu is not None:
        return measurements + surroundings.startup(folder, gpu)
    return measurements + surroundings.measurements(sizes.images['nin'], sizes.passes, sizes.data, folder)


def limits(peer: peers.Peer, gpu: Optional[int] = None) -> List[Measurement]:
    """The device's own rates as rows, and the matrix product of the peers' library."""
    rates, library, notes = rates_of(gpu), 'cuBLAS', device_rates.NOTES
    if gpu is None:
        library = 'OpenBLAS'
        notes = '%d x %d matrices, one thread' % (SGEMM_SIZE, SGEMM_SIZE), '128 MB read, 128 MB written'

    def ours(amount, kind):
        now = rates()
        return Spent(*(amount / getattr(now[clock], kind) for clock in measuring.CLOCKS))

    def theirs():
        return Spent(**peer.ask('sgemm', size=SGEMM_SIZE))

    flops = 2.0 * SGEMM_SIZE ** 3
    product = dict(part='limit', subject='sgemm', T=None, value=lambda seconds: flops / seconds / 1e9, unit='GFLOP/s',
                   work=lambda: Work(flops=flops))
    return [Measurement(way=library, run=lambda: ours(flops, 'sgemm'), base=True, note=notes[0], **product),
            Measurement(way='PyTorch', run=theirs, **product),
            Measurement(part='limit', subject='memory', T=None, way='copy', run=lambda: ours(1.0, 'memory'),
                        value=lambda seconds: 1 / seconds / 1e9, unit='GB/s', work=lambda: Work(bytes=1.0),
                        note=notes[1])]


def rates_of(gpu: Optional[int]) -> Callable[[], Dict[str, Rates]]:
    """The function that measures what a device can do: of the CPU (None) by numpy, of a GPU by Caffe."""
    return measuring.rates if gpu is None else functools.partial(device_rates.rates, gpu)


def evaluations(sizes: Sizes, peer: peers.Peer, folder: str, gpu: Optional[int] = None) -> List[Measurement]:
    """The measurements of MC evaluation."""
    return [_way(way, '%s/%s' % (dataset, name), sizes.images[name], T, prepared)
            for name, dataset in (('lenet_ip', 'mnist'), ('lenet_all', 'mnist'), ('nin', 'cifar10'))
            for prepared in [_prepared(name, dataset, sizes, peer, folder, gpu)]
            for T in sizes.passes for way in tuple(mc_ways.OURS) + mc_ways.PEERS]


def _prepared(name, dataset, sizes, peer, folder, gpu):
    """A function that gives the comparable.Prepared of a net, made when it is first asked for."""
    @functools.lru_cache(maxsize=None)
    def make():
        return comparable.Prepared(mc_ways.case(name, dataset, sizes.images[name], folder, gpu=gpu), peer, sizes.check)
    return make


def _way(way, subject, count, T, prepared):
    return Measurement(part='MC', subject=subject, T=T, way=way, run=lambda: prepared().time(way, T),
                       value=lambda seconds: 1e6 * seconds / count / T, unit='us a pass', base=way == 'stream',
                       work=lambda: prepared().work(way, T), note='%d images' % count,
                       variance=lambda: prepared().variance(way, T))


def choose(measurements: Sequence[Measurement], pattern: str) -> List[Measurement]:
    """The measurements whose label matches a pattern such as 'MC*nin*', and what they are compared with."""
    matching = [what for what in measurements if fnmatch.fnmatch(label(what).lower(), pattern.lower())]
    if not matching:
        examples = [label(what) for what in measurements[::max(1, len(measurements) // 4)]]
        raise UserError("nothing is called %s: the names are such as '%s', and * stands for anything"
                        % (pattern, "', '".join(examples)))
    groups = set(what.group() for what in matching)
    return [what for what in measurements if what in matching or what.base and what.group() in groups]


# --- the table ------------------------------------------------------------------------------------------------

def run(rounds: int, quick: bool = False, only: Optional[str] = None, by: str = 'wall',
        gpu: Optional[int] = None) -> List[Row]:
    """The Rows of the whole table, or of a part of it; on a GPU or, for None, on the CPU."""
    if gpu is not None and by != 'wall':
        raise UserError('--clock cpu: the time of the processor says nothing of a GPU')
    engine.require_device(gpu)
    with tempfile.TemporaryDirectory() as folder, peers.Peer(gpu=gpu) as peer:
        chosen = all_measurements(QUICK if quick else FULL, peer, folder, gpu)
        chosen = choose(chosen, only) if only else chosen
        with progress.bar('bench', total=rounds * len(chosen), unit='measurements') as step:
            return measuring.measure(chosen, rounds, rates_of(gpu), step, by)


def lines(rows: Sequence[Row]) -> Iterator[str]:
    """The table as lines of text."""
    yield '%-52s %10s %-9s %19s %7s %7s %6s %6s  %s' % (
        'what', 'median', '', 'least ... most', 'times', 'equal', 'sgemm', 'memory', 'note')
    for row in rows:
        if row.value is None:
            yield '%-52s %10s %-9s %s' % (label(row), '-', '', row.note)
            continue
        span = '%.4g ... %.4g' % (row.low, row.high)
        shares = tuple('' if share is None else '%.0f%%' % (100 * share) for share in (row.sgemm, row.memory))
        ratios = tuple('' if ratio is None else '%.2f' % ratio for ratio in (row.times, row.equal))
        yield ('%-52s %10.4g %-9s %19s %7s %7s %6s %6s  %s' % (
            (label(row), row.value, row.unit, span) + ratios + shares + (row.note,))).rstrip()


def machine(gpu: Optional[int] = None) -> str:
    """What computes here, in a line: the GPU if one does, processor, cores, BLAS, and the peers' versions."""
    gpus = [] if gpu is None else ['%(name)s' % engine.gpus()['gpus'][gpu]]
    with peers.Peer() as peer:
        versions = peers.versions(peer)
    return '; '.join(gpus + [provenance.machine(engine.describe())]
                     + ['%s %s' % pair for pair in sorted(versions.items()) if not pair[1].startswith('no ')])


def recorder(folder: str, by: str = 'wall', only: Optional[str] = None,
             gpu: Optional[int] = None) -> Callable[[Sequence[Row]], None]:
    """A function that writes rows as the table `bench` or `bench_gpu` of the recorded results, replacing it as a whole,
    or where only some are measured these. What stands in one table was measured on one machine: rows that would not
    belong there are refused now, before they are measured."""
    here = machine(gpu) + ('; processor time' if by == 'cpu' else '')
    name = 'bench' if gpu is None else 'bench_gpu'
    if only and set(row['machine'] for row in csv_tables.read(folder, name)) - {here}:
        raise UserError('the recorded table was measured on another machine, or by another clock: record it as a whole')
    write = writing.record if only else writing.write
    return lambda rows: write(name, [dict(row._asdict(), machine=here) for row in rows], folder)
