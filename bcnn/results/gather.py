"""The rows that run folders and evaluations give, by table."""

import os
from collections import OrderedDict
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional

import numpy as np

from .. import beyond, paper, weights
from ..data import sets
from ..errors import UserError
from ..mc import identity, metrics, summary
from ..system import npz, places, provenance, store
from ..training import curve
from . import schema, thumbnails

REJECTED = tuple(range(21)) + tuple(range(25, 100, 5))  # percent
MC_MEASURES = ('entropy', 'mutual_information', 'variation_ratio')

Row = Dict[str, Any]  # of a table of bcnn.results.schema


class Found(NamedTuple):
    """What a folder gives."""

    folder: str                 # of a run or an evaluation
    rows: Dict[str, List[Row]]  # of its measurements, by table
    certain: bool = True        # whether nothing that is not at hand could say that they are of another net or data set
    note: str = ''              # for people


class Options(NamedTuple):
    """What tools/record.py was asked for."""

    profile: Optional[str]
    unfinished: bool
    replace: bool
    data: str = sets.DATA  # the prepared sets


# --- finding ---------------------------------------------------------------------------------

def gather(folders: Iterable[str], options: Options, problems: List[str]) -> List[Found]:
    """[Found] of all runs and evaluations below some folders; damaged ones are named in `problems`."""
    runs = []
    for folder in sorted(set(walk(folders))):
        try:
            found = _found_in(folder, options)
            if found.rows:
                _require_finite(found)
                runs.append(found)
        except UserError as error:
            problems.append(str(error))
        except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
            problems.append('%s: not a result of this version (%s: %s): make it again'
                            % (folder, type(error).__name__, ' '.join(str(error).split())))
    return runs


def walk(folders: Iterable[str]) -> Iterator[str]:
    """The folders that hold a config.json, whatever level they are on."""
    for top in folders:
        for place, below, names in os.walk(top):
            below[:] = sorted(name for name in below if name not in (places.BLOCKS, places.SNAPSHOTS)
                              and not name.startswith('.'))
            if places.CONFIG in names:
                yield os.path.abspath(place)


def _found_in(folder, options):
    config = store.read_json(os.path.join(folder, places.CONFIG))
    if 'study' in config:
        return Found(folder, _study(folder, config, options))
    if 'mc_net' in config and os.path.exists(os.path.join(folder, places.RESULT)):
        return _evaluation(folder, config, options)
    if 'mc_net' not in config and (options.unfinished or os.path.exists(os.path.join(folder, places.DONE))):
        return Found(folder, _training_run(folder, config, options))
    return Found(folder, {})


def _require_finite(found):
    """Refuses rows with numbers that are none."""
    for name, rows in found.rows.items():
        for row in rows:
            for column, value in row.items():
                if isinstance(value, float) and not np.isfinite(value):
                    raise UserError('%s: %s is %s, which is no measurement: not recorded'
                                    % (found.folder, column, value))


# --- what every row has ---------------------------------------------------------------------------

class Frame(NamedTuple):
    """The columns that all rows of a folder have, before and after their own."""

    run: Row  # what was measured
    computed_by: Row

    def row(self, *parts: Row) -> Row:
        """A whole row: its own columns come in parts."""
        row = OrderedDict(self.run)
        for part in parts + (self.computed_by,):
            row.update(part)
        return row


def _computed_by(folder, config, options):
    """The provenance columns; how many iterations it has does not change what a run is."""
    software = store.read_json(os.path.join(folder, places.PROVENANCE)) or {}
    inside = beyond.NAME if os.path.basename(os.path.dirname(folder)) == beyond.NAME else None  # runs/beyond/RUN
    return OrderedDict([
        ('config', store.identity(config)[:8]), ('caffe', software.get('caffe')), ('device', config.get('device')),
        ('commit', provenance.short_commit(software)),
        ('profile', software.get('profile') or options.profile or inside)])


def _provenance_row(folder, config, kind, dataset, net):
    """The row that says what a run's config stands for."""
    software = store.read_json(os.path.join(folder, places.PROVENANCE)) or {}
    data = config.get('images') or '/'.join(config.get('data', {}).values()) or None
    modified = software.get('modified')
    row = OrderedDict([
        ('config', store.identity(config)[:8]), ('config_sha256', store.identity(config)), ('kind', kind),
        ('dataset', dataset), ('net', net), ('seed', config['seed']), ('device', config.get('device')),
        ('threads', software.get('threads')), ('data', data), ('weights', config.get('weights'))])
    row.update((name, software.get(name)) for name in schema.LIBRARIES)
    row.update(commit=software.get('commit'), modified=None if modified is None else 'yes' if modified else 'no',
               streams=config.get('streams'))
    return row


def _run(dataset, net, seed, experiment=None):
    """What was run. Beyond the paper (experiment) a run is not the paper's, though its net and data may be."""
    return OrderedDict([('experiment', experiment or paper.experiment_of(dataset, net)), ('dataset', dataset),
                        ('net', net), ('fraction', paper.fraction_of(dataset)), ('seed', seed)])


def _training(config):
    """How a run was trained, from its config; of weights from elsewhere ({}) nothing is known."""
    return OrderedDict((name, config.get(name)) for name, _ in schema.TRAINING)


# --- the curve of a training run -----------------------------------------------------------------

METHODS = (('standard', None, 'standard_errors'), ('mc', 'probs', 'mc_errors'), ('mc', 'scores', 'mc_errors_scores'))


def _training_run(folder, config, options):
    """{table: rows} of a training run: curves, curve_wrong, provenance."""
    computed_by, rows = _computed_by(folder, config, options), []
    experiment = beyond.NAME if computed_by['profile'] == beyond.NAME else None
    frame = Frame(_run(config['dataset'], config['net'], config['seed'], experiment), computed_by)
    for point in curve.read(os.path.join(folder, places.CURVE)):
        for method, average, column in METHODS:
            errors = getattr(point, column)
            if errors:
                rows.append(frame.row(OrderedDict([
                    ('stage', point.stage), ('iteration', point.iteration), ('method', method), ('average', average),
                    ('T', int(point.T) if method == 'mc' else 0), ('errors', int(errors)), ('n', int(point.n)),
                    ('lr', float(point.lr)), ('train_loss', float(point.train_loss))]), _training(config),
                    _adaptive(point, method)))
    described = _provenance_row(folder, config, 'training', config['dataset'], config['net'])
    wrong = [frame.row(_training(config), row) for row in _curve_wrong(folder, rows)]
    return {'curves': rows, 'curve_wrong': wrong, 'provenance': [described]} if rows else {}


def _curve_wrong(folder, rows):
    """Which images are wrong where a curve is lowest and at its last two points, as far as that was stored."""
    stored = {(row.stage, row.iteration, row.method): row
              for row in curve.read_wrong(os.path.join(folder, places.WRONG))}
    for method, average in (('standard', None), ('mc', 'probs')):
        points = [row for row in rows if (row['method'], row['average']) == (method, average)]
        lowest = min(points, key=lambda row: row['errors'], default=None)
        for point in [row for row in points if row is lowest or any(row is last for last in points[-2:])]:
            images = stored.get((point['stage'], point['iteration'], method))
            if images:
                yield OrderedDict([(name, point[name]) for name in ('stage', 'iteration', 'method', 'average', 'T')] + [
                    ('data', images.images), ('n', int(images.n)), ('wrong', images.wrong or None),
                    ('adaptive', point['adaptive'])])


def _adaptive(point, method):
    """What adaptive T promised and took at a point of the curve; nothing of other measurements."""
    used = point.adaptive and method == 'mc'
    return OrderedDict([('adaptive', float(point.adaptive) if used else None),
                        ('passes', float(point.passes) if used else None)])


# --- a study beyond the paper ----------------------------------------------------------------------

def _study(folder, config, options):
    """{table: rows} of a study of trained weights (bcnn.studies.trained), {} while it is not finished."""
    result, dataset, net = store.read_json(os.path.join(folder, places.RESULT)) or {}, config['dataset'], config['net']
    frame = Frame(_run(dataset, net, config['seed'], beyond.NAME),
                  _computed_by(folder, config, options._replace(profile=beyond.NAME)))
    tables = {name: [frame.row(_missing(name), row) for row in rows]
              for name, rows in result.get('rows', {}).items()}
    if any(set(row) != set(schema.TABLES[name].columns) for name, rows in tables.items() for row in rows):
        raise ValueError('other columns than the tables have')
    return dict(tables, provenance=[_provenance_row(folder, config, 'study', dataset, net)]) if tables else {}


def _missing(table):
    """The columns that a study of an earlier version lacks, empty."""
    return {name: None for name, _ in schema.LATER if name in schema.TABLES[table].columns}


# --- an MC evaluation ------------------------------------------------------------------------------

class Outcome(NamedTuple):
    """One repetition of a method on the images."""

    method: Row        # its columns: method, average, T
    repetition: int    # 0 for Standard dropout
    probs: np.ndarray  # predictive, (images, classes)
    right: np.ndarray  # whether each image is
    errors: int        # as the evaluation counted them


def _evaluation(folder, config, options):
    """The Found of an MC evaluation: rows of every table but curves."""
    result = store.read_json(os.path.join(folder, places.RESULT))
    arrays = npz.read(os.path.join(folder, places.IMAGES), 'run the evaluation again')
    for name in ('standard_probs', 'mc_probs', 'mc_scores'):
        if not np.isfinite(arrays.get(name, 0)).all():
            raise UserError('%s: %s has numbers that are not finite: it is no result, remove the folder'
                            % (folder, name))
    origin = _origin(folder, config)
    of_paper, certain = identity.run_of(config, origin, options.data)
    dataset, net = of_paper or _own_name(folder, config)
    note = '' if certain else '%s: recorded as %s/%s, as it is not known here that %s are the paper\'s' % (
        folder, dataset, net, 'its weights' if origin['weights'] == 'unknown' else 'its images')
    frame = Frame(_run(dataset, net, origin['seed']), _computed_by(folder, config, options))
    known = config if of_paper else identity.with_stored(folder, config)
    rows = _evaluation_rows(known, result, arrays, origin, frame)
    rows['provenance'] = [_provenance_row(folder, config, 'evaluation', dataset, net)]
    return Found(folder, rows, certain, note)


def _own_name(folder, config):
    """('own', name) of a user's own evaluation: as they named it, else by its net."""
    source = store.read_json(os.path.join(folder, places.SOURCE)) or {}
    return 'own', source.get('name') or config['net'].split('/')[-1]


def _evaluation_rows(config, result, arrays, origin, frame):
    outcomes = list(_outcomes(config, result, arrays))
    labels = arrays['labels']
    return {
        'evaluations': [_evaluation_row(frame, outcome, outcomes[0], origin, config, labels) for outcome in outcomes],
        'convergence': list(_convergence(frame, config, result)),
        'calibration': [row for outcome in outcomes for row in _calibration(frame, outcome, labels)],
        'risk': [row for outcome in outcomes for row in _risk(frame, outcome, arrays)],
        'wrong': list(_wrong(frame, outcomes, config)),
        'images': list(thumbnails.shown(frame, outcomes, arrays))}


def _origin(folder, config):
    """Where the weights come from, the seed, iterations and config of their training; None where that is not known."""
    run = os.path.dirname(os.path.dirname(folder))
    done, training = (store.read_json(os.path.join(run, name)) for name in (places.DONE, places.CONFIG))
    if done and training and done.get(places.FINAL) == config['weights']:
        return dict(weights='trained', seed=training['seed'], iterations=sum(done['iterations']), config=training)
    shipped = weights.of_digest(config['weights'])
    if shipped:
        return dict(weights='trained', seed=shipped.seed, iterations=sum(shipped.iterations), config=shipped._asdict())
    return dict(weights='published' if weights.is_published(config['weights']) else 'unknown', seed=None,
                iterations=None, config={})


def _method(config, method, average=None):
    return OrderedDict([('method', method), ('average', average), ('T', config['T'] if method == 'mc' else 0)])


def _outcomes(config, result, arrays):
    """Standard first, then each repetition by each way of averaging."""
    labels, standard = arrays['labels'], arrays['standard_probs']
    yield Outcome(method=_method(config, 'standard'), repetition=0, probs=standard,
                  right=metrics.correct(standard, labels), errors=result['standard']['errors'])
    for average in result.get('mc', {}):
        for k, wrong in enumerate(summary.wrong_after(result, average, config['count'])):
            scores = arrays['mc_probs' if average == 'probs' else 'mc_scores'][k]
            yield Outcome(method=_method(config, 'mc', average), repetition=k + 1,
                          probs=scores if average == 'probs' else metrics.softmax(scores),
                          right=metrics.correct(scores, labels), errors=wrong[-1])


def _evaluation_row(frame, outcome, standard, origin, config, labels):
    trained = OrderedDict([('iterations', origin['iterations']), ('weights', origin['weights'])])
    measured = OrderedDict([
        ('mode', config['mode']), ('crops', config['crops']), ('mc_seed', config['seed']),
        ('repetition', outcome.repetition), ('errors', outcome.errors), ('n', len(labels)),
        ('nll', metrics.nll(outcome.probs, labels)), ('brier', metrics.brier(outcome.probs, labels)),
        ('ece', metrics.ece(outcome.probs, labels)),
        ('only_standard_right', None), ('only_mc_right', None), ('mcnemar_p', None)])
    row = frame.row(trained, outcome.method, measured, _training(origin['config']))
    if outcome is not standard:
        pair = metrics.mcnemar(standard.right, outcome.right)
        row.update(zip(('only_standard_right', 'only_mc_right', 'mcnemar_p'), pair))
    return row


def _convergence(frame, config, result):
    for average in result.get('mc', {}):
        for repetition, wrong in enumerate(summary.wrong_after(result, average, config['count']), 1):
            for t, errors in enumerate(wrong, 1):
                yield frame.row(_method(config, 'mc', average), OrderedDict([
                    ('repetition', repetition), ('t', t), ('errors', errors), ('n', config['count'])]))


def _calibration(frame, outcome, labels):
    for b, (count, confidence, accuracy) in enumerate(zip(*metrics.reliability(outcome.probs, labels))):
        yield frame.row(outcome.method, OrderedDict([
            ('repetition', outcome.repetition), ('bin', b), ('bins', metrics.BINS), ('count', int(count)),
            ('confidence', float(confidence) if count else None), ('accuracy', float(accuracy) if count else None)]))


def _risk(frame, outcome, arrays):
    if outcome.method['average'] == 'scores':  # the uncertainties are of the averaged probabilities
        return
    n = len(outcome.right)
    for measure, values in _measures(outcome, arrays):
        for percent in REJECTED:
            kept = n - int(round(percent * n / 100.0))
            if kept:
                yield frame.row(outcome.method, OrderedDict([
                    ('repetition', outcome.repetition), ('measure', measure), ('rejected', percent), ('kept', kept),
                    ('errors_kept', metrics.errors_kept(values, ~outcome.right, kept)), ('n', n)]))


def _measures(outcome, arrays):
    yield 'max_prob', 1 - outcome.probs.max(axis=1).astype(np.float64)
    if outcome.method['method'] == 'standard':
        yield 'entropy', metrics.entropy(outcome.probs)
    else:
        for name in MC_MEASURES:
            yield name, arrays[name][outcome.repetition - 1]


def _wrong(frame, outcomes, config):
    for outcome in outcomes:
        if outcome.method['average'] != 'scores':
            numbers = np.flatnonzero(~outcome.right)
            yield frame.row(outcome.method, OrderedDict([
                ('repetition', outcome.repetition), ('data', config['images']), ('n', len(outcome.right)),
                ('wrong', ' '.join(map(str, numbers)) or None)]))
