"""What a job of the workflow should take on one CPU core, from the speeds that tools/bench.py recorded."""

from . import paper, plan, results

BATCH = {'mnist': 64, 'fashion_mnist': 64, 'cifar10': 128}  # images a training step; DSN's 100 is near enough
FORWARD = 1 / 3.0  # of a training step: forward, and backward by weights and by data, cost about the same


def speeds(folder=results.FOLDER):
    """{(part, 'mnist/lenet_all'): seconds} of a training step and of a stochastic pass, as recorded."""
    ours = {('training', 'driver'): 1e-3, ('MC', 'stream'): 1e-6}
    return {(row['part'], row['subject']): row['value'] * ours[row['part'], row['way']]
            for row in results.read(folder, 'bench') if (row['part'], row['way']) in ours and row['value']}


def seconds(job, known):
    """Of one core, for a job from its beginning; None where no speed of its net is recorded."""
    base = 'mnist' if job.dataset == 'fashion_mnist' else paper.base_of(job.dataset)
    net = '%s/%s' % (base, job.net)
    step = known.get(('training', net))
    if step is None:
        return None
    forward = step * FORWARD / BATCH[base]
    a_pass = known.get(('MC', net), forward)
    images = job.limit or paper.TEST_IMAGES
    if isinstance(job, plan.Evaluate):
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
