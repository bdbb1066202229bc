"""What training and evaluation should take, from the speeds that tools/bench.py recorded or that were tried here.

Plain Python: the workflow lists its jobs with it, and the report what was not run.
"""

from typing import Any, Dict, Iterable, Optional, Tuple

from .. import beyond, paper
from .jobs import Evaluate, Job, Study, Train

Speeds = Dict[Tuple[str, str], float]  # seconds, by part of the benchmark and net: ('training', 'mnist/lenet_all')

FORWARD = 1 / 3.0  # of a training step: forward, and backward by weights and by data, cost about the same
SHARED = 0.5       # of the time of a pass, where repetitions share masks: about what sampler.csv has for NIN
ADAPTIVE = 10.0    # passes of an image that adaptive T takes on nets as young as those of short profiles


def speeds(bench: Iterable[Dict[str, Any]]) -> Speeds:
    """{(part, 'mnist/lenet_all'): seconds} of a training step and of a stochastic pass, from the rows of bench.csv."""
    ours = {('training', 'driver'): 1e-3, ('MC', 'stream'): 1e-6}
    return {(row['part'], row['subject']): row['value'] * ours[row['part'], row['way']]
            for row in bench if (row['part'], row['way']) in ours and row['value'] and row['value'] == row['value']}


def of_step(known: Speeds, dataset: str, net: str) -> Optional[float]:
    """Seconds of a training step; None where none is recorded."""
    return known.get(('training', '%s/%s' % (_base(dataset), beyond.paper_net(net))))


def of_forward(known: Speeds, dataset: str, net: str) -> Optional[float]:
    """Seconds of a plain pass of one image, by the training step; None where none is recorded."""
    step = of_step(known, dataset, net)
    return None if step is None else step * FORWARD / paper.batch(_base(dataset), net)


def of_pass(known: Speeds, dataset: str, net: str) -> Optional[float]:
    """Seconds of a stochastic pass of one image: as recorded, else those of a plain one."""
    return known.get(('MC', '%s/%s' % (_base(dataset), beyond.paper_net(net))), of_forward(known, dataset, net))


def _base(dataset):
    return 'mnist' if dataset == 'fashion_mnist' else paper.base_of(dataset)


def seconds(job: Job, known: Speeds) -> Optional[float]:
    """Of one core, for a job from its beginning; None where no speed of its net is recorded."""
    spent = parts(job, known)
    return spent and spent[0] + spent[1]


def on_clock(job: Job, known: Speeds) -> Optional[float]:
    """Seconds that a job takes with its processes; None where no speed of its net is recorded."""
    spent = parts(job, known)
    return spent and spent[0] + spent[1] / job.processes


def parts(job: Job, known: Speeds) -> Optional[Tuple[float, float]]:
    """(seconds of training steps, seconds of measurements, which several processes share), of one core, or None."""
    step, forward, a_pass = [speed(known, job.dataset, job.net) for speed in (of_step, of_forward, of_pass)]
    if step is None:
        return None
    if isinstance(job, Study):
        return 0.0, job.passed * (forward + job.T * a_pass)
    images = job.limit or paper.TEST_IMAGES
    if isinstance(job, Evaluate):
        share = SHARED if job.sampler == 'shared' else 1.0
        return 0.0, images * (forward + job.repeats * job.T * a_pass * share)
    passes = 0 if job.net == 'lenet_none' else min(job.T, ADAPTIVE) if job.adaptive else job.T
    return sum(job.iterations) * step, points(job) * images * (forward + passes * a_pass)


def points(job: Train) -> int:
    """About how many measurements a run has: those it names, or 1, 2 and 5 times powers of ten from 100 on, in each
    stage."""
    if job.points[0].isdigit():
        return sum(int(point) <= stage for stage in job.iterations for point in job.points.split(','))
    return sum(max(1, 3 * (len(str(stage)) - 3) + 1) for stage in job.iterations)
