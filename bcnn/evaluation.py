"""An evaluation with MC dropout: blocks of images on several processes, stored as they finish, then one result.

A block is a batch of images with all passes of one repetition (several batches where T is
adaptive); its seed comes from (seed, repetition, block), so the numbers depend neither on how
many processes work nor on what was interrupted. Folder of an evaluation:

    config.json   what is evaluated, on what, how; a folder with another config is refused
    blocks/       finished blocks; kept, so that more repetitions can be added later
    result.json   the summary
    images.npz    for every image: labels, Standard and MC predictions, uncertainty
    images.csv    the same of repetition 1, to look at
    checksums.json of config and blocks; see tools/verify.py
"""

import functools
import hashlib
import os
from collections import OrderedDict, namedtuple

import numpy as np

from . import adaptive, antithetic, engine, files, images, mc, metrics, progress, prototxt, runs
from .errors import UserError

# What to evaluate. standard, sampling: net messages for the two kinds of pass, sampling None
# where only Standard is wanted. source: of bcnn.images. extra_weights: whether the weights
# may hold layers that the net lacks (companion branches of a training net).
Job = namedtuple('Job', 'name standard sampling weights extra_weights source count')
# How. mode: stream, replicate, antithetic or adaptive. crops: random views an image, None for the
# plain image; gpu: None for the CPU; rule: an adaptive.Rule for that mode, in stream mode to watch what it would
# decide, else None.
Settings = namedtuple('Settings', 'T repeats seed mode batch crops gpu rule')
Settings.__new__.__defaults__ = (None,)
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
    if settings.mode == 'antithetic' and _passes_a_view(settings) % 2:
        raise UserError('antithetic masks come in pairs, which %d passes do not' % _passes_a_view(settings))
    if settings.rule:
        if settings.crops:  # one view after the other: the passes are not in random order, as the rule needs
            raise UserError('adaptive T is for the plain images: not with crops')
        if not 0 < settings.rule.error < 1:
            raise UserError('an error probability of %g: it must be above 0 and below 1' % settings.rule.error)


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
    if settings.mode == 'antithetic' and job.sampling:
        antithetic.dropouts(job.sampling)
    size, classes = engine.call(probe)
    _check_labels(job, classes)
    copies = _passes_a_view(settings) if settings.mode == 'replicate' else 1
    fitting = mc.fitting_batch(size, copies)
    if settings.mode == 'adaptive':
        fitting = min(fitting, adaptive.LARGEST)
    return settings._replace(batch=settings.batch or fitting)


def run(job, settings, folder, jobs=1):
    """The result of an evaluation, as a dictionary; everything is stored in `folder` on the way."""
    os.makedirs(os.path.join(folder, 'blocks'), exist_ok=True)
    with files.lock(os.path.join(folder, runs.LOCK),
                    lambda: progress.say('waiting for another process in %s' % folder)):
        for place in (folder, os.path.join(folder, 'blocks')):
            files.sweep_folder(place)
        _settle_config(job, settings, folder)
        _compute(job, settings, folder, jobs)
        try:
            result = assemble(folder, settings.repeats)
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise UserError('%s: its blocks do not fit together (%s): tools/verify.py says which; remove that and run '
                            'again' % (folder, ' '.join(str(error).split())))
        blocks = [name for name in os.listdir(os.path.join(folder, 'blocks')) if name.endswith('.npz')]
        runs.write_checksums(folder, [runs.CONFIG] + [os.path.join('blocks', name) for name in blocks])
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

    found = OrderedDict([
        ('net', job.name), ('standard_net', text(job.standard)),
        ('mc_net', text(job.sampling) if job.sampling else None),
        ('dropout', bool(prototxt.dropouts(job.standard))),
        ('weights', runs.sha256(job.weights)), ('images', job.source.scan(job.count)[1]), ('count', job.count),
        ('T', settings.T), ('seed', settings.seed), ('mode', settings.mode), ('batch', settings.batch),
        ('crops', settings.crops), ('device', 'cpu' if settings.gpu is None else 'gpu')])
    # only where they matter: the configs of all other evaluations stay as they were
    if settings.mode == 'adaptive':
        found['block'] = _block_size(settings)
    if settings.rule:
        found['adaptive'] = settings.rule._asdict()
    return found


def key(job, settings):
    """A short name for the folder of an evaluation, different for different configs."""
    return name_of(config(job, settings))


def name_of(about):
    """The same, of a config as it is stored."""
    return '%sT%d-%s' % ('adaptive-' if about['mode'] == 'adaptive' else '', about['T'], runs.identity(about)[:8])


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
    blocks = range(-(-job.count // _block_size(settings)))
    standard = [(STANDARD, block) for block in blocks]
    sampled = [(repetition, block) for repetition in range(1, settings.repeats + 1) for block in blocks]
    todo = [[task for task in tasks if not os.path.exists(block_path(folder, *task))]
            for tasks in _stages(standard, sampled if job.sampling else [], settings)]
    counts = np.zeros(2, np.int64)  # wrong, all
    cost = {task: _cost(task, job, settings) for tasks in todo for task in tasks}
    with progress.bar(job.name, total=sum(cost.values()), unit='passes') as step:
        for tasks in todo:
            for task, arrays in engine.work(lambda: _worker(job, settings, folder), tasks, min(jobs, len(tasks))):
                runs.write_arrays(block_path(folder, *task), arrays)
                step(cost[task], _running_error(counts, task, arrays, job, settings))


def _stages(standard, sampled, settings):
    """The tasks that may run at the same time: adaptive T starts from the Standard predictions."""
    return [standard, sampled] if settings.rule else [standard + sampled]


def _running_error(counts, task, arrays, job, settings):
    """What the bar says: the MC error of the blocks done just now, all repetitions together."""
    if task[0] == STANDARD:
        return ''
    start, stop = _span(task[1], job, settings)
    counts += int(arrays['wrong_probs'][-1]), stop - start
    return 'MC error %.2f%%' % (100.0 * counts[0] / counts[1])


def _span(block, job, settings):
    """The first image of a block, and the one after its last."""
    size = _block_size(settings)
    return block * size, min((block + 1) * size, job.count)


def _block_size(settings):
    return settings.batch * (adaptive.BLOCK if settings.mode == 'adaptive' else 1)


def _cost(task, job, settings):
    """The passes of an image that a task takes."""
    repetition, block = task
    start, stop = _span(block, job, settings)
    return (stop - start) * (1 if repetition == STANDARD else settings.T)


def block_path(folder, repetition, block):
    name = 'standard' if repetition == STANDARD else 'mc%d' % repetition
    return os.path.join(folder, 'blocks', '%s-%05d.npz' % (name, block))


def blocks_of(about):
    """The numbers of the blocks of an evaluation, from its config; a block is one batch of images if not said."""
    return range(-(-about['count'] // about.get('block', about['batch'])))


def progress_of(folder, repeats):
    """(blocks that are there, blocks in all) of an evaluation with MC passes; (0, 1) before it has begun."""
    about = runs.read_json(os.path.join(folder, runs.CONFIG))
    if about is None:
        return 0, 1
    paths = [block_path(folder, repetition, block) for repetition in range(repeats + 1) for block in blocks_of(about)]
    return sum(os.path.exists(path) for path in paths), len(paths)


def _worker(job, settings, folder):
    """A function from (repetition, block) to its arrays; the nets are loaded when first needed."""
    engine.use_device(settings.gpu)
    loaded = {}

    def net_for(sampling):
        if sampling not in loaded:
            message = job.sampling if sampling else job.standard
            if sampling and settings.mode == 'replicate':
                message = prototxt.replicate(message, _passes_a_view(settings))
            if sampling and settings.mode == 'antithetic':
                loaded[sampling] = antithetic.load(message, job.weights, job.extra_weights)
            else:
                net = engine.load_net(message, job.weights, extra_weights=job.extra_weights)
                loaded[sampling] = net, mc.plan(message, net)
        return loaded[sampling]

    def do(task):
        repetition, block = task
        start, stop = _span(block, job, settings)
        net, how = net_for(repetition != STANDARD)
        if repetition == STANDARD:
            return _standard(net, how, job, settings, (start, stop))
        labels = job.source.scan(job.count)[0][start:stop]
        guess = read_block(folder, STANDARD, block)['probs'].argmax(axis=1) if settings.rule else None
        mc.use_seed(settings.seed, repetition, block)
        if settings.mode == 'adaptive':
            seats = adaptive.Seats(net, how, lambda first, last: job.source.read(start + first, start + last)[0],
                                   stop - start, settings.batch)
            return adaptive.sample(seats, labels, settings.T, settings.rule, guess)
        passes = _passes(net, how, job, settings, (repetition, start, stop))
        return _sample(passes, labels, net.blobs[how.prob].data[0].size, settings, guess)

    return do


def _sample(passes, labels, classes, settings, guess):
    """The arrays of a block that gets all T passes; with a rule also what adaptive T would have made of them."""
    group = 2 if settings.mode == 'antithetic' else 1
    if not settings.rule:
        return mc.sample(passes, labels, classes, True, group).arrays()
    watch = adaptive.Watch(len(labels), classes, settings.T, settings.rule, guess)
    arrays = mc.sample(watch.over(passes), labels, classes, True, group).arrays()
    arrays.update(watch.arrays())
    return arrays


def _standard(net, how, job, settings, span):
    """The arrays of a block of Standard passes, a batch at a time."""
    parts = []
    for start in range(span[0], span[1], settings.batch):
        pixels, labels = job.source.read(start, min(start + settings.batch, span[1]))
        parts.append((labels,) + mc.standard(net, how, pixels))
    labels, probs, scores = (np.concatenate(part) for part in zip(*parts))
    return OrderedDict(labels=labels, probs=probs, scores=scores)


def _passes(net, how, job, settings, where):
    """The stream of T passes over a block: of the plain images, or shared among random views of them."""
    repetition, start, stop = where
    passes = mc.replicate if settings.mode == 'replicate' else mc.stream
    if settings.mode == 'antithetic':
        masks = np.random.RandomState(mc.seed_for(settings.seed, repetition, start, settings.batch))
        passes = functools.partial(antithetic.stream, rng=masks)
    if not settings.crops:
        yield from passes(net, how, job.source.read(start, stop)[0], settings.T)
        return
    # a stream of its own, apart from the masks
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
    blocks = blocks_of(about)
    plain = _gather(folder, STANDARD, blocks)
    labels = plain['labels']
    result = OrderedDict([('config', about), ('standard', metrics.summary(plain['probs'], labels))])
    stored = OrderedDict([('labels', labels), ('standard_probs', plain['probs'])])
    if about['mc_net']:
        sums = [_gather(folder, repetition, blocks, about['T']) for repetition in range(1, repeats + 1)]
        result['mc'] = OrderedDict((average, _repetitions(sums, average, plain)) for average in AVERAGES)
        stored.update(_per_image(sums))
        result['uncertainty'] = OrderedDict((name, float(stored[name][0].mean())) for name in UNCERTAINTY)
        result['uncertainty_standard_error'] = _mean_errors(stored)
        if 'adaptive' in about:
            result['adaptive'] = _adaptive(sums, labels, about)
    runs.write_arrays(os.path.join(folder, 'images.npz'), stored)
    _write_csv(os.path.join(folder, 'images.csv'), stored)
    return result


def read_block(folder, repetition, block):
    return runs.read_arrays(block_path(folder, repetition, block), 'remove it and run again')


def _gather(folder, repetition, blocks, T=None):
    """The arrays of all blocks of a repetition: for each image in order, `wrong` counts added up.

    Blocks of earlier versions lack the standard errors of uncertainties, which are then left
    out, and the number of passes, which was T for every image.
    """
    parts = [read_block(folder, repetition, block) for block in blocks]
    for part in parts:
        if T is not None and 'passes' not in part:
            part['passes'] = np.full(len(part['probs']), T, np.int32)
    names = [name for name in parts[0] if all(name in part for part in parts)]
    return {name: np.sum([part[name] for part in parts], axis=0) if name.startswith('wrong')
            else np.concatenate([part[name] for part in parts]) for name in names}


def _repetitions(sums, average, plain):
    """For one way of averaging: what Table 1 and Figure 4 need (errors after each pass), and repetition 1 in detail."""
    labels = plain['labels']
    curves = [100.0 * one['wrong_' + average] / len(labels) for one in sums]
    errors = [float(curve[-1]) for curve in curves]
    return OrderedDict([
        ('repetitions', len(sums)), ('error', errors), ('mean', float(np.mean(errors))),
        ('std', float(np.std(errors, ddof=1)) if len(errors) > 1 else None), ('lowest', min(errors)),
        ('curve', [[round(float(value), 6) for value in curve] for curve in curves]),
        ('summary', metrics.summary(averaged(sums[0], average), labels)),
        ] + _comparison(plain['probs'], averaged(sums[0], average), labels))


def averaged(one, average):
    """The predictive probabilities: the mean of softmax rows, or the softmax of the mean of rows of scores."""
    if average == 'probs':
        return _mean(one, 'probs')
    return metrics.softmax(_mean(one, 'scores'))


def _mean(one, name):
    """The mean of a sum over each image's own passes."""
    return one[name] / (one['passes'] if one[name].ndim == 1 else one['passes'][:, None])


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


def _per_image(sums):
    """Everything that images.npz has for each repetition and image."""
    def stack(make, kind=np.float64):
        return np.stack([make(one) for one in sums]).astype(kind)

    probs, expected = stack(lambda one: _mean(one, 'probs'), np.float32), stack(lambda one: _mean(one, 'entropy'))
    found = OrderedDict([
        ('mc_probs', probs), ('mc_scores', stack(lambda one: _mean(one, 'scores'), np.float32)),
        ('mc_standard_error', stack(lambda one: metrics.mean_errors(
            one['squares'], _mean(one, 'probs'), one.get('groups', one['passes'])), np.float32)),
        ('entropy', metrics.entropy(probs)), ('expected_entropy', expected),
        ('mutual_information', np.maximum(metrics.entropy(probs) - expected, 0)),
        ('variation_ratio', stack(lambda one: metrics.variation_ratio(one['votes'])))])
    for name in UNCERTAINTY[:-1]:
        if all(name + '_se' in one for one in sums):
            found[name + '_se'] = stack(lambda one: one[name + '_se'])
    found['variation_ratio_se'] = stack(_vote_errors)
    found['passes'] = stack(lambda one: one['passes'], np.int32)
    for name in ('decided', 'decided_after'):
        if all(name in one for one in sums):
            found[name] = stack(lambda one: one[name], np.int32)
    return found


def _vote_errors(one):
    """The standard error of each variation ratio: of the share of the votes for the class with most."""
    errors = metrics.mean_errors(one.get('vote_squares', one['votes']), _mean(one, 'votes'),
                                 one.get('groups', one['passes']))
    return errors[np.arange(len(errors)), one['votes'].argmax(axis=1)]


def _mean_errors(stored):
    """{measure: the standard error that the passes of repetition 1 leave in its mean}, None where it is not known."""
    found = OrderedDict()
    for name in UNCERTAINTY:
        errors = stored.get(name + '_se', [np.array([np.nan])])[0]
        value = float(np.sqrt((errors ** 2).sum()) / len(errors))
        found[name] = value if np.isfinite(value) else None
    return found


def _adaptive(sums, labels, about):
    """How many passes the images took, or would have taken, what is promised, and what a check found; an entry a
    repetition."""
    T, found = about['T'], []
    for one in sums:
        passes = one.get('decided_after', one['passes'])
        found.append(OrderedDict([
            ('mean', float(passes.mean())), ('percent_of_T', 100.0 * float(passes.mean()) / T),
            ('median', float(np.median(passes))), ('percentile_90', float(np.percentile(passes, 90))),
            ('percentile_99', float(np.percentile(passes, 99))), ('all_T', int((passes == T).sum())),
            ('images_by_passes', np.bincount(passes, minlength=T + 1)[1:].tolist())]))
        if 'decided' in one:
            found[-1]['check'] = _check(one, labels)
    return OrderedDict([('error', about['adaptive']['error']),
                        ('guaranteed_agreement', 100.0 * (1 - about['adaptive']['error'])), ('passes', found)])


def _check(one, labels):
    """The predictions at the decision beside those of the same stream of passes after all T."""
    different = int((one['decided'] != one['probs'].argmax(axis=1)).sum())
    return OrderedDict([('different', different), ('agreement', 100.0 * (1 - different / len(labels))),
                        ('error', 100.0 * float((one['decided'] != labels).mean())),
                        ('full_error', metrics.error(one['probs'], labels))])


def _write_csv(path, stored):
    """A line an image: label, Standard and MC prediction with confidence, uncertainty, its errors (repetition 1)."""
    columns = OrderedDict([('image', np.arange(len(stored['labels']))), ('label', stored['labels']),
                           ('standard', stored['standard_probs'].argmax(1)),
                           ('standard_p', stored['standard_probs'].max(1))])
    if 'mc_probs' in stored:
        best = stored['mc_probs'][0].argmax(1)
        columns.update([('passes', stored['passes'][0]), ('mc', best), ('mc_p', stored['mc_probs'][0].max(1)),
                        ('mc_p_se', stored['mc_standard_error'][0][np.arange(len(best)), best])])
        columns.update((name + end, stored[name + end][0]) for name in UNCERTAINTY for end in ('', '_se')
                       if name + end in stored)
    with files.atomic(path) as temporary, open(temporary, 'w') as file:
        file.write(','.join(columns) + '\n')
        for row in zip(*columns.values()):
            cells = ['%d' % value if isinstance(value, np.integer) else '%.6g' % value for value in row]
            file.write(','.join(cells) + '\n')
