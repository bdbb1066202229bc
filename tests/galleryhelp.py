"""Evaluations made by hand, in the form in which mc_eval stores them, for the tests of the gallery."""

import os

import numpy as np

from bcnn.mc import metrics, running_sums, sampling, summary
from bcnn.system import npz, places, store


def write_evaluation(folder, labels, standard, passes, images, name='made by hand', classes=None):
    """Writes an evaluation: standard (images x classes), passes (T x images x classes, or None), bytes of images."""
    labels, standard = np.array(labels), np.array(standard, np.float32)
    os.makedirs(str(folder / places.BLOCKS))
    np.savez(str(folder / 'pictures.npz'), images=images, labels=labels)
    T = 1 if passes is None else len(passes)
    store.write_json(str(folder / places.CONFIG), {
        'net': 'net', 'mc_net': None if passes is None else 'x', 'count': len(labels), 'T': T, 'batch': len(labels),
        'mode': 'stream', 'dropout': True})
    store.write_json(str(folder / places.SOURCE), {
        'name': name, 'images': str(folder / 'pictures.npz'), 'files': None, 'classes': classes})
    npz.write(sampling.block_path(str(folder), 0, 0), dict(labels=labels, probs=standard, scores=standard))
    if passes is not None:
        stream = ((np.array(one, np.float64), np.array(one, np.float64)) for one in passes)
        sums = running_sums.sample(stream, labels, standard.shape[1], moments=False)
        npz.write(sampling.block_path(str(folder), 1, 0), sums.arrays())
    store.write_json(str(folder / places.RESULT), summary.assemble(str(folder), 1))


def random_probabilities(rng, count, classes, labels, strength):
    """Rows of probabilities, most of which have the label's as their highest."""
    scores = rng.randn(count, classes)
    scores[np.arange(count), labels] += strength
    return metrics.softmax(scores)
