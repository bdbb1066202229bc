"""How fast this machine is now: two seconds of the smallest net, on every core at once, beside its recorded speeds."""

import statistics
import time
from typing import Dict

import numpy as np

from .. import engine, nets
from ..mc import forward
from ..results import csv_tables
from ..system import places
from . import cost

NET = 'mnist', 'lenet_all'
SECONDS = 0.8   # of each kind of work
IMAGES = 64     # a training batch


def speeds(cores: int) -> cost.Speeds:
    """cost.speeds for this machine: the recorded ones times what the smallest net takes here, on so many cores.

    Nothing where no speeds are recorded.
    """
    known = recorded()
    if not all((part, '/'.join(NET)) in known for part in ('training', 'MC')):
        return {}
    tried = [result for _, result in engine.work(lambda: lambda _: try_here(), range(cores), cores)]
    factors = {}
    for part in ('training', 'MC'):
        factors[part] = statistics.mean(seconds[part] for seconds in tried) / known[part, '/'.join(NET)]
    return {key: value * factors[key[0]] for key, value in known.items()}


def recorded() -> cost.Speeds:
    """cost.speeds of the machine that bench.csv was measured on."""
    return cost.speeds(csv_tables.read(places.RESULTS, 'bench'))


def try_here() -> Dict[str, float]:
    """{'training': seconds of a step, 'MC': seconds of a stochastic pass of an image}, of one process."""
    engine.use_device(None)
    trained = engine.load_net(nets.fed(NET[1], NET[0], IMAGES), phase=engine.TRAIN)  # the data set may not be there yet
    sampling, wiring = forward.load(nets.mc(NET[1], NET[0]))
    forward.fill(sampling, wiring, np.random.RandomState(1).rand(IMAGES, 1, 28, 28).astype(np.float32))
    sampling.forward()

    def step():
        trained.forward()
        trained.backward()

    def a_pass():
        sampling._forward(wiring.first, len(sampling.layers) - 1)

    return {'training': _median(step), 'MC': _median(a_pass) / IMAGES}


def _median(work):
    """The median seconds of a call, of as many as fit into SECONDS."""
    taken, end = [], time.perf_counter() + SECONDS
    while not taken or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)
