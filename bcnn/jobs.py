"""What to evaluate, from what a user types: a net of the paper by name, or a prototxt of their own."""

import os

from . import engine, images, nets, prototxt, runs
from .data import sets
from .errors import UserError
from .evaluation import Job


def of_paper(net, dataset=None, weights=None, training_seed=1, data=None, limit=None, crops=None, standard_only=False):
    """The Job for a net of the paper, on its own test set or on other images of the same kind."""
    entry = nets.find(dataset or default_dataset(net), net)
    weights = weights or _trained(entry, training_seed)
    test = entry.data.test.split('/')[1]
    path = data or os.path.join(sets.require(test), os.path.basename(entry.data.test))
    source = images.open_images(path, images.Transform(entry.data.scale or 1.0, None, entry.data.crop))
    if crops and not entry.data.crop:
        raise UserError('%s sees whole images, so there is nothing to crop; --crops is for dsn_aug' % net)
    sampling = None if standard_only else nets.mc(entry.net, entry.base)
    return Job('%s/%s' % (entry.dataset, entry.net), nets.deploy(entry.net, entry.base), sampling, weights,
               False, source, _count(source, limit))


def of_prototxt(path, weights, data, shape=None, output=None, limit=None, crops=None, standard_only=False):
    """The Job for any Caffe net: its prototxt is rewritten to a Standard and an MC net."""
    for name, value in (('--weights', weights), ('--data', data)):
        if not value:
            raise UserError('%s: needs %s too' % (path, name))
    engine.require_file(path)
    message = prototxt.read(path)
    source = images.open_images(data, images.transform_of(prototxt.preprocessing(message)))
    shape = shape or source.shape
    name = os.path.splitext(os.path.basename(path))[0]
    try:
        standard = prototxt.to_deploy(message, shape, 100, output)
        sampling = None if standard_only else prototxt.to_mc(message, shape, 100, output)
    except UserError as error:
        raise UserError('%s: %s' % (path, error))
    return Job(name, standard, sampling, weights, True, source, _count(source, limit))


def default_dataset(net):
    """The data set a net is for: its only one, or mnist."""
    found = [dataset for dataset, name in nets.REGISTRY if name == net]
    return found[0] if len(set(found)) == 1 else 'mnist'


def _trained(entry, seed):
    path = os.path.join(runs.furthest(entry.dataset, entry.net, seed) or runs.folder(entry.dataset, entry.net, seed),
                        runs.FINAL)
    if not os.path.exists(path):
        published = ', or the published ones: tools/prepare_data.py nin_weights' if entry.net == 'nin' else ''
        raise UserError('%s: not trained yet: python tools/train.py --net %s --dataset %s --seed %d; or name other '
                        'weights with --weights%s' % (path, entry.net, entry.dataset, seed, published))
    return path


def _count(source, limit):
    if limit is not None and not 1 <= limit <= source.count:
        raise UserError('%s has %d images: --limit %d is not possible' % (source.path, source.count, limit))
    return limit or source.count
