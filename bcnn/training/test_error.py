"""Measuring the test error of a net in training, with the passes of the MC evaluator.

The nets that measure share the weights of the net in training. Their masks come from seeds of
their own (run, stage, iteration, block of images), so measuring changes nothing in the
training, and the numbers do not depend on how many processes share the work.
"""

from collections import OrderedDict
from typing import Callable, Dict, Optional, Tuple

import numpy as np

from .. import batches, engine, seeds
from ..mc import adaptive, forward, metrics, running_sums
from .trainees import Settings, Trainee


class Tester:
    """Finds which test images the net in training has wrong."""

    def __init__(self, trainee: Trainee, settings: Settings):
        self.trainee, self.settings = trainee, settings
        self.rule = settings.rule if trainee.sampling is not None else None
        self.nets = [forward.load(message) for message in (trainee.standard, trainee.sampling) if message is not None]
        self.batch = min(min(batches.fitting(batches.need_of(net)) for net, _ in self.nets), self.trainee.count)
        if self.rule:
            self.batch = min(self.batch, adaptive.LARGEST)
        self.block = self.batch * (adaptive.BLOCK if self.rule else 1)

    def share(self, training: engine.CaffeNet) -> None:
        """Takes the weights of a training net: the same memory, so that later steps are seen too."""
        for net, _ in self.nets:
            net.share_with(training)

    def wrong(self, stage: int, iteration: int,
              measured: Callable[[float], None] = lambda share: None) -> Tuple[Dict[str, np.ndarray], Optional[float]]:
        """({'standard', 'mc', 'mc_scores': which images are wrong}, mean passes of an image where T is adaptive).

        Standard alone without dropout; no mc_scores with adaptive T, which promises nothing of them. measured: called
        with the share that is done, now and then.
        """
        blocks = range(-(-self.trainee.count // self.block))
        kinds = [self._adaptive] if self.rule else [self._standard, self._sampled][:len(self.nets)]
        # What takes longest first, so that the processes end at about the same time.
        tasks = [(kind, block) for kind in reversed(range(len(kinds))) for block in blocks]

        def work(task):
            kind, block = task
            start, stop = block * self.block, min((block + 1) * self.block, self.trainee.count)
            return kinds[kind](start, stop, seeds.parts_of(
                self.settings.streams, 'measurement', self.settings.seed, stage, iteration, block))

        if self.settings.gpu is None:  # forked children see the weights as they are now
            results = engine.work(lambda: work, tasks, min(self.settings.jobs, len(tasks)))
        else:  # CUDA does not survive a fork
            results = ((task, work(task)) for task in tasks)
        done = {}
        for task, arrays in results:
            done[task] = arrays
            measured(len(done) / float(len(tasks)))
        wrong = OrderedDict((name, np.concatenate([done[kind, block][name] for block in blocks]))
                            for kind in range(len(kinds)) for name in done[kind, 0])
        passes = wrong.pop('passes', None)
        return wrong, None if passes is None else passes.mean()

    # --- a block of images: {name: of each image}

    def _standard(self, start, stop, _seed):
        pixels, labels = self.trainee.source.read(start, stop)
        return OrderedDict(standard=~metrics.correct(forward.standard(*self.nets[0], pixels)[0], labels))

    def _sampled(self, start, stop, seed):
        pixels, labels = self.trainee.source.read(start, stop)
        net, wiring = self.nets[1]
        seeds.use_seed(*seed)
        passes = forward.stream(net, wiring, pixels, self.settings.T)
        sums = running_sums.sample(passes, labels, net.blobs[wiring.prob].data[0].size)
        return OrderedDict(mc=~metrics.correct(sums.probs, labels), mc_scores=~metrics.correct(sums.scores, labels))

    def _adaptive(self, start, stop, seed):
        """Both at once: adaptive T starts from the Standard predictions."""
        def read(first, last):
            return self.trainee.source.read(start + first, start + last)

        parts = [read(first, min(first + self.batch, stop - start)) for first in range(0, stop - start, self.batch)]
        labels = np.concatenate([labels for _, labels in parts])
        standard = np.concatenate([forward.standard(*self.nets[0], pixels)[0] for pixels, _ in parts])
        seeds.use_seed(*seed)
        seats = adaptive.Seats(forward.Passes(*self.nets[1]), lambda first, last: read(first, last)[0], len(labels),
                               self.batch)
        sums = adaptive.sample(seats, labels, self.settings.T, self.rule, standard.argmax(axis=1))
        return OrderedDict(standard=~metrics.correct(standard, labels), mc=~metrics.correct(sums['probs'], labels),
                           passes=sums['passes'])
