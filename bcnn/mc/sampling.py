"""One block of an evaluation: a batch of images with all passes of one repetition, sampled and stored.

Several batches where T is adaptive, all repetitions where they share masks. Its seed comes from (seed, repetition,
block; see bcnn.seeds), so that the numbers depend neither on how many processes work nor on what was interrupted.
"""

import functools
import itertools
import os
from collections import OrderedDict
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from .. import engine, seeds
from ..errors import UserError
from ..inputs import preprocessing
from ..prototxt import facts, rewriting
from ..system import npz, places, processes
from . import adaptive, antithetic, forward, running_sums
from .running_sums import Arrays
from .targets import Target


class Settings(NamedTuple):
    """How to evaluate."""

    T: int
    repeats: int
    seed: int                               # of the masks
    mode: str                               # stream, replicate, antithetic, shared or adaptive
    batch: Optional[int] = None             # images; None for what fits
    crops: Optional[int] = None             # random views an image; None for the plain image
    gpu: Optional[int] = None               # None for the CPU
    rule: Optional[adaptive.Rule] = None    # of adaptive mode; elsewhere to watch what it would decide
    groups: Optional[int] = None            # of channels, for masks in groups, 0 for as many as suit; None for no such
    streams: Optional[int] = None           # of bcnn.seeds; None for those that it began with, the newest for a new one


# --- the blocks ------------------------------------------------------------------------------

Task = Tuple[int, int]  # (repetition, block)

STANDARD = 0  # as a repetition: the passes with Standard dropout
EVERY = -1    # all repetitions at once, which share masks
GROUPED = ('antithetic', 'shared')  # modes with masks in groups


def made_by(task: Task, settings: Settings) -> List[Task]:
    """The (repetition, block) of all that a task makes."""
    repetition, block = task
    return [(k, block) for k in range(1, settings.repeats + 1)] if repetition == EVERY else [task]


def passes_of(task: Task, settings: Settings) -> int:
    """The passes that an image of a task takes."""
    return 1 if task[0] == STANDARD else settings.T * len(made_by(task, settings))


def span(block: int, target: Target, settings: Settings) -> Tuple[int, int]:
    """The first image of a block, and the one after its last."""
    size = block_size(settings)
    return block * size, min((block + 1) * size, target.count)


def block_size(settings: Settings) -> int:
    return settings.batch * (adaptive.BLOCK if settings.mode == 'adaptive' else 1)


def block_path(folder: str, repetition: int, block: int) -> str:
    name = 'standard' if repetition == STANDARD else 'mc%d' % repetition
    return os.path.join(folder, places.BLOCKS, '%s-%05d.npz' % (name, block))


def blocks_of(config: Dict[str, Any]) -> range:
    """The numbers of the blocks of an evaluation, from its config; a block is one batch of images if not said."""
    return range(-(-config['count'] // config.get('block', config['batch'])))


class Worker:
    """Makes the arrays of tasks, in one process; the nets are loaded when first needed.

    standard_of(block) gives the arrays of a block of Standard passes, for adaptive T. keep: the outputs of every
    pass too, as `samples` (T x images x classes).
    """

    def __init__(self, target: Target, settings: Settings, standard_of: Callable[[int], Arrays], keep: bool = False):
        if settings.mode in GROUPED and target.sampling and not settings.groups:
            raise ValueError('settings that evaluation.prepare() has not seen')  # which would draw masks one by one
        engine.use_device(settings.gpu)
        self.target, self.settings, self.standard_of, self.keep = target, settings, standard_of, keep
        self.loaded = {}

    def __call__(self, task: Task) -> Dict[Task, Arrays]:
        """The arrays of all that a task makes.

        Outputs that are no numbers, and what a Python layer of the user's raises, become one line.
        """
        try:
            return self._make(task)
        except forward.NotFinite as error:
            source, (start, _) = self.target.source, span(task[1], self.target, self.settings)
            raise UserError('%s: %s gives numbers that are not finite, first in the blob %r: weights that have '
                            'diverged, or images that the net was not trained on'
                            % (source.path, source.name(start + error.row), error.blob))
        except (UserError, MemoryError):
            raise
        except Exception as error:
            python = facts.python_layers(self.target.standard)
            if not python:
                raise
            raise UserError('%s: %s' % (self.target.name, processes.python_layer_failure(error, python)))

    def _make(self, task):
        repetition, block = task
        start, stop = span(block, self.target, self.settings)
        net, wiring = self._net(repetition != STANDARD)
        if repetition == STANDARD:
            return {task: _standard(net, wiring, self.target, self.settings, (start, stop))}
        labels = self.target.source.truth(self.target.count)[start:stop]
        if repetition == EVERY:
            images, sampler = self.target.source.read(start, stop)[0], self._sampler(EVERY, start)
            return dict(zip(made_by(task, self.settings), _dealt_out(sampler, images, labels, self.settings)))
        guess = self.standard_of(block)['probs'].argmax(axis=1) if self.settings.rule else None
        seeds.use_seed(*seeds.parts_of(self.settings.streams, 'masks', self.settings.seed, repetition, block))
        make = self._until_settled if self.settings.mode == 'adaptive' else self._all_passes
        return {task: make(repetition, (start, stop), labels, guess)}

    def _until_settled(self, repetition, where, labels, guess):
        """The arrays of a block with adaptive T."""
        start, stop = where
        seats = adaptive.Seats(self._sampler(repetition, start),
                               lambda first, last: self.target.source.read(start + first, start + last)[0],
                               stop - start, self.settings.batch)
        return adaptive.sample(seats, labels, self.settings.T, self.settings.rule, guess)

    def _all_passes(self, repetition, where, labels, guess):
        """The arrays of a block where every image gets T passes."""
        net, wiring = self._net(True)
        passes = forward.finite(net, _passes_of(net, wiring, self.target, self.settings, (repetition,) + where))
        kept = [] if self.keep else None
        arrays = _sample(_kept(passes, kept), labels, net.blobs[wiring.prob].data[0].size, self.settings, guess)
        if self.keep:
            arrays['samples'] = np.stack(kept)
        return arrays

    def _sampler(self, repetition, start):
        net, wiring = self._net(True)
        return sampler_of(net, wiring, self.settings, repetition, start)

    def _net(self, sampling):
        """(net, its Wiring) for MC or for Standard dropout."""
        if sampling not in self.loaded:
            self.loaded[sampling] = mc_net(self.target, self.settings) if sampling else forward.load(
                self.target.standard, self.target.weights, self.target.extra_weights)
        return self.loaded[sampling]


def mc_net(target: Target, settings: Settings) -> Tuple[engine.CaffeNet, Any]:
    """(net, its Wiring) that samples as the settings say."""
    message = target.sampling
    if settings.mode == 'replicate':
        message = rewriting.replicate(message, passes_a_view(settings))
    if settings.groups:
        return antithetic.load(message, target.weights, settings.groups, target.extra_weights)
    return forward.load(message, target.weights, target.extra_weights)


def _kept(passes, kept):
    """The same passes; their probabilities are added to the list, where there is one."""
    for probs, scores in passes:
        if kept is not None:
            kept.append(np.array(probs))
        yield probs, scores


def _sample(passes, labels, classes, settings, guess):
    """The arrays of a block that gets all T passes; with a rule also what adaptive T would have made of them."""
    group = _dependent(settings)
    if not settings.rule:
        return running_sums.sample(passes, labels, classes, True, group).arrays()
    watch = adaptive.Watch(len(labels), classes, settings.T, settings.rule, guess, group)
    arrays = running_sums.sample(watch.over(passes), labels, classes, True, group).arrays()
    arrays.update(watch.arrays())
    return arrays


def _dealt_out(sampler, images, labels, settings):
    """The arrays of every repetition, whose passes are dealt out like cards.

    A group, the masks of which are made of one another, is no larger than there are repetitions: none of them gets two
    of its passes, so that within a repetition all masks are independent.
    """
    repeats, net = settings.repeats, sampler.net
    sums = [running_sums.Sums(labels, net.blobs[sampler.wiring.prob].data[0].size, True) for _ in range(repeats)]
    groups = -(-repeats * settings.T // sampler.size)
    passes = forward.finite(net, forward.in_groups(sampler, images, groups * sampler.size))
    for hand, (probs, scores) in zip(itertools.cycle(sums), itertools.islice(passes, repeats * settings.T)):
        hand.add(probs, scores)
    return [hand.arrays() for hand in sums]


def _dependent(settings):
    """How many passes in a row depend on one another: those of one view, or of a group of masks."""
    return passes_a_view(settings) if settings.crops else 2 ** (settings.groups or 0)


def _standard(net, wiring, target, settings, span):
    """The arrays of a block of Standard passes, a batch at a time.

    With crops the mean over the views of repetition 1: else a comparison with MC dropout would be one of crops.
    """
    parts = []
    for start in range(span[0], span[1], settings.batch):
        stop = min(start + settings.batch, span[1])
        pixels, labels = target.source.read(start, stop)
        views = _views(net, wiring, target, settings, (1, start, stop)) if settings.crops else [pixels]
        outputs = [_finite_standard(net, wiring, view, start - span[0]) for view in views]
        parts.append((labels,) + tuple(np.mean(kind, axis=0) for kind in zip(*outputs)))
    labels, probs, scores = (np.concatenate(part) for part in zip(*parts))
    return OrderedDict(labels=labels, probs=probs, scores=scores)


def _finite_standard(net, wiring, pixels, offset):
    """(probabilities, scores) of one pass; offset: the place of the first image in its block, for NotFinite."""
    outputs = forward.standard(net, wiring, pixels)
    try:
        forward.check_finite(net, *outputs)
    except forward.NotFinite as error:
        raise forward.NotFinite(offset + error.row, error.blob)
    return outputs


def _passes_of(net, wiring, target, settings, where):
    """The stream of T passes over a block: of the plain images, or shared among random views of them."""
    repetition, start, stop = where
    if settings.mode == 'replicate':
        passes = functools.partial(forward.replicate, net, wiring)
    else:
        passes = functools.partial(forward.in_groups, sampler_of(net, wiring, settings, repetition, start))
    if not settings.crops:
        yield from passes(target.source.read(start, stop)[0], settings.T)
        return
    for view in _views(net, wiring, target, settings, where):
        yield from passes(view, passes_a_view(settings))


def sampler_of(net: engine.CaffeNet, wiring: Any, settings: Settings, repetition: int, start: int) -> forward.Passes:
    """The forward.Passes of a block: with Caffe's own masks, or in groups with masks of ours."""
    if not settings.groups:
        return forward.Passes(net, wiring)
    return antithetic.groups_of(net, wiring, _generator(settings, 'antithetic', repetition, start, settings.batch))


def _views(net, wiring, target, settings, where):
    """Yields random crops and mirrors of a block of images, as many as were asked for."""
    repetition, start, stop = where
    rng = _generator(settings, 'crops', repetition, start, settings.crops)
    size, whole = net.blobs[wiring.input].data.shape[-1], target.source.read_whole(start, stop)
    for _ in range(settings.crops):
        yield preprocessing.random_views(whole, size, rng)


def _generator(settings, stream, *numbers):
    """A generator of random numbers for a stream of an evaluation."""
    return np.random.RandomState(seeds.seed_for(*seeds.parts_of(settings.streams, stream, settings.seed, *numbers)))


def passes_a_view(settings: Settings) -> int:
    return settings.T // (settings.crops or 1)


def read_block(folder: str, repetition: int, block: int) -> Arrays:
    return npz.read(block_path(folder, repetition, block), 'remove it and run again')
