"""From run folders to the committed tables of analysis/results/: gathered, checked, never lost.

A row that is recorded stays. A run whose numbers contradict recorded ones is refused as a
whole, unless it is asked for with `replace`; the others are recorded all the same.
"""

import base64
import os
import sys
from collections import OrderedDict, namedtuple

import numpy as np

from . import curve, files, metrics, paper, results, runs, tables
from .data import records, sets, table
from .errors import UserError

BINS = 15
SHOWN = 8                                        # images at each end of an uncertainty
REJECTED = tuple(range(21)) + tuple(range(25, 100, 5))  # percent
MC_MEASURES = ('entropy', 'mutual_information', 'variation_ratio')
SHOWN_MEASURES = ('entropy', 'mutual_information')
# Where weights came from is known only until their run goes on; what computed a row may change without its numbers.
NOT_COMPARED = results.PROVENANCE_COLUMNS + ('seed', 'iterations', 'weights')
TOLERANCE = 1e-5  # relative, of floats: another numpy may round the last digit otherwise

# folder: of a run or an evaluation; rows: of its measurements, by table.
Found = namedtuple('Found', 'folder rows')
Options = namedtuple('Options', 'profile unfinished replace')


def command(args):
    """The exit code of what tools/record.py was asked for: 0, or 1 where something was refused."""
    options = Options(args.profile, args.unfinished, args.replace)
    folders = args.folders or [runs.RUNS]
    for folder in folders:
        if not os.path.isdir(folder):
            raise UserError('%s: no such folder' % folder)
    problems = []
    found = gather(folders, options, problems)
    os.makedirs(args.results, exist_ok=True)
    with files.lock(os.path.join(args.results, '.lock')):
        files.sweep_folder(args.results)
        counts = merge(found, args.results, options, problems)
        pictures = picture_rows(args.results, args.data, problems)
        counts['thumbnails'] = _store(args.results, 'thumbnails', pictures) if pictures else 0
    for problem in problems:
        print('record.py: %s' % problem, file=sys.stderr)
    print('%d runs and evaluations found; new rows: %s' % (
        len(found), ', '.join('%s %d' % item for item in counts.items() if item[1]) or 'none'))
    return 1 if problems else 0


# --- finding ---------------------------------------------------------------------------------

def gather(folders, options, problems):
    """[Found] of all runs and evaluations below some folders; damaged ones are named in `problems`."""
    found = []
    for folder in sorted(set(walk(folders))):
        try:
            rows = _rows_of(folder, options)
            if rows:
                found.append(Found(folder, rows))
        except UserError as error:
            problems.append(str(error))
        except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
            problems.append('%s: not a result of this version (%s: %s): make it again'
                            % (folder, type(error).__name__, ' '.join(str(error).split())))
    return found


def walk(folders):
    """The folders that hold a config.json, whatever level they are on."""
    for top in folders:
        for place, below, names in os.walk(top):
            below[:] = sorted(name for name in below if name not in ('blocks', runs.SNAPSHOTS)
                              and not name.startswith('.'))
            if runs.CONFIG in names:
                yield os.path.abspath(place)


def _rows_of(folder, options):
    config = runs.read_json(os.path.join(folder, runs.CONFIG))
    if 'mc_net' in config:
        return evaluation_rows(folder, config, options) if os.path.exists(os.path.join(folder, 'result.json')) else {}
    if options.unfinished or os.path.exists(os.path.join(folder, runs.DONE)):
        return curve_rows(folder, config, options)
    return {}


def _provenance(folder, config, options):
    """The provenance columns; the number of iterations is a target, which does not change what a run is."""
    about = runs.read_json(os.path.join(folder, runs.PROVENANCE)) or {}
    return OrderedDict([
        ('config', runs.identity(config)[:8]), ('caffe', about.get('caffe')), ('device', config.get('device')),
        ('commit', runs.short_commit(about)), ('profile', about.get('profile') or options.profile)])


def provenance_row(folder, config, kind, dataset, net):
    """The row that says what a run's config stands for."""
    about = runs.read_json(os.path.join(folder, runs.PROVENANCE)) or {}
    data = config.get('images') or '/'.join(config.get('data', {}).values()) or None
    modified = about.get('modified')
    row = OrderedDict([
        ('config', runs.identity(config)[:8]), ('config_sha256', runs.identity(config)), ('kind', kind),
        ('dataset', dataset), ('net', net), ('seed', config['seed']), ('device', config.get('device')),
        ('threads', about.get('threads')), ('data', data), ('weights', config.get('weights'))])
    row.update((name, about.get(name)) for name in results.LIBRARIES)
    row.update(commit=about.get('commit'), modified=None if modified is None else 'yes' if modified else 'no')
    return row


def _run(dataset, net, seed):
    return OrderedDict([('experiment', paper.experiment_of(dataset, net)), ('dataset', dataset), ('net', net),
                        ('fraction', paper.fraction_of(dataset)), ('seed', seed)])


def _merged(*parts):
    row = OrderedDict()
    for part in parts:
        row.update(part)
    return row


# --- the curve of a training run -----------------------------------------------------------------

METHODS = (('standard', None, 'standard_errors'), ('mc', 'probs', 'mc_errors'), ('mc', 'scores', 'mc_errors_scores'))


def curve_rows(folder, config, options):
    """{'curves': rows, 'provenance': [row]} of a training run."""
    about = _run(config['dataset'], config['net'], config['seed'])
    provenance, rows = _provenance(folder, config, options), []
    for point in curve.read(os.path.join(folder, runs.CURVE)):
        for method, average, column in METHODS:
            errors = getattr(point, column)
            if errors:
                rows.append(_merged(about, OrderedDict([
                    ('stage', point.stage), ('iteration', point.iteration), ('method', method), ('average', average),
                    ('T', int(point.T) if method == 'mc' else 0), ('errors', int(errors)), ('n', int(point.n)),
                    ('lr', float(point.lr)), ('train_loss', float(point.train_loss))]), provenance))
    described = provenance_row(folder, config, 'training', config['dataset'], config['net'])
    return {'curves': rows, 'provenance': [described]} if rows else {}


# --- an MC evaluation ------------------------------------------------------------------------------

# One repetition of a method on the images: errors as the evaluation counted them, right: for each image.
Outcome = namedtuple('Outcome', 'about repetition probs right errors')


def evaluation_rows(folder, config, options):
    """Rows of every table but curves, of an MC evaluation."""
    result = runs.read_json(os.path.join(folder, 'result.json'))
    arrays = runs.read_arrays(os.path.join(folder, 'images.npz'), 'run the evaluation again')
    origin = _origin(folder, config)
    net = config['net'] if '/' in config['net'] else 'own/' + config['net']
    run = _run(*net.split('/', 1), seed=origin['seed'])
    frame = run, _provenance(folder, config, options)
    outcomes = list(_outcomes(config, result, arrays))
    labels = arrays['labels']
    return {
        'evaluations': [_evaluation(frame, outcome, outcomes[0], origin, config, labels) for outcome in outcomes],
        'convergence': list(_convergence(frame, config, result)),
        'calibration': [row for outcome in outcomes for row in _calibration(frame, outcome, labels)],
        'risk': [row for outcome in outcomes for row in _risk(frame, outcome, arrays)],
        'wrong': list(_wrong(frame, outcomes, config)),
        'images': list(_images(frame, outcomes, arrays)),
        'provenance': [provenance_row(folder, config, 'evaluation', run['dataset'], run['net'])]}


def _origin(folder, config):
    """Where the weights come from, the seed and iterations of their training; None where that is not known."""
    run = os.path.dirname(os.path.dirname(folder))
    done, training = (runs.read_json(os.path.join(run, name)) for name in (runs.DONE, runs.CONFIG))
    if done and training and done.get(runs.FINAL) == config['weights']:
        return dict(weights='trained', seed=training['seed'], iterations=sum(done['iterations']))
    known = config['weights'] in [file.sha256 for file in table.NIN_WEIGHTS.files]
    return dict(weights='published' if known else 'unknown', seed=None, iterations=None)


def _method(config, method, average=None):
    return OrderedDict([('method', method), ('average', average), ('T', config['T'] if method == 'mc' else 0)])


def _outcomes(config, result, arrays):
    """Standard first, then each repetition by each way of averaging."""
    labels, standard = arrays['labels'], arrays['standard_probs']
    yield Outcome(_method(config, 'standard'), 0, standard, metrics.correct(standard, labels),
                  result['standard']['errors'])
    for average, found in result.get('mc', {}).items():
        for k, passes in enumerate(found['curve']):
            scores = arrays['mc_probs' if average == 'probs' else 'mc_scores'][k]
            yield Outcome(_method(config, 'mc', average), k + 1,
                          scores if average == 'probs' else metrics.softmax(scores),
                          metrics.correct(scores, labels), _count(passes[-1], labels))


def _count(percent, labels):
    return int(round(percent * len(labels) / 100.0))


def _evaluation(frame, outcome, standard, origin, config, labels):
    run, provenance = frame
    row = _merged(run, OrderedDict([('iterations', origin['iterations']), ('weights', origin['weights'])]),
                  outcome.about, OrderedDict([
        ('mode', config['mode']), ('crops', config['crops']), ('mc_seed', config['seed']),
        ('repetition', outcome.repetition),
        ('errors', outcome.errors), ('n', len(labels)), ('nll', metrics.nll(outcome.probs, labels)),
        ('brier', metrics.brier(outcome.probs, labels)), ('ece', metrics.ece(outcome.probs, labels, BINS)),
        ('only_standard_right', None), ('only_mc_right', None), ('mcnemar_p', None)]), provenance)
    if outcome is not standard:
        pair = metrics.mcnemar(standard.right, outcome.right)
        row.update(zip(('only_standard_right', 'only_mc_right', 'mcnemar_p'), pair))
    return row


def _convergence(frame, config, result):
    run, provenance = frame
    for average, found in result.get('mc', {}).items():
        for k, passes in enumerate(found['curve']):
            for t, percent in enumerate(passes, 1):
                yield _merged(run, _method(config, 'mc', average), OrderedDict([
                    ('repetition', k + 1), ('t', t), ('errors', int(round(percent * config['count'] / 100.0))),
                    ('n', config['count'])]), provenance)


def _calibration(frame, outcome, labels):
    run, provenance = frame
    for b, (count, confidence, accuracy) in enumerate(zip(*metrics.reliability(outcome.probs, labels, BINS))):
        yield _merged(run, outcome.about, OrderedDict([
            ('repetition', outcome.repetition), ('bin', b), ('bins', BINS), ('count', int(count)),
            ('confidence', float(confidence) if count else None), ('accuracy', float(accuracy) if count else None)]),
            provenance)


def _risk(frame, outcome, arrays):
    run, provenance = frame
    if outcome.about['average'] == 'scores':  # the uncertainties are of the averaged probabilities
        return
    n = len(outcome.right)
    for measure, values in _measures(outcome, arrays):
        for percent in REJECTED:
            kept = n - int(round(percent * n / 100.0))
            if kept:
                yield _merged(run, outcome.about, OrderedDict([
                    ('repetition', outcome.repetition), ('measure', measure), ('rejected', percent), ('kept', kept),
                    ('errors_kept', errors_kept(values, ~outcome.right, kept)), ('n', n)]), provenance)


def _measures(outcome, arrays):
    yield 'max_prob', 1 - outcome.probs.max(axis=1).astype(np.float64)
    if outcome.about['method'] == 'standard':
        yield 'entropy', metrics.entropy(outcome.probs)
    else:
        for name in MC_MEASURES:
            yield name, arrays[name][outcome.repetition - 1]


def errors_kept(uncertainty, wrong, kept):
    """The expected errors among the `kept` least uncertain images, equal ones taken at random.

    Ties matter: most images of an easy set have a variation ratio of exactly zero.
    """
    order = np.argsort(uncertainty, kind='mergesort')
    sorted_wrong, values = wrong[order], uncertainty[order]
    edge = values[kept - 1]
    below, upto = np.searchsorted(values, edge, 'left'), np.searchsorted(values, edge, 'right')
    share = (kept - below) / float(upto - below)
    return float(sorted_wrong[:below].sum() + share * sorted_wrong[below:upto].sum())


def _wrong(frame, outcomes, config):
    run, provenance = frame
    for outcome in outcomes:
        if outcome.about['average'] != 'scores':
            numbers = np.flatnonzero(~outcome.right)
            yield _merged(run, outcome.about, OrderedDict([
                ('repetition', outcome.repetition), ('data', config['images']), ('n', len(outcome.right)),
                ('wrong', ' '.join(map(str, numbers)) or None)]), provenance)


def _images(frame, outcomes, arrays):
    """The first repetition's most and least uncertain images."""
    run, provenance = frame
    first = [outcome for outcome in outcomes if outcome.about['average'] == 'probs'][:1]
    for outcome in first:
        standard = outcomes[0].probs
        for measure in SHOWN_MEASURES:
            values = arrays[measure][0]
            for end, order in (('most', np.argsort(-values, kind='mergesort')),
                               ('least', np.argsort(values, kind='mergesort'))):
                for rank, i in enumerate(order[:SHOWN], 1):
                    yield _merged(run, outcome.about, OrderedDict([
                        ('repetition', 1), ('measure', measure), ('end', end), ('rank', rank), ('image', int(i)),
                        ('label', int(arrays['labels'][i])), ('standard', int(standard[i].argmax())),
                        ('standard_p', float(standard[i].max())), ('mc', int(outcome.probs[i].argmax())),
                        ('mc_p', float(outcome.probs[i].max())), ('uncertainty', float(values[i]))]), provenance)


# --- pictures ----------------------------------------------------------------------------------------

RAW = {'mnist': 'mnist', 'fashion_mnist': 'fashion_mnist',
       'cifar10': 'cifar10_raw'}  # whitened images cannot be looked at


def picture_rows(folder, data, problems):
    """The thumbnails of all recorded images that have none yet; sets that are not ready are named in `problems`."""
    have = {(row['dataset'], row['image']) for row in results.read(folder, 'thumbnails')}
    wanted = {}
    for row in results.read(folder, 'images'):
        base = paper.base_of(row['dataset'])
        if base in RAW and (base, row['image']) not in have:
            wanted.setdefault(base, {})[row['image']] = row['label']
    rows = []
    for base, labels in sorted(wanted.items()):
        try:
            rows += _pictures(base, labels, os.path.join(sets.require(RAW[base], data), 'test_lmdb'))
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


# --- merging -----------------------------------------------------------------------------------------

def merge(found, folder, options, problems):
    """{table: new rows}; writes the tables. A run that contradicts them is named in `problems` and left out."""
    recorded = OrderedDict()
    for name in results.TABLES:
        if name != 'thumbnails':
            recorded[name] = OrderedDict((results.key_of(results.TABLES[name], row), row)
                                         for row in results.read(folder, name))
    sizes = {name: len(rows) for name, rows in recorded.items()}
    changed = set()
    for run in found:
        clashes = [one for name, rows in run.rows.items() for row in rows for one in clash(name, row, recorded[name])]
        if clashes and not options.replace:
            problems.append('%s: contradicts what is recorded: %s; --replace takes the new rows'
                            % (run.folder, _listed(clashes)))
            continue
        for name, rows in run.rows.items():
            for row in rows:
                key = results.key_of(results.TABLES[name], row)
                if key not in recorded[name] or any(clash(name, row, recorded[name])):
                    recorded[name][key] = row
                    changed.add(name)
    for name in changed:
        tables.write(name, list(recorded[name].values()), folder)
    return OrderedDict((name, len(rows) - sizes[name]) for name, rows in recorded.items())


def clash(name, row, recorded):
    """['curves errors 12, recorded 13 (...)']: where a row differs from the recorded one of the same key."""
    old = recorded.get(results.key_of(results.TABLES[name], row))
    for column in (results.TABLES[name].columns if old else ()):
        if column not in NOT_COMPARED and not _same(old[column], row[column]):
            where = ' '.join('%s=%s' % (part, results.cell(row[part])) for part in results.TABLES[name].key
                             if row[part] is not None)
            yield '%s.csv %s: %s is %s, recorded %s' % (
                name, where, column, results.cell(row[column]), results.cell(old[column]))


def _same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= TOLERANCE * max(abs(a), abs(b), 1e-12)
    return a == b


def _listed(clashes):
    return clashes[0] + (' (and %d more)' % (len(clashes) - 1) if len(clashes) > 1 else '')


def _store(folder, name, rows):
    tables.write(name, results.read(folder, name) + rows, folder)
    return len(rows)
