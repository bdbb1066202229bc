"""The whole paper with one command: a profile's jobs through Snakemake, and what came of them."""

import argparse
import contextlib
import glob
import os
import signal
import subprocess
import sys
import time
from typing import Iterator, List, Optional, Sequence, Tuple

from .. import beyond, engine, paper
from ..errors import UserError
from ..mc import evaluation
from ..results import csv_tables
from ..system import durations, files, places, processes, store
from . import agreement, calibration, cost, forecast
from . import plan as plans
from . import steps, watching
from .jobs import Evaluate, Job, Plan, Study, Train

SNAKEFILE = os.path.join(places.ROOT, 'workflow', 'Snakefile')
FRAME = 0.5  # seconds between two looks at the files of the jobs


def command(args: argparse.Namespace) -> int:
    """The exit code of what tools/run_all.sh was asked for."""
    plan = plans.load(args.profile, args.only, args.seeds, args.dataset)
    if args.list:
        on_gpu = args.gpus not in (None, 'none')
        known = (cost.speeds(csv_tables.read(places.RESULTS, 'bench_gpu')) if on_gpu
                 else calibration.speeds(_cores(args)))
        print('\n'.join(listing(plan, known, 'GPU' if on_gpu else 'CPU core')))
        return 0
    gpus = _gpus(args)
    words(plan, args, gpus)  # refuses what cannot be, before anything is begun
    files.make_folder(os.path.join(plan.folder, 'logs'))
    if args.dry_run:
        return subprocess.call(words(plan, args, gpus, ['--dry-run']), cwd=plan.folder)
    with places.lock(plan.folder, 'in work'):
        return _run(plan, args, gpus)


def _run(plan, args, gpus):
    began, here = time.time(), not gpus and not args.cluster
    print('profile %s: %s' % (plan.profile, plan.about), flush=True)
    known = calibration.speeds(_cores(args)) if here else calibration.recorded()
    todo = steps.of_plan(plan, known)
    print('\n'.join(heading(plan, todo, known, _cores(args) if here else None)), flush=True)
    steps.forget(plan.folder)
    code = _watched(plan, args, gpus, todo, known)
    if code > 128:  # a signal: whoever sent it does not want more work now
        print('stopped: the same command goes on from here', file=sys.stderr)
        return code
    failed = failures(plan, began) if code else []
    if code:
        with _snakemake(plan, words(plan, args, gpus, partial=True)) as child:
            child.wait()
        code = 0 if failed and all(is_left_out(plan, name) for name, _, _ in failed) else 1
    print('\n'.join(ending(plan, failed, code)))
    return code


def heading(plan: Plan, todo: List[steps.Step], known: cost.Speeds, cores: Optional[int]) -> Iterator[str]:
    """What to tell at the beginning: the expected time, where to look. cores: None where not those of this machine."""
    left = {step.name: step.expected for step in todo
            if steps.look(step, plan.folder, known).state != steps.DONE}
    if cores is None or not known:
        yield 'how long it takes is not known before: it shows on the way; disk: %s' % plan.disk
    elif left:
        yield 'expected: about %s on %d cores with %s kernels, as tried here just now; disk: %s' % (
            durations.rough(forecast.finish(todo, left, cores)), cores, engine.describe()['blas_kernel'] or 'unknown',
            plan.disk)
    yield "logs: %s, Snakemake's own in snakemake.log" % os.path.relpath(os.path.join(plan.folder, 'logs'))


def _watched(plan, args, gpus, todo, known):
    """The exit code of Snakemake, 128 + the signal where one stopped it; shows what its jobs do meanwhile."""
    display = watching.new(todo, forecast.Forecast(todo, _cores(args)))

    def looks():
        return {step.name: steps.look(step, plan.folder, known) for step in todo}

    display.update(looks())  # what was done before, however soon this is over
    with _snakemake(plan, words(plan, args, gpus), display.stop) as child:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(FRAME)
                break
            display.update(looks())
    display.end(looks())
    return child.code()


def _cores(args):
    """How many jobs of one core run at the same time."""
    return args.jobs or (100 if args.cluster else os.cpu_count() or 1)


# --- Snakemake ---------------------------------------------------------------------------------

def _gpus(args):
    """The numbers of the GPUs to use: those asked for, GPU 0 if Caffe has one, or none."""
    if args.gpus is None:
        return ['0'] if not args.cluster and engine.has_gpu() else []
    if args.gpus == 'none':
        return []
    gpus = args.gpus.split(',')
    if not all(gpu.isdigit() for gpu in gpus) or len(set(map(int, gpus))) < len(gpus):
        raise UserError('--gpus %s: not numbers of GPUs like 0,1, each once, nor none' % args.gpus)
    if not args.cluster:
        for gpu in gpus:
            engine.require_device(int(gpu))
    return gpus


def words(plan: Plan, args: argparse.Namespace, gpus: Sequence[int], options: Sequence[str] = (),
          partial: bool = False) -> List[str]:
    """The words of the call of Snakemake."""
    profile = os.path.abspath(args.profile) if args.profile.endswith('.json') else args.profile
    config = ['profile=%s' % profile]
    for name, value in (('seeds', args.seeds), ('only', args.only), ('dataset', args.dataset), ('gpus', ','.join(gpus)),
                        ('cluster', args.cluster), ('partial', 'yes' if partial else None)):
        config += ['%s=%s' % (name, value)] if value else []
    call = [sys.executable, '-m', 'snakemake', '--snakefile', SNAKEFILE, '--nolock', '--rerun-incomplete',
            '--keep-going', '--nocolor'] + list(options)
    call += _cluster(args) if args.cluster else ['--cores', str(args.jobs or os.cpu_count()), '--scheduler', 'greedy']
    call += ['--resources', 'gpu=%d' % len(gpus)] if gpus and not args.cluster else []
    return call + ['--config'] + config


def _cluster(args):
    """The options for a cluster: a Snakemake profile in workflow/, and what the user says of the queue."""
    known = {os.path.basename(os.path.dirname(path)): os.path.dirname(path)
             for path in glob.glob(os.path.join(glob.escape(places.ROOT), 'workflow', '*', 'config.yaml'))}
    if args.cluster not in known:
        raise UserError('--cluster %s: not known; there are: %s' % (args.cluster, ', '.join(sorted(known))))
    for name in ('partition', 'time', 'mem'):
        value = getattr(args, name)
        if value:
            os.environ['BCNN_' + name.upper()] = value  # for the profile's submit script
    return ['--profile', known[args.cluster]] + (['--jobs', str(args.jobs)] if args.jobs else [])


class _Snakemake(subprocess.Popen):
    """Snakemake at work, in a process group of its own; its own words go to logs/snakemake.log."""

    def __init__(self, folder, command):
        self.signals, parent = [], os.getpid()
        with open(steps.log_of(folder, 'snakemake'), 'ab') as log:
            subprocess.Popen.__init__(self, command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                      preexec_fn=lambda: _own_group(parent))

    def code(self):
        """Its exit code, 128 + the signal where one stopped it."""
        return 128 + self.signals[0] if self.signals else self.returncode


@contextlib.contextmanager
def _snakemake(plan, command, stop=lambda: None):
    """A _Snakemake that gets the signals of this process, as do all its jobs; stop: called when one comes."""
    child = _Snakemake(plan.folder, command)

    def forward(number, _frame):
        child.signals.append(number)
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.killpg(child.pid, signal.SIGINT)  # training takes a snapshot on it, and ends
        stop()

    old = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield child
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _own_group(parent):
    """In the child: a process group of its own, and no more new jobs when the parent is killed."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell script's background jobs are born deaf to it
    processes.die_with(parent, signal.SIGTERM)


# --- what there is -----------------------------------------------------------------------------

def listing(plan: Plan, known: cost.Speeds, device: str = 'CPU core') -> Iterator[str]:
    """A line a job: what it is, how far it is, what it should take. known: of cost.speeds, on that device."""
    yield 'profile %s: %s (disk: %s)' % (plan.profile, plan.about, plan.disk)
    rows = [(name, ' '.join(job.experiments), plans.about(job), state(job), durations.rough(cost.seconds(job, known)))
            for name, job in plan.jobs.items()]
    heads = ('job', 'for', 'what', 'state', 'one ' + device)
    widths = [max(len(row[k]) for row in rows + [heads]) for k in range(len(heads))]
    for row in [heads] + rows:
        yield '  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
    for text in plan.left_out:
        yield 'left out: %s' % text
    amounts = [cost.seconds(job, known) for job in plan.jobs.values() if not plans.done(job)]
    if amounts and None not in amounts:
        yield 'what is not done, from the beginning: %s of one %s%s' % (
            durations.rough(sum(amounts)), device, ', as tried here just now' if device == 'CPU core' else '')
    if device == 'GPU' and not known:
        yield 'no GPU has been measured: python tools/bench.py --gpu 0 --record'


def state(job: Job) -> str:
    """'done', 'resumable at iteration 300', 'resumable at 40%' or 'missing'."""
    if plans.done(job):
        return 'done'
    if isinstance(job, Train):
        stored = places.stored(job.folder)
        holder = places.holder(job.folder)
        if holder:
            return 'running, process %d' % holder[0]
        if store.read_json(os.path.join(job.folder, places.DIVERGED)):
            return 'diverged'
        if not stored:
            return 'missing'
        stage, iteration, _ = stored[-1]
        return 'resumable at iteration %d%s' % (iteration, ' of stage %d' % stage if len(job.iterations) > 1 else '')
    if isinstance(job, Study):
        return 'missing'
    there, needed = evaluation.progress_of(job.folder, job.repeats)
    return 'resumable at %d%%' % (100 * there // needed) if there else 'missing'


def failures(plan: Plan, began: float) -> List[Tuple[str, str, str]]:
    """[(name, log, last words)] of what failed since `began`; jobs that only waited for those are not named."""
    failed = []
    names = ['nets'] + ['data-' + name for name in plans.data_sets(plan)] + list(plan.jobs) + ['report']
    for name in names:
        log = steps.log_of(plan.folder, name)
        finished = os.path.exists(os.path.join(plan.folder, plans.stamp(name)))
        if not finished and os.path.exists(log) and os.path.getmtime(log) >= began - 1:
            failed.append((name, log, steps.last_words(log) or 'no message'))
    return failed


def is_left_out(plan: Plan, name: str) -> bool:
    """Whether what failed is a set of data that only optional jobs need."""
    users = [job for job in plan.jobs.values() if name in ['data-' + needed for needed in job.needs]]
    return bool(users) and all(getattr(job, 'optional', False) for job in users)


# --- the end -----------------------------------------------------------------------------------

def ending(plan: Plan, failed: Sequence[Tuple[str, str, str]], code: int = 0) -> Iterator[str]:
    """What to tell at the end: failures with their logs, the headline numbers, where the report is."""
    for text in plan.left_out:
        yield 'left out: %s' % text
    for name, log, words_ in failed:
        if is_left_out(plan, name):
            users = [job for job in plan.jobs.values() if name[len('data-'):] in job.needs]
            yield 'left out: %s, for which there is no %s here: %s' % (
                ', '.join(_title(job) for job in users), name[len('data-'):], words_)
            continue
        yield 'FAILED %s: %s' % (name, words_)
        yield '       log: %s' % os.path.relpath(log)
        if name.startswith('data-mnist'):
            yield ('       MNIST cannot be fetched here: give its files with tools/prepare_data.py mnist --from PATH, '
                   'or take --dataset fashion_mnist, which a Debian mirror has')
        if name == 'data-nin_weights':
            yield '       give the published weights with tools/prepare_data.py nin_weights --from PATH'
    if code and not failed:
        log = steps.log_of(plan.folder, 'snakemake')
        yield 'FAILED Snakemake: %s' % (steps.last_words(log) or 'no message')
        yield '       log: %s' % os.path.relpath(log)
    left = [name for name, _, _ in failed if is_left_out(plan, name)]
    waiting = sum(1 for job in plan.jobs.values() if not plans.done(job)
                  and not any(name[len('data-'):] in job.needs for name in left)) - sum(
        1 for name, _, _ in failed if name in plan.jobs)
    if waiting > 0:
        yield '%d more jobs are not done: they wait for what failed; run the same command again' % waiting
    finished = [job for job in plan.jobs.values() if plans.done(job) and not isinstance(job, Study)]
    known = agreement.records()
    findings = [agreement.compare(job, known) for job in finished]
    for job, finding in zip(finished, findings):
        yield headline(job)
        yield '    %s' % finding.text
    if findings:
        yield agreement.summary(findings)
    galleries = [os.path.join(job.folder, places.GALLERY) for job in finished if isinstance(job, Evaluate)]
    for gallery in filter(os.path.exists, galleries):
        yield 'gallery: %s' % gallery
    report = os.path.join(plan.folder, 'report', 'report.html')
    if os.path.exists(report):
        yield 'report%s: %s' % (' of what is done' if code else '', report)


def headline(job: Job) -> str:
    """The result of a job in one line."""
    seed = '' if isinstance(job, Evaluate) else ', seed %d' % job.seed
    return '%s%s, %s: %s' % (_title(job), seed, plans.about(job), steps.errors(job))


def _title(job):
    return '%s on %s' % (beyond.title(job.net), paper.title(job.dataset))
