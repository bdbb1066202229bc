"""Which weights a net's name means: those of a run, this project's own in weights/, or published ones.

weights/ has caffemodels of recorded runs, committed, and an index that says what each of them is
(bcnn.results.shipped makes both). In this order, for --net X: the weights that the user names; those of
the complete run that went furthest; those of weights/; for NIN the published file, fetched.
"""

import os
from typing import Iterable, List, NamedTuple, Optional, Sequence

from . import beyond, engine, nets
from .data import catalogue, sets
from .errors import UserError
from .system import places, store

FOLDER, INDEX = places.WEIGHTS, places.WEIGHTS_INDEX
PUBLISHED = {('cifar10', 'nin'): 'nin_weights'}  # the sets that are a file of weights


class NotTrained(UserError):
    """There are no weights for a net."""


class Entry(NamedTuple):
    """What a file of weights/ is; its numbers are those of one recorded evaluation."""

    file: str
    dataset: str
    net: str
    seed: int
    schedule: Optional[str]    # '1/20' for a twentieth of the paper's in proportion, None for the paper's own
    init: Optional[str]        # SHA-256 of the weights that the training began with, None for random ones
    iterations: List[int]      # of each stage
    sha256: str
    commit: Optional[str]      # that trained it
    config: str                # SHA-256 of the training's configuration, as in provenance.csv
    evaluation: str            # the config of its evaluation in evaluations.csv
    images: int                # of the test set that were evaluated
    T: int
    standard_errors: int       # images that are wrong
    mc_errors: List[int]       # the same of each repetition; none for a net without dropout


class Weights(NamedTuple):
    """The weights to use."""

    path: str
    about: str             # whose they are, and how far they were trained
    needs: Optional[str]   # the set that has to be prepared for them

    def line(self) -> str:
        """What a tool prints first."""
        return 'weights: %s: %s' % (os.path.relpath(self.path), self.about)


# --- weights/ ----------------------------------------------------------------------------------

def index(folder: str = FOLDER) -> List[Entry]:
    """The Entries of weights/, in order of name; [] where there are none."""
    path = os.path.join(folder, INDEX)
    stored = store.read_json(path) or {}
    try:
        entries = [Entry(file=file, **stored[file]) for file in sorted(stored)]
    except TypeError as error:
        raise UserError('%s: not an index of this version (%s)' % (path, ' '.join(str(error).split())))
    for entry in entries:
        if not _is_sane(entry):
            raise UserError('%s: the entry of %s is not one of this version' % (path, entry.file))
    return entries


def _is_sane(entry):
    def holds(kind, *values):
        return all(type(value) is kind for value in values)

    return (holds(str, entry.sha256, entry.config, entry.evaluation)
            and holds(str, *[value or '' for value in (entry.schedule, entry.init, entry.commit)])
            and holds(int, entry.seed, entry.images, entry.T, entry.standard_errors) and entry.images > 0
            and holds(list, entry.iterations, entry.mc_errors) and holds(int, *entry.iterations + entry.mc_errors)
            and (entry.dataset, entry.net) in nets.REGISTRY and os.path.basename(entry.file) == entry.file)


def write_index(entries: Iterable[Entry], folder: str = FOLDER) -> None:
    """Writes the index, whole or not at all."""
    store.write_json(os.path.join(folder, INDEX), {
        entry.file: {name: value for name, value in entry._asdict().items() if name != 'file'} for entry in entries})


def require(entry: Entry, folder: str = FOLDER) -> str:
    """The path of an entry's file; refuses one that is missing, damaged or of something else."""
    path = os.path.join(folder, entry.file)
    if not os.path.isfile(path):
        raise UserError('%s: missing, but named in %s: git checkout weights' % (path, INDEX))
    if store.sha256(path) != entry.sha256:
        raise UserError('%s: damaged or exchanged: not the SHA-256 in %s: git checkout weights' % (path, INDEX))
    return path


def of_digest(digest: str, folder: str = FOLDER) -> Optional[Entry]:
    """The Entry whose file has this SHA-256; None where there is none."""
    return next((entry for entry in index(folder) if entry.sha256 == digest), None)


def is_published(digest: str) -> bool:
    """Whether this is the SHA-256 of weights that others have published."""
    return digest in [file.sha256 for file in catalogue.NIN_WEIGHTS.files]


# --- which --------------------------------------------------------------------------------------

def choose(net: nets.Net, given: Optional[str] = None, seed: Optional[int] = None, runs: str = places.RUNS,
           folder: str = FOLDER) -> Weights:
    """The Weights for a net (of bcnn.nets), or a UserError that says how to get some.

    given: a caffemodel that the user names. seed: of the training that they want; without it that of seed 1, and
    published ones may stand in.
    """
    if given:
        engine.require_file(given)
        return Weights(given, _about(given, runs, folder), None)
    run = places.furthest(net.dataset, net.net, seed or 1, runs)
    if run:
        return Weights(os.path.join(run, places.FINAL), 'trained here, ' + _of_run(run), None)
    shipped = [entry for entry in index(folder) if (entry.dataset, entry.net, entry.seed, entry.init)
               == (net.dataset, net.net, seed or 1, None)]
    if shipped:
        entry = max(shipped, key=lambda entry: sum(entry.iterations))
        return Weights(require(entry, folder), of_entry(entry), None)
    if seed is None and (net.dataset, net.net) in PUBLISHED:
        name = PUBLISHED[net.dataset, net.net]
        return Weights(sets.weights_path(name), 'the published ones', name)
    raise NotTrained('%s: not trained yet, and there are no weights for it in weights/: python tools/train.py --net %s '
                     '--dataset %s --seed %d; or name weights with --weights'
                     % (places.folder(net.dataset, net.net, seed or 1, runs), net.net, net.dataset, seed or 1))


def at_hand(net: nets.Net, given: Optional[str] = None, seed: Optional[int] = None) -> Optional[Weights]:
    """The Weights for a net that are here without any fetching, None where there are none."""
    try:
        chosen = choose(net, given, seed)
    except NotTrained:
        return None
    return None if chosen.needs and sets.manifest(chosen.needs) is None else chosen


def _about(path, runs, folder):
    """What is known of a caffemodel that somebody names."""
    run = os.path.dirname(os.path.abspath(path))
    if os.path.basename(path) == places.FINAL and os.path.exists(os.path.join(run, places.DONE)):
        return _of_run(run)
    digest = store.sha256(path)
    entry = of_digest(digest, folder)
    if entry:
        return of_entry(entry)
    return 'the published ones' if is_published(digest) else 'how far they were trained is not known'


def _of_run(run):
    config, done = (store.read_json(os.path.join(run, name)) or {} for name in (places.CONFIG, places.DONE))
    try:
        return trained(config['dataset'], config['net'], done['iterations'], config.get('schedule'),
                       config.get('init'), config['seed'])
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError('%s: not the folder of a run (%s)' % (run, error))


def of_entry(entry: Entry) -> str:
    """Whose the weights of an entry are and how far they were trained."""
    return "this project's own, " + trained(entry.dataset, entry.net, entry.iterations, entry.schedule, entry.init,
                                            entry.seed)


def trained(dataset: str, net: str, iterations: Sequence[int], schedule: Optional[str], init: Optional[str],
            seed: int) -> str:
    """'100,000 iterations (the first 1% of the paper's schedule), seed 1'."""
    text = '%s iterations (%s), seed %d' % (' + '.join('{:,}'.format(n) for n in iterations),
                                            how_far(dataset, net, iterations, schedule), seed)
    return text + ', from the weights %s...' % init[:8] if init else text


def how_far(dataset: str, net: str, iterations: Sequence[int], schedule: Optional[str]) -> str:
    """How much of the paper's schedule some iterations are, in words."""
    if schedule:
        return "the paper's schedule, %s" % schedule
    whole = beyond.of_net(dataset, net).iterations
    if list(iterations) == list(whole):
        return "the paper's schedule"
    share = '%.3g%%' % (100.0 * sum(iterations) / sum(whole))
    return ("the first %s of the paper's schedule" % share if len(whole) == 1
            else "the stages of the paper's schedule cut off, %s of it" % share)
