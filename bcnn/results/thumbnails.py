"""Which images of an evaluation are shown in the report, and pictures of them."""

import base64
import os
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Sequence

import numpy as np

from .. import paper
from ..data import records, sets
from ..errors import UserError
from . import csv_tables

if TYPE_CHECKING:
    from .gather import Frame, Outcome

# --- which images -------------------------------------------------------------------------------------

SHOWN = 8  # images at each end of an uncertainty
SHOWN_MEASURES = ('entropy', 'mutual_information')


def shown(frame: 'Frame', outcomes: Sequence['Outcome'],
          arrays: Dict[str, np.ndarray]) -> Iterator[Dict[str, Any]]:
    """The first repetition's most and least uncertain images."""
    for outcome in [outcome for outcome in outcomes if outcome.method['average'] == 'probs'][:1]:
        standard = outcomes[0].probs
        for measure in SHOWN_MEASURES:
            values = arrays[measure][0]
            for end, order in (('most', np.argsort(-values, kind='mergesort')),
                               ('least', np.argsort(values, kind='mergesort'))):
                for rank, i in enumerate(order[:SHOWN], 1):
                    yield frame.row(outcome.method, OrderedDict([
                        ('repetition', 1), ('measure', measure), ('end', end), ('rank', rank), ('image', int(i)),
                        ('label', int(arrays['labels'][i])), ('standard', int(standard[i].argmax())),
                        ('standard_p', float(standard[i].max())), ('mc', int(outcome.probs[i].argmax())),
                        ('mc_p', float(outcome.probs[i].max())), ('uncertainty', float(values[i]))]))


# --- pictures ----------------------------------------------------------------------------------------

RAW = {'mnist': 'mnist', 'fashion_mnist': 'fashion_mnist',
       'cifar10': 'cifar10_raw'}  # whitened images cannot be looked at


def picture_rows(folder: str, data: str, problems: List[str], prepare: bool = False) -> List[Dict[str, Any]]:
    """The thumbnails of all recorded images that have none yet; sets that are missing are named in `problems`.

    prepare: those sets instead.
    """
    have = {(row['dataset'], row['image']) for row in csv_tables.read(folder, 'thumbnails')}
    wanted = {}
    for row in csv_tables.read(folder, 'images'):
        base = paper.base_of(row['dataset'])
        if base in RAW and (base, row['image']) not in have:
            wanted.setdefault(base, {})[row['image']] = row['label']
    rows = []
    for base, labels in sorted(wanted.items()):
        try:
            rows += _pictures(base, labels, os.path.join(sets.ensure(RAW[base], data, prepare), 'test_lmdb'))
        except UserError as error:
            problems.append('no pictures of %s images recorded: %s' % (base, error))
    return rows


def _pictures(base, labels, path):
    images, truth = records.load(path)
    for i, label in labels.items():
        if i >= len(truth) or truth[i] != label:
            raise UserError('%s: image %d is not of class %d: the evaluation was on other images' % (path, i, label))
    return [OrderedDict(
        dataset=base, image=i, height=images.shape[2], width=images.shape[3], channels=images.shape[1],
        pixels=base64.b64encode(np.ascontiguousarray(images[i].transpose(1, 2, 0)).tobytes()).decode()) for i in labels]
