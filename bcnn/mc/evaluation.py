"""An evaluation with MC dropout: blocks of images on several processes, stored as they finish, then one result.

Folder of an evaluation:

    config.json   what is evaluated, on what, how; a folder with another config is refused
    blocks/       finished blocks; kept, so that more repetitions can be added later
    result.json   the summary
    images.npz    for every image: labels, Standard and MC predictions, uncertainty
    images.csv    the same of repetition 1, to look at
    source.json   where the images are, the names of their files and classes, and the name that a user gave it
    checksums.json of config and blocks; see tools/verify.py
"""

import os
from collections import OrderedDict
from typing import Any, Dict, Optional, Tuple

import numpy as np

from .. import batches, engine, seeds
from ..errors import CaffeError, UserError
from ..prototxt import facts, reading
from ..system import files, locks, npz, places, progress, provenance, store
from . import adaptive, antithetic, sampling, so_far, summary
from .running_sums import Arrays
from .sampling import Settings
from .targets import Target


def check(settings: Settings) -> None:
    """Refuses settings that mean nothing."""
    for name in ('T', 'repeats'):
        if getattr(settings, name) < 1:
            raise UserError('%s is %d: it must be 1 or more' % (name, getattr(settings, name)))
    for name in ('batch', 'crops'):
        if getattr(settings, name) is not None and getattr(settings, name) < 1:
            raise UserError('%s is %d: it must be 1 or more' % (name, getattr(settings, name)))
    if settings.crops and settings.T % settings.crops:
        raise UserError('%d passes cannot be shared evenly among %d crops' % (settings.T, settings.crops))
    if settings.groups is not None and settings.groups < 0:
        raise UserError('groups is %d: it must be 1 or more' % settings.groups)
    if settings.rule:
        if settings.crops:  # one view after the other: the passes are not in random order, as the rule needs
            raise UserError('adaptive T is for the plain images: not with crops')
        if not 0 < settings.rule.error < 1:
            raise UserError('an error probability of %g: it must be above 0 and below 1' % settings.rule.error)
    if settings.mode == 'shared':
        if settings.crops or settings.rule:
            raise UserError('repetitions that share masks have T passes of the plain images each: not with crops or '
                            'adaptive T')
        size = 2 ** (settings.groups or 1)
        if settings.repeats < size:
            raise UserError('repetitions share masks in groups of %d: give --repeats %d or more, not %d'
                            % (size, size, settings.repeats))


# --- from a target to a result ----------------------------------------------------------------

def prepare(target: Target, settings: Settings) -> Settings:
    """The settings with a batch, after trying weights, images and labels: before any long work."""
    if settings.mode in sampling.GROUPED:
        settings = settings._replace(groups=settings.groups or 0)
    check(settings)
    need, classes = engine.call(_probe, target)
    _check_labels(target, classes)
    if settings.groups is not None and target.sampling:
        groups, need = engine.call(antithetic.settle, target.sampling, *_groups_asked(settings))
        if settings.mode != 'shared':  # there the last group may be cut short
            antithetic.check_multiple(settings.T, 2 ** groups, settings.crops or 1)
        settings = settings._replace(groups=groups)
    fitting = batches.fitting(need, _copies(settings), batches.budget_of(settings.gpu))
    if settings.mode == 'adaptive':
        fitting = min(fitting, adaptive.LARGEST)
    return settings._replace(batch=settings.batch or fitting)


def _groups_asked(settings):
    """What antithetic.settle() is asked for: (groups, passes)."""
    if settings.mode == 'shared':
        largest = 2 ** antithetic.BEST
        return settings.groups or (1 if settings.repeats < largest else 0), largest
    # pairs for adaptive T: it counts groups, not passes
    return settings.groups or (1 if settings.rule else 0), sampling.passes_a_view(settings)


def _copies(settings):
    """The rows of a batch that an image takes."""
    return sampling.passes_a_view(settings) if settings.mode == 'replicate' else 1


def _probe(target):
    """(what an image takes, classes) of the net with its weights; refuses what is no classification of images."""
    try:
        net = engine.load_net(target.standard, target.weights, extra_weights=target.extra_weights)
    except engine.ShapeError as error:
        raise UserError('%s; it is built for images of %s, as they are in %s: if it was trained on another size or '
                        'number of channels, --resize H,W or --shape C,H,W helps'
                        % (error, _times(target.source.shape), target.source.path))
    taken = tuple(net.blobs[net.inputs[0]].data.shape[1:])
    if target.source.shape != taken:
        raise UserError('%s has images of %s, the net %s takes %s' % (
            target.source.path, _times(target.source.shape), target.name, _times(taken)))
    name = facts.prob_blob(target.standard)
    rows, shape = net.blobs[net.inputs[0]].data.shape[0], net.blobs[name].data.shape
    if len(shape) > 2 and np.prod(shape[2:]) > 1:
        raise UserError('%s: the blob %r has %s outputs an image, classes at %d places each: this is for nets that '
                        'give an image one class, not for dense ones such as segmentation; --output names another blob'
                        % (target.name, name, _times(shape[1:]), np.prod(shape[2:])))
    if len(shape) < 2 or shape[0] != rows or shape[1] < 2:
        raise UserError('%s: the blob %r is of %s for %d images, and two or more classes an image are needed; --output '
                        'names another blob' % (target.name, name, _times(shape), rows))
    return batches.need_of(net), shape[1]


def run(target: Target, settings: Settings, folder: str, jobs: int = 1,
        advice: so_far.Advice = so_far.fewer_images) -> Dict[str, Any]:
    """The result of an evaluation, as a dictionary; everything is stored in `folder` on the way.

    advice: what the command has to offer where it takes long.
    """
    files.make_folder(os.path.join(folder, places.BLOCKS))
    with locks.lock(os.path.join(folder, places.LOCK),
                    lambda _: progress.say('waiting for another process in %s' % folder)):
        for place in (folder, os.path.join(folder, places.BLOCKS)):
            files.sweep_folder(place)
        settings = settings._replace(streams=_streams(settings, folder))
        provenance.settle(folder, config_of(target, settings), 'evaluation', engine.describe())
        _write_source(target, os.path.join(folder, places.SOURCE))
        try:
            _compute(target, settings, folder, jobs, advice)
        except CaffeError as error:
            raise batches.explained(error, settings.gpu, settings.batch, engine.call(_need, target), _copies(settings))
        try:
            result = summary.assemble(folder, settings.repeats)
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise UserError('%s: its blocks do not fit together (%s): tools/verify.py says which; remove that and run '
                            'again' % (folder, ' '.join(str(error).split())))
        blocks = [name for name in os.listdir(os.path.join(folder, places.BLOCKS)) if name.endswith('.npz')]
        places.write_checksums(folder, [places.CONFIG] + [os.path.join(places.BLOCKS, name) for name in blocks])
        store.write_json(os.path.join(folder, places.RESULT), result)
    return result


def _need(target):
    return batches.need_of(engine.load_net(target.standard))


def _check_labels(target, classes):
    labels = target.source.truth(target.count)
    bad = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(bad):
        raise UserError('%s: %s has label %d, but the net has classes 0 to %d'
                        % (target.source.path, target.source.name(bad[0]), labels[bad[0]], classes - 1))


def _write_source(target, path):
    """Writes source.json; the name that a user once gave stays until another one is given."""
    source, former = target.source, store.read_json(path) or {}
    store.write_json(path, OrderedDict([
        ('name', target.title or former.get('name')), ('images', os.path.abspath(source.path)),
        ('files', source.names), ('classes', source.classes), ('stored_images', source.stored_digest(target.count)),
        ('notes', list(target.notes))]))


def _times(shape):
    return 'x'.join(map(str, shape))


# --- config --------------------------------------------------------------------------------

def config_of(target: Target, settings: Settings) -> Dict[str, Any]:
    """What makes this evaluation what it is: equal configs give equal bytes on one kind of CPU."""
    config = OrderedDict([
        ('net', target.name), ('standard_net', reading.digest(target.standard)),
        ('mc_net', reading.digest(target.sampling) if target.sampling else None),
        ('dropout', bool(facts.dropouts(target.standard))),
        ('weights', store.sha256(target.weights)), ('images', target.source.scan(target.count)[1]),
        ('count', target.count), ('T', settings.T), ('seed', settings.seed), ('mode', settings.mode),
        ('batch', settings.batch), ('crops', settings.crops), ('device', 'cpu' if settings.gpu is None else 'gpu')])
    # only where they matter: the configs of all other evaluations stay as they were
    if settings.mode == 'adaptive':
        config['block'] = sampling.block_size(settings)
    if settings.rule:
        config['adaptive'] = settings.rule._asdict()
    if settings.groups:
        config['groups'] = settings.groups
    if settings.mode == 'shared':
        config['repeats'] = settings.repeats  # among which the passes are dealt out
    if settings.crops:
        config['standard'] = 'the views of repetition 1'  # before, the plain images
    if settings.streams != 1:
        config['streams'] = settings.streams
    return config


def folder_of(target: Target, settings: Settings) -> str:
    """The folder of an evaluation below its run, different for different configs; one that is begun is gone on with."""
    versions = [settings.streams] if settings.streams else sorted(seeds.VERSIONS, reverse=True)
    folders = [os.path.join(places.evaluations(target.weights, target.title or target.name),
                            name_of(config_of(target, settings._replace(streams=version)))) for version in versions]
    return next((folder for folder in folders if os.path.exists(os.path.join(folder, places.CONFIG))), folders[0])


def _streams(settings, folder):
    """The version of the random numbers: that of what is stored in the folder."""
    return seeds.version_for(store.read_json(os.path.join(folder, places.CONFIG)), settings.streams)


def name_of(config: Dict[str, Any]) -> str:
    """The name of the folder of an evaluation with this config."""
    passes = '%sT%d' % ('adaptive-' if config['mode'] == 'adaptive' else '', config['T'])
    return '%s-%s' % (passes if config['mc_net'] else 'standard', store.identity(config)[:8])


def _compute(target, settings, folder, jobs, advice):
    """Make the blocks that are missing, on `jobs` processes."""
    def standard_of(block):
        return sampling.read_block(folder, sampling.STANDARD, block)

    def is_there(task):
        return all(os.path.exists(sampling.block_path(folder, *made)) for made in sampling.made_by(task, settings))

    todo = [[task for task in tasks if not is_there(task)] for tasks in _stages(target, settings)]
    counts = np.zeros(2, np.int64)  # wrong, all
    cost = {task: _cost(task, target, settings) for tasks in todo for task in tasks}
    repetitions = so_far.Repetitions(target, settings, folder)
    if cost:
        so_far.say_duration(target, settings, list(cost), jobs, advice)
    with progress.bar(target.name, total=sum(cost.values()), unit='passes') as step:
        for tasks in todo:
            done = engine.work(lambda: sampling.Worker(target, settings, standard_of), tasks, min(jobs, len(tasks)))
            for task, made in done:
                for (repetition, block), arrays in made.items():
                    npz.write(sampling.block_path(folder, repetition, block), arrays)
                    repetitions.add(repetition)
                step(cost[task], _running_error(counts, made))


def in_memory(target: Target, settings: Settings, jobs: int = 1, keep: bool = False) -> Tuple[Arrays, Optional[Arrays]]:
    """(Standard arrays, MC arrays or None) of repetition 1 over all images, stored nowhere; see sampling.Worker."""
    blocks = {}
    for tasks in _stages(target, settings):
        for _, made in engine.work(lambda: sampling.Worker(
                target, settings, lambda block: blocks[sampling.STANDARD, block], keep), tasks, min(jobs, len(tasks))):
            blocks.update(made)
    both = [summary.joined([blocks[task] for task in sorted(blocks) if task[0] == repetition], T=T)
            for repetition, T in ((sampling.STANDARD, None), (1, settings.T)) if (repetition, 0) in blocks]
    return both[0], both[1] if len(both) > 1 else None


def _stages(target, settings):
    """The tasks (repetition, block) that may run at the same time: adaptive T starts from the Standard predictions."""
    blocks = range(-(-target.count // sampling.block_size(settings)))
    standard = [(sampling.STANDARD, block) for block in blocks]
    repetitions = [sampling.EVERY] if settings.mode == 'shared' else range(1, settings.repeats + 1)
    sampled = [(repetition, block) for repetition in repetitions for block in blocks]
    sampled = sampled if target.sampling else []
    return [standard, sampled] if settings.rule else [standard + sampled]


def _running_error(counts, made):
    """What the bar says: the MC error of the blocks done just now, all repetitions together."""
    sampled = [arrays for (repetition, _), arrays in made.items() if repetition != sampling.STANDARD]
    if not sampled:
        return ''
    for arrays in sampled:
        counts += int(arrays['wrong_probs'][-1]), len(arrays['probs'])
    return 'MC error %.2f%%' % (100.0 * counts[0] / counts[1])


def _cost(task, target, settings):
    """The passes that a task takes, over all of its images."""
    start, stop = sampling.span(task[1], target, settings)
    return (stop - start) * sampling.passes_of(task, settings)


def progress_of(folder: str, repeats: int) -> Tuple[int, int]:
    """(blocks that are there, blocks in all) of an evaluation with MC passes; (0, 1) before it has begun."""
    config = store.read_json(os.path.join(folder, places.CONFIG))
    if config is None:
        return 0, 1
    paths = [sampling.block_path(folder, repetition, block)
             for repetition in range(repeats + 1) for block in sampling.blocks_of(config)]
    return sum(os.path.exists(path) for path in paths), len(paths)
