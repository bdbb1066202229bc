"""From the blocks of an evaluation to its result: errors after each pass, calibration, uncertainty of each image."""

import os
from collections import OrderedDict
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from ..system import files, npz, places, store
from . import metrics, sampling
from .running_sums import Arrays

AVERAGES = ('probs', 'scores')


# --- the result ------------------------------------------------------------------------------

def assemble(folder: str, repeats: int) -> Dict[str, Any]:
    """The result of all blocks in a folder; writes images.npz and images.csv beside them."""
    config = store.read_json(os.path.join(folder, places.CONFIG))
    blocks = sampling.blocks_of(config)
    plain = _gather(folder, sampling.STANDARD, blocks)
    labels = plain['labels']
    result = OrderedDict([('config', config), ('standard', metrics.summary(plain['probs'], labels))])
    stored = OrderedDict([('labels', labels), ('standard_probs', plain['probs'])])
    if config['mc_net']:
        repetitions = [_gather(folder, repetition, blocks, config['T']) for repetition in range(1, repeats + 1)]
        result['mc'] = OrderedDict((average, _repetitions(repetitions, average, plain)) for average in AVERAGES)
        stored.update(per_image(repetitions))
        result['uncertainty'] = OrderedDict((name, float(stored[name][0].mean())) for name in UNCERTAINTY)
        result['uncertainty_standard_error'] = _mean_errors(stored)
        if 'adaptive' in config:
            result['adaptive'] = _adaptive(repetitions, labels, config)
    npz.write(os.path.join(folder, places.IMAGES), stored)
    source = store.read_json(os.path.join(folder, places.SOURCE)) or {}
    _write_csv(os.path.join(folder, places.IMAGES_CSV), stored, source.get('files'))
    return result


def _gather(folder, repetition, blocks, T=None):
    """The arrays of all blocks of a repetition: for each image in order, `wrong` counts added up.

    Blocks of earlier versions lack the standard errors of uncertainties, which are then left
    out, and the number of passes, which was T for every image.
    """
    return joined([sampling.read_block(folder, repetition, block) for block in blocks], T)


def joined(parts: Sequence[Arrays], T: Optional[int] = None) -> Arrays:
    """The arrays of blocks as those of one."""
    for part in parts:
        if T is not None and 'passes' not in part:
            part['passes'] = np.full(len(part['probs']), T, np.int32)
    names = [name for name in parts[0] if all(name in part for part in parts)]
    return {name: np.sum([part[name] for part in parts], axis=0) if name.startswith('wrong')
            else np.concatenate([part[name] for part in parts], axis=1 if name == 'samples' else 0) for name in names}


def repetition(folder: str, number: int) -> Arrays:
    """The arrays of one repetition of a stored evaluation, 0 for Standard."""
    config = store.read_json(os.path.join(folder, places.CONFIG))
    return _gather(folder, number, sampling.blocks_of(config), config['T'] if number else None)


def spread(sums: Arrays) -> np.ndarray:
    """The standard deviation over the passes of each probability; NaN for one pass.

    Where passes come in groups and blocks of an earlier version do not tell their squares, that over the groups.
    """
    squares, n = sums.get('pass_squares'), sums['passes']
    if squares is None:
        squares, n = sums['squares'], sums.get('groups', sums['passes'])
    return metrics.mean_errors(squares, _mean(sums, 'probs'), n) * np.sqrt(n)[:, None]


def _repetitions(repetitions, average, plain):
    """For one way of averaging: what Table 1 and Figure 4 need (errors after each pass), and repetition 1 in detail."""
    labels = plain['labels']
    curves = [100.0 * sums['wrong_' + average] / len(labels) for sums in repetitions]
    errors = [float(curve[-1]) for curve in curves]
    return OrderedDict([
        ('repetitions', len(repetitions)), ('error', errors), ('mean', float(np.mean(errors))),
        ('std', float(np.std(errors, ddof=1)) if len(errors) > 1 else None), ('lowest', min(errors)),
        ('curve', [[round(float(value), 6) for value in curve] for curve in curves]),
        ('summary', metrics.summary(averaged(repetitions[0], average), labels)),
    ] + _comparison(plain['probs'], averaged(repetitions[0], average), labels))


def wrong_after(result: Dict[str, Any], average: str, count: int) -> List[List[int]]:
    """[[images that are wrong after each pass] of each repetition], of a stored result on so many images.

    It has them in percent, with so many digits that the counts are exact.
    """
    return [[int(round(percent * count / 100.0)) for percent in passes] for passes in result['mc'][average]['curve']]


def averaged(sums: Arrays, average: str) -> np.ndarray:
    """The predictive probabilities: the mean of softmax rows, or the softmax of the mean of rows of scores."""
    if average == 'probs':
        return _mean(sums, 'probs')
    return metrics.softmax(_mean(sums, 'scores'))


def _mean(sums, name):
    """The mean of a sum over each image's own passes."""
    return sums[name] / (sums['passes'] if sums[name].ndim == 1 else sums['passes'][:, None])


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


def per_image(repetitions: Sequence[Arrays]) -> Arrays:
    """Everything that images.npz has for each repetition and image."""
    def stack(make, kind=np.float64):
        return np.stack([make(sums) for sums in repetitions]).astype(kind)

    probs, expected = stack(lambda sums: _mean(sums, 'probs'), np.float32), stack(lambda sums: _mean(sums, 'entropy'))
    columns = OrderedDict([
        ('mc_probs', probs), ('mc_scores', stack(lambda sums: _mean(sums, 'scores'), np.float32)),
        ('mc_standard_error', stack(lambda sums: metrics.mean_errors(
            sums['squares'], _mean(sums, 'probs'), sums.get('groups', sums['passes'])), np.float32)),
        ('entropy', metrics.entropy(probs)), ('expected_entropy', expected),
        ('mutual_information', metrics.mutual_information(probs, expected)),
        ('variation_ratio', stack(lambda sums: metrics.variation_ratio(sums['votes'])))])
    for name in UNCERTAINTY[:-1]:
        if all(name + '_se' in sums for sums in repetitions):
            columns[name + '_se'] = stack(lambda sums: sums[name + '_se'])
    columns['variation_ratio_se'] = stack(_vote_errors)
    columns['passes'] = stack(lambda sums: sums['passes'], np.int32)
    for name in ('decided', 'decided_after'):
        if all(name in sums for sums in repetitions):
            columns[name] = stack(lambda sums: sums[name], np.int32)
    return columns


def _vote_errors(sums):
    """The standard error of each variation ratio: of the share of the votes for the class with most."""
    errors = metrics.mean_errors(sums.get('vote_squares', sums['votes']), _mean(sums, 'votes'),
                                 sums.get('groups', sums['passes']))
    return errors[np.arange(len(errors)), sums['votes'].argmax(axis=1)]


def _mean_errors(stored):
    """{measure: the standard error that the passes of repetition 1 leave in its mean}, None where it is not known."""
    errors_of = OrderedDict()
    for name in UNCERTAINTY:
        errors = stored.get(name + '_se', [np.array([np.nan])])[0]
        value = float(np.sqrt((errors ** 2).sum()) / len(errors))
        errors_of[name] = value if np.isfinite(value) else None
    return errors_of


def _adaptive(repetitions, labels, config):
    """How many passes the images took, or would have taken, what is promised, and what a check found; an entry a
    repetition."""
    T, taken = config['T'], []
    for sums in repetitions:
        passes = sums.get('decided_after', sums['passes'])
        taken.append(OrderedDict([
            ('mean', float(passes.mean())), ('percent_of_T', 100.0 * float(passes.mean()) / T),
            ('median', float(np.median(passes))), ('percentile_90', float(np.percentile(passes, 90))),
            ('percentile_99', float(np.percentile(passes, 99))), ('all_T', int((passes == T).sum())),
            ('images_by_passes', np.bincount(passes, minlength=T + 1)[1:].tolist())]))
        if 'decided' in sums:
            taken[-1]['check'] = _check_adaptive(sums, labels)
    return OrderedDict([('error', config['adaptive']['error']),
                        ('guaranteed_agreement', 100.0 * (1 - config['adaptive']['error'])), ('passes', taken)])


def _check_adaptive(sums, labels):
    """The predictions at the decision beside those of the same stream of passes after all T."""
    different = int((sums['decided'] != sums['probs'].argmax(axis=1)).sum())
    return OrderedDict([('different', different), ('agreement', 100.0 * (1 - different / len(labels))),
                        ('error', 100.0 * float((sums['decided'] != labels).mean())),
                        ('full_error', metrics.error(sums['probs'], labels))])


def _write_csv(path, stored, names=None):
    """A line an image: its file's name where it has one, label, Standard and MC prediction with confidence,
    uncertainty, its errors (repetition 1)."""
    columns = OrderedDict([('image', np.arange(len(stored['labels'])))])
    if names:
        columns['file'] = names[:len(stored['labels'])]
    columns.update([('label', stored['labels']), ('standard', stored['standard_probs'].argmax(1)),
                    ('standard_p', stored['standard_probs'].max(1))])
    if 'mc_probs' in stored:
        best = stored['mc_probs'][0].argmax(1)
        columns.update([('passes', stored['passes'][0]), ('mc', best), ('mc_p', stored['mc_probs'][0].max(1)),
                        ('mc_p_se', stored['mc_standard_error'][0][np.arange(len(best)), best])])
        columns.update((name + end, stored[name + end][0]) for name in UNCERTAINTY for end in ('', '_se')
                       if name + end in stored)
    files.write_csv(path, list(columns), ([_cell(value) for value in row] for row in zip(*columns.values())))


def _cell(value):
    if isinstance(value, str):
        return value
    return '%d' % value if isinstance(value, np.integer) else '%.6g' % value
