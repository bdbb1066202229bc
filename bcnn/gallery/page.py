"""The page of an evaluation: its numbers as compact arrays, its images as sheets, and the template around them.

Everything is in the one file, so that it works from a disk, without a network, and can be sent to somebody.
"""

import base64
import glob
import json
import os
import re
from collections import OrderedDict
from typing import Any, Dict, Optional, Tuple

import numpy as np

from ..errors import UserError
from ..mc import metrics, summary
from ..mc.running_sums import Arrays
from ..system import files, npz, places, store
from . import pixels, sheets

TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'template')
MOST_CLASSES = 12  # of an image that go into the page: the likeliest, and the true one

# What images can be sorted by, beside their order: of images.npz or made in _measures; its name, what it is.
MEASURES = OrderedDict([
    ('entropy', ('entropy', 'of the mean of the passes: all uncertainty, in nats')),
    ('mutual_information', ('mutual information', 'what the passes disagree about, in nats')),
    ('expected_entropy', ('expected entropy', 'mean entropy of the passes: what they agree is unclear, in nats')),
    ('variation_ratio', ('variation ratio', 'share of the passes that vote for another class than the most voted')),
    ('mc_std', ('std of the probability', "spread over the passes of the predicted class's probability")),
    ('mc_doubt', ('1 - MC probability', 'what MC dropout leaves to all other classes')),
    ('standard_doubt', ('1 - Standard probability', 'what Standard dropout leaves to all other classes')),
    ('standard_entropy', ('Standard entropy', 'entropy of the one prediction with Standard dropout, in nats')),
    ('passes', ('passes', 'stochastic passes until the class was settled')),
])


def write(folder: str, out: Optional[str] = None, data: Optional[str] = None,
          order: Optional[str] = None) -> Tuple[str, int]:
    """Writes the page of the evaluation in a folder; gives its path and how many images are on it."""
    path = out or os.path.join(folder, places.GALLERY)
    config, stored, source = _read(folder)
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise UserError('%s: no folder for it' % path)
    try:
        seen = pixels.of_evaluation(source, stored['labels'], data, order)
        content = contents(folder, config, stored, source, seen)
    except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise UserError('%s: its files do not fit together (%s): tools/verify.py says which'
                        % (folder, ' '.join(str(error).split())))
    files.write_text(path, fill(content))
    return path, len(stored['labels'])


def _read(folder):
    """(config, images.npz, source.json) of a finished evaluation."""
    config = store.read_json(os.path.join(folder, places.CONFIG))
    if config is None or not os.path.exists(os.path.join(folder, places.IMAGES)):
        inner = sorted(glob.glob(os.path.join(glob.escape(folder), '**', places.IMAGES), recursive=True))
        raise UserError('%s: no finished evaluation here; %s' % (
            folder, 'there is %s' % os.path.dirname(inner[0]) if inner else
            'tools/mc_eval.py makes one, and its last line says where'))
    stored = npz.read(os.path.join(folder, places.IMAGES), 'run tools/mc_eval.py again, which writes it anew')
    return config, stored, store.read_json(os.path.join(folder, places.SOURCE)) or {}


# --- numbers ---------------------------------------------------------------------------------

def contents(folder: str, config: Dict[str, Any], stored: Arrays, source: Dict[str, Any],
             seen: pixels.Seen) -> Dict[str, Any]:
    """What the page's script reads, as a dictionary for JSON."""
    labels, standard = stored['labels'], stored['standard_probs']
    sampled = 'mc_probs' in stored
    mean = stored['mc_probs'][0] if sampled else None
    std = np.nan_to_num(summary.spread(summary.repetition(folder, 1))) if sampled else None
    which = _likeliest(standard, mean, labels)
    packed = sheets.pack(seen.pictures)
    return OrderedDict([
        ('title', _title(folder, config, source)), ('T', config['T'] if sampled else None),
        ('adaptive', config.get('mode') == 'adaptive'), ('note', seen.note), ('sharp', not seen.reduced),
        ('count', len(labels)), ('classes', seen.classes), ('classCount', standard.shape[1]),
        ('files', source.get('files') and source['files'][:len(labels)]), ('sheets', packed._asdict()),
        ('labels', _packed(labels, '<u2')), ('standardBest', _packed(standard.argmax(1), '<u2')),
        ('standardRight', _packed(metrics.correct(standard, labels), 'u1')),
        ('mcBest', _packed(mean.argmax(1), '<u2') if sampled else None),
        ('mcRight', _packed(metrics.correct(mean, labels), 'u1') if sampled else None),
        ('shown', which.shape[1]), ('which', _packed(which, '<u2')), ('standard', _shares(standard, which)),
        ('mean', _shares(mean, which) if sampled else None), ('std', _shares(std, which) if sampled else None),
        ('measures', [OrderedDict([('key', key), ('name', MEASURES[key][0]), ('what', MEASURES[key][1]),
                                   ('values', _packed(values, '<f4'))])
                      for key, values in _measures(config, stored, std).items()])])


def _title(folder, config, source):
    """The name that the user gave it, else that of the net, else of the folder."""
    return source.get('name') or config.get('net') or os.path.basename(os.path.abspath(folder))


def _measures(config, stored, std):
    """{key of MEASURES: a value an image}, those that this evaluation has."""
    standard = stored['standard_probs']
    values = {'standard_doubt': 1 - standard.max(1), 'standard_entropy': metrics.entropy(standard)}
    if std is not None:
        mean = stored['mc_probs'][0]
        values.update((name, stored[name][0]) for name in summary.UNCERTAINTY)
        values.update(mc_doubt=1 - mean.max(1), mc_std=std[np.arange(len(std)), mean.argmax(1)])
        if config.get('mode') == 'adaptive':
            values['passes'] = stored['passes'][0]
    return OrderedDict((key, values[key]) for key in MEASURES if key in values)


def _likeliest(standard, mean, labels):
    """(images, k) classes to show of each image: all where they are few, in their order; else the likeliest first."""
    classes = standard.shape[1]
    if classes <= MOST_CLASSES:
        return np.tile(np.arange(classes), (len(labels), 1))
    most = standard if mean is None else np.maximum(standard, mean)
    which = np.argsort(-most, axis=1, kind='mergesort')[:, :MOST_CLASSES]
    absent = (which != labels[:, None]).all(axis=1)
    which[absent, -1] = labels[absent]
    return which


def _shares(rows, which):
    """Numbers of 0 to 1 of these classes, in steps of 1/65535."""
    return _packed(np.rint(65535 * np.clip(np.take_along_axis(rows, which, axis=1), 0, 1)), '<u2')


def _packed(values, kind):
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode()


# --- the file --------------------------------------------------------------------------------

def fill(content: Dict[str, Any]) -> str:
    """The template with style, script and contents in it."""
    data = json.dumps(content, separators=(',', ':')).replace('<', '\\u003c')  # no name in it can end the script
    parts = {'style': _template('page.css'), 'script': _template('page.js'), 'data': data}
    return re.sub(r'\{\{(\w+)\}\}', lambda place: parts[place.group(1)], _template('page.html'))


def _template(name):
    with open(os.path.join(TEMPLATE, name), encoding='utf-8') as file:
        return file.read()
