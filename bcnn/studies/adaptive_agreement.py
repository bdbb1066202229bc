"""Adaptive evaluations beside those with T passes for every image: passes, errors, equal predictions."""

import os
from collections import OrderedDict
from typing import Any, Dict, Iterator, List, Optional

import numpy as np

from ..errors import UserError
from ..system import npz, places, store


def rows(folder: str, other: Optional[str] = None) -> List[Dict[str, Any]]:
    """The rows of the table `adaptive` for an evaluation; other: the folder of one with T passes for all images."""
    result, images = _load(folder)
    config = result['config']
    if 'adaptive' not in result:
        raise UserError('%s: not an adaptive evaluation; make one with tools/mc_eval.py --adaptive or --adaptive-check'
                        % folder)
    theirs = _other(other, config, images['labels']) if other else None
    digest = store.identity(config)[:8]
    return [_row(result, images, k, theirs, digest) for k in range(len(result['adaptive']['passes']))]


def _load(folder):
    result = store.read_json(os.path.join(folder, places.RESULT))
    if result is None:
        raise UserError('%s: no finished evaluation: no result.json' % folder)
    return result, npz.read(os.path.join(folder, places.IMAGES), 'run the evaluation again')


def _other(folder, config, labels):
    """What repetition 1 of the evaluation with T passes for all predicts, for our images."""
    result, images = _load(folder)
    for name in ('weights', 'mc_net', 'T'):
        if result['config'][name] != config[name]:
            raise UserError('%s: evaluated with another %s' % (folder, name))
    n = len(labels)
    if result['config']['mode'] == 'adaptive' or not np.array_equal(images['labels'][:n], labels):
        raise UserError('%s: not an evaluation of the same images with T passes for all' % folder)
    return images['mc_probs'][0, :n].argmax(axis=1)


def _row(result, images, k, theirs, digest):
    config, passes, labels = result['config'], result['adaptive']['passes'][k], images['labels']
    ours, full = images['mc_probs'][k].argmax(axis=1), None
    if 'decided' in images:  # checked: all images had T passes
        ours, full = images['decided'][k], ours
    row = OrderedDict([
        ('net', config['net']), ('T', config['T']), ('error', config['adaptive']['error']), ('n', config['count']),
        ('mc_seed', config['seed']), ('repetition', k + 1), ('passes', passes['mean']),
        ('percent', passes['percent_of_T']), ('median', passes['median']), ('percentile_90', passes['percentile_90']),
        ('percentile_99', passes['percentile_99']), ('all_T', passes['all_T']), ('errors', _different(ours, labels)),
        ('different', _different(ours, full)), ('full_errors', _different(full, labels)),
        ('other_errors', _different(theirs, labels)), ('other_different', _different(ours, theirs)),
        ('noise', _different(full, theirs)), ('config', digest), ('groups', config.get('groups'))])
    return row


def _different(ours, theirs):
    """How many of two predictions differ, or of a prediction and the labels; None where one is missing."""
    return None if ours is None or theirs is None else int((ours != theirs).sum())


def lines(row: Dict[str, Any]) -> Iterator[str]:
    """A row for people."""
    yield '%s, %d images, error probability %g: %.2f passes, %.1f%% of T=%d; error %.2f%%' % (
        row['net'], row['n'], row['error'], row['passes'], row['percent'], row['T'], 100.0 * row['errors'] / row['n'])
    if row['different'] is not None:
        yield '  all %d passes of the same stream: error %.2f%%, %d of %d predictions differ, %.2f%% agree' % (
            row['T'], 100.0 * row['full_errors'] / row['n'], row['different'], row['n'],
            100 - 100.0 * row['different'] / row['n'])
    if row['other_errors'] is not None:
        yield '  %d passes with other masks: error %.2f%%, %d of %d predictions differ, %.2f%% agree' % (
            row['T'], 100.0 * row['other_errors'] / row['n'], row['other_different'], row['n'],
            100 - 100.0 * row['other_different'] / row['n'])
    if row['noise'] is not None:
        yield '  all %d passes of this stream against those of the other: %d of %d predictions differ' % (
            row['T'], row['noise'], row['n'])
