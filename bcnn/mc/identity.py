"""Whether an evaluation is one of the paper's: decided by the SHA-256 of its net, its images and its weights.

Never by a name. The nets are those of prototxt/, the images the first of the test set, as the net gets them.
Without Caffe where the whole test set was evaluated.
"""

import functools
import glob
import hashlib
import os
from typing import Any, Dict, Optional, Tuple

from .. import paper
from ..data import sets
from ..inputs import preprocessing, sources
from ..system import places, store

# Of all test images and their labels as a net gets them, sources.Source.scan(10000). Those of cifar10_pad4 are
# cifar10's, as their padding is cut off again.
TEST_SETS = {'mnist': '9341f73b709e08d17a24cfe8d6bcda5a72ad1d49f0f10e55eaddccc3a87a3763',
             'cifar10': '4823da261565f18e3dbfb7a98eb5bac12ad226063009de5a5217b03c2ff49f7a'}


def net_of(config: Dict[str, Any]) -> Optional[Tuple[str, str]]:
    """(data set, net) of the paper whose Standard and MC nets the config of an evaluation has; None for another net."""
    for place, standard, sampling in _paper_nets():
        if config.get('standard_net') == standard and config['mc_net'] in (None, sampling):
            return place
    return None


@functools.lru_cache(maxsize=1)
def _paper_nets():
    """[((data set, net), SHA-256 of the Standard net, of the MC net)] of prototxt/, without the files' comments."""
    nets = []
    for path in sorted(glob.glob(os.path.join(places.SHIPPED, 'prototxt', '*', '*', 'deploy.prototxt'))):
        folder = os.path.dirname(path)
        place = os.path.basename(os.path.dirname(folder)), os.path.basename(folder)
        nets.append((place, _digest(path), _digest(os.path.join(folder, 'mc.prototxt'))))
    return nets


def _digest(path):
    if not os.path.exists(path):
        return None
    with open(path, encoding='utf-8') as file:
        return hashlib.sha256(''.join(line for line in file if not line.startswith('#')).encode()).hexdigest()


def is_test_set(config: Dict[str, Any], dataset: str, net: str, data: str = sets.DATA) -> Optional[bool]:
    """Whether the images of an evaluation are the first of the test set; None where that set is not here to compare."""
    if config['images'] == TEST_SETS.get(dataset):
        return True
    digest = _test_digest(dataset, net, config['count'], os.path.abspath(data))
    return None if digest is None else digest == config['images']


@functools.lru_cache(maxsize=None)
def _test_digest(dataset, net, count, data):
    """The SHA-256 of the first images of a test set as a net gets them; '' for too few, None where it is not here."""
    from .. import nets
    entry = nets.find(dataset, net)
    name = entry.data.test.split('/')[1]
    if sets.manifest(name, data) is None:
        return None
    source = sources.open_images(os.path.join(data, name, os.path.basename(entry.data.test)),
                                 preprocessing.of_paper(entry.data))
    return source.scan(count)[1] if count <= source.count else ''


def run_of(config: Dict[str, Any], origin: Dict[str, Any],
           data: str = sets.DATA) -> Tuple[Optional[Tuple[str, str]], bool]:
    """((data set, net), certain) of the paper's run that an evaluation belongs to; None for a user's own.

    origin: where its weights come from, see bcnn.results.gather. certain: whether nothing that is not at hand, the
    test set or the training run, could say otherwise.
    """
    place = net_of(config)
    if place is None:
        return None, True
    same = is_test_set(config, place[0], place[1], data)
    if same is False:
        return None, True
    training = origin['config'] if origin['weights'] == 'trained' else dict(dataset='cifar10', net='nin')
    if origin['weights'] == 'unknown' or same is None:
        return None, False
    if (paper.base_of(training['dataset']), training['net']) != place:
        return None, True
    return (training['dataset'], training['net']), True


def with_stored(folder: str, config: Dict[str, Any]) -> Dict[str, Any]:
    """The config whose images are known as the net got them and as they are stored: own nets scale them differently."""
    stored = (store.read_json(os.path.join(folder, places.SOURCE)) or {}).get('stored_images')
    return dict(config, images='%s %s' % (config['images'], stored)) if stored else config
