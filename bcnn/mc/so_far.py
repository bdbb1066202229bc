"""What a long evaluation says on the way: how long it will take, each repetition, and where it was stopped."""

import os
import time
from typing import Callable, Iterator, Sequence, Tuple

import numpy as np

from .. import engine
from ..system import durations, places, progress, store
from . import forward, metrics, sampling
from .sampling import Settings
from .targets import Target

LONG = 60.0   # seconds, of an evaluation that is worth a word before it starts
FEW = 5000    # passes of an image, below which none of the paper's nets takes that long
PROBE = 20    # images that the speed is measured on
ENOUGH = 1.0  # seconds of passes to measure
LIMIT = '--limit N (the first N images)'

Advice = Callable[[Settings, float], str]  # what a user could do about so many seconds, with the options of a command


# --- how long it will take --------------------------------------------------------------------

def say_duration(target: Target, settings: Settings, tasks: Sequence[sampling.Task], jobs: int,
                 advice: Advice) -> None:
    """Says how long these blocks will take here and what would be quicker, where that is long."""
    images = passes = 0
    for task in tasks:
        start, stop = sampling.span(task[1], target, settings)
        images += stop - start
        passes += (stop - start) * sampling.passes_of(task, settings)
    if passes < FEW:
        return
    once, a_pass = engine.call(speed, target, settings)
    seconds = (images * once + passes * a_pass) / min(jobs, len(tasks))
    if seconds >= LONG:
        progress.say('this takes %s %s here, with %d process%s%s' % (
            'at most' if settings.mode == 'adaptive' else 'about', durations.rough(seconds), jobs,
            'es' if jobs > 1 else '', advice(settings, seconds)))


def quicker(settings: Settings, seconds: float) -> str:
    """The Advice of tools/mc_eval.py: '; quicker: --repeats 1 (...), ...'."""
    ways = []
    if settings.repeats > 1 and settings.mode != 'shared':
        ways.append('--repeats 1 (about %s)' % durations.rough(seconds / settings.repeats))
    if settings.mode == 'stream' and not settings.rule and not settings.crops:
        ways.append('--adaptive (passes only until the class of an image is settled)')
        if settings.repeats > 1:
            ways.append('--sampler shared (repetitions share convolutions)')
    return '; quicker: ' + ', '.join(ways + [LIMIT])


def fewer_images(_settings: Settings, _seconds: float) -> str:
    """The Advice of every other command that evaluates."""
    return '; quicker: ' + LIMIT


def speed(target: Target, settings: Settings) -> Tuple[float, float]:
    """Seconds an image of what is computed once, and of a pass; measured on a few images. For a process of its own."""
    engine.use_device(settings.gpu)
    pixels = target.source.read(0, min(PROBE, settings.batch, target.count))[0]
    passes = _passes(target, settings)
    net, before = passes.net, passes.wiring.first - 1
    forward.standard(net, passes.wiring, pixels)  # the first pass of a net takes longer
    once = _seconds(lambda: net._forward(0, before)) if before >= 0 else 0.0
    kept, groups = passes.once(), []
    while not groups or sum(groups) < ENOUGH and len(groups) < 5:
        groups.append(_seconds(lambda: list(passes.group(kept))))
    return once / len(pixels), min(groups) / passes.size / len(pixels)


def _passes(target, settings):
    """The forward.Passes of an evaluation, the copies of `replicate` as passes; without dropout the whole net."""
    if target.sampling:
        net, wiring = sampling.mc_net(target, settings._replace(mode='stream'))
    else:
        net, wiring = forward.load(target.standard, target.weights, target.extra_weights)
    return sampling.sampler_of(net, wiring._replace(first=wiring.first or 0), settings, 1, 0)


def _seconds(function):
    start = time.monotonic()
    function()
    return time.monotonic() - start


# --- after each repetition ----------------------------------------------------------------------

class Repetitions:
    """Says the result so far whenever all blocks of a repetition are there."""

    def __init__(self, target: Target, settings: Settings, folder: str):
        blocks = range(-(-target.count // sampling.block_size(settings)))
        self.folder, self.count, self.repeats = folder, target.count, settings.repeats
        self.paths = {repetition: [sampling.block_path(folder, repetition, block) for block in blocks]
                      for repetition in range(1, settings.repeats + 1)}
        self.errors = {}  # of the repetitions that are complete, in percent
        for repetition in self.paths:
            self._settle(repetition)

    def add(self, repetition: int) -> None:
        """A block of this repetition has been stored."""
        if self.repeats > 1 and repetition in self.paths and self._settle(repetition):
            progress.say('repetition %d of %d: MC error %.2f%%%s' % (
                repetition, self.repeats, self.errors[repetition], self._mean()))

    def _settle(self, repetition):
        """Whether a repetition is complete; its error is noted then."""
        if not all(map(os.path.exists, self.paths[repetition])):
            return False
        wrong = sum(int(sampling.read_block(self.folder, repetition, block)['wrong_probs'][-1])
                    for block in range(len(self.paths[repetition])))
        self.errors[repetition] = 100.0 * wrong / self.count
        return True

    def _mean(self):
        errors = list(self.errors.values())
        if len(errors) == 1:
            return ''
        return ', so far %.2f +- %.2f%% of %d' % (np.mean(errors), np.std(errors, ddof=1), len(errors))


# --- where it was stopped -------------------------------------------------------------------------

def lines(folder: str, repeats: int) -> Iterator[str]:
    """What the finished blocks of an evaluation say, and of how many images and passes that is."""
    config = store.read_json(os.path.join(folder, places.CONFIG))
    blocks_of = {k: _finished(folder, k, config) for k in range(repeats + 1)} if config else {}
    if not any(blocks_of.values()):
        yield 'stopped before a block was finished'
        return
    standard = blocks_of[sampling.STANDARD]
    wrong = {block: int((~metrics.correct(arrays['probs'], arrays['labels'])).sum())
             for block, arrays in standard.items()}
    yield 'stopped; what the finished blocks say:'
    if standard:
        yield '  Standard dropout: %s' % _share(sum(wrong.values()), _images(standard))
    for repetition in range(1, repeats + 1):
        blocks = blocks_of[repetition]
        if blocks:
            same = [block for block in blocks if block in standard]
            mc = sum(int(arrays['wrong_probs'][-1]) for arrays in blocks.values())
            passes = sum(int(arrays['votes'].sum()) for arrays in blocks.values())
            yield '  MC dropout T=%d, repetition %d: %s, %s passes%s' % (
                config['T'], repetition, _share(mc, _images(blocks)), '{:,}'.format(passes),
                '; Standard on these: %.2f%%' % (100.0 * sum(wrong[block] for block in same) / _images(blocks))
                if len(same) == len(blocks) else '')
    yield 'the same command goes on from here'


def _finished(folder, repetition, config):
    """{block: its arrays} of the blocks of a repetition that are there."""
    return {block: sampling.read_block(folder, repetition, block) for block in sampling.blocks_of(config)
            if os.path.exists(sampling.block_path(folder, repetition, block))}


def _images(blocks):
    return sum(len(arrays['probs']) for arrays in blocks.values())


def _share(wrong, images):
    return 'error %.2f%% of %s images' % (100.0 * wrong / images, '{:,}'.format(images))
