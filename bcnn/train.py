"""Training runs: what to train from what a user types, and a run's folder from its first to its last iteration.

The work itself is in bcnn.loop, in a child process; here is all that can be refused before.
"""

import hashlib
import os
import signal
from collections import OrderedDict, namedtuple

from . import curve, engine, files, images, jobs, loop, nets, progress, prototxt, runs, solvers
from .data import records, sets
from .errors import UserError

# What to train. stages: of Stage; standard, sampling: the nets that measure (sampling None
# without dropout); data: the folder of the prepared sets; records: how many training images;
# source, count: the test images of bcnn.images and how many of them; checksums: of the data.
Task = namedtuple('Task', 'net dataset stages standard sampling data records source count checksums')
# solver, net: messages with the published paths; companions: whether their learning rate decays.
Stage = namedtuple('Stage', 'name solver net companions')
# How. iterations: of each stage; points: of --eval-points; gpu: None for the CPU; jobs: processes
# that measure; snapshot_every: iterations, None for about a minute.
Settings = namedtuple('Settings', 'seed iterations points T gpu jobs snapshot_every')


# --- from names to a task ----------------------------------------------------------------------

def of_paper(net, dataset=None, fraction=None, data=sets.DATA, limit=None):
    """The Task for a net of the paper on its prepared data."""
    if net not in nets.NETS:
        raise UserError('no net %r; there are: %s' % (net, nets.nearest_first(net, nets.NETS)))
    entry = nets.find(_dataset(net, dataset, fraction), net)
    train, test = (os.path.join(data, *path.split('/')[1:]) for path in (entry.data.train, entry.data.test))
    checksums = OrderedDict()
    for split, path in (('train', train), ('test', test)):
        name = os.path.basename(os.path.dirname(path))
        checksums[split] = sets.checksum(name, split, data)
    source = images.open_images(test, images.Transform(entry.data.scale or 1.0, None, entry.data.crop))
    if limit is not None and not 1 <= limit <= source.count:
        raise UserError('%s has %d images: --test-limit %d is not possible' % (test, source.count, limit))
    return Task(net, entry.dataset, _stages(entry), nets.deploy(net, entry.base),
                nets.mc(net, entry.base) if entry.where else None, os.path.abspath(data), records.count(train), source,
                limit or source.count, checksums)


def _dataset(net, dataset, fraction):
    dataset = dataset or jobs.default_dataset(net)
    if fraction in (None, 1):
        return dataset
    if dataset != 'mnist' or fraction not in nets.FRACTIONS:
        raise UserError('--fraction %s of %s: the paper has 1/1, 1/%s of mnist, for the nets with dropout'
                        % (fraction, dataset, ', 1/'.join(map(str, nets.FRACTIONS))))
    return 'mnist_%d' % fraction


def _stages(entry):
    found = []
    for name, solver in solvers.stages(entry.net, entry.dataset).items():
        companions = name == 'solver_stage1'
        found.append(Stage(name, solver, nets.train_test(entry.net, entry.dataset, companions=companions), companions))
    return found


def default_T(task):
    """The paper's number of passes for a curve: 50 in Figure 2, 10 in Figure 3, 100 for NIN and DSN."""
    if task.dataset.startswith('mnist_'):
        return 10
    return 50 if task.net.startswith('lenet') else 100


def iterations(text, task):
    """The iterations of each stage of `--iters TEXT`: the paper's for None, '300' at most 300 each, '300,500,100'."""
    paper = [stage.solver.max_iter for stage in task.stages]
    if text is None:
        return tuple(paper)
    try:
        numbers = [int(part) for part in str(text).split(',')]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, len(paper)) or min(numbers) < 1 or max(numbers) >= 1 << 31:
        stages = ', or %d of them, one a stage' % len(paper) if len(paper) > 1 else ''
        raise UserError('--iters %s: it must be a whole number, 1 or more%s' % (text, stages))
    if len(numbers) == len(paper):
        return tuple(numbers)
    return tuple(min(numbers[0], most) for most in paper)


def check(settings, task):
    """Refuses settings that mean nothing."""
    for name, value in (('--T', settings.T), ('--jobs', settings.jobs), ('--snapshot-every', settings.snapshot_every)):
        if value is not None and value < 1:
            raise UserError('%s is %d: it must be 1 or more' % (name, value))
    if settings.seed < 0:
        raise UserError('--seed is %d: it must be 0 or more' % settings.seed)
    for stage in task.stages:
        curve.points(settings.points, stage.solver.test_interval)


# --- a run -------------------------------------------------------------------------------------

def run(task, settings, folder, wait=False):
    """0 when the run is complete, 130 or 143 when a signal stopped it; goes on with what the folder has.

    wait: for another process that trains there, whose work is then gone on with.
    """
    folder = os.path.abspath(folder)
    check(settings, task)
    with files.folder(folder):
        with runs.lock(folder, waiting=(lambda message: progress.say(message + ': waiting')) if wait else None):
            runs.sweep(folder)
            if _settle(task, settings, folder):
                progress.say('%s: complete already%s' % (folder, _last_errors(folder)))
                return 0
            _write_prototxts(task, settings, folder)
            stopped = engine.call(loop.train, task, settings, folder, answers=bool)
            if not stopped:
                _write_done(settings, folder)
    if stopped:
        progress.say('%s: stopped by %s after %s: the same command goes on from there'
                     % (folder, signal.Signals(stopped).name, _reached(folder)))
        return 128 + stopped
    progress.say('%s: complete%s' % (folder, _last_errors(folder)))
    return 0


def _last_errors(folder):
    rows = curve.read(os.path.join(folder, runs.CURVE))
    return ', at iteration %d: %s' % (rows[-1].iteration, curve.percent(rows[-1])) if rows else ''


def _reached(folder):
    found = runs.stored(folder)
    if not found:
        return 'no iteration'
    return 'iteration %d%s' % (found[-1][1], ' of stage %d' % found[-1][0] if found[-1][0] > 1 else '')


def config(task, settings):
    """What makes a run what it is: equal configs give equal bytes on one kind of CPU."""
    stages = OrderedDict()
    for stage in task.stages:
        solver = engine.caffe_pb2.SolverParameter()
        solver.CopyFrom(stage.solver)
        solver.ClearField('max_iter')  # a target, not a part of it
        stages[stage.name] = OrderedDict([('solver', _sha256(solver)), ('net', _sha256(stage.net))])
    return OrderedDict([
        ('net', task.net), ('dataset', task.dataset), ('seed', settings.seed),
        ('iterations', list(settings.iterations)),
        ('eval_points', settings.points), ('T', settings.T if task.sampling else None), ('test_images', task.count),
        ('device', 'cpu' if settings.gpu is None else 'gpu'), ('threads', engine.describe()['threads']),
        ('data', task.checksums), ('prototxt', stages)])


def _sha256(message):
    return hashlib.sha256(prototxt.to_text(message).encode()).hexdigest()


def _settle(task, settings, folder):
    """Whether the run is complete; refuses a folder of another run, or one that diverged."""
    mine, path = config(task, settings), os.path.join(folder, runs.CONFIG)
    theirs = runs.read_json(path)
    if theirs is None:
        _refuse_foreign(folder)
        runs.write_json(os.path.join(folder, runs.PROVENANCE), runs.provenance(engine.describe()))
        runs.write_json(path, mine)
        return False
    different = runs.differences(dict(theirs, iterations=None), dict(mine, iterations=None))
    if different:
        raise UserError('%s holds another run (%s): choose another --out' % (folder, '; '.join(different)))
    targets = theirs.get('iterations')
    if not isinstance(targets, list) or [type(n) for n in targets] != [int] * len(mine['iterations']):
        raise UserError('%s: damaged (iterations): remove its folder to start anew' % path)
    diverged = runs.read_json(os.path.join(folder, runs.DIVERGED))
    if diverged:
        raise loop.Diverged(loop.divergence(folder, diverged))
    _note_other_software(folder)
    return _settle_target(theirs, mine, folder)


def _refuse_foreign(folder):
    found = sorted(name for name in os.listdir(folder) if name not in (runs.LOCK, runs.PROVENANCE))
    if found:
        raise UserError('%s is not the folder of a run, but has files in it (%s): choose another --out'
                        % (folder, found[0]))


def _settle_target(theirs, mine, folder):
    """Whether the run is complete for these iterations; a longer run goes on, a stage that is over stays as it is."""
    old, new = theirs['iterations'], mine['iterations']
    if old == new:
        return os.path.exists(os.path.join(folder, runs.DONE))
    stage, iteration = (runs.stored(folder) or [(1, 0, None)])[-1][:2]
    if old[:stage - 1] != new[:stage - 1] or new[stage - 1] < iteration:
        raise UserError('%s: has reached iteration %d%s of %s: --iters %s is not possible any more' % (
            folder, iteration, ' of stage %d' % stage if len(old) > 1 else '', _list(old), _list(new)))
    progress.say('%s: %s iterations now, before %s' % (folder, _list(new), _list(old)))
    for name in (runs.DONE, runs.CHECKSUMS, runs.FINAL):  # in this order: what is done has final weights
        files.remove(os.path.join(folder, name))
    runs.write_json(os.path.join(folder, runs.CONFIG), mine)
    return False


def _list(numbers):
    return ','.join(map(str, numbers))


def _note_other_software(folder):
    before = runs.read_json(os.path.join(folder, runs.PROVENANCE)) or {}
    now = runs.provenance(engine.describe())
    both = [name for name in now if name in before and name not in ('commit', 'modified')]  # older ones name less
    different = runs.differences(*({name: about[name] for name in both} for about in (before, now)))
    if different:
        progress.say('%s: goes on with other software than it began with, so its bytes may differ (%s)'
                     % (folder, '; '.join(different)))


def _write_prototxts(task, settings, folder):
    """Writes the nets and solvers that are run, anew each time: their paths may have changed."""
    for number, stage in enumerate(task.stages, 1):
        net = engine.caffe_pb2.NetParameter()
        net.CopyFrom(stage.net)
        for layer in net.layer:
            if layer.type == 'Data':
                layer.data_param.source = os.path.join(task.data, *layer.data_param.source.split('/')[1:])
        _write_text(os.path.join(folder, loop.net_name(task, number)), net)
        _write_text(os.path.join(folder, stage.name + '.prototxt'), loop.stage_message(task, settings, number, folder))
    for name, message in (('deploy', task.standard), ('mc', task.sampling)):
        if message is not None:
            _write_text(os.path.join(folder, name + '.prototxt'), message)


def _write_text(path, message):
    with files.atomic(path) as temporary, open(temporary, 'w') as file:
        file.write(prototxt.to_text(message))


def _write_done(settings, folder):
    # The prototxts have paths of this machine in them, and are written anew by the next command.
    runs.write_checksums(folder, [name for name in os.listdir(folder)
                                  if name in (runs.CONFIG, runs.CURVE) or name.endswith('.caffemodel')])
    runs.write_json(os.path.join(folder, runs.DONE), {
        'iterations': list(settings.iterations), runs.FINAL: runs.sha256(os.path.join(folder, runs.FINAL))})


# --- the command -------------------------------------------------------------------------------

def command(args):
    """The exit code of what tools/train.py was asked for."""
    task = of_paper(args.net, args.dataset, args.fraction, args.data or sets.DATA, args.test_limit)
    cores = max(1, (os.cpu_count() or 1) // (args.threads or 1))
    settings = Settings(args.seed, iterations(args.iters, task), args.eval_points,
                        default_T(task) if args.T is None else args.T, _device(args),
                        cores if args.jobs is None else args.jobs, args.snapshot_every)
    return run(task, settings, args.out or runs.folder(task.dataset, task.net, settings.seed), args.wait)


def _device(args):
    """The GPU to use, None for the CPU; refused here rather than in the middle."""
    if args.gpu is not None:
        engine.require_device(args.gpu)
        return args.gpu
    return 0 if not args.cpu and engine.has_gpu() else None
