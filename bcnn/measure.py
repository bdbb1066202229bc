"""Measuring the test error of a net in training, with the passes of the MC evaluator.

The nets that measure share the weights of the net in training. Their masks come from seeds of
their own (run, stage, iteration, block of images), so measuring changes nothing in the
training, and the numbers do not depend on how many processes share the work.
"""

import numpy as np

from . import engine, mc, metrics


class Tester:
    """Counts the errors of the net in training on the test images."""

    def __init__(self, task, seed, T, gpu, jobs):
        self.source, self.count, self.seed, self.T, self.gpu, self.jobs = task.source, task.count, seed, T, gpu, jobs
        self.nets = [self._load(message) for message in (task.standard, task.sampling) if message is not None]
        largest = max(mc.bytes_an_image(net) for net, _ in self.nets)
        self.batch = min(mc.fitting_batch(largest), self.count)

    def _load(self, message):
        net = engine.load_net(message)
        return net, mc.plan(message, net)

    def share(self, training):
        """Takes the weights of a training net: the same memory, so that later steps are seen too."""
        for net, _ in self.nets:
            net.share_with(training)

    def errors(self, stage, iteration):
        """(Standard, MC by probabilities, MC by scores): how many images are wrong; None without dropout."""
        blocks = range(-(-self.count // self.batch))
        # What takes longest first, so that the processes end at about the same time.
        tasks = [(kind, block) for kind in reversed(range(len(self.nets))) for block in blocks]

        def work(task):
            return self._block(task[0], task[1], (self.seed, stage, iteration, task[1]))

        if self.gpu is None:  # forked children see the weights as they are now
            done = engine.work(lambda: work, tasks, min(self.jobs, len(tasks)))
        else:  # CUDA does not survive a fork
            done = ((task, work(task)) for task in tasks)
        totals = np.zeros((len(self.nets), 2), int)
        for (kind, _), wrong in done:
            totals[kind] += wrong
        return (totals[0, 0], totals[1, 0], totals[1, 1]) if len(self.nets) == 2 else (totals[0, 0], None, None)

    def _block(self, kind, block, seeds):
        """How many of a block of images are wrong: by probabilities, by scores."""
        pixels, labels = self.source.read(block * self.batch, min((block + 1) * self.batch, self.count))
        net, how = self.nets[kind]
        if kind == 0:
            probs, scores = mc.standard(net, how, pixels)
            return [len(labels) - np.count_nonzero(metrics.correct(rows, labels)) for rows in (probs, scores)]
        mc.use_seed(*seeds)
        sums = mc.sample(mc.stream(net, how, pixels, self.T), labels, net.blobs[how.prob].data[0].size)
        return [sums.wrong_probs[-1], sums.wrong_scores[-1]]
