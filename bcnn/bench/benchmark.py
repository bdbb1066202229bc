"""How fast things are here, beside what people would use instead and beside what the machine can do at all.

Every measurement is made once a round, all of them one after another, and the median of the
rounds is what counts: a busy minute of the machine touches one round of everything rather than
everything of one row. Ratios and shares are taken within a round first. Absolute times are this
machine's; the ratios and the shares of its own rates are what to look at. One thread everywhere.
"""

import fnmatch
import functools
import os
import subprocess
import tempfile
import time
from collections import OrderedDict, namedtuple
from statistics import median

import numpy as np

from .. import engine
from ..errors import CaffeError, UserError
from ..results import csv_tables, writing
from ..system import places, progress, provenance
from . import peers

# What a run takes: seconds by the clock, of the processor, and a note for the table.
Spent = namedtuple('Spent', 'wall cpu note')
Spent.__new__.__defaults__ = ('',)
CLOCKS = ('wall', 'cpu')
# A measurement. part, subject, T, way: its name. run(): Spent. value(seconds): what the table shows, in `unit`.
# base: whether others of the same part, subject and T are compared with it.
# work(): (floating-point operations, bytes) of a run; either may be None. variance(): of what it estimates, 1 for the
# base's; None for what is no estimate.
Measure = namedtuple('Measure', 'part subject T way run value unit base work note variance')
Measure.__new__.__defaults__ = (False, lambda: (None, None), '', lambda: None)
# low, high: of the rounds. times: how many times as long as the base; equal: the same at equal accuracy, that is times
# the variance. sgemm, memory: share of the machine's rate.
Row = namedtuple('Row', 'part subject T way value unit low high times equal sgemm memory rounds note')
# What the machine could do at the moment: operations and bytes a second.
Rates = namedtuple('Rates', 'sgemm memory')
# How much is measured: values of T, images of each net, iterations of each training, images to prepare,
# and passes with which the ways are checked against each other. Passes in fours, which antithetic masks make groups of.
Sizes = namedtuple('Sizes', 'passes images training data check')
# All nets that the paper trains: the report estimates from these steps what its schedules cost.
TRAINING = OrderedDict([(('mnist', name), 150) for name in ('lenet_all', 'lenet_ip', 'lenet_none')] + [
    (('cifar10', name), 3) for name in ('lenet_all', 'lenet_ip', 'lenet_none', 'nin', 'dsn', 'dsn_aug')])
FULL = Sizes((20, 100), dict(lenet_ip=1000, lenet_all=200, nin=20), TRAINING, 5000, 52)
QUICK = Sizes((4,), dict(lenet_ip=8, lenet_all=8, nin=2), {('mnist', 'lenet_none'): 20}, 200, 32)
ROUNDS = 5


def label(row):
    """The name of a measurement or row, in words."""
    return ' '.join(filter(None, [row.part, row.subject, 'T=%d' % row.T if row.T else '', row.way]))


# --- the machine's own rates --------------------------------------------------------------------------

SGEMM_SIZE = 1536


def rates(times=5):
    """{clock: Rates} just now: products of large matrices, and copies of memory that no cache holds."""
    a = np.random.RandomState(0).rand(SGEMM_SIZE, SGEMM_SIZE).astype(np.float32)
    source = np.ones(32 << 20, np.float32)
    target = np.empty_like(source)
    products = [clock(lambda: a @ a) for _ in range(times)]
    copies = [clock(lambda: np.copyto(target, source)) for _ in range(times)]
    return {kind: Rates(2.0 * SGEMM_SIZE ** 3 / median(getattr(spent, kind) for spent in products),
                        2.0 * source.nbytes / median(getattr(spent, kind) for spent in copies)) for kind in CLOCKS}


def clock(function):
    """What a function in this process takes; its note is what it gives back, if that is text."""
    wall, cpu = time.time(), time.process_time()
    note = function()
    return Spent(time.time() - wall, time.process_time() - cpu, note if isinstance(note, str) else '')


def spent(command, env=None):
    """What a command takes, its children included."""
    return resources(command, env)[0]


def after_first(cost, n):
    """What n more of something take than one; cost(k): what a command takes for k of them, its start included."""
    cost(1)  # not counted: a first start has to read what has left the caches since the last round
    many, few = cost(1 + n), cost(1)
    return Spent(many.wall - few.wall, many.cpu - few.cpu)


def resources(command, env=None):
    """(Spent, kilobytes of the largest process) of a command and its children; a failure is refused in its words."""
    with tempfile.TemporaryFile() as log:
        start = time.time()
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        # ru_maxrss: of the process or the largest of its children
        _, process.returncode, used = os.wait4(process.pid, 0)
        wall = time.time() - start
        if process.returncode:
            log.seek(0)
            raise UserError(log.read().decode('utf-8', 'replace').strip() or '%s failed without a message'
                            % ' '.join(os.path.basename(word) for word in command))
    return Spent(wall, used.ru_utime + used.ru_stime), used.ru_maxrss


# --- measuring ------------------------------------------------------------------------------------------

def measure(measures, rounds, rates=rates, step=lambda n, note='': None, by='wall'):
    """The Rows of some measurements, in their order; one that fails has no value, and its note says why.

    by: the clock. That of the processor counts nothing of what else the machine does.
    """
    found = OrderedDict((one, []) for one in measures)     # [(seconds, Rates) or None] for each round
    notes, failed = {}, {}
    for k in range(rounds):
        for group in _groups(measures):
            now = rates()[by]
            for one in group if k % 2 == 0 else reversed(group):  # whoever comes first has no advantage in all
                if one not in failed:
                    _once(one, by, now, found, notes, failed)
                step(1, label(one))
    return [_row(one, found, notes.get(one, ''), failed.get(one)) for one in measures]


def _groups(measures):
    """The measurements that are compared with each other, as lists."""
    groups = OrderedDict()
    for one in measures:
        groups.setdefault((one.part, one.subject, one.T), []).append(one)
    return list(groups.values())


def _once(one, by, now, found, notes, failed):
    try:
        spent = one.run()
        if not getattr(spent, by) > 0:  # a difference of two times, on a busy machine
            raise UserError('took no longer than nothing: too little to measure, or the machine too busy')
    except (UserError, CaffeError, OSError, MemoryError, ValueError, RuntimeError) as error:
        # without this machine's paths: notes are recorded
        failed[one] = ' '.join(str(error).split()).replace(places.ROOT + os.sep, '') or type(error).__name__
        return
    notes[one] = spent.note
    found[one].append((getattr(spent, by), now))


def _row(one, found, said, failure):
    """The Row of a measurement from its rounds, compared with its base round by round."""
    name = (one.part, one.subject, one.T, one.way)
    if failure is not None:
        return Row(*name + (None, one.unit, None, None, None, None, None, None, 0, failure))
    values = [one.value(seconds) for seconds, _ in found[one]]
    flops, size = one.work()
    shares = [median(amount / seconds / getattr(now, kind) for seconds, now in found[one]) if amount else None
              for amount, kind in ((flops, 'sgemm'), (size, 'memory'))]
    note, times, variance = ', '.join(filter(None, [one.note, said])), _times(one, found), one.variance()
    equal = None if times is None or variance is None else times * variance
    return Row(*name + (median(values), one.unit, min(values), max(values), times, equal) + tuple(shares)
               + (len(values), note))


def _times(one, found):
    """How many times as long as its base a measurement takes: the median of the rounds in which both were made."""
    base = next((other for other in found if other.base and other[:3] == one[:3]), None)
    if base is None or len(found[base]) != len(found[one]):
        return None
    return median(_cost(one, mine) / _cost(base, theirs) for (mine, _), (theirs, _) in zip(found[one], found[base]))


def _cost(one, seconds):
    """What is compared: the value where it is a time, its inverse where it is a rate."""
    value = one.value(seconds)
    return 1 / value if one.unit.endswith('/s') else value


# --- all of them ------------------------------------------------------------------------------------------

def limits(peer, gpu=None):
    """The device's own rates as rows, and the matrix product of the peers' library."""
    from . import device_rates
    rates, library, notes = rates_of(gpu), 'cuBLAS', device_rates.NOTES
    if gpu is None:
        library = 'OpenBLAS'
        notes = '%d x %d matrices, one thread' % (SGEMM_SIZE, SGEMM_SIZE), '128 MB read, 128 MB written'

    def ours(amount, kind):
        now = rates()
        return Spent(*(amount / getattr(now[clock], kind) for clock in CLOCKS))

    def theirs():
        return Spent(**peer.ask('sgemm', size=SGEMM_SIZE))

    flops = 2.0 * SGEMM_SIZE ** 3
    return [
        Measure('limit', 'sgemm', None, library, lambda: ours(flops, 'sgemm'), lambda s: flops / s / 1e9, 'GFLOP/s',
                True, lambda: (flops, None), notes[0]),
        Measure('limit', 'sgemm', None, 'PyTorch', theirs, lambda s: flops / s / 1e9, 'GFLOP/s', False,
                lambda: (flops, None)),
        Measure('limit', 'memory', None, 'copy', lambda: ours(1.0, 'memory'), lambda s: 1 / s / 1e9, 'GB/s', False,
                lambda: (None, 1.0), notes[1]),
    ]


def rates_of(gpu):
    """The function that measures what a device can do: of the CPU (None) by numpy, of a GPU by Caffe."""
    from . import device_rates
    return rates if gpu is None else functools.partial(device_rates.rates, gpu)


def all_measures(sizes, peer, folder, gpu=None):
    """Every measurement of the table, in its order; on a GPU those in which it has a part."""
    from . import surroundings, train_steps
    found = limits(peer, gpu) + evaluations(sizes, peer, folder, gpu)
    found += train_steps.measures(sizes.training, peer, folder, gpu)
    return found + (surroundings.measures(sizes, peer, folder) if gpu is None else surroundings.startup(folder, gpu))


def evaluations(sizes, peer, folder, gpu=None):
    """The measurements of MC evaluation."""
    from . import mc_ways
    found = []
    for name, dataset in (('lenet_ip', 'mnist'), ('lenet_all', 'mnist'), ('nin', 'cifar10')):
        cases = _Later(lambda name=name, dataset=dataset: mc_ways.prepare(
            mc_ways.case(name, dataset, sizes.images[name], folder, gpu=gpu), peer, sizes.check))
        for T in sizes.passes:
            found += _ways(mc_ways, '%s/%s' % (dataset, name), sizes.images[name], T, cases)
    return found


def _ways(bench_mc, subject, count, T, cases):
    def of(way):
        return Measure('MC', subject, T, way, lambda: cases().time(way, T), lambda seconds: 1e6 * seconds / count / T,
                       'us a pass', way == 'stream', lambda: cases().work(way, T), '%d images' % count,
                       lambda: cases().variance(way, T))
    return [of(way) for way in list(bench_mc.OURS) + list(bench_mc.PEERS)]


class _Later:
    """make(), when first asked for; a failure is remembered too."""

    def __init__(self, make):
        self.make, self.made, self.failure = make, None, None

    def __call__(self):
        if self.failure is not None:
            raise self.failure
        if self.made is None:
            try:
                self.made = self.make()
            except (UserError, CaffeError, OSError) as error:
                self.failure = error
                raise
        return self.made


# --- the table ------------------------------------------------------------------------------------------------

def choose(measures, pattern):
    """The measurements whose label matches a pattern such as 'MC*nin*', and what they are compared with."""
    found = [one for one in measures if fnmatch.fnmatch(label(one).lower(), pattern.lower())]
    if not found:
        raise UserError("nothing is called %s: the names are such as '%s', and * stands for anything"
                        % (pattern, "', '".join(label(one) for one in measures[::max(1, len(measures) // 4)])))
    groups = set(one[:3] for one in found)
    return [one for one in measures if one in found or one.base and one[:3] in groups]


def run(rounds, quick=False, only=None, by='wall', gpu=None):
    """The Rows of the whole table, or of a part of it; on a GPU or, for None, on the CPU."""
    if gpu is not None and by != 'wall':
        raise UserError('--clock cpu: the time of the processor says nothing of a GPU')
    engine.require_device(gpu)
    with tempfile.TemporaryDirectory() as folder, peers.Peer(gpu=gpu) as peer:
        chosen = all_measures(QUICK if quick else FULL, peer, folder, gpu)
        chosen = choose(chosen, only) if only else chosen
        with progress.bar('bench', total=rounds * len(chosen), unit='measurements') as step:
            return measure(chosen, rounds, rates_of(gpu), step, by)


def lines(rows):
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


def machine(gpu=None):
    """What computes here, in a line: the GPU if one does, processor, cores, BLAS, and the peers' versions."""
    gpus = [] if gpu is None else ['%(name)s' % engine.gpus()['gpus'][gpu]]
    with peers.Peer() as peer:
        found = peers.versions(peer)
    return '; '.join(gpus + [provenance.machine(engine.describe())]
                     + ['%s %s' % pair for pair in sorted(found.items()) if not pair[1].startswith('no ')])


def record(rows, folder, by='wall', only=None, gpu=None):
    """Write the rows as the table `bench` or `bench_gpu` of the recorded results, replacing it as a whole, or where
    only some were measured these: what stands in one table was measured on one machine."""
    here = machine(gpu) + ('; processor time' if by == 'cpu' else '')
    name = 'bench' if gpu is None else 'bench_gpu'
    made = [dict(row._asdict(), machine=here) for row in rows]
    if not only:
        return writing.write(name, made, folder)
    if set(row['machine'] for row in csv_tables.read(folder, name)) - {here}:
        raise UserError('the recorded table was measured on another machine, or by another clock: record it as a whole')
    return writing.record(name, made, folder)
