"""Whether stored results are what their raw parts say: summaries derived anew, checksums compared, tables crossed.

Takes run folders, evaluation folders and the recorded tables, and changes nothing. What is found:
a file that was changed, cut off or put in the place of another; a summary that its raw sums do not
give; rows of the tables that contradict each other or the run they came from. What this cannot
find: raw sums and everything derived from them changed together, consistently.
"""

import os
import re
import tempfile
from collections import namedtuple

import numpy as np

from . import curve, evaluation, images, nets, record, results, runs, snapshots
from .data import sets, table
from .errors import UserError

# state: OK, WRONG, or UNKNOWN where there is nothing to compare with.
Finding = namedtuple('Finding', 'path state text')
OK, WRONG, UNKNOWN = 'ok', 'WRONG', 'not checked'
TOLERANCE = 1e-6  # relative: another numpy may round the last digit otherwise
NAMED = ('caffe', 'python', 'numpy', 'protobuf', 'blas', 'threads', 'commit')  # of provenance.json


def command(args):
    """The exit code of what tools/verify.py was asked for: 0 if all agrees, 1 if something does not."""
    wrong = checked = 0
    for path in args.paths or [runs.RUNS, results.FOLDER]:
        for finding in check(path, args.data, args.runs or runs.RUNS):
            checked += finding.state != UNKNOWN
            wrong += finding.state == WRONG
            if finding.state != OK or args.all:
                print('%s: %s: %s' % (finding.state, os.path.relpath(finding.path), finding.text))
    print('%d checks, %s' % (checked, '%d WRONG' % wrong if wrong else 'all agree'))
    return 1 if wrong else 0


def check(path, data=sets.DATA, place=runs.RUNS):
    """Yields the Findings of a run, an evaluation, the recorded tables, or a folder with any of these in it."""
    if not os.path.isdir(path):
        raise UserError('%s: no such folder' % path)
    tabled = any(os.path.exists(results.path(path, name)) for name in results.TABLES)
    if tabled and not os.path.exists(os.path.join(path, runs.CONFIG)):  # evaluations have an images.csv too
        for finding in tables(path, place):
            yield finding
        return
    found = sorted(set(record.walk([path])))
    if not found:
        raise UserError('%s: neither a run, nor an evaluation, nor recorded tables in it' % path)
    for folder in found:
        for finding in _guarded(folder, data):
            yield finding


def _guarded(folder, data):
    """The Findings of one folder; what cannot even be read is one too."""
    try:
        config = runs.read_json(os.path.join(folder, runs.CONFIG))
        look = evaluation_folder if 'mc_net' in config else run_folder
        for finding in look(folder, config, data):
            yield finding
    except UserError as error:
        yield Finding(folder, WRONG, str(error))
    except (KeyError, ValueError, IndexError, TypeError, AttributeError, OSError) as error:
        yield Finding(folder, WRONG, 'not a result of this version (%s: %s)'
                      % (type(error).__name__, ' '.join(str(error).split())))


def _judge(path, agrees, text, problem):
    return Finding(path, OK if agrees else WRONG, text if agrees else problem)


# --- what both kinds of folders have ---------------------------------------------------------------

def _provenance(folder):
    path = os.path.join(folder, runs.PROVENANCE)
    about = runs.read_json(path)
    if about is None:
        return Finding(path, WRONG, 'missing: nothing tells what computed this')
    missing = [name for name in NAMED if about.get(name) is None]
    if missing:
        return Finding(path, UNKNOWN, 'does not name %s' % ', '.join(missing))
    return Finding(path, OK, 'Caffe %(caffe)s, Python %(python)s, numpy %(numpy)s, %(blas)s, commit %(commit)s' % about)


def _listed(folder):
    """The Findings of checksums.json: every file it lists is as it was written."""
    path = os.path.join(folder, runs.CHECKSUMS)
    listed = runs.read_json(path)
    if listed is None:
        yield Finding(path, UNKNOWN, 'not there (made by an older version): no checksums of single files')
        return
    for name, digest in sorted(listed.items()):
        place = os.path.join(folder, name)
        if not os.path.exists(place):
            yield Finding(place, WRONG, 'missing, but listed in %s' % runs.CHECKSUMS)
        elif runs.sha256(place) != digest:
            yield Finding(place, WRONG, 'changed since it was written: not the SHA-256 in %s' % runs.CHECKSUMS)
    yield Finding(path, OK, '%d files as listed' % len(listed))


# --- training runs -----------------------------------------------------------------------------------

def run_folder(folder, config, data):
    """Yields the Findings of a training run's folder."""
    yield _provenance(folder)
    for finding in _data(folder, config, data):
        yield finding
    yield _curve(folder, config)
    for stage, iteration, path in runs.stored(folder):
        problem, _ = snapshots.problem(path, stage, iteration)
        yield _judge(path, problem is None, 'as its checksums say', problem)
    done = runs.read_json(os.path.join(folder, runs.DONE))
    if done is None:
        yield Finding(folder, UNKNOWN, 'not complete yet: no final weights to check')
        return
    final = os.path.join(folder, runs.FINAL)
    yield _judge(final, os.path.exists(final) and runs.sha256(final) == done.get(runs.FINAL),
                 'the weights that done.json names', 'not the weights that done.json names: changed, or of another run')
    yield _judge(os.path.join(folder, runs.DONE), done.get('iterations') == config['iterations'],
                 'the iterations of config.json', 'iterations %s, config.json has %s'
                 % (done.get('iterations'), config['iterations']))
    for finding in _listed(folder):
        yield finding


def _data(folder, config, data):
    """Whether the sets that a run names are the ones that are here."""
    train = config['dataset']
    test = os.path.basename(os.path.dirname(nets.find(train, config['net']).data.test))
    train = os.path.basename(os.path.dirname(nets.find(train, config['net']).data.train))
    for split, name in (('train', train), ('test', test)):
        found = sets.manifest(name, data)
        where = os.path.join(data, name)
        if found is None:
            yield Finding(where, UNKNOWN, 'not here, so the %s data of %s cannot be compared' % (split, folder))
            continue
        here = sets.checksum(name, split, data)
        yield _judge(where, here == config['data'][split], 'the %s data that %s names' % (split, folder),
                     'not the %s data that %s names: SHA-256 %s..., there %s...'
                     % (split, folder, here[:12], str(config['data'][split])[:12]))


def _curve(folder, config):
    path = os.path.join(folder, runs.CURVE)
    rows = curve.read(path)
    for row in rows:
        counts = [int(value) for value in (row.standard_errors, row.mc_errors, row.mc_errors_scores) if value]
        if int(row.n) != config['test_images'] or any(count > int(row.n) for count in counts):
            return Finding(path, WRONG, 'iteration %d: %s errors of %s images, config.json has %d'
                           % (row.iteration, counts, row.n, config['test_images']))
        if row.mc_errors and int(row.T) != config['T']:
            return Finding(path, WRONG, 'iteration %d: T is %s, config.json has %s'
                           % (row.iteration, row.T, config['T']))
    places = [(row.stage, row.iteration) for row in rows]
    if places != sorted(set(places)) or any(iteration > config['iterations'][stage - 1] for stage, iteration in places):
        return Finding(path, WRONG, 'iterations out of order, or beyond those of config.json')
    return Finding(path, OK, '%d measurements that fit config.json' % len(rows))


# --- evaluations ---------------------------------------------------------------------------------------

OUTPUTS = ('result.json', 'images.npz', 'images.csv')


def evaluation_folder(folder, config, data):
    """Yields the Findings of an evaluation's folder."""
    yield _provenance(folder)
    for finding in _listed(folder):
        yield finding
    yield _name(folder, config)
    for path in _blocks(folder):
        yield _block(path, config)
    for finding in _weights(folder, config):
        yield finding
    yield _images_here(folder, config, data)
    result = runs.read_json(os.path.join(folder, 'result.json'))
    if result is None:
        yield Finding(folder, UNKNOWN, 'not complete yet: no result to check')
        return
    different = runs.differences(result['config'], config)
    yield _judge(os.path.join(folder, 'result.json'), not different, 'of this config.json',
                 'of another config.json: %s' % '; '.join(different))
    for finding in _derived(folder, result):
        yield finding


def _name(folder, config):
    """Whether a folder that is named after its config has that config."""
    name = os.path.basename(folder)
    if not re.match(r'(adaptive-)?T\d+-[0-9a-f]{8}$', name):
        return Finding(folder, UNKNOWN, 'not named after its config')
    right = evaluation.name_of(config)
    return _judge(os.path.join(folder, runs.CONFIG), name == right, 'the config that the folder is named after',
                  'changed, or of another evaluation: the folder is %s, this config makes %s' % (name, right))


def _blocks(folder):
    place = os.path.join(folder, 'blocks')
    return [os.path.join(place, name) for name in sorted(os.listdir(place)) if name.endswith('.npz')]


def _block(path, config):
    """Whether the sums of a block can be what they are said to be."""
    block = runs.read_arrays(path, 'remove it and run the evaluation again')
    problem = _impossible(block, config)
    return _judge(path, problem is None, 'possible sums', problem)


def _impossible(block, config):
    """What is impossible about a block's arrays, or None."""
    if any(array.dtype.kind == 'f' and not np.isfinite(array).all() for array in block.values()):
        return 'numbers that are not finite'
    totals = block['probs'].sum(axis=1)
    if 'votes' not in block:
        return None if np.allclose(totals, 1, atol=1e-3) else 'probabilities that do not add up to 1'
    passes = block['votes'].sum(axis=1)
    if len(set(len(block[name]) for name in ('probs', 'squares', 'scores', 'votes', 'entropy'))) != 1:
        return 'arrays of different lengths'
    if not np.allclose(totals, passes, rtol=1e-4):
        return 'probabilities that do not add up to the number of passes'
    if passes.max() > config['T'] or (block['squares'] > block['probs'] * (1 + 1e-6) + 1e-6).any():
        return 'more passes than T, or squares larger than what they are squares of'
    return None


def _weights(folder, config):
    """Where the evaluated weights are, as far as that can be told."""
    run = os.path.dirname(os.path.dirname(folder))
    final = os.path.join(run, runs.FINAL)
    if config['weights'] in [file.sha256 for file in table.NIN_WEIGHTS.files]:
        yield Finding(folder, OK, 'the published NIN weights')
    elif os.path.exists(final) and runs.sha256(final) == config['weights']:
        yield Finding(folder, OK, 'the weights of %s' % final)
    else:
        yield Finding(folder, UNKNOWN, 'its weights are not here (SHA-256 %s...)' % config['weights'][:12])


def _images_here(folder, config, data):
    """Whether the evaluated images are the test set that is here."""
    dataset, _, net = config['net'].partition('/')
    if (dataset, net) not in nets.REGISTRY:
        return Finding(folder, UNKNOWN, 'a net of your own: its images are not known here')
    entry = nets.find(dataset, net)
    name = entry.data.test.split('/')[1]
    if sets.manifest(name, data) is None:
        return Finding(folder, UNKNOWN, 'the set %s is not here, so the images cannot be compared' % name)
    source = images.open_images(os.path.join(data, name, os.path.basename(entry.data.test)),
                                images.Transform(entry.data.scale or 1.0, None, entry.data.crop))
    if config['count'] <= source.count and source.scan(config['count'])[1] == config['images']:
        return Finding(folder, OK, 'the first %d images of %s' % (config['count'], source.path))
    return Finding(folder, UNKNOWN, 'its images are not the test set of %s' % name)


def _derived(folder, result):
    """The Findings of deriving everything anew from the blocks, in a folder beside."""
    repeats = len(result['mc']['probs']['error']) if 'mc' in result else 0
    with tempfile.TemporaryDirectory() as work:
        for name in os.listdir(folder):
            if name not in OUTPUTS and name not in (runs.LOCK, runs.CHECKSUMS):
                os.symlink(os.path.join(os.path.abspath(folder), name), os.path.join(work, name))
        again = evaluation.assemble(work, repeats)
        runs.write_json(os.path.join(work, 'result.json'), again)
        for name, read in (('result.json', runs.read_json), ('images.npz', _arrays), ('images.csv', _lines)):
            path = os.path.join(folder, name)
            if not os.path.exists(path):
                yield Finding(path, WRONG, 'missing')
                continue
            place = difference(read(path), read(os.path.join(work, name)))
            yield _judge(path, place is None, 'what the blocks give', 'not what the blocks give: %s' % place)


def _arrays(path):
    return runs.read_arrays(path, 'run the evaluation again')


def _lines(path):
    """The cells of a CSV file, numbers as numbers."""
    try:
        with open(path) as file:
            return [[_number(cell) for cell in line.rstrip('\n').split(',')] for line in file]
    except UnicodeDecodeError as error:
        raise UserError('%s: damaged (%s)' % (path, error))


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text


def difference(a, b, where=''):
    """Where two nested values differ ('mc.probs.mean: 10.3 and 10.4'), None where they agree."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in list(b) + [name for name in a if name not in b]:
            if name not in a or name not in b:
                return '%s is %s' % ((where + '.' + name).lstrip('.'), 'missing' if name not in a else 'too much')
            found = difference(a[name], b[name], where + '.' + name)
            if found:
                return found
        return None
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        same = a.shape == b.shape and a.dtype == b.dtype and (
            np.allclose(a, b, rtol=1e-5, atol=1e-9, equal_nan=True) if a.dtype.kind == 'f' else np.array_equal(a, b))
        return None if same else '%s differs' % where.lstrip('.')
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return '%s has %d entries, %d are right' % (where.lstrip('.') or 'it', len(a), len(b))
        return next((found for found in (difference(x, y, '%s[%d]' % (where, i))
                                         for i, (x, y) in enumerate(zip(a, b))) if found), None)
    return None if _same(a, b) else '%s: %s, %s is right' % (where.lstrip('.'), a, b)


def _same(a, b):
    if type(a) in (int, float) and type(b) in (int, float) and not isinstance(a, bool):
        return a == b or abs(a - b) <= TOLERANCE * max(abs(a), abs(b))
    return a == b


# --- the recorded tables -----------------------------------------------------------------------------------

def tables(folder, place=runs.RUNS):
    """Yields the Findings of the recorded tables: against each other, and against the runs that are here."""
    rows = {}
    for name in results.TABLES:
        try:
            rows[name] = results.read(folder, name)
        except UserError as error:
            rows[name] = []
            yield Finding(results.path(folder, name), WRONG, str(error))
    for finding in _crossed(folder, rows):
        yield finding
    for finding in _against_runs(folder, rows, place):
        yield finding


def _crossed(folder, rows):
    """Every number that two tables tell, each in its own way."""
    def by_outcome(name):
        found = {}
        for row in rows[name]:
            found.setdefault(tuple(row[column] for column in results.REPETITION), []).append(row)
        return found

    parts = {name: by_outcome(name) for name in ('convergence', 'calibration', 'risk', 'wrong')}
    standard = {row['config']: row for row in rows['evaluations'] if row['method'] == 'standard'}
    described = set(row['config'] for row in rows['provenance'])
    for row in rows['evaluations']:
        key = tuple(row[column] for column in results.REPETITION)
        what = ' '.join(str(part) for part in key if part is not None)
        for name, problem in _row_problems(row, key, parts, standard):
            yield Finding(results.path(folder, name), WRONG, '%s: %s' % (what, problem))
        yield Finding(results.path(folder, 'evaluations'), OK, '%s agrees with the other tables' % what)
    for config in sorted(set(row['config'] for name in ('curves', 'evaluations') for row in rows[name]) - described):
        yield Finding(results.path(folder, 'provenance'), UNKNOWN,
                      'no row for config %s: record its run again' % config)


def _row_problems(row, key, parts, standard):
    """(table, what is wrong) wherever a row of evaluations.csv does not fit the others."""
    if row['errors'] > row['n']:
        yield 'evaluations', '%d errors of %d images' % (row['errors'], row['n'])
    for last in [part for part in parts['convergence'].get(key, ()) if part['t'] == row['T']]:
        if (last['errors'], last['n']) != (row['errors'], row['n']):
            yield 'convergence', '%d errors of %d after the last pass, evaluations.csv has %d of %d' % (
                last['errors'], last['n'], row['errors'], row['n'])
    for problem in _calibration_problems(row, parts['calibration'].get(key, ())):
        yield 'calibration', problem
    for part in parts['risk'].get(key, ()):
        if part['rejected'] == 0 and abs(part['errors_kept'] - row['errors']) > 0.5 or part['n'] != row['n']:
            yield 'risk', '%s: %g errors with nothing rejected, evaluations.csv has %d' % (
                part['measure'], part['errors_kept'], row['errors'])
    for part in parts['wrong'].get(key, ()):
        listed = len((part['wrong'] or '').split())
        if (listed, part['n']) != (row['errors'], row['n']):
            yield 'wrong', '%d images of %d listed, evaluations.csv has %d errors of %d' % (
                listed, part['n'], row['errors'], row['n'])
    if row['method'] == 'mc' and row['config'] in standard:
        only = row['only_mc_right'] - row['only_standard_right']
        if standard[row['config']]['errors'] - row['errors'] != only:
            yield 'evaluations', 'errors differ from Standard by %d, the images right in one of both by %d' % (
                standard[row['config']]['errors'] - row['errors'], only)


def _calibration_problems(row, bins):
    if not bins:
        return
    count = sum(part['count'] for part in bins)
    if count != row['n']:
        yield '%d images in the bins, evaluations.csv has %d' % (count, row['n'])
        return
    gaps = [part['count'] * abs(part['confidence'] - part['accuracy']) for part in bins if part['count']]
    ece = sum(gaps) / float(count)
    if abs(ece - row['ece']) > 1e-4:
        yield 'the bins give a calibration error of %.6g, evaluations.csv has %.6g' % (ece, row['ece'])


def _against_runs(folder, rows, place):
    """The rows that the runs here give, against the recorded ones."""
    problems = []
    options = record.Options(None, True, False)
    found = record.gather([place], options, problems) if os.path.isdir(place) else []
    for problem in problems:
        yield Finding(place, WRONG, problem)
    recorded = {name: {results.key_of(results.TABLES[name], row): row for row in rows[name]} for name in rows}
    seen = set()
    for run in found:
        clashes = [clash for name in run.rows for row in run.rows[name]
                   for clash in record.clash(name, row, recorded[name])]
        seen.update(row['config'] for name in run.rows for row in run.rows[name])
        yield _judge(run.folder, not clashes, 'what is recorded of it',
                     'not what is recorded of it: %s' % '; '.join(clashes[:2]))
    for config in sorted(set(row['config'] for name in ('curves', 'evaluations') for row in rows[name]) - seen):
        yield Finding(folder, UNKNOWN, 'config %s: its run is not below %s' % (config, os.path.relpath(place)))
