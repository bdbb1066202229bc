"""Measuring: what a run takes, and the table's rows, with ratios and shares of what the machine can do at all.

Every measurement is made once a round, all of them one after another, and the median of the
rounds is what counts: a busy minute of the machine touches one round of everything rather than
everything of one row. Ratios and shares are taken within a round first. Absolute times are this
machine's; the ratios and the shares of its own rates are what to look at. One thread everywhere.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import OrderedDict
from statistics import median
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from ..errors import CaffeError, UserError
from ..system import places

CLOCKS = ('wall', 'cpu')


class Spent(NamedTuple):
    """What a run takes."""

    wall: float     # seconds by the clock
    cpu: float      # of the processor
    note: str = ''  # for the table


class Rates(NamedTuple):
    """What a device can do at the moment."""

    sgemm: float    # operations of matrix products a second
    memory: float   # bytes of memory copied a second


class Work(NamedTuple):
    """The work that a run is; None for what is not known."""

    flops: Optional[float] = None
    bytes: Optional[float] = None


class Measurement(NamedTuple):
    """What is measured. Part, subject, T and way are its name."""

    part: str
    subject: str
    T: Optional[int]
    way: str
    run: Callable[[], Spent]
    value: Callable[[float], float]     # what the table shows, of seconds
    unit: str
    base: bool = False                  # whether others of the same part, subject and T are compared with it
    work: Callable[[], Work] = Work     # of a run
    note: str = ''
    variance: Callable[[], Optional[float]] = lambda: None  # of what it estimates, 1 for the base's; None: no estimate

    def group(self) -> Tuple[str, str, Optional[int]]:
        """What those have in common that are compared with each other."""
        return self.part, self.subject, self.T

    def cost(self, seconds: float) -> float:
        """What is compared: the value where it is a time, its inverse where it is a rate."""
        value = self.value(seconds)
        return 1 / value if self.unit.endswith('/s') else value


class Row(NamedTuple):
    """A row of the table `bench`; no value where it could not be measured, and the note says why."""

    part: str
    subject: str
    T: Optional[int]
    way: str
    value: Optional[float] = None    # the median of the rounds
    unit: str = ''
    low: Optional[float] = None      # the least of the rounds
    high: Optional[float] = None     # and the most
    times: Optional[float] = None    # how many times as long as the base
    equal: Optional[float] = None    # the same at equal accuracy: times the variance
    sgemm: Optional[float] = None    # share of the machine's rate of matrix products
    memory: Optional[float] = None   # and of copying memory
    rounds: int = 0
    note: str = ''


def label(named: Union[Measurement, Row]) -> str:
    """The name of a measurement or row, in words."""
    return ' '.join(filter(None, [named.part, named.subject, 'T=%d' % named.T if named.T else '', named.way]))


# --- what something takes -----------------------------------------------------------------------------

def clock(function: Callable[[], Any]) -> Spent:
    """What a function in this process takes; its note is what it gives back, if that is text."""
    wall, cpu = time.time(), time.process_time()
    note = function()
    return Spent(time.time() - wall, time.process_time() - cpu, note if isinstance(note, str) else '')


def spent(command: Sequence[str], env: Optional[Mapping[str, str]] = None) -> Spent:
    """What a command takes, its children included."""
    return resources(command, env)[0]


def tool(name: str, **options: Any) -> List[str]:
    """The words of a command of tools/ with these options, --name value; without those that are None."""
    words = [sys.executable, os.path.join(places.ROOT, 'tools', name)]
    for option, value in options.items():
        words += [] if value is None else ['--' + option.replace('_', '-'), str(value)]
    return words


def after_first(cost: Callable[[int], Spent], n: int) -> Spent:
    """What n more of something take than one; cost(k): what a command takes for k of them, its start included."""
    cost(1)  # not counted: a first start has to read what has left the caches since the last round
    many, few = cost(1 + n), cost(1)
    return Spent(many.wall - few.wall, many.cpu - few.cpu)


def resources(command: Sequence[str], env: Optional[Mapping[str, str]] = None) -> Tuple[Spent, int]:
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


# --- the machine's own rates --------------------------------------------------------------------------

SGEMM_SIZE = 1536


def rates(times: int = 5) -> Dict[str, Rates]:
    """{clock: Rates} just now: products of large matrices, and copies of memory that no cache holds."""
    a = np.random.RandomState(0).rand(SGEMM_SIZE, SGEMM_SIZE).astype(np.float32)
    source = np.ones(32 << 20, np.float32)
    copy = np.empty_like(source)
    products = [clock(lambda: a @ a) for _ in range(times)]
    copies = [clock(lambda: np.copyto(copy, source)) for _ in range(times)]
    return {kind: Rates(sgemm=2.0 * SGEMM_SIZE ** 3 / median(getattr(taken, kind) for taken in products),
                        memory=2.0 * source.nbytes / median(getattr(taken, kind) for taken in copies))
            for kind in CLOCKS}


# --- rounds -------------------------------------------------------------------------------------------

def measure(measurements: Sequence[Measurement], rounds: int, rates: Callable[[], Dict[str, Rates]] = rates,
            step: Callable[[int, str], None] = lambda n, note: None, by: str = 'wall') -> List[Row]:
    """The Rows of some measurements, in their order; one that fails has no value, and its note says why.

    by: the clock. That of the processor counts nothing of what else the machine does.
    """
    histories = [_History(measurement) for measurement in measurements]
    groups = OrderedDict()
    for history in histories:
        groups.setdefault(history.measurement.group(), []).append(history)
    for k in range(rounds):
        for group in groups.values():
            now = rates()[by]
            for history in group if k % 2 == 0 else reversed(group):  # whoever comes first has no advantage in all
                history.add_round(by, now)
                step(1, label(history.measurement))
    return [history.row(groups[history.measurement.group()]) for history in histories]


class _History:
    """The rounds of a measurement so far."""

    def __init__(self, measurement):
        self.measurement, self.failure, self.note = measurement, None, ''
        self.seconds, self.rates = [], []  # of each round, and what the machine could do then

    def add_round(self, by, now):
        """Measures once more; what has failed is not tried again."""
        if self.failure is not None:
            return
        try:
            taken = self.measurement.run()
            if not getattr(taken, by) > 0:  # a difference of two times, on a busy machine
                raise UserError('took no longer than nothing: too little to measure, or the machine too busy')
        except (UserError, CaffeError, OSError, MemoryError, ValueError, RuntimeError) as error:
            # without this machine's paths: notes are recorded
            self.failure = ' '.join(str(error).split()).replace(places.ROOT + os.sep, '') or type(error).__name__
            return
        self.note = taken.note
        self.seconds.append(getattr(taken, by))
        self.rates.append(now)

    def row(self, group):
        """The Row; group: the histories that it is compared with."""
        what = self.measurement
        row = Row(part=what.part, subject=what.subject, T=what.T, way=what.way, unit=what.unit)
        if self.failure is not None:
            return row._replace(note=self.failure)
        values, work, times = [what.value(seconds) for seconds in self.seconds], what.work(), self._times(group)
        variance = what.variance()
        return row._replace(
            value=median(values), low=min(values), high=max(values), times=times,
            equal=None if times is None or variance is None else times * variance,
            sgemm=self._share(work.flops, 'sgemm'), memory=self._share(work.bytes, 'memory'),
            rounds=len(values), note=', '.join(filter(None, [what.note, self.note])))

    def _share(self, amount, kind):
        """The share of the machine's rate, the median of the rounds; None where the amount of work is not known."""
        return median(amount / seconds / getattr(now, kind)
                      for seconds, now in zip(self.seconds, self.rates)) if amount else None

    def _times(self, group):
        """How many times as long as the base: the median of the rounds, all of which both must have."""
        base = next((history for history in group if history.measurement.base), None)
        if base is None or len(base.seconds) != len(self.seconds):
            return None
        return median(self.measurement.cost(mine) / base.measurement.cost(theirs)
                      for mine, theirs in zip(self.seconds, base.seconds))
