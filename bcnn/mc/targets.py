"""What to evaluate, from what a user types: a net of the paper by name, or a prototxt of their own."""

import argparse
import os
from typing import Any, Callable, NamedTuple, Optional, Tuple

from .. import engine, nets
from .. import weights as weights_of
from ..data import sets
from ..errors import UserError
from ..inputs import preprocessing, sources
from ..inputs.preprocessing import Options
from ..prototxt import facts, neighbours, reading, rewriting
from ..system import progress


class Target(NamedTuple):
    """What to evaluate."""

    name: str                                # 'mnist/lenet_all', or of a net of the user's own
    standard: engine.NetParameter            # for Standard dropout
    sampling: Optional[engine.NetParameter]  # for MC dropout; None where only Standard is wanted
    weights: Optional[str]
    extra_weights: bool                      # whether weights may hold layers that the net lacks (companions)
    source: sources.Source                   # the images
    count: int                               # how many of them
    title: Optional[str] = None              # the name that the user gives it
    notes: Tuple[str, ...] = ()              # what is done to the images, which scores are taken: for people
    warnings: Tuple[str, ...] = ()           # what is likely to be wrong, for people


class Net(NamedTuple):
    """A net without images: what a Target is made of once there are some."""

    name: str
    path: Optional[str]                     # of the prototxt; None for a net of the paper
    message: Optional[engine.NetParameter]  # of the prototxt; None for a net of the paper
    entry: Optional[nets.Net]               # of the paper; None for a net of the user's own
    weights: Optional[str]
    transform: preprocessing.Transform
    options: Options                        # as given
    shape: Tuple[int, ...]                  # of an image, as the net takes it; 0 for what is not told, () for nothing
    output: Optional[str]


# --- nets ------------------------------------------------------------------------------------

def paper_net(net: str, dataset: Optional[str] = None, weights: Optional[str] = None,
              training_seed: Optional[int] = None, options: Options = Options(), prepare: bool = False,
              say: Callable[[str], None] = lambda line: None) -> Net:
    """The Net of the paper of this name. prepare: weights that are missing; say: is told which weights it will be."""
    entry = nets.find(dataset or nets.default_dataset(net), net)
    chosen = weights_of.choose(entry, weights, training_seed)
    say(chosen.line())
    if chosen.needs:
        sets.ensure(chosen.needs, make=prepare)
    whitening = os.path.join(sets.DATA, 'cifar10', 'zca.npz') if entry.base == 'cifar10' else None
    transform = preprocessing.with_options(preprocessing.of_paper(entry.data, whitening), options)
    return Net(name='%s/%s' % (entry.dataset, entry.net), path=None, message=None, entry=entry,
               weights=chosen.path, transform=transform, options=options,
               shape=entry.data.shape, output=None)


def own_net(path: str, weights: Optional[str], options: Options = Options(), shape: Optional[Tuple[int, ...]] = None,
            output: Optional[str] = None) -> Net:
    """The Net of a prototxt; what it says of its images holds unless `options` say otherwise."""
    engine.require_file(path)
    message = reading.read(path)
    told = _about(path, rewriting.input_shape, message, output)
    layer = facts.data_layer(message)
    transform = preprocessing.of_layer(layer, mean_given=options.mean is not None)
    transform = preprocessing.with_options(transform, options)
    shape = shape or _expected(told, transform, options)
    if transform.channels is None and len(shape) == 3 and shape[0] in (1, 3):
        transform = transform._replace(channels=shape[0])
    return Net(name=name_of(path), path=path, message=message, entry=None, weights=weights, transform=transform,
               options=options, shape=tuple(shape), output=output)


def _expected(told, transform, options):
    """The shape that images must have: what the prototxt tells, unless the user has them cut or resized otherwise."""
    if options.crop and len(told) == 3 and told[1:] == (0, 0):
        return (told[0], options.crop, options.crop)
    return told


GENERIC = ('deploy', 'train_val', 'train_test', 'trainval', 'train', 'test', 'val', 'net', 'model', 'mc')


def name_of(path: str) -> str:
    """What to call a net: its file, or the file's folder where the file has the name of every other."""
    stem = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    return folder if stem.lower() in GENERIC and folder else stem


def check_title(title: Optional[str]) -> Optional[str]:
    """The name that a user gives an evaluation; refuses one that cannot be a folder's and a table's."""
    if title is not None and (not title.strip() or title != title.strip() or title.startswith('.') or
                              any(letter in '/\\' or not letter.isprintable() for letter in title)):
        raise UserError('--name %r: a name of letters, without slashes and not beginning with a dot' % title)
    return title


# --- targets -----------------------------------------------------------------------------------

def of_paper(net: str, dataset: Optional[str] = None, weights: Optional[str] = None,
             training_seed: Optional[int] = None, data: Optional[str] = None, limit: Optional[int] = None,
             crops: Optional[int] = None, standard_only: bool = False, options: Options = Options(),
             classes: Optional[str] = None, title: Optional[str] = None, prepare: bool = False,
             say: Callable[[str], None] = lambda line: None) -> Target:
    """The Target for a net of the paper, on its own test set or on other images of the same kind.

    prepare: the sets that are missing. say: is told, before that, which weights it will be.
    """
    chosen = paper_net(net, dataset, weights, training_seed, options, prepare, say)
    if crops and not chosen.entry.data.crop:
        raise UserError('%s sees whole images, so there is nothing to crop; --crops is for dsn_aug' % net)
    test = chosen.entry.data.test.split('/')[1]
    path = data or os.path.join(sets.ensure(test, make=prepare), os.path.basename(chosen.entry.data.test))
    return on_images(chosen, sources.open_images(path, chosen.transform, classes), limit, standard_only, title)


def of_arguments(args: argparse.Namespace, **options: Any) -> Target:
    """The Target of a tool's --net and what goes with it; prints which weights that are."""
    return of_paper(args.net, args.dataset, args.weights, args.training_seed, prepare=not args.no_prepare,
                    say=progress.say, **options)


def of_prototxt(path: str, weights: Optional[str], data: Optional[str], shape: Optional[Tuple[int, ...]] = None,
                output: Optional[str] = None, limit: Optional[int] = None, crops: Optional[int] = None,
                standard_only: bool = False, options: Options = Options(), classes: Optional[str] = None,
                title: Optional[str] = None) -> Target:
    """The Target for any Caffe net: its prototxt is rewritten to a Standard and an MC net."""
    for name, value in (('--weights', weights), ('--data', data)):
        if not value:
            raise UserError('%s: needs %s too' % (path, name))
    net = own_net(path, weights, options, shape, output)
    return on_images(net, sources.open_images(data, net.transform, classes), limit, standard_only, title)


def on_images(net: Net, source: sources.Source, limit: Optional[int] = None, standard_only: bool = False,
              title: Optional[str] = None) -> Target:
    """The Target of a Net and images."""
    if net.options.channels and not source.pictures:
        raise UserError('%s: arrays of images are fed in the order of colours that they have; --channels is for '
                        'pictures' % source.path)
    _check_shape(net, source)
    if net.entry is not None:
        standard = nets.deploy(net.entry.net, net.entry.base)
        sampling = None if standard_only else nets.mc(net.entry.net, net.entry.base)
    else:
        standard = _about(net.path, rewriting.to_deploy, net.message, source.shape, 100, net.output)
        sampling = None if standard_only else _sampling(net, source.shape)
    return Target(name=net.name, standard=standard, sampling=sampling, weights=net.weights,
                  extra_weights=net.entry is None, source=source, count=_count(source, limit), title=check_title(title),
                  notes=_notes(net, source, standard), warnings=tuple(_warnings(net, source)))


def _about(path, make, *args):
    """make(*args); what it refuses is said with the file's name."""
    try:
        return make(*args)
    except UserError as error:
        raise UserError('%s: %s' % (path, error))


def _sampling(net, shape):
    """The MC net; where it has no dropout, it is said where there may be some."""
    try:
        return rewriting.to_mc(net.message, shape, 100, net.output)
    except UserError as error:
        raise UserError('%s: %s%s' % (net.path, error, '' if facts.dropouts(net.message) else _elsewhere(net)))


def _elsewhere(net):
    for name, other in neighbours.training_nets(net.path, net.message):
        if facts.dropouts(other):
            return '; %s beside it has %s' % (name, ', '.join(facts.dropouts(other)))
    return '; a deploy file may lack the dropout layers of its train_val'


def _check_shape(net, source):
    """Refuses images of another size than the net takes, with the options that help."""
    wanted, stored = net.shape, source.shape
    if len(wanted) != 3 or all(want in (0, have) for want, have in zip(wanted, stored)):
        return
    height, width = wanted[1:]
    cures = []
    if wanted[1:] != stored[1:]:
        cures.append('--resize %d,%d scales them' % (height, width))
        if height == width and height < min(stored[1:]):
            cures.append('--crop %d takes their centre' % height)
        if net.entry is None:
            cures.append('--shape %s runs the net on images of that size' % ','.join(map(str, stored)))
    raise UserError('%s has images of %s, the net %s takes %s%s' % (
        source.path, 'x'.join(map(str, stored)), net.name, 'x'.join(map(str, wanted)),
        ': ' + ', '.join(cures) if cures else ''))


# --- for people --------------------------------------------------------------------------------

def _notes(net, source, standard):
    lines = ['images: %d in %s, %s' % (source.count, source.path, source.describe())]
    if source.rule:
        lines.append('labels: %s' % source.rule)
    layer = facts.data_layer(net.message) if net.message is not None else None
    if layer is not None and layer.transform_param.mirror:
        lines.append('mirror: left out, which at test would be random')
    lines.append('scores: the blob %s; probabilities: %s' % (facts.score_blob(standard), facts.prob_blob(standard)))
    return tuple(lines)


def _warnings(net, source):
    """What is likely to be wrong with the images of a net that says nothing of them."""
    given = net.options.scale is not None or net.options.mean is not None
    if net.message is not None and facts.data_layer(net.message) is None and not given and source.bytes:
        text = ('%s says nothing of scale and mean, so that the net gets pixels of 0 to 255 as they are: --scale and '
                '--mean give it what it was trained on, --scale 1 says that this is right' % net.path)
        for name, other in neighbours.training_nets(net.path, net.message):
            words = preprocessing.options_for(facts.data_layer(other))
            yield '%s; %s beside it %s' % (text, name, 'has ' + words if words else 'has none either')
            return
        yield text
    if not source.bytes and preprocessing.looks_scaled(source.raw(0, min(source.count, 100))[0], source.transform):
        yield ('%s: the images are numbers of at most 1, and the net expects 0 to 255 (%s): were they divided by 255 '
               'before?' % (source.path, preprocessing.describe(source.transform)))


def _count(source, limit):
    if limit is not None and not 1 <= limit <= source.count:
        raise UserError('%s has %d images: --limit %d is not possible' % (source.path, source.count, limit))
    return limit or source.count
