"""What a dropout probability makes of a net: errors, calibration and mutual information, and the kernels it learnt."""

import os
from collections import OrderedDict
from typing import Any, Dict, Iterator, List

import numpy as np

from .. import engine, nets
from ..mc import metrics
from ..mc.running_sums import Arrays
from ..system import places
from . import trained

FIRST = 'conv1'  # whose kernels can be looked at: they read the image


def measure(subject: trained.Subject, settings: trained.Settings, folder: str) -> trained.Tables:
    """{'quality': a row a method, 'kernels': a row a kernel of conv1}."""
    source = trained.test_images(subject, settings.data)
    arrays = trained.evaluated(subject, source, settings, os.path.join(folder, places.BLOCKS, 'mnist'))
    return {'quality': list(rows(arrays, subject, settings)), 'kernels': engine.call(kernels, subject)}


def rows(arrays: Arrays, subject: trained.Subject, settings: trained.Settings) -> Iterator[Dict[str, Any]]:
    """Standard and MC dropout, from the arrays of an evaluation."""
    labels = arrays['labels']
    for method, probs, T, information in (
            ('standard', arrays['standard_probs'], 0, None),
            ('mc', arrays['mc_probs'][0], settings.T, float(arrays['mutual_information'][0].mean()))):
        good = metrics.summary(probs, labels)
        yield OrderedDict([
            ('iterations', subject.iterations), ('method', method), ('T', T), ('mc_seed', settings.seed),
            ('errors', good['errors']), ('n', len(labels)), ('nll', good['nll']), ('brier', good['brier']),
            ('ece', good['ece']), ('entropy', good['entropy']), ('mutual_information', information)])


def kernels(subject: trained.Subject) -> List[Dict[str, Any]]:
    """A row a kernel of the first convolution, row by row of its weights."""
    entry = trained.entry_of(subject)
    net = engine.load_net(nets.deploy(entry.net, entry.base), subject.weights)
    weights = np.array(net.params[FIRST][0].data)
    return [OrderedDict([('iterations', subject.iterations), ('layer', FIRST), ('map', k), ('size', kernel.shape[-1]),
                         ('weights', ' '.join('%.4g' % value for value in kernel.ravel()))])
            for k, kernel in enumerate(weights)]
