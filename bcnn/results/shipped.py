"""The caffemodels of weights/: an entry made of a finished and recorded run, and whether all entries still hold.

weights/ holds the files, index.json (bcnn.weights.Entry) and README.md, which is made of the index. An entry's
numbers are those of one recorded evaluation of exactly its bytes, so that anybody can evaluate them again.
"""

import os
import shutil
from typing import Any, Dict, Iterator, Optional, Sequence

import numpy as np

from .. import engine, nets, paper, weights
from ..data import sets
from ..errors import UserError
from ..system import files, locks, places, provenance, store
from . import csv_tables, gather, merge, schema, verify_folders
from .findings import WRONG, Finding, judge

MOST = 4000000  # bytes of a file: all nets of the paper but the LeNets on CIFAR-10
README = 'README.md'


# --- an entry ----------------------------------------------------------------------------------

def publish(run: str, results: str = places.RESULTS, data: str = sets.DATA,
            folder: str = weights.FOLDER) -> weights.Entry:
    """The Entry made of a run; writes its file, the index and README.md. Refuses what is not finished and recorded."""
    run = os.path.abspath(run)
    config, done = _finished(run, data)
    entry = _entry(run, config, done, results, data)
    with files.folder(folder), locks.lock(os.path.join(folder, '.lock')):
        files.sweep_folder(folder)
        with files.atomic(os.path.join(folder, entry.file)) as temporary:
            shutil.copyfile(os.path.join(run, places.FINAL), temporary)
        _enter(entry, folder)
    return entry


def renew(path: str, results: str = places.RESULTS, folder: str = weights.FOLDER) -> weights.Entry:
    """The Entry of a file of weights/ with the best evaluation that is recorded of it now; writes index and README.md.

    It needs no run: what the entry says of the training stays, and the file is the one that was published.
    """
    parent, file = os.path.split(os.path.realpath(path))
    with locks.lock(os.path.join(folder, '.lock')):
        old = next((entry for entry in weights.index(folder) if entry.file == file), None)
        if old is None or parent != os.path.realpath(folder):
            raise UserError('%s: neither the folder of a training run nor a file that %s names'
                            % (path, os.path.join(folder, weights.INDEX)))
        weights.require(old, folder)
        entry = old._replace(**recorded_evaluation(results, old.dataset, old.net, old.sha256))
        _enter(entry, folder)
    return entry


def _enter(entry, folder):
    """Writes the index and README.md with an entry, in the place of one for the same file."""
    others = [other for other in weights.index(folder) if other.file != entry.file]
    entries = sorted(others + [entry])
    weights.write_index(entries, folder)
    files.write_text(os.path.join(folder, README), readme(entries))


def _finished(run, data):
    """(config, done) of a complete run whose files are as they were written and may be published."""
    config, done = (store.read_json(os.path.join(run, name)) for name in (places.CONFIG, places.DONE))
    if config is None or 'prototxt' not in config:
        raise UserError('%s: not the folder of a training run' % run)
    if done is None:
        raise UserError('%s: not finished: tools/train.py goes on with it' % run)
    for finding in verify_folders.run_folder(run, config, data):
        if finding.state == WRONG:
            raise UserError('%s: %s' % (finding.path, finding.text))
    final = os.path.join(run, places.FINAL)
    problem = unfit(final)
    if problem:
        raise UserError('%s: %s' % (final, problem))
    return config, done


def unfit(path: str) -> Optional[str]:
    """Why a caffemodel cannot be in weights/, or None: too large, or more in it than weights and a net."""
    if os.path.getsize(path) > MOST:
        return '%.1f MB, but weights/ takes files of %.0f MB at most' % (os.path.getsize(path) / 1e6, MOST / 1e6)
    try:
        with open(path, 'rb') as file:
            model = engine.parse_bytes(engine.caffe_pb2.NetParameter(), file.read())
    except ValueError as error:
        return 'not a caffemodel, or damaged (%s)' % error
    path_in_it = next((text for text in _strings(model) if os.path.isabs(text)), None)
    if path_in_it:
        return 'a path of a machine in it: %s' % path_in_it
    if any(blob.diff or blob.double_diff for layer in model.layer for blob in layer.blobs):
        return 'gradients in it'
    return None


def _strings(message):
    """Every text in a message, however deep."""
    for field, value in message.ListFields():
        for item in value if field.label == field.LABEL_REPEATED else [value]:
            if field.type == field.TYPE_STRING:
                yield item
            elif field.type == field.TYPE_MESSAGE:
                yield from _strings(item)


def _entry(run, config, done, results, data):
    _require_recorded(run, results, data)
    software = store.read_json(os.path.join(run, places.PROVENANCE)) or {}
    schedule, init = config.get('schedule'), config.get('init')
    name = os.path.basename(places.folder(config['dataset'], config['net'], config['seed'],
                                          schedule=int(schedule.split('/')[1]) if schedule else 1))
    digest = done[places.FINAL]
    return weights.Entry(
        file=name + ('-from-%s' % init[:8] if init else '') + '.caffemodel', dataset=config['dataset'],
        net=config['net'], seed=config['seed'], schedule=schedule, init=init, iterations=list(done['iterations']),
        sha256=digest, commit=_commit(software), config=store.identity(config),
        **recorded_evaluation(results, config['dataset'], config['net'], digest))


def _commit(software):
    commit = provenance.short_commit(software)
    return commit and commit + (' with changes' if software.get('modified') else '')


def _require_recorded(run, results, data):
    """Refuses a run of which, or of whose evaluations, a row is not recorded, or recorded with other numbers."""
    problems = []
    options = gather.Options(profile=None, unfinished=False, replace=False, data=data)
    measured = gather.gather([run], options, problems)
    if problems:
        raise UserError(problems[0])
    tables = {}
    for found in measured:
        for name, rows in found.rows.items():
            if name not in tables:
                tables[name] = csv_tables.by_key(results, name)
            if any(csv_tables.key_of(schema.TABLES[name], row) not in tables[name] for row in rows):
                raise UserError('%s: not recorded in %s: python tools/record.py %s' % (
                    found.folder, os.path.relpath(csv_tables.path(results, name)), os.path.relpath(run)))
            clash = next((clash for row in rows for clash in merge.clash(name, row, tables[name])), None)
            if clash:
                raise UserError('%s: not what is recorded of it: %s' % (found.folder, clash))
    if not measured:
        raise UserError('%s: no measurement in it, so nothing of it is recorded' % run)


def recorded_evaluation(results: str, dataset: str, net: str, digest: str) -> Dict[str, Any]:
    """What an Entry tells of its evaluation: of several the one with most images, then most repetitions."""
    configs = [row['config'] for row in csv_tables.read(results, 'provenance')
               if (row['kind'], row['weights'], row['dataset'], row['net']) == ('evaluation', digest, dataset, net)]
    rows_of = {}
    for row in csv_tables.read(results, 'evaluations'):
        if row['config'] in configs and row['average'] != 'scores':
            rows_of.setdefault(row['config'], []).append(row)
    sampled = bool(nets.find(dataset, net).where)
    whole = [rows for rows in rows_of.values() if len(rows) > 1 or not sampled]
    if not whole:
        raise UserError('no evaluation of these weights (SHA-256 %s...) is recorded in %s: python tools/mc_eval.py '
                        '--net %s, then python tools/record.py' % (digest[:8], os.path.relpath(results), net))
    rows = max(whole, key=lambda rows: (rows[0]['n'], rows[0]['mode'] == 'stream', len(rows), rows[0]['config']))
    standard, = [row for row in rows if row['method'] == 'standard']
    mc = sorted((row for row in rows if row['method'] == 'mc'), key=lambda row: row['repetition'])
    return dict(evaluation=standard['config'], images=standard['n'], T=mc[0]['T'] if mc else 0,
                standard_errors=standard['errors'], mc_errors=[row['errors'] for row in mc])


# --- the page ------------------------------------------------------------------------------------

PAGE = '''# Weights

Weights of this project's own runs. `python tools/mc_eval.py --net X` takes them where you have not trained the net
yourself; `--weights FILE` names one of them.

%s
Errors are in percent of the test images; MC errors are the mean and standard deviation of the repetitions. They are
those of one evaluation of exactly this file, which is recorded in `analysis/results/` with what computed it.

Not here: NIN, whose published file is fetched and verified (`python tools/prepare_data.py nin_weights`), and the LeNets
on CIFAR-10, of 41 to 53 MB, where a file here has %d MB at most.

This page is made of `index.json`, and both are made by `python tools/publish.py RUN` of a finished and recorded run;
`python tools/publish.py weights/FILE` enters a better evaluation of a file, once it is recorded.
`python tools/verify.py weights` checks the files, the index, this page, and that the recorded evaluations belong to
them.
'''
COLUMNS = ('file', 'net', 'data', 'trained', 'seed', 'Standard', 'MC', 'T', 'images', 'SHA-256', 'commit')


def readme(entries: Sequence[weights.Entry]) -> str:
    """The text of weights/README.md."""
    rows = [COLUMNS, ('---',) * len(COLUMNS)] + [_cells(entry) for entry in entries]
    table = ''.join('| %s |\n' % ' | '.join(row) for row in rows) if entries else 'There are none yet.\n'
    return PAGE % (table, MOST // 1000000)


def _cells(entry):
    return ('`%s`' % entry.file, paper.title(entry.net), paper.title(entry.dataset), _training(entry),
            '%d' % entry.seed, '%.2f' % _percent(entry, entry.standard_errors), _mc(entry),
            '%d' % entry.T if entry.T else '', '{:,}'.format(entry.images), '`%s`' % entry.sha256[:16],
            '`%s`' % entry.commit if entry.commit else '')


def _training(entry):
    start = ', from `%s`' % entry.init[:8] if entry.init else ''
    return '%s iterations, %s%s' % ('{:,}'.format(sum(entry.iterations)), weights.how_far(
        entry.dataset, entry.net, entry.iterations, entry.schedule), start)


def _mc(entry):
    errors = [_percent(entry, errors) for errors in entry.mc_errors]
    if not errors:
        return 'no dropout'
    spread = ' +- %.2f, %d repetitions' % (np.std(errors, ddof=1), len(errors)) if len(errors) > 1 else ''
    return '%.2f%s' % (np.mean(errors), spread)


def _percent(entry, errors):
    return 100.0 * errors / entry.images


# --- whether it holds ------------------------------------------------------------------------------

def check(folder: str = weights.FOLDER, results: str = places.RESULTS) -> Iterator[Finding]:
    """Yields the Findings of weights/."""
    entries = weights.index(folder)
    for entry in entries:
        yield _file(entry, folder)
        yield _belongs(entry, folder, results)
    strange = sorted(set(os.listdir(folder)) - {entry.file for entry in entries} - {weights.INDEX, README, '.lock'})
    for name in strange:
        yield Finding(os.path.join(folder, name), WRONG, 'not in %s: made by nobody' % weights.INDEX)
    yield judge(os.path.join(folder, README), _page(folder) == readme(entries), 'what %s says' % weights.INDEX,
                'not what %s says: python tools/publish.py makes it' % weights.INDEX)


def _page(folder):
    """The text of README.md; None where there is none."""
    try:
        with open(os.path.join(folder, README), encoding='utf-8') as file:
            return file.read()
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def _file(entry, folder):
    """Whether a file is the one that the index names, and weights of its net."""
    path = os.path.join(folder, entry.file)
    try:
        weights.require(entry, folder)
        engine.call(_load, entry, path)
        problem = unfit(path)
    except UserError as error:
        problem = str(error)
    return judge(path, problem is None, 'the file that %s names, weights of its net' % weights.INDEX, problem)


def _load(entry, path):
    """Nothing; raises where the weights are not those of the net."""
    base = nets.find(entry.dataset, entry.net).base
    engine.load_net(nets.deploy(entry.net, base, batch=1), path, extra_weights=True)


def _belongs(entry, folder, results):
    """Whether the numbers of an entry are those recorded of its bytes, and its training is recorded."""
    path = os.path.join(folder, entry.file)
    try:
        recorded = recorded_evaluation(results, entry.dataset, entry.net, entry.sha256)
    except UserError as error:
        return Finding(path, WRONG, str(error))
    different = store.differences({name: getattr(entry, name) for name in recorded}, recorded)
    if different:
        different.append('python tools/publish.py %s enters what is' % path)
    trainings = [row['config_sha256'] for row in csv_tables.read(results, 'provenance') if row['kind'] == 'training']
    if entry.config not in trainings:
        different.append('no training of config %s recorded' % entry.config[:8])
    return judge(path, not different, 'evaluated as recorded, config %s' % entry.evaluation,
                 'not what is recorded of it: %s' % '; '.join(different))
