"""A training run's folder from its first to its last iteration.

The work itself is in bcnn.training.solver_loop, in a child process; here is all that can be refused before.
"""

import argparse
import os
import signal
from collections import OrderedDict
from typing import Any, Dict

from .. import batches, beyond, engine, seeds
from ..data import sets
from ..errors import CaffeError, UserError
from ..mc import adaptive
from ..prototxt import reading
from ..system import cuda, files, places, progress, provenance, store
from . import curve, solver_loop, trainees
from .trainees import Settings, Trainee


def check(settings: Settings, trainee: Trainee) -> None:
    """Refuses settings that mean nothing."""
    if settings.seed < 0:
        raise UserError('--seed is %d: it must be 0 or more' % settings.seed)
    for stage in trainee.stages:
        curve.points(settings.points, stage.solver.test_interval)


# --- a run -------------------------------------------------------------------------------------

def run(trainee: Trainee, settings: Settings, folder: str, wait: bool = False) -> int:
    """0 when the run is complete, 130 or 143 when a signal stopped it; goes on with what the folder has.

    wait: for another process that trains there, whose work is then gone on with.
    """
    folder = os.path.abspath(folder)
    check(settings, trainee)
    if trainee.init:
        _fitting_layers(trainee, settings)  # refused before anything is written
    with files.folder(folder):
        with places.lock(folder, waiting=(lambda message: progress.say(message + ': waiting')) if wait else None):
            places.sweep(folder)
            settings = settings._replace(streams=seeds.version_for(
                store.read_json(os.path.join(folder, places.CONFIG)), settings.streams))
            if _settle(trainee, settings, folder):
                progress.say('%s: complete already%s' % (folder, _last_errors(folder)))
                return 0
            _write_prototxts(trainee, settings, folder)
            _say_init(trainee, settings)
            stopped = _train(trainee, settings, folder)
            if not stopped:
                _write_done(settings, folder)
    if stopped:
        progress.say('%s: stopped by %s after %s: the same command goes on from there'
                     % (folder, signal.Signals(stopped).name, _reached(folder)))
        return 128 + stopped
    progress.say('%s: complete%s' % (folder, _last_errors(folder)))
    return 0


def _train(trainee, settings, folder):
    """The number of the signal that stopped the training, None for none."""
    try:
        return engine.call(solver_loop.train, trainee, settings, folder, answers=bool)
    except CaffeError as error:
        if settings.gpu is None or not cuda.is_lack_of_memory(str(error)):
            raise
        raise UserError("GPU %d has not enough memory to train %s with the paper's batch; %d MB are free: take another "
                        'GPU, or end what else uses it'
                        % (settings.gpu, trainee.net, batches.free_on(settings.gpu) / 1e6))


def _last_errors(folder):
    rows = curve.read(os.path.join(folder, places.CURVE))
    return ', at iteration %d: %s' % (rows[-1].iteration, curve.percent(rows[-1])) if rows else ''


def _reached(folder):
    stored = places.stored(folder)
    if not stored:
        return 'no iteration'
    return 'iteration %d%s' % (stored[-1][1], ' of stage %d' % stored[-1][0] if stored[-1][0] > 1 else '')


def config_of(trainee: Trainee, settings: Settings) -> Dict[str, Any]:
    """What makes a run what it is: equal configs give equal bytes on one kind of CPU."""
    stages = OrderedDict()
    for stage in trainee.stages:
        solver = engine.caffe_pb2.SolverParameter()
        solver.CopyFrom(stage.solver)
        solver.ClearField('max_iter')  # how far it goes is no part of it
        stages[stage.name] = OrderedDict([('solver', reading.digest(solver)), ('net', reading.digest(stage.net))])
    config = OrderedDict([
        ('net', trainee.net), ('dataset', trainee.dataset), ('seed', settings.seed),
        ('iterations', list(settings.iterations)),
        ('eval_points', settings.points), ('T', settings.T if trainee.sampling else None),
        ('test_images', trainee.count),
        ('device', 'cpu' if settings.gpu is None else 'gpu'), ('threads', engine.describe()['threads']),
        ('data', trainee.checksums), ('prototxt', stages)])
    # only where they matter: the configs of all other runs stay as they were
    if settings.streams != 1:
        config['streams'] = settings.streams
    if trainee.schedule != 1:
        config['schedule'] = '1/%d' % trainee.schedule
    if trainee.init:
        config['init'] = store.sha256(trainee.init)
    if settings.rule and trainee.sampling:
        config['adaptive'] = settings.rule._asdict()
    return config


def _settle(trainee, settings, folder):
    """Whether the run is complete; refuses a folder of another run, or one that diverged."""
    mine, path = config_of(trainee, settings), os.path.join(folder, places.CONFIG)
    if not os.path.exists(path):
        _refuse_foreign(folder)
    theirs = provenance.settle(folder, mine, 'run', engine.describe(), apart_from=('iterations',))
    if theirs is None:
        return False
    lengths = theirs.get('iterations')
    if not isinstance(lengths, list) or [type(n) for n in lengths] != [int] * len(mine['iterations']):
        raise UserError('%s: damaged (iterations): remove its folder to start anew' % path)
    diverged = store.read_json(os.path.join(folder, places.DIVERGED))
    if diverged:
        raise solver_loop.Diverged(solver_loop.divergence(folder, diverged))
    _note_other_software(folder)
    return _settle_iterations(theirs, mine, folder)


def _refuse_foreign(folder):
    foreign = sorted(name for name in os.listdir(folder) if name not in (places.LOCK, places.PROVENANCE))
    if foreign:
        raise UserError('%s is not the folder of a run, but has files in it (%s): choose another --out'
                        % (folder, foreign[0]))


def _settle_iterations(theirs, mine, folder):
    """Whether the run is complete for these iterations; a longer run goes on, a stage that is over stays as it is."""
    old, new = theirs['iterations'], mine['iterations']
    if old == new:
        return os.path.exists(os.path.join(folder, places.DONE))
    stage, iteration = (places.stored(folder) or [(1, 0, None)])[-1][:2]
    if old[:stage - 1] != new[:stage - 1] or new[stage - 1] < iteration:
        raise UserError('%s: has reached iteration %d%s of %s: --iters %s is not possible any more' % (
            folder, iteration, ' of stage %d' % stage if len(old) > 1 else '', _list(old), _list(new)))
    progress.say('%s: %s iterations now, before %s' % (folder, _list(new), _list(old)))
    for name in (places.DONE, places.CHECKSUMS, places.FINAL):  # in this order: what is done has final weights
        files.remove(os.path.join(folder, name))
    store.write_json(os.path.join(folder, places.CONFIG), mine)
    return False


def _list(numbers):
    return ','.join(map(str, numbers))


def _note_other_software(folder):
    before = store.read_json(os.path.join(folder, places.PROVENANCE)) or {}
    now = provenance.collect(engine.describe())
    shared = [name for name in now if name in before and name not in ('commit', 'modified')]  # older ones name less
    different = store.differences(*({name: versions[name] for name in shared} for versions in (before, now)))
    if different:
        progress.say('%s: goes on with other software than it began with, so its bytes may differ (%s)'
                     % (folder, '; '.join(different)))


def _fitting_layers(trainee, settings):
    return engine.call(trainees.fitting_layers, trainee, trainees.first_stage(settings.iterations))


def _say_init(trainee, settings):
    if trainee.init:
        fitting, others = _fitting_layers(trainee, settings)
        progress.say('%s: weights for %d of %d layers%s' % (
            trainee.init, len(fitting), len(fitting) + len(others), ', not for ' + ', '.join(others) if others else ''))


def _write_prototxts(trainee, settings, folder):
    """Writes the nets and solvers that are run, anew each time: their paths may have changed."""
    for number, stage in enumerate(trainee.stages, 1):
        net = trainees.with_data(trainee, stage.net)
        solver = solver_loop.stage_message(trainee, settings, number, folder)
        files.write_text(os.path.join(folder, solver_loop.net_name(trainee, number)), reading.to_text(net))
        files.write_text(os.path.join(folder, stage.name + '.prototxt'), reading.to_text(solver))
    for name, message in (('deploy', trainee.standard), ('mc', trainee.sampling)):
        if message is not None:
            files.write_text(os.path.join(folder, name + '.prototxt'), reading.to_text(message))


def _write_done(settings, folder):
    # The prototxts have paths of this machine in them, and are written anew by the next command.
    lasting = (places.CONFIG, places.CURVE, places.WRONG)
    places.write_checksums(folder, [name for name in os.listdir(folder)
                                    if name in lasting or name.endswith('.caffemodel')])
    store.write_json(os.path.join(folder, places.DONE), {
        'iterations': list(settings.iterations), places.FINAL: store.sha256(os.path.join(folder, places.FINAL))})


# --- the command -------------------------------------------------------------------------------

def command(args: argparse.Namespace) -> int:
    """The exit code of what tools/train.py was asked for."""
    if args.schedule and args.iters:
        raise UserError("--schedule %s shortens the paper's schedule in proportion, --iters %s cuts it off: "
                        'give one of them' % (args.schedule, args.iters))
    gpu = _device(args)
    trainee = trainees.of_paper(args.net, args.dataset, args.fraction, args.data or sets.DATA, args.test_limit,
                                trainees.schedule(args.schedule), args.init, not args.no_prepare)
    cores = max(1, (os.cpu_count() or 1) // (args.threads or 1))
    settings = Settings(
        seed=args.seed, iterations=trainees.iterations(args.iters, trainee), points=args.eval_points,
        T=beyond.of_net(trainee.dataset, trainee.net).T if args.T is None else args.T, gpu=gpu,
        jobs=cores if args.jobs is None else args.jobs, snapshot_every=args.snapshot_every, streams=args.streams,
        rule=adaptive.Rule() if args.adaptive else None)
    folder = places.folder(trainee.dataset, trainee.net, settings.seed, schedule=trainee.schedule, init=trainee.init)
    return run(trainee, settings, args.out or folder, args.wait)


def _device(args):
    """The GPU to use, None for the CPU; refused here rather than in the middle."""
    if args.gpu is not None:
        engine.require_device(args.gpu)
        return args.gpu
    return 0 if not args.cpu and engine.has_gpu() else None
