"""What training and evaluation should take on one CPU core, from the speeds that tools/bench.py recorded.

Plain Python: the workflow lists its jobs with it, and the report what was not run.
"""

from . import paper

BATCH = {'mnist': 64, 'cifar10': 128}  # images a training step; DSN's 100 is near enough
FORWARD = 1 / 3.0  # of a training step: forward, and backward by weights and by data, cost about the same


def speeds(bench):
    """{(part, 'mnist/lenet_all'): seconds} of a training step and of a stochastic pass, from the rows of bench.csv."""
    ours = {('training', 'driver'): 1e-3, ('MC', 'stream'): 1e-6}
    return {(row['part'], row['subject']): row['value'] * ours[row['part'], row['way']]
            for row in bench if (row['part'], row['way']) in ours and row['value'] and row['value'] == row['value']}


def of_step(known, dataset, net):
    """Seconds of a training step; None where none is recorded."""
    return known.get(('training', '%s/%s' % (_base(dataset), net)))


def of_forward(known, dataset, net):
    """Seconds of a plain pass of one image, by the training step; None where none is recorded."""
    step = of_step(known, dataset, net)
    return None if step is None else step * FORWARD / BATCH[_base(dataset)]


def of_pass(known, dataset, net):
    """Seconds of a stochastic pass of one image: as recorded, else those of a plain one."""
    return known.get(('MC', '%s/%s' % (_base(dataset), net)), of_forward(known, dataset, net))


def _base(dataset):
    return 'mnist' if dataset == 'fashion_mnist' else paper.base_of(dataset)


def seconds(job, known):
    """Of one core, for a plan.Train or plan.Evaluate from its beginning; None where no speed of its net is recorded."""
    step, forward, a_pass = [speed(known, job.dataset, job.net) for speed in (of_step, of_forward, of_pass)]
    if step is None:
        return None
    images = job.limit or paper.TEST_IMAGES
    if hasattr(job, 'repeats'):  # evaluates
        return images * (forward + job.repeats * job.T * a_pass)
    passes = 0 if job.net == 'lenet_none' else job.T
    return sum(job.iterations) * step + _points(job) * images * (forward + passes * a_pass)


def _points(job):
    """About how many measurements a run has: 1, 2 and 5 times powers of ten from 100 on, in each stage."""
    return sum(max(1, 3 * (len(str(stage)) - 3) + 1) for stage in job.iterations)


def clock(amount):
    """'3 min', '5 h', '4 days'; 'unknown' of None."""
    if amount is None:
        return 'unknown'
    for size, word in ((86400.0, 'days'), (3600.0, 'h'), (60.0, 'min')):
        if amount >= 2 * size:
            return '%.0f %s' % (amount / size, word)
    return '%.0f s' % amount
