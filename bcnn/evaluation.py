"""An evaluation with MC dropout: blocks of images on several processes, stored as they finish, then one result.

A block is a batch of images with all T passes of one repetition; its seed comes from (seed,
repetition, block), so the numbers depend neither on how many processes work nor on what was
interrupted. Folder of an evaluation:

    config.json   what is evaluated, on what, how; a folder with another config is refused
    blocks/       finished blocks; kept, so that more repetitions can be added later
    result.json   the summary
    images.npz    for every image: labels, Standard and MC predictions, uncertainty
    images.csv    the same of repetition 1, to look at
"""

import hashlib
import json
import os
from collections import OrderedDict, namedtuple

import numpy as np

from . import engine, files, images, mc, metrics, progress, prototxt, runs
from .errors import UserError

# What to evaluate. standard, sampling: net messages for the two kinds of pass, sampling None
# where only Standard is wanted. source: of bcnn.images. extra_weights: whether the weights
# may hold layers that the net lacks (companion branches of a training net).
Job = namedtuple('Job', 'name standard sampling weights extra_weights source count')
# How. crops: random views an image, None for the plain image; gpu: None for the CPU.
Settings = namedtuple('Settings', 'T repeats seed mode batch crops gpu')
AVERAGES = ('probs', 'scores')


def check(settings):
    """Refuses settings that mean nothing."""
    for name in ('T', 'repeats'):
        if getattr(settings, name) < 1:
            raise UserError('%s is %d: it must be 1 or more' % (name, getattr(settings, name)))
    for name in ('batch', 'crops'):
        if getattr(settings, name) is not None and getattr(settings, name) < 1:
            raise UserError('%s is %d: it must be 1 or more' % (name, getattr(settings, name)))
    if settings.crops and settings.T % settings.crops:
        raise UserError('%d passes cannot be shared evenly among %d crops' % (settings.T, settings.crops))


# --- from a job to a result ----------------------------------------------------------------

def prepare(job, settings):
    """The settings with a batch, after trying weights, images and labels: before any long work."""
    def probe():
        net = engine.load_net(job.standard, job.weights, extra_weights=job.extra_weights)
        shape = tuple(net.blobs[net.inputs[0]].data.shape[1:])
        if job.source.shape != shape:
            raise UserError('%s has images of %s, the net %s takes %s' % (
                job.source.path, _times(job.source.shape), job.name, _times(shape)))
        return mc.bytes_an_image(net), net.blobs[prototxt.prob_blob(job.standard)].data[0].size

    check(settings)
    size, classes = engine.call(probe)
    _check_labels(job, classes)
    copies = _passes_a_view(settings) if settings.mode == 'replicate' else 1
    return settings._replace(batch=settings.batch or mc.fitting_batch(size, copies))


def run(job, settings, folder, jobs=1):
    """The result of an evaluation, as a dictionary; everything is stored in `folder` on the way."""
    os.makedirs(os.path.join(folder, 'blocks'), exist_ok=True)
    with files.lock(os.path.join(folder, runs.LOCK), lambda: progress.say('waiting for another process in %s' % folder)):
        for place in (folder, os.path.join(folder, 'blocks')):
            files.sweep_folder(place)
        _settle_config(job, settings, folder)
        _compute(job, settings, folder, jobs)
        result = assemble(folder, settings.repeats)
        runs.write_json(os.path.join(folder, 'result.json'), result)
    return result


def _check_labels(job, classes):
    labels, _ = job.source.scan(job.count)
    bad = np.flatnonzero((labels < 0) | (labels >= classes))
    if len(bad):
        raise UserError('%s: image %d has label %d, but the net has classes 0 to %d'
                        % (job.source.path, bad[0], labels[bad[0]], classes - 1))


def _times(shape):
    return 'x'.join(map(str, shape))


# --- config --------------------------------------------------------------------------------

def config(job, settings):
    """What makes this evaluation what it is: equal configs give equal bytes on one kind of CPU."""
    def text(message):
        return hashlib.sha256(prototxt.to_text(message).encode()).hexdigest()

    return OrderedDict([
        ('net', job.name), ('standard_net', text(job.standard)),
        ('mc_net', text(job.sampling) if job.sampling else None),
        ('dropout', bool(prototxt.dropouts(job.standard))),
        ('weights', _sha256(job.weights)), ('images', job.source.scan(job.count)[1]), ('count', job.count),
        ('T', settings.T), ('seed', settings.seed), ('mode', settings.mode), ('batch', settings.batch),
        ('crops', settings.crops), ('device', 'cpu' if settings.gpu is None else 'gpu')])


def _sha256(path):
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        for chunk in iter(lambda: file.read(1 << 20), b''):
            digest.update(chunk)
    return digest.hexdigest()


def key(job, settings):
    """A short name for the folder of an evaluation, different for different configs."""
    digest = hashlib.sha256(json.dumps(config(job, settings), sort_keys=True).encode()).hexdigest()
    return 'T%d-%s' % (settings.T, digest[:8])


def _settle_config(job, settings, folder):
    """Write config.json, or refuse a folder that has another one, with the differences."""
    mine, path = config(job, settings), os.path.join(folder, runs.CONFIG)
    theirs = runs.read_json(path)
    if theirs is None:
        runs.write_json(os.path.join(folder, runs.PROVENANCE), runs.provenance(engine.describe()))
        runs.write_json(path, mine)
        return
    different = runs.differences(theirs, mine)
    if different:
        raise UserError('%s holds another evaluation (%s): choose another --out' % (folder, '; '.join(different)))


# --- the blocks ------------------------------------------------------------------------------

STANDARD = 0  # as a repetition: the passes with Standard dropout


def _compute(job, settings, folder, jobs):
    """Make the blocks that are missing, on `jobs` processes."""
    blocks = -(-job.count // settings.batch)
    repetitions = [STANDARD] + (list(range(1, settings.repeats + 1)) if job.sampling else [])
    tasks = [(repetition, block) for repetition in repetitions for block in range(blocks)
             if not os.path.exists(block_path(folder, repetition, block))]
    counts = np.zeros(2, np.int64)  # wrong, all
    cost = {task: _cost(task, job, settings) for task in tasks}
    with progress.bar(job.name, total=sum(cost.values()), unit='passes') as step:
        for task, arrays in engine.work(lambda: _worker(job, settings), tasks, min(jobs, len(tasks))):
            with files.atomic(block_path(folder, *task)) as temporary, open(temporary, 'wb') as file:
                np.savez(file, **arrays)
            step(cost[task], _running_error(counts, task, arrays, job, settings))


def _running_error(counts, task, arrays, job, settings):
    """What the bar says: the MC error of the blocks done just now, all repetitions together."""
    if task[0] == STANDARD:
        return ''
    start, stop = _span(task[1], job, settings)
    counts += int(arrays['wrong_probs'][-1]), stop - start
    return 'MC error %.2f%%' % (100.0 * counts[0] / counts[1])


def _span(block, job, settings):
    """The first image of a block, and the one after its last."""
    return block * settings.batch, min((block + 1) * settings.batch, job.count)


def _cost(task, job, settings):
    """The passes of an image that a task takes."""
    repetition, block = task
    start, stop = _span(block, job, settings)
    return (stop - start) * (1 if repetition == STANDARD else settings.T)


def block_path(folder, repetition, block):
    name = 'standard' if repetition == STANDARD else 'mc%d' % repetition
    return os.path.join(folder, 'blocks', '%s-%05d.npz' % (name, block))


def progress_of(folder, repeats):
    """(blocks that are there, blocks in all) of an evaluation with MC passes; (0, 1) before it has begun."""
    about = runs.read_json(os.path.join(folder, runs.CONFIG))
    if about is None:
        return 0, 1
    blocks = -(-about['count'] // about['batch'])
    paths = [block_path(folder, repetition, block) for repetition in range(repeats + 1) for block in range(blocks)]
    return sum(os.path.exists(path) for path in paths), len(paths)


def _worker(job, settings):
    """A function from (repetition, block) to its arrays; the nets are loaded when first needed."""
    engine.use_device(settings.gpu)
    loaded = {}

    def net_for(sampling):
        if sampling not in loaded:
            message = job.sampling if sampling else job.standard
            if sampling and settings.mode == 'replicate':
                message = prototxt.replicate(message, _passes_a_view(settings))
            net = engine.load_net(message, job.weights, extra_weights=job.extra_weights)
            loaded[sampling] = net, mc.plan(message, net)
        return loaded[sampling]

    def do(task):
        repetition, block = task
        start, stop = _span(block, job, settings)
        net, how = net_for(repetition != STANDARD)
        if repetition == STANDARD:
            pixels, labels = job.source.read(start, stop)
            probs, scores = mc.standard(net, how, pixels)
            return OrderedDict(labels=labels, probs=probs, scores=scores)
        labels = job.source.scan(job.count)[0][start:stop]
        mc.use_seed(settings.seed, repetition, block)
        classes = net.blobs[how.prob].data[0].size
        return mc.sample(_passes(net, how, job, settings, (repetition, start, stop)), labels, classes).arrays()

    return do


def _passes(net, how, job, settings, where):
    """The stream of T passes over a block: of the plain images, or shared among random views of them."""
    repetition, start, stop = where
    passes = mc.stream if settings.mode == 'stream' else mc.replicate
    if not settings.crops:
        yield from passes(net, how, job.source.read(start, stop)[0], settings.T)
        return
    # numpy's own stream, apart from Caffe's masks
    rng = np.random.RandomState(mc.seed_for(settings.seed, repetition, start, settings.crops))
    size = net.blobs[how.input].data.shape[-1]
    for _ in range(settings.crops):
        views = images.random_views(job.source.read_whole(start, stop), size, rng)
        yield from passes(net, how, views, _passes_a_view(settings))


def _passes_a_view(settings):
    return settings.T // (settings.crops or 1)


# --- the result ------------------------------------------------------------------------------

def assemble(folder, repeats):
    """The result of all blocks in a folder; writes images.npz and images.csv beside them."""
    about = runs.read_json(os.path.join(folder, runs.CONFIG))
    blocks = -(-about['count'] // about['batch'])
    plain = _gather(folder, STANDARD, blocks)
    labels = plain['labels']
    result = OrderedDict([('config', about), ('standard', metrics.summary(plain['probs'], labels))])
    stored = OrderedDict([('labels', labels), ('standard_probs', plain['probs'])])
    if about['mc_net']:
        sums = [_gather(folder, repetition, blocks) for repetition in range(1, repeats + 1)]
        result['mc'] = OrderedDict((average, _repetitions(sums, average, plain, about['T'])) for average in AVERAGES)
        stored.update(_per_image(sums, about['T']))
        result['uncertainty'] = OrderedDict((name, float(stored[name][0].mean())) for name in UNCERTAINTY)
    with files.atomic(os.path.join(folder, 'images.npz')) as temporary, open(temporary, 'wb') as file:
        np.savez(file, **stored)
    _write_csv(os.path.join(folder, 'images.csv'), stored)
    return result


def _gather(folder, repetition, blocks):
    """The arrays of all blocks of a repetition: for each image in order, `wrong` counts added up."""
    parts = [runs.read_arrays(block_path(folder, repetition, block), 'remove it and run again') for block in range(blocks)]
    return {name: np.sum([part[name] for part in parts], axis=0) if name.startswith('wrong')
            else np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _repetitions(sums, average, plain, T):
    """For one way of averaging: the figures of Table 1 and Figure 4 (errors after each pass), and repetition 1 in detail."""
    labels = plain['labels']
    curves = [100.0 * one['wrong_' + average] / len(labels) for one in sums]
    errors = [float(curve[-1]) for curve in curves]
    return OrderedDict([
        ('repetitions', len(sums)), ('error', errors), ('mean', float(np.mean(errors))),
        ('std', float(np.std(errors, ddof=1)) if len(errors) > 1 else None), ('lowest', min(errors)),
        ('curve', [[round(float(value), 6) for value in curve] for curve in curves]),
        ('summary', metrics.summary(averaged(sums[0], average, T), labels)),
        ] + _comparison(plain['probs'], averaged(sums[0], average, T), labels))


def averaged(one, average, T):
    """The predictive probabilities: the mean of T softmax rows, or the softmax of the mean of T rows of scores."""
    if average == 'probs':
        return one['probs'] / T
    return metrics.softmax(one['scores'] / T)


def _comparison(standard, probs, labels):
    """Standard against MC on the same images."""
    right_standard, right = metrics.correct(standard, labels), metrics.correct(probs, labels)
    only_standard, only_mc, p = metrics.mcnemar(right_standard, right)
    low, high = metrics.bootstrap_difference(right_standard, right)
    return [
        ('mcnemar', OrderedDict([('only_standard_right', only_standard), ('only_mc_right', only_mc), ('p', p)])),
        ('difference', OrderedDict([
            ('points', 100.0 * float(right_standard.mean() - right.mean())), ('low', low), ('high', high)]))]


UNCERTAINTY = ('entropy', 'expected_entropy', 'mutual_information', 'variation_ratio')


def _per_image(sums, T):
    probs = np.stack([one['probs'] / T for one in sums]).astype(np.float32)
    expected = np.stack([one['entropy'] / T for one in sums])
    variance = np.stack([one['squares'] / T for one in sums]) - probs.astype(np.float64) ** 2
    return OrderedDict([
        ('mc_probs', probs), ('mc_scores', np.stack([one['scores'] / T for one in sums]).astype(np.float32)),
        # of the mean probability; the sample variance has T - 1 degrees of freedom
        ('mc_standard_error', np.sqrt(np.maximum(variance, 0) / max(T - 1, 1)).astype(np.float32)),
        ('entropy', metrics.entropy(probs)), ('expected_entropy', expected),
        ('mutual_information', np.maximum(metrics.entropy(probs) - expected, 0)),
        ('variation_ratio', np.stack([metrics.variation_ratio(one['votes']) for one in sums]))])


def _write_csv(path, stored):
    """A line an image: label, Standard and MC prediction with confidence, and uncertainty (repetition 1)."""
    columns = OrderedDict([('image', np.arange(len(stored['labels']))), ('label', stored['labels']),
                           ('standard', stored['standard_probs'].argmax(1)),
                           ('standard_p', stored['standard_probs'].max(1))])
    if 'mc_probs' in stored:
        columns.update([('mc', stored['mc_probs'][0].argmax(1)), ('mc_p', stored['mc_probs'][0].max(1))])
        columns.update((name, stored[name][0]) for name in UNCERTAINTY)
    with files.atomic(path) as temporary, open(temporary, 'w') as file:
        file.write(','.join(columns) + '\n')
        for row in zip(*columns.values()):
            cells = ['%d' % value if isinstance(value, np.integer) else '%.6g' % value for value in row]
            file.write(','.join(cells) + '\n')
