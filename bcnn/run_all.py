"""The whole paper with one command: a profile's jobs through Snakemake, and what came of them."""

import contextlib
import glob
import os
import signal
import subprocess
import sys
import time

from . import children, cost, curve, engine, evaluation, paper, plan, results, runs
from .errors import UserError

SNAKEFILE = os.path.join(plan.ROOT, 'workflow', 'Snakefile')


def command(args):
    """The exit code of what tools/run_all.sh was asked for."""
    what = plan.load(args.profile, args.only, args.seeds, args.dataset)
    if args.list:
        print('\n'.join(listing(what)))
        return 0
    gpus = _gpus(args)
    words(what, args, gpus)  # refuses what cannot be, before anything is begun
    os.makedirs(what.folder, exist_ok=True)
    if args.dry_run:
        return _snakemake(what, args, gpus, ['--dry-run'])
    print('profile %s: %s\nexpected: %s; disk: %s; logs in %s'
          % (what.profile, what.about, what.time, what.disk, os.path.relpath(os.path.join(what.folder, 'logs'))),
          flush=True)
    with runs.lock(what.folder, 'in work'):
        return _run(what, args, gpus)


def _run(what, args, gpus):
    began = time.time()
    code = _snakemake(what, args, gpus)
    if code > 128:  # a signal: whoever sent it does not want more work now
        print('stopped: the same command goes on from here', file=sys.stderr)
        return code
    failed = failures(what, began) if code else []
    if code:
        code = 1
        _snakemake(what, args, gpus, ['--quiet'], partial=True)
    print('\n'.join(ending(what, failed)))
    return code


# --- Snakemake ---------------------------------------------------------------------------------

def _gpus(args):
    """The numbers of the GPUs to use: those asked for, GPU 0 if Caffe has one, or none."""
    if args.gpus is None:
        return ['0'] if not args.cluster and engine.has_gpu() else []
    if args.gpus == 'none':
        return []
    gpus = args.gpus.split(',')
    if not all(gpu.isdigit() for gpu in gpus):
        raise UserError('--gpus %s: not numbers of GPUs like 0,1, nor none' % args.gpus)
    if not args.cluster:
        for gpu in gpus:
            engine.require_device(int(gpu))
    return gpus


def words(what, args, gpus, options=(), partial=False):
    """The words of the call of Snakemake."""
    profile = os.path.abspath(args.profile) if args.profile.endswith('.json') else args.profile
    config = ['profile=%s' % profile, 'seeds=%d' % args.seeds]
    for name, value in (('only', args.only), ('dataset', args.dataset), ('gpus', ','.join(gpus)),
                        ('cluster', args.cluster), ('partial', 'yes' if partial else None)):
        config += ['%s=%s' % (name, value)] if value else []
    made = [sys.executable, '-m', 'snakemake', '--snakefile', SNAKEFILE, '--nolock', '--rerun-incomplete',
            '--keep-going', '--nocolor'] + list(options)
    made += _cluster(args) if args.cluster else ['--cores', str(args.jobs or os.cpu_count()), '--scheduler', 'greedy']
    made += ['--resources', 'gpu=%d' % len(gpus)] if gpus and not args.cluster else []
    return made + ['--config'] + config


def _cluster(args):
    """The options for a cluster: a Snakemake profile in workflow/, and what the user says of the queue."""
    known = {os.path.basename(os.path.dirname(path)): os.path.dirname(path)
             for path in glob.glob(os.path.join(glob.escape(plan.ROOT), 'workflow', '*', 'config.yaml'))}
    if args.cluster not in known:
        raise UserError('--cluster %s: not known; there are: %s' % (args.cluster, ', '.join(sorted(known))))
    for name in ('partition', 'time', 'mem'):
        value = getattr(args, name)
        if value:
            os.environ['BCNN_' + name.upper()] = value  # for the profile's submit script
    return ['--profile', known[args.cluster]] + (['--jobs', str(args.jobs)] if args.jobs else [])


def _snakemake(what, args, gpus, options=(), partial=False):
    """The exit code of Snakemake, 128 + the signal where one stopped it; signals go to all its jobs."""
    parent, got = os.getpid(), []
    child = subprocess.Popen(words(what, args, gpus, options, partial), cwd=what.folder,
                             preexec_fn=lambda: _own_group(parent))

    def forward(number, _frame):
        got.append(number)
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.killpg(child.pid, signal.SIGINT)  # training takes a snapshot on it, and ends

    old = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        code = child.wait()
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
    return 128 + got[0] if got else code


def _own_group(parent):
    """In the child: a process group of its own, and no more new jobs when the parent is killed."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell script's background jobs are born deaf to it
    children.die_with(parent, signal.SIGTERM)


# --- what there is -----------------------------------------------------------------------------

def listing(what):
    """A line a job: what it is, how far it is, what it should take."""
    known = cost.speeds(results.read(results.FOLDER, 'bench'))
    yield 'profile %s: %s (%s; disk: %s)' % (what.profile, what.about, what.time, what.disk)
    rows = [(name, ' '.join(job.experiments), plan.about(job), state(job), cost.clock(cost.seconds(job, known)))
            for name, job in what.jobs.items()]
    heads = ('job', 'for', 'what', 'state', 'one CPU core')
    widths = [max(len(row[k]) for row in rows + [heads]) for k in range(len(heads))]
    for row in [heads] + rows:
        yield '  '.join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
    amounts = [cost.seconds(job, known) for job in what.jobs.values() if not plan.done(job)]
    if amounts and None not in amounts:
        yield 'what is not done, from the beginning: %s of one CPU core' % cost.clock(sum(amounts))


def state(job):
    """'done', 'resumable at iteration 300', 'resumable at 40%' or 'missing'."""
    if plan.done(job):
        return 'done'
    if isinstance(job, plan.Train):
        stored = runs.stored(job.folder)
        holder = runs.holder(job.folder)
        if holder:
            return 'running, process %d' % holder[0]
        if runs.read_json(os.path.join(job.folder, runs.DIVERGED)):
            return 'diverged'
        if not stored:
            return 'missing'
        stage, iteration, _ = stored[-1]
        return 'resumable at iteration %s%d' % ('%d of stage ' % stage if len(job.iterations) > 1 else '', iteration)
    there, needed = evaluation.progress_of(job.folder, job.repeats)
    return 'resumable at %d%%' % (100 * there // needed) if there else 'missing'


def failures(what, began):
    """[(name, log, last words)] of what failed since `began`; jobs that only waited for those are not named."""
    found = []
    names = ['nets'] + ['data-' + source for source in plan.sources(what)] + list(what.jobs) + ['report']
    for name in names:
        log = os.path.join(what.folder, 'logs', name + '.log')
        finished = os.path.exists(os.path.join(what.folder, plan.stamp(name)))
        if not finished and os.path.exists(log) and os.path.getmtime(log) >= began - 1:
            found.append((name, log, last_words(log)))
    return found


def last_words(log):
    """The last line of a log that says something."""
    with open(log, 'rb') as file:
        file.seek(max(0, os.path.getsize(log) - 4096))
        lines = file.read().decode('utf-8', 'replace').replace('\r', '\n').splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), 'no message')


# --- the end -----------------------------------------------------------------------------------

def ending(what, failed):
    """What to tell at the end: failures with their logs, the headline numbers, where the report is."""
    for name, log, words_ in failed:
        yield 'FAILED %s: %s' % (name, words_)
        yield '       log: %s' % os.path.relpath(log)
        if name == 'data-mnist':
            yield ('       MNIST cannot be fetched here: give its files with tools/prepare_data.py mnist --from PATH, '
                   'or take --dataset fashion_mnist, which a Debian mirror has')
        if name == 'data-nin_weights':
            yield '       give the published weights with tools/prepare_data.py nin_weights --from PATH'
    waiting = sum(1 for job in what.jobs.values() if not plan.done(job)) - sum(
        1 for name, _, _ in failed if name in what.jobs)
    if waiting > 0:
        yield '%d more jobs are not done: they wait for what failed; run the same command again' % waiting
    for job in what.jobs.values():
        if plan.done(job):
            yield headline(job)
    report = os.path.join(what.folder, 'report', 'report.html')
    if os.path.exists(report):
        yield 'report%s: %s' % (' of what is done' if failed else '', report)


def headline(job):
    """The result of a job in one line."""
    name = '%s on %s' % (paper.title(job.net), paper.title(job.dataset))
    if isinstance(job, plan.Train):
        rows = curve.read(os.path.join(job.folder, runs.CURVE))
        return '%s, seed %d, %s: %s' % (name, job.seed, plan.about(job),
                                        curve.percent(rows[-1]) if rows else 'not measured')
    result = runs.read_json(os.path.join(job.folder, 'result.json'))
    found = result['mc']['probs']
    spread = ' +- %.2f' % found['std'] if found['std'] is not None else ''
    return '%s, %s: Standard %.2f%%, MC %.2f%s%%' % (name, plan.about(job), result['standard']['error'],
                                                     found['mean'], spread)
