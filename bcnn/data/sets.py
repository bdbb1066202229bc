"""The prepared sets: what each consists of, how it is made, and whether it is there.

A set is a folder of data/ with LMDBs and a manifest, made beside its place and renamed as a
whole, so a set that has its manifest is complete. Sets of one source are made together.
"""

import collections
import hashlib
import json
import os

from .. import files, progress
from ..errors import UserError
from . import table

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, 'data')
MANIFEST = 'manifest.json'
FORMAT = 1         # of the sets: raise it when a set is made differently, and older ones are made anew
SUBSET_SEED = 0    # of the MNIST subsets; the paper's split is not known
PAD = 4            # zeros around the whitened images for the random crops of Augmented-DSN

# source: key of table.SOURCES; what: for --list; needed: bytes of disk; settings: recorded, and compared
Set = collections.namedtuple('Set', 'source what needed settings')


def _subset(divisor):
    return Set('mnist', 'a random 1/%d of the training images' % divisor, (70 << 20) // divisor,
               {'divisor': divisor, 'seed': SUBSET_SEED})


SETS = collections.OrderedDict([
    ('mnist', Set('mnist', 'bytes, 1x28x28', 90 << 20, {})),
    ('mnist_2', _subset(2)), ('mnist_4', _subset(4)), ('mnist_8', _subset(8)),
    ('mnist_16', _subset(16)), ('mnist_32', _subset(32)),
    ('fashion_mnist', Set('fashion_mnist', 'bytes, 1x28x28', 90 << 20, {})),
    ('cifar10_raw', Set('cifar10', 'bytes, 3x32x32', 260 << 20, {})),
    ('cifar10', Set('cifar10', 'GCN + ZCA floats, 3x32x32', 1030 << 20, {'gcn_scale': 55.0, 'zca_bias': 0.1})),
    ('cifar10_pad4', Set('cifar10', 'GCN + ZCA floats, zero-padded, 3x40x40', 1270 << 20, {'pad': PAD})),
    ('nin_weights', Set('nin_weights', 'Caffe weights, 966,986 parameters', 4 << 20, {})),
])


# --- is it there? ------------------------------------------------------------------------

def manifest(name, data=DATA):
    """The manifest of a set that is ready, or None.

    Ready: made by this version with these settings, and each file has the size it was
    recorded with. `check` reads every byte; this is quick.
    """
    folder = os.path.join(data, name)
    try:
        with open(os.path.join(folder, MANIFEST)) as file:
            found = json.load(file)
        same = found['format'] == FORMAT and found['set'] == name and found['settings'] == SETS[name].settings
        sizes = {path: os.path.getsize(os.path.join(folder, path)) for path in found['files']}
        same = same and all(isinstance(facts, dict) for facts in found.setdefault('splits', {}).values())
        for name in ('source', 'sha256'):
            same = same and isinstance(found.setdefault(name, ''), str)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return found if same and sizes == found['files'] else None


def require(name, data=DATA):
    """The folder of a set that is ready; otherwise a UserError with the command that makes it."""
    if name not in SETS:
        raise UserError('no data set is called %s: there are %s' % (name, ', '.join(SETS)))
    if manifest(name, data) is None:
        raise UserError('%s: not ready: python tools/prepare_data.py %s'
                        % (os.path.join(data, name), SETS[name].source))
    return os.path.join(data, name)


def checksum(name, split, data=DATA):
    """The SHA-256 of the records of a set that is ready, as its manifest has it."""
    require(name, data)
    found = manifest(name, data)['splits'].get(split, {}).get('sha256')
    if not isinstance(found, str):
        raise UserError('%s: its manifest tells nothing of %s: remove the folder, then python tools/prepare_data.py %s'
                        % (os.path.join(data, name), split, SETS[name].source))
    return found


def listing(data=DATA):
    """Lines for --list: every set, its state, size, source and checksum."""
    yield '%-14s %-9s %9s  %-17s %s' % ('set', 'state', 'size', 'sha256', 'what, and where from')
    for name, entry in SETS.items():
        found = manifest(name, data)
        source = table.SOURCES[entry.source]
        if found is None:
            state = 'outdated' if os.path.isdir(os.path.join(data, name)) else 'missing'
            places = '; '.join(getattr(place, 'package', None) or place.base for place in source.places)
            yield '%-14s %-9s %8.1fM  %-17s %s; from %s' % (name, state, entry.needed / 1e6, '', entry.what, places)
            continue
        size = sum(found['files'].values())
        yield '%-14s %-9s %8.1fM  %-17s %s; from %s' % (
            name, 'ready', size / 1e6, found['sha256'][:16], entry.what, found['source'])


# --- making ------------------------------------------------------------------------------

def prepare(names, data=DATA, given=None, sources=None):
    """Makes what is missing of the sets named, and of those from the same sources, in the folder `data`.

    `given` is a folder or file with the source files; `sources` replaces table.SOURCES in tests.
    """
    for name in names:
        if name not in SETS:
            raise UserError('no data set is called %s: there are %s' % (name, ', '.join(SETS)))
    wanted = list(collections.OrderedDict.fromkeys(SETS[name].source for name in names))
    with files.folder(data):
        for source in wanted:
            group = [name for name, entry in SETS.items() if entry.source == source]
            if not os.access(data, os.W_OK) and all(manifest(name, data) for name in group):
                _tell_all(group, data)  # somebody else's folder, to read from: no lock can be taken, none is needed
                continue
            lock = os.path.join(data, '.%s.lock' % source)
            with files.lock(lock, lambda: progress.say('%s: waiting for another process that prepares it' % source)):
                _prepare_group(group, source, data, given, sources or table.SOURCES)


def _prepare_group(group, source, data, given, sources):
    for name in group:
        files.sweep(os.path.join(data, name))
    missing = [name for name in group if manifest(name, data) is None]
    if missing:
        _refuse_foreign(missing, data)
        files.require_space(data, sum(SETS[name].needed for name in missing))
        from . import obtain
        found, origin = obtain.obtain(source, sources[source], given)
        made_from = {'source': origin, 'inputs': {name: hashlib.sha256(found[name]).hexdigest() for name in found}}
        for name in missing:
            _make(name, found, made_from, data)
    _tell_all(group, data, missing)


def _refuse_foreign(names, data):
    for name in names:
        folder = os.path.join(data, name)
        if os.path.lexists(folder) and not os.path.isfile(os.path.join(folder, MANIFEST)):
            raise UserError('%s is there but was not made by this tool: move it away' % folder)


def _make(name, found, made_from, data):
    """Make one set from the verified source files, then give it its name."""
    from . import recipes
    with files.atomic(os.path.join(data, name), folder=True) as folder:
        facts = recipes.make(name, found, folder, data)
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


def _tell(name, found, state):
    splits = found.get('splits', {})
    parts = ['%s %d records' % (split, splits[split]['records']) for split in ('train', 'test') if split in splits]
    if 'divisor' in found['settings']:
        parts.append('seed %d' % found['settings']['seed'])
        parts.append('per class ' + ' '.join(str(n) for n in found['splits']['train'].get('classes', ())))
    progress.say('%s: %s (%s)' % (name, state, ', '.join(parts + ['from %s' % found['source']])))
