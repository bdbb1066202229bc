"""The prepared sets: what each consists of, how it is made, and whether it is there.

A set is a folder of data/ with LMDBs and a manifest, made beside its place and renamed as a
whole, so a set that has its manifest is complete. Sets of one source are made one after the other,
under one lock; what a set is made from is made before it, its siblings are not.
"""

import hashlib
import json
import os
import time
from collections import OrderedDict
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence

from .. import paper
from ..errors import UserError
from ..system import files, locks, places, progress
from . import catalogue

DATA = os.path.join(places.ROOT, 'data')
MANIFEST = 'manifest.json'
FORMAT = 1         # of the sets: raise it when a set is made differently, and older ones are made anew
SUBSET_SEED = 0    # of the MNIST subsets; the paper's split is not known
DRAWS = (1, 2, 3)  # of each subset: the first is the paper's stand-in, the others are for questions beyond it
GCN_SCALE, ZCA_BIAS = 55.0, 0.1  # of the whitening: make_cifar10_gcn_whitened.py of pylearn2
PAD = 4            # zeros around the whitened images for the random crops of Augmented-DSN


class Set(NamedTuple):
    """A prepared set."""

    source: str                    # key of catalogue.SOURCES
    what: str                      # for --list
    needed: int                    # bytes of disk
    settings: Dict[str, Any] = {}  # recorded, and compared
    base: Optional[str] = None     # the set that it is made from; None where that is the source itself


def _subsets(divisor):
    """(name, Set) of each draw of a part of MNIST."""
    for draw in DRAWS:
        name, words = ('mnist_%d', '') if draw == 1 else ('mnist_%%d_draw%d' % draw, ', drawn anew')
        yield name % divisor, Set(source='mnist', what='a random 1/%d of the training images%s' % (divisor, words),
                                  needed=(70 << 20) // divisor,
                                  settings={'divisor': divisor, 'seed': SUBSET_SEED + draw - 1})


SETS = OrderedDict([('mnist', Set(source='mnist', what='bytes, 1x28x28', needed=90 << 20))])
SETS.update(subset for divisor in paper.FRACTIONS for subset in _subsets(divisor))
SETS.update([
    ('fashion_mnist', Set(source='fashion_mnist', what='bytes, 1x28x28', needed=90 << 20)),
    ('cifar10_raw', Set(source='cifar10', what='bytes, 3x32x32', needed=260 << 20)),
    ('cifar10', Set(source='cifar10', what='GCN + ZCA floats, 3x32x32', needed=1030 << 20,
                    settings={'gcn_scale': GCN_SCALE, 'zca_bias': ZCA_BIAS})),
    ('cifar10_pad4', Set(source='cifar10', what='GCN + ZCA floats, zero-padded, 3x40x40', needed=1270 << 20,
                         settings={'pad': PAD}, base='cifar10')),
    ('nin_weights', Set(source='nin_weights', what='Caffe weights, 966,986 parameters', needed=4 << 20)),
])


# --- is it there? ------------------------------------------------------------------------

def manifest(name: str, data: str = DATA) -> Optional[Dict[str, Any]]:
    """The manifest of a set that is ready, or None.

    Ready: made by this version with these settings, and each file has the size it was
    recorded with. `check` reads every byte; this is quick.
    """
    folder = os.path.join(data, name)
    try:
        with open(os.path.join(folder, MANIFEST)) as file:
            stored = json.load(file)
        same = stored['format'] == FORMAT and stored['set'] == name and stored['settings'] == SETS[name].settings
        sizes = {path: os.path.getsize(os.path.join(folder, path)) for path in stored['files']}
        same = same and all(isinstance(facts, dict) for facts in stored.setdefault('splits', {}).values())
        for field in ('source', 'sha256'):
            same = same and isinstance(stored.setdefault(field, ''), str)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return stored if same and sizes == stored['files'] else None


def require(name: str, data: str = DATA) -> str:
    """The folder of a set that is ready; otherwise a UserError with the command that makes it."""
    if name not in SETS:
        raise UserError('no data set is called %s: there are %s' % (name, ', '.join(SETS)))
    if manifest(name, data) is None:
        raise UserError('%s: not ready: python tools/prepare_data.py %s' % (os.path.join(data, name), name))
    return os.path.join(data, name)


def ensure(name: str, data: str = DATA, make: bool = True) -> str:
    """The folder of a set, which is made where it is not ready; with make=False that is refused as in `require`."""
    if make and name in SETS and manifest(name, data) is None:
        missing = [part for part in with_bases([name]) if manifest(part, data) is None]
        progress.say('%s is not prepared yet: preparing it, %d MB of disk (--no-prepare refuses instead)'
                     % (name, sum(SETS[part].needed for part in missing) >> 20))
        start = time.monotonic()
        prepare([name], data)
        progress.say('%s: prepared in %d s' % (name, time.monotonic() - start))
    return require(name, data)


def checksum(name: str, split: str, data: str = DATA) -> str:
    """The SHA-256 of the records of a set that is ready, as its manifest has it."""
    require(name, data)
    digest = manifest(name, data)['splits'].get(split, {}).get('sha256')
    if not isinstance(digest, str):
        raise UserError('%s: its manifest tells nothing of %s: remove the folder, then python tools/prepare_data.py %s'
                        % (os.path.join(data, name), split, name))
    return digest


def weights_path(name: str, data: str = DATA) -> str:
    """Where the file of a set is that is one file of weights, there or not."""
    file, = catalogue.SOURCES[SETS[name].source].files
    return os.path.join(data, name, file.name)


def listing(data: str = DATA) -> Iterator[str]:
    """Lines for --list: every set, its state, size, source and checksum."""
    yield '%-14s %-9s %9s  %-17s %s' % ('set', 'state', 'size', 'sha256', 'what, and where from')
    for name, entry in SETS.items():
        ready = manifest(name, data)
        if ready:
            state, size, digest = 'ready', sum(ready['files'].values()), ready['sha256'][:16]
            origin = ready['source']
        else:
            state = 'outdated' if os.path.isdir(os.path.join(data, name)) else 'missing'
            size, digest = entry.needed, ''
            origin = '; '.join(getattr(place, 'package', None) or place.base
                               for place in catalogue.SOURCES[entry.source].places)
        yield '%-14s %-9s %8.1fM  %-17s %s; from %s' % (name, state, size / 1e6, digest, entry.what, origin)


# --- making ------------------------------------------------------------------------------

def prepare(names: Sequence[str], data: str = DATA, given: Optional[str] = None,
            sources: Optional[Dict[str, catalogue.Source]] = None) -> None:
    """Makes what is missing of the sets named, and of what they are made from, in the folder `data`.

    `given` is a folder or file with the source files; `sources` replaces catalogue.SOURCES in tests.
    """
    for name in names:
        if name not in SETS:
            raise UserError('no data set is called %s: there are %s' % (name, ', '.join(SETS)))
    wanted = with_bases(names)
    with files.folder(data):
        for source in OrderedDict.fromkeys(SETS[name].source for name in names):
            group = [name for name in wanted if SETS[name].source == source]
            if not os.access(data, os.W_OK) and all(manifest(name, data) for name in group):
                _tell_all(group, data)  # somebody else's folder, to read from: no lock can be taken, none is needed
                continue
            lock = os.path.join(data, '.%s.lock' % source)
            with locks.lock(lock, lambda _: progress.say('%s: waiting for another process that prepares it' % source)):
                _prepare_group(group, source, data, given, sources or catalogue.SOURCES)


def with_bases(names: Iterable[str]) -> List[str]:
    """The sets named and those that they are made from, in the order in which they can be made."""
    wanted = set(names)
    wanted.update(SETS[name].base for name in names if SETS[name].base)
    return [name for name in SETS if name in wanted]


def _prepare_group(group, source, data, given, sources):
    for name in SETS:
        if SETS[name].source == source:
            files.sweep(os.path.join(data, name))
    missing = [name for name in group if manifest(name, data) is None]
    if missing:
        _refuse_foreign(missing, data)
        files.require_space(data, sum(SETS[name].needed for name in missing))
        from . import obtain
        contents, origin = obtain.obtain(source, sources[source], given)
        inputs = {file: hashlib.sha256(contents[file]).hexdigest() for file in contents}
        for name in missing:
            _make(name, contents, {'source': origin, 'inputs': inputs}, data)
    _tell_all(group, data, missing)


def _refuse_foreign(names, data):
    for name in names:
        folder = os.path.join(data, name)
        if os.path.lexists(folder) and not os.path.isfile(os.path.join(folder, MANIFEST)):
            raise UserError('%s is there but was not made by this tool: move it away' % folder)


def _make(name, contents, made_from, data):
    """Make one set from the verified source files, {name: bytes}, then give it its name."""
    from . import recipes
    with files.atomic(os.path.join(data, name), folder=True) as folder:
        facts = recipes.make(name, contents, folder, data)
        record = dict(made_from, set=name, format=FORMAT, settings=SETS[name].settings, **facts)
        record['files'] = _sizes(folder)
        record['sha256'] = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
        with open(os.path.join(folder, MANIFEST), 'w') as file:
            json.dump(record, file, indent=1, sort_keys=True)
            file.write('\n')


def _sizes(folder):
    """{relative path: size} of the files in a folder; but LMDB's lock file, which readers may change."""
    paths = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if name != 'lock.mdb']
    return {os.path.relpath(path, folder): os.path.getsize(path) for path in sorted(paths)}


def _tell_all(group, data, made=()):
    for name in group:
        _tell(name, manifest(name, data), 'made' if name in made else 'ready')


def _tell(name, ready, state):
    """Says what there is of a set, from its manifest."""
    splits = ready.get('splits', {})
    parts = ['%s %d records' % (split, splits[split]['records']) for split in ('train', 'test') if split in splits]
    if 'divisor' in ready['settings']:
        parts.append('seed %d' % ready['settings']['seed'])
        parts.append('per class ' + ' '.join(str(n) for n in splits['train'].get('classes', ())))
    progress.say('%s: %s (%s)' % (name, state, ', '.join(parts + ['from %s' % ready['source']])))
