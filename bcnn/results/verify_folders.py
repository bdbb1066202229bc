"""Whether the folders of runs and evaluations are what their raw parts say."""

import os
import re
import tempfile
from typing import Any, Dict, Iterator

import numpy as np

from .. import nets, weights
from ..data import sets
from ..errors import UserError
from ..mc import evaluation, identity, summary
from ..system import npz, places, store
from ..training import curve, snapshots
from .findings import OK, UNKNOWN, WRONG, Finding, difference, judge

NAMED = ('caffe', 'python', 'numpy', 'protobuf', 'blas', 'threads', 'commit')  # of provenance.json


# --- what both kinds of folders have ---------------------------------------------------------------

def _provenance(folder):
    path = os.path.join(folder, places.PROVENANCE)
    software = store.read_json(path)
    if software is None:
        return Finding(path, WRONG, 'missing: nothing tells what computed this')
    missing = [name for name in NAMED if software.get(name) is None]
    if missing:
        return Finding(path, UNKNOWN, 'does not name %s' % ', '.join(missing))
    return Finding(path, OK, 'Caffe %(caffe)s, Python %(python)s, numpy %(numpy)s, %(blas)s, commit %(commit)s'
                   % software)


def _listed(folder):
    """The Findings of checksums.json: every file it lists is as it was written."""
    path = os.path.join(folder, places.CHECKSUMS)
    listed = store.read_json(path)
    if listed is None:
        yield Finding(path, UNKNOWN, 'not there (made by an older version): no checksums of single files')
        return
    for name, digest in sorted(listed.items()):
        place = os.path.join(folder, name)
        if not os.path.exists(place):
            yield Finding(place, WRONG, 'missing, but listed in %s' % places.CHECKSUMS)
        elif store.sha256(place) != digest:
            yield Finding(place, WRONG, 'changed since it was written: not the SHA-256 in %s' % places.CHECKSUMS)
    yield Finding(path, OK, '%d files as listed' % len(listed))


# --- training runs -----------------------------------------------------------------------------------

def run_folder(folder: str, config: Dict[str, Any], data: str) -> Iterator[Finding]:
    """Yields the Findings of a training run's folder."""
    yield _provenance(folder)
    yield from _data(folder, config, data)
    yield _curve(folder, config)
    for stage, iteration, path in places.stored(folder):
        problem, _ = snapshots.problem(path, stage, iteration)
        yield judge(path, problem is None, 'as its checksums say', problem)
    done = store.read_json(os.path.join(folder, places.DONE))
    if done is None:
        yield Finding(folder, UNKNOWN, 'not complete yet: no final weights to check')
        return
    final = os.path.join(folder, places.FINAL)
    yield judge(final, os.path.exists(final) and store.sha256(final) == done.get(places.FINAL),
                'the weights that done.json names', 'not the weights that done.json names: changed, or of another run')
    yield judge(os.path.join(folder, places.DONE), done.get('iterations') == config['iterations'],
                'the iterations of config.json', 'iterations %s, config.json has %s'
                % (done.get('iterations'), config['iterations']))
    yield from _listed(folder)


def _data(folder, config, data):
    """Whether the sets that a run names are the ones that are here."""
    lmdbs = nets.find(config['dataset'], config['net']).data
    for split, path in (('train', lmdbs.train), ('test', lmdbs.test)):
        name = os.path.basename(os.path.dirname(path))
        where = os.path.join(data, name)
        if sets.manifest(name, data) is None:
            yield Finding(where, UNKNOWN, 'not here, so the %s data of %s cannot be compared' % (split, folder))
            continue
        here = sets.checksum(name, split, data)
        yield judge(where, here == config['data'][split], 'the %s data that %s names' % (split, folder),
                    'not the %s data that %s names: SHA-256 %s..., there %s...'
                    % (split, folder, here[:12], str(config['data'][split])[:12]))


def _curve(folder, config):
    path = os.path.join(folder, places.CURVE)
    rows = curve.read(path)
    for row in rows:
        counts = [int(value) for value in (row.standard_errors, row.mc_errors, row.mc_errors_scores) if value]
        if int(row.n) != config['test_images'] or any(count > int(row.n) for count in counts):
            return Finding(path, WRONG, 'iteration %d: %s errors of %s images, config.json has %d'
                           % (row.iteration, counts, row.n, config['test_images']))
        if row.mc_errors and int(row.T) != config['T']:
            return Finding(path, WRONG, 'iteration %d: T is %s, config.json has %s'
                           % (row.iteration, row.T, config['T']))
    points = [(row.stage, row.iteration) for row in rows]
    if points != sorted(set(points)) or any(iteration > config['iterations'][stage - 1] for stage, iteration in points):
        return Finding(path, WRONG, 'iterations out of order, or beyond those of config.json')
    return Finding(path, OK, '%d measurements that fit config.json' % len(rows))


# --- studies beyond the paper --------------------------------------------------------------------------

def study_folder(folder: str, config: Dict[str, Any], data: str) -> Iterator[Finding]:
    """Yields the Findings of a study's folder: its weights, and the evaluations that it is made of."""
    yield _provenance(folder)
    yield from _weights(folder, config)
    inside = os.path.join(folder, places.BLOCKS)
    for name in sorted(os.listdir(inside)) if os.path.isdir(inside) else ():
        place = os.path.join(inside, name)
        yield from evaluation_folder(place, store.read_json(os.path.join(place, places.CONFIG)), data)
    done = os.path.exists(os.path.join(folder, places.RESULT))
    yield Finding(folder, OK if done else UNKNOWN, 'complete' if done else 'not complete yet: no result to check')


# --- evaluations ---------------------------------------------------------------------------------------

OUTPUTS = (places.RESULT, places.IMAGES, places.IMAGES_CSV)


def evaluation_folder(folder: str, config: Dict[str, Any], data: str) -> Iterator[Finding]:
    """Yields the Findings of an evaluation's folder."""
    yield _provenance(folder)
    yield from _listed(folder)
    yield _name(folder, config)
    for path in _blocks(folder):
        yield _block(path, config)
    yield from _weights(folder, config)
    yield _images_here(folder, config, data)
    result = store.read_json(os.path.join(folder, places.RESULT))
    if result is None:
        yield Finding(folder, UNKNOWN, 'not complete yet: no result to check')
        return
    different = store.differences(result['config'], config)
    yield judge(os.path.join(folder, places.RESULT), not different, 'of this config.json',
                'of another config.json: %s' % '; '.join(different))
    yield from _derived(folder, result)


def _name(folder, config):
    """Whether a folder that is named after its config has that config."""
    name = os.path.basename(folder)
    if not re.match(r'(standard|(adaptive-)?T\d+)-[0-9a-f]{8}$', name):
        return Finding(folder, UNKNOWN, 'not named after its config')
    right = evaluation.name_of(config)
    former = right.replace('standard-', 'T%d-' % config['T'])  # what evaluations without MC passes were called once
    return judge(os.path.join(folder, places.CONFIG), name in (right, former),
                 'the config that the folder is named after',
                 'changed, or of another evaluation: the folder is %s, this config makes %s' % (name, right))


def _blocks(folder):
    place = os.path.join(folder, places.BLOCKS)
    return [os.path.join(place, name) for name in sorted(os.listdir(place)) if name.endswith('.npz')]


def _block(path, config):
    """Whether the sums of a block can be what they are said to be."""
    block = npz.read(path, 'remove it and run the evaluation again')
    problem = _impossible(block, config)
    return judge(path, problem is None, 'possible sums', problem)


def _impossible(block, config):
    """What is impossible about a block's arrays, or None."""
    if any(array.dtype.kind == 'f' and not np.isfinite(array).all() for array in block.values()):
        return 'numbers that are not finite'
    totals = block['probs'].sum(axis=1)
    if 'votes' not in block:
        return None if np.allclose(totals, 1, atol=1e-3) else 'probabilities that do not add up to 1'
    passes = block['votes'].sum(axis=1)
    if len(set(len(block[name]) for name in ('probs', 'squares', 'scores', 'votes', 'entropy'))) != 1:
        return 'arrays of different lengths'
    if not np.allclose(totals, passes, rtol=1e-4):
        return 'probabilities that do not add up to the number of passes'
    if passes.max() > config['T'] or (block['squares'] > block['probs'] * (1 + 1e-6) + 1e-6).any():
        return 'more passes than T, or squares larger than what they are squares of'
    return None


def _weights(folder, config):
    """Where the evaluated weights are, as far as that can be told."""
    run = os.path.dirname(os.path.dirname(folder))
    final = os.path.join(run, places.FINAL)
    kept = [os.path.join(path, snapshots.WEIGHTS) for _, _, path in places.stored(run)]
    if weights.is_published(config['weights']):
        yield Finding(folder, OK, 'the published NIN weights')
    elif os.path.exists(final) and store.sha256(final) == config['weights']:
        yield Finding(folder, OK, 'the weights of %s' % final)
    elif config['weights'] in [store.sha256(path) for path in kept if 'study' in config]:
        yield Finding(folder, OK, 'weights that %s kept on the way' % run)
    elif weights.of_digest(config['weights']):
        yield Finding(folder, OK, 'weights of weights/')
    else:
        yield Finding(folder, UNKNOWN, 'its weights are not here (SHA-256 %s...)' % config['weights'][:12])


def _images_here(folder, config, data):
    """Whether the evaluated images are the test set that is here."""
    dataset, _, net = config['net'].partition('/')
    if (dataset, net) not in nets.REGISTRY:
        return Finding(folder, UNKNOWN, 'a net of your own: its images are not known here')
    same = identity.is_test_set(config, dataset, net, data)
    if same is None:
        return Finding(folder, UNKNOWN, 'the test set of %s is not here, so the images cannot be compared' % dataset)
    return (Finding(folder, OK, 'the first %d images of the test set of %s' % (config['count'], dataset)) if same
            else Finding(folder, UNKNOWN, 'its images are not the test set of %s' % dataset))


def _derived(folder, result):
    """The Findings of deriving everything anew from the blocks, in a folder beside."""
    repeats = len(result['mc']['probs']['error']) if 'mc' in result else 0
    with tempfile.TemporaryDirectory() as work:
        for name in os.listdir(folder):
            if name not in OUTPUTS and name not in (places.LOCK, places.CHECKSUMS):
                os.symlink(os.path.join(os.path.abspath(folder), name), os.path.join(work, name))
        again = summary.assemble(work, repeats)
        store.write_json(os.path.join(work, places.RESULT), again)
        for name, read in ((places.RESULT, store.read_json), (places.IMAGES, _arrays), (places.IMAGES_CSV, _lines)):
            path = os.path.join(folder, name)
            if not os.path.exists(path):
                yield Finding(path, WRONG, 'missing')
                continue
            place = difference(read(path), read(os.path.join(work, name)))
            yield judge(path, place is None, 'what the blocks give', 'not what the blocks give: %s' % place)


def _arrays(path):
    return npz.read(path, 'run the evaluation again')


def _lines(path):
    """The cells of a CSV file, numbers as numbers."""
    try:
        with open(path) as file:
            return [[_number(cell) for cell in line.rstrip('\n').split(',')] for line in file]
    except UnicodeDecodeError as error:
        raise UserError('%s: damaged (%s)' % (path, error))


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text
