"""Studies of trained weights beyond the paper: which weights, where their result is stored, what it is made of.

    <run>/studies/<study>-<iteration>/
      config.json       what was studied, on what, how; the folder of another study is refused
      provenance.json   what computed it
      blocks/           evaluations that it is made of, where there are some; see bcnn.mc.evaluation
      result.json       {table of the recorded results: rows}, written last; tools/record.py takes them
"""

import os
from collections import OrderedDict
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from .. import beyond, engine, nets, weights
from ..data import sets
from ..errors import UserError
from ..inputs import preprocessing, sources
from ..mc import evaluation, targets
from ..mc.running_sums import Arrays
from ..system import files, npz, places, progress, provenance, store
from ..training import snapshots

Tables = Dict[str, List[Dict[str, Any]]]  # rows by table, without what tools/record.py adds


class Subject(NamedTuple):
    """Trained weights."""

    dataset: str
    net: str
    seed: int
    iterations: int
    weights: str      # the file
    home: str         # the folder below which its studies are stored


class Settings(NamedTuple):
    """How to study."""

    T: int
    count: Optional[int]  # of the first test images; None for the study's own number, or all where there are fewer
    seed: int         # of the masks
    jobs: int
    data: str         # folder of the prepared sets


# --- which weights -----------------------------------------------------------------------------

def subject(path: str, iteration: Optional[int] = None) -> Subject:
    """The Subject of a run's folder, at its end or at an iteration whose snapshot it kept; or of a file of weights/."""
    if os.path.isfile(path):
        return _shipped(path, iteration)
    config = store.read_json(os.path.join(path, places.CONFIG))
    if config is None or 'prototxt' not in config:
        raise UserError('%s: neither the folder of a training run nor a file of weights/' % path)
    if len(config['iterations']) > 1:
        raise UserError('%s: trained in %d stages; studies are for the LeNets' % (path, len(config['iterations'])))
    done = store.read_json(os.path.join(path, places.DONE))
    last = done['iterations'][0] if done else None
    if iteration in (None, last):
        if done is None:
            raise UserError('%s: not complete yet: finish the run, or name an --iteration that it has kept' % path)
        file = os.path.join(path, places.FINAL)
    else:
        file = _snapshot(path, iteration)
    return Subject(dataset=config['dataset'], net=config['net'], seed=config['seed'], iterations=iteration or last,
                   weights=file, home=os.path.abspath(path))


def _snapshot(run, iteration):
    kept = {at: place for stage, at, place in places.stored(run) if stage == 1}
    if iteration not in kept:
        raise UserError('%s: no weights of iteration %d; there are: %s' % (run, iteration, ', '.join(
            map(str, sorted(kept))) or 'none'))
    problem, _ = snapshots.problem(kept[iteration], 1, iteration)
    if problem:
        raise UserError('%s: damaged (%s)' % (kept[iteration], problem))
    return os.path.join(kept[iteration], snapshots.WEIGHTS)


def _shipped(path, iteration):
    entry = weights.of_digest(store.sha256(path))
    if entry is None:
        raise UserError('%s: not one of weights/, so that it is not known what it was trained on' % path)
    if iteration not in (None, sum(entry.iterations)):
        raise UserError('%s: of iteration %d, not %d' % (path, sum(entry.iterations), iteration))
    stem = os.path.splitext(os.path.basename(path))[0]
    return Subject(dataset=entry.dataset, net=entry.net, seed=entry.seed, iterations=sum(entry.iterations),
                   weights=path, home=os.path.join(places.RUNS, 'weights-' + stem))


# --- images ------------------------------------------------------------------------------------

def entry_of(subject_: Subject) -> nets.Net:
    """Its net."""
    return nets.find(subject_.dataset, subject_.net)


def test_images(subject_: Subject, data: str, name: Optional[str] = None) -> sources.Source:
    """The test images of the net's own data set, or of another one of the same kind, as the net gets its own."""
    entry = entry_of(subject_)
    place = os.path.join(sets.require(name, data), 'test_lmdb') if name else os.path.join(
        data, *entry.data.test.split('/')[1:])
    return sources.open_images(place, preprocessing.of_paper(entry.data))


def evaluated(subject_: Subject, source: sources.Source, settings: Settings, folder: str) -> Arrays:
    """The arrays of an MC evaluation of these images, one repetition (see bcnn.mc.summary); stored in `folder`."""
    entry = entry_of(subject_)
    target = targets.Target(
        name='%s/%s' % (entry.dataset, entry.net), standard=nets.deploy(entry.net, entry.base),
        sampling=nets.mc(entry.net, entry.base), weights=subject_.weights, extra_weights=False, source=source,
        count=min(settings.count, source.count))  # there may be fewer of another kind
    once = evaluation.Settings(T=settings.T, repeats=1, seed=settings.seed, mode='stream')
    evaluation.run(target, evaluation.prepare(target, once), folder, settings.jobs)
    return npz.read(os.path.join(folder, places.IMAGES), 'remove its folder and run again')


# --- the result --------------------------------------------------------------------------------

def run(study: str, measure: Callable[[Subject, Settings, str], Tables], subject_: Subject, settings: Settings,
        out: Optional[str] = None) -> Tables:
    """The Tables of a study (of beyond.STUDIES), from its folder where it is there already.

    measure: makes them; its last argument is the study's folder.
    """
    for name in beyond.STUDIES[study].sets:
        sets.require(name, settings.data)
    if not entry_of(subject_).where:
        raise UserError('%s has no dropout: there is nothing to study' % subject_.net)
    settings = settings._replace(count=_count(study, settings, test_images(subject_, settings.data)))
    folder = os.path.join(out or os.path.join(subject_.home, places.STUDIES), '%s%s-%d' % (
        os.path.basename(subject_.home) + '-' if out else '', study, subject_.iterations))
    with files.folder(folder):
        provenance.settle(folder, config_of(study, subject_, settings), 'study', engine.describe())
        result = store.read_json(os.path.join(folder, places.RESULT))
        if result is None:
            result = OrderedDict(rows=measure(subject_, settings, folder))
            store.write_json(os.path.join(folder, places.RESULT), result)
            progress.say('written: %s' % os.path.join(folder, places.RESULT))
    return result['rows']


def _count(study, settings, source):
    if settings.count is not None and settings.count > source.count:
        raise UserError('%s has %d images: --limit %d is not possible' % (source.path, source.count, settings.count))
    return settings.count or min(beyond.STUDIES[study].images, source.count)


def config_of(study: str, subject_: Subject, settings: Settings) -> Dict[str, Any]:
    """What makes a study what it is."""
    source = test_images(subject_, settings.data)
    return OrderedDict([
        ('study', study), ('net', subject_.net), ('dataset', subject_.dataset), ('seed', subject_.seed),
        ('iterations', [subject_.iterations]), ('weights', store.sha256(subject_.weights)),
        ('images', source.scan(settings.count)[1]), ('T', settings.T), ('mc_seed', settings.seed),
        ('sets', [sets.checksum(name, 'test', settings.data) for name in beyond.STUDIES[study].sets]),
        ('device', 'cpu')])


def spread(values: Sequence[float]) -> Tuple[float, float]:
    """(mean, its standard error) of a value an image."""
    values = np.asarray(values, np.float64)
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))
