"""The jobs of a profile: what to train and evaluate, in which folder, by which command.

A profile (workflow/profiles.json) names runs of the paper's table and what it shortens of
them; what it does not name is the paper's. For workflow/Snakefile, which any Snakemake may
read, so that only modules are imported that need nothing but the standard library.
"""

import fnmatch
import json
import os
from collections import OrderedDict
from typing import Any, Dict, List, Optional, Sequence

from .. import paper
from ..data import sets
from ..errors import UserError
from ..system import places, store
from . import beyond_jobs
from .jobs import Evaluate, Job, Plan, Study, Train

PROFILES = os.path.join(places.ROOT, 'workflow', 'profiles.json')

# What a profile may say of a run, and of its evaluation.
KEYS = ('iterations', 'schedule', 'eval_points', 'T', 'adaptive', 'test_limit', 'processes', 'cores', 'evaluate',
        'weights', 'optional', 'seeds')
PUBLISHED = 'nin_weights'  # the set of the only weights that the paper did not train itself
INDEPENDENT = 'independent'  # the --sampler that an evaluation has where nothing is said
SHIPPED = 'shipped'  # as "weights" of a run: those of weights/ are evaluated, nothing is trained
EVALUATION_KEYS = ('T', 'repeats', 'limit', 'sampler')


# --- profiles ----------------------------------------------------------------------------------

def profiles(path: str = PROFILES) -> Dict[str, Any]:
    """{name: profile} of a file, as it stands there."""
    try:
        with open(path) as file:
            return json.load(file, object_pairs_hook=OrderedDict)
    except (OSError, ValueError) as error:
        raise UserError('%s: not a file of profiles (%s)' % (path, error))


def described(path: str = PROFILES) -> List[str]:
    """A line a profile, for --help; of a file that cannot be read, what is wrong with it."""
    try:
        return ['%-9s %s' % (name, profile['about']) for name, profile in profiles(path).items()]
    except (UserError, KeyError, TypeError, AttributeError) as error:
        return ['%s: %s' % (path, error)]


def load(profile: str = 'quick', only: Optional[str] = None, seeds: Optional[int] = None,
         dataset: Optional[str] = None) -> Plan:
    """The Plan of a profile: its name in workflow/profiles.json, or a JSON file that holds one.

    only: a glob for names of runs or experiments. seeds: of the training, 1 to this; None for as many as the profile
    says, 1 where it does not. dataset: in the place of mnist.
    """
    name, content = _find(profile)
    folder = os.path.join(places.RUNS, name)
    jobs, left_out = OrderedDict(), []
    for run, shorter in _chosen(name, content, dataset):
        of_run = [job._replace(streams=content.get('streams')) for job in _jobs(run, shorter, seeds, folder)]
        jobs.update((job.name, job) for job in of_run)
        if not of_run and (only is None or _matches_run(run, only)):
            left_out.append('%s on %s: there are no weights of it in weights/'
                            % (paper.title(run.net), paper.title(run.dataset)))
    wanted = OrderedDict((job.name, job) for job in jobs.values() if only is None or _matches(job, only, jobs))
    if not wanted:
        raise UserError('no run of profile %s matches %r: its runs are %s'
                        % (name, only, ', '.join(sorted(set(_run_name(job) for job in jobs.values())))))
    return Plan(profile=name, about=content['about'], disk=content['disk'], folder=folder, jobs=wanted,
                left_out=tuple(left_out))


def _find(profile):
    """(name, content) of a profile."""
    if profile.endswith('.json'):
        name = os.path.splitext(os.path.basename(profile))[0]
        content = profiles(profile)
    else:
        name, all_profiles = profile, profiles()
        if name not in all_profiles:
            raise UserError('no profile %r; there are: %s, or a file like workflow/profiles.json with one profile'
                            % (name, ', '.join(all_profiles)))
        content = all_profiles[name]
    _check(name, content)
    return name, content


def _check(name, content):
    """Refuses a profile that cannot be what its writer meant."""
    for key in ('about', 'disk', 'runs'):
        if not isinstance(content, dict) or key not in content:
            raise UserError('profile %s has no "%s"' % (name, key))
    if content.get('streams') not in (None, 1, 2):
        raise UserError('profile %s: streams %s of random numbers, but there are 1 and 2' % (name, content['streams']))
    for run, shorter in content['runs'].items():
        for key in shorter:
            if key not in KEYS:
                raise UserError('profile %s, %s: unknown "%s"; there are: %s' % (name, run, key, ', '.join(KEYS)))
        for key in shorter.get('evaluate', ()):
            if key not in EVALUATION_KEYS:
                raise UserError('profile %s, %s: unknown "%s" in "evaluate"; there are: %s'
                                % (name, run, key, ', '.join(EVALUATION_KEYS)))


def _chosen(name, content, dataset):
    """(paper.Run, what the profile says of it) for each run of the profile; the first glob that fits counts.

    Runs of several figures are one: the longest, with the experiments of all.
    """
    used = set()
    for run in _distinct(beyond_jobs.table(name, content)):
        for pattern, shorter in content['runs'].items():
            if fnmatch.fnmatchcase('%s-%s' % (run.dataset, run.net), pattern):
                used.add(pattern)
                _check_shorter(name, run, shorter)
                yield (run._replace(dataset=dataset) if dataset and run.dataset == 'mnist' else run), shorter
                break
    unused = [pattern for pattern in content['runs'] if pattern not in used]
    if unused:
        raise UserError('profile %s: no run of the paper is called %r' % (name, unused[0]))


def _check_shorter(name, run, shorter):
    if shorter.get('weights', SHIPPED) != SHIPPED:
        raise UserError('profile %s, %s-%s: weights %s, but they can only be "%s"'
                        % (name, run.dataset, run.net, shorter['weights'], SHIPPED))
    if 'weights' in shorter and not run.repetitions and 'evaluate' not in shorter:
        raise UserError('profile %s, %s-%s: weights, but no "evaluate" that says what to do with them'
                        % (name, run.dataset, run.net))
    schedule = shorter.get('schedule', 1)
    if 'iterations' in shorter and 'schedule' in shorter:
        raise UserError('profile %s, %s-%s: "iterations" cuts the schedule off, "schedule" shortens it in proportion: '
                        'give one of them' % (name, run.dataset, run.net))
    if type(schedule) is not int or not 1 <= schedule <= min(run.iterations):
        raise UserError('profile %s, %s-%s: schedule %s, but it is a K of 1 to %d, for 1/K of the paper\'s'
                        % (name, run.dataset, run.net, schedule, min(run.iterations)))
    iterations = shorter.get('iterations', list(run.iterations))
    if len(iterations) != len(run.iterations) or any(new > old for new, old in zip(iterations, run.iterations)):
        raise UserError('profile %s, %s-%s: iterations %s, but a profile only shortens the paper\'s %s'
                        % (name, run.dataset, run.net, iterations, list(run.iterations)))


def _distinct(table):
    """The runs of a table, each once: `experiment` becomes a tuple of all that show it."""
    runs = OrderedDict()
    for run in table:
        key = run.dataset, run.net
        before = runs.get(key)
        if before is None:
            runs[key] = run._replace(experiment=(run.experiment,))
        else:
            longest = max(before, run, key=lambda shown: sum(shown.iterations))
            runs[key] = longest._replace(experiment=before.experiment + (run.experiment,))
    return runs.values()


# --- jobs --------------------------------------------------------------------------------------

def _jobs(run, shorter, seeds, runs):
    """The jobs of a run: training and evaluation for each seed, or an evaluation of published weights."""
    evaluation = shorter.get('evaluate')
    if evaluation is None and run.repetitions:
        evaluation = dict(T=run.T, repeats=run.repetitions)
    if run.weights == 'published' or shorter.get('weights') == SHIPPED:
        published = run.weights == 'published'
        weights = sets.weights_path(PUBLISHED) if published else shipped(run.dataset, run.net)
        if weights:
            folder = os.path.join(runs, '%s-%s-%s' % (run.dataset, run.net, 'published' if published else SHIPPED))
            yield _evaluate(run, shorter, evaluation, folder, weights, None)
        return
    for seed in range(1, (shorter.get('seeds', 1) if seeds is None else seeds) + 1):
        drawn = beyond_jobs.with_draw(run, seed)
        name = '%s-%s-seed%d' % (drawn.dataset, run.net, seed)
        train = _train(drawn, shorter, seed, name, runs)
        yield train
        yield from beyond_jobs.studies(train)
        if evaluation:
            weights = os.path.join(train.folder, places.FINAL)
            yield _evaluate(run, shorter, evaluation, train.folder, weights, train.name)


def _train(run, shorter, seed, name, runs):
    schedule, processes = shorter.get('schedule', 1), shorter.get('processes', 1)
    return Train(name='train-' + name, experiments=run.experiment, dataset=run.dataset, net=run.net, seed=seed,
                 iterations=tuple(n // schedule for n in shorter.get('iterations', run.iterations)), schedule=schedule,
                 points=shorter.get('eval_points', 'log'), T=shorter.get('T', run.T),
                 adaptive=shorter.get('adaptive', False) and run.net != 'lenet_none', limit=shorter.get('test_limit'),
                 processes=processes, cores=shorter.get('cores', processes), folder=os.path.join(runs, name),
                 needs=_sets(run, training=True))


def _evaluate(run, shorter, evaluation, folder, weights, after):
    processes = shorter.get('processes', 1)
    return Evaluate(name='evaluate-' + os.path.basename(folder), experiments=run.experiment, dataset=run.dataset,
                    net=run.net, weights=weights, T=evaluation['T'], repeats=evaluation['repeats'],
                    limit=evaluation.get('limit'), processes=processes, cores=processes,
                    folder=os.path.join(folder, places.EVALUATIONS, 'T%d' % evaluation['T']), after=after,
                    needs=_sets(run) + ((PUBLISHED,) if run.weights == 'published' else ()),
                    optional=shorter.get('optional', False), sampler=evaluation.get('sampler', INDEPENDENT))


def shipped(dataset: str, net: str) -> Optional[str]:
    """The file of weights/ for a net, of the longest training from random weights; None where there is none."""
    index = _read(os.path.join(places.WEIGHTS, places.WEIGHTS_INDEX))
    fitting = [(sum(entry['iterations']), name) for name, entry in index.items()
               if (entry['dataset'], entry['net'], entry['init']) == (dataset, net, None)]
    return os.path.join(places.WEIGHTS, max(fitting)[1]) if fitting else None


def _sets(run, training=False):
    """The prepared sets that a run is tested on, and trained on."""
    if run.net == 'dsn_aug':
        return ('cifar10_pad4',)
    base = paper.base_of(run.dataset)
    return (run.dataset, base) if training and run.dataset != base else (base,)


def _run_name(job):
    return job.name.partition('-')[2]


def _matches(job, only, jobs):
    """Whether a job is meant by --only: by its name, its run's, an experiment's; what it needs is meant with it."""
    names = [job.name, _run_name(job)] + list(job.experiments)
    names += ['%s/%s' % (experiment, _run_name(job)) for experiment in job.experiments]
    if any(fnmatch.fnmatchcase(name, only) for name in names):
        return True
    return any(_matches(other, only, {}) for other in jobs.values() if getattr(other, 'after', None) == job.name)


def _matches_run(run, only):
    name = '%s-%s' % (run.dataset, run.net)
    return any(fnmatch.fnmatchcase(text, only) for text in (name,) + tuple(run.experiment))


# --- commands ----------------------------------------------------------------------------------

def command(job: Job, gpus: Sequence[int] = (), on_cluster: bool = False) -> List[str]:
    """The words of the command that does a job, without --jobs; on one of some GPUs, or on the CPU."""
    def tool(name):
        return [os.path.join(places.ROOT, 'tools', 'python'), os.path.join(places.ROOT, 'tools', name)]

    if isinstance(job, Study):  # on the CPU, wherever its weights were trained
        return tool('study.py') + [job.study, job.run, '--iteration', str(job.iteration), '--T', str(job.T)]
    if isinstance(job, Train):
        words = tool('train.py') + [
            '--net', job.net, '--dataset', job.dataset, '--seed', str(job.seed), '--wait',
            '--eval-points', job.points, '--T', str(job.T)]
        words += (['--schedule', '1/%d' % job.schedule] if job.schedule != 1
                  else ['--iters', ','.join(map(str, job.iterations))])
        words += ['--test-limit', str(job.limit)] if job.limit else []
        words += ['--adaptive'] if job.adaptive else []
    else:
        words = tool('mc_eval.py') + ['--net', job.net, '--dataset', job.dataset, '--weights', job.weights,
                                      '--T', str(job.T), '--repeats', str(job.repeats), '--gallery']
        words += ['--limit', str(job.limit)] if job.limit else []
        words += ['--sampler', job.sampler] if job.sampler != INDEPENDENT else []
    words += ['--streams', str(job.streams)] if job.streams else []
    words += ['--out', job.folder]
    if not gpus:
        return words + (['--cpu'] if isinstance(job, Train) else [])
    if on_cluster:  # the scheduler shows a job its own GPU only, as number 0
        return words + ['--gpu', '0']
    return [os.path.join(places.ROOT, 'workflow', 'on_gpu.sh'), ','.join(map(str, gpus))] + words


def processes(job: Job, cores: int) -> int:
    """The --jobs of a job that was given so many cores: as the profile says, or fewer where there are fewer cores."""
    return job.processes if cores >= job.cores else cores


def about(job: Job) -> str:
    """A job in a few words: what, how long, how many passes."""
    if isinstance(job, Study):
        return beyond_jobs.about_study(job)
    share = ' on %d test images' % job.limit if job.limit else ''
    if isinstance(job, Train):
        passes = '' if job.net == 'lenet_none' else ', %sT=%d' % ('adaptive ' if job.adaptive else '', job.T)
        schedule = " (the paper's schedule, 1/%d)" % job.schedule if job.schedule != 1 else ''
        return '%s iterations%s%s%s' % (' + '.join('{:,}'.format(n) for n in job.iterations), schedule, passes, share)
    sampler = ', %s masks' % job.sampler if job.sampler != INDEPENDENT else ''
    return 'T=%d, %d repetition%s%s%s' % (job.T, job.repeats, 's' if job.repeats > 1 else '', sampler, share)


# --- what is done ------------------------------------------------------------------------------

def done(job: Job) -> bool:
    """Whether the files of a job say that it is complete."""
    if isinstance(job, Study):
        return os.path.exists(os.path.join(job.folder, places.RESULT))
    if isinstance(job, Train):
        schedule = _read(os.path.join(job.folder, places.CONFIG)).get('schedule', '1/1')
        return (_read(os.path.join(job.folder, places.DONE)).get('iterations') == list(job.iterations)
                and schedule == '1/%d' % job.schedule)
    result = _read(os.path.join(job.folder, places.RESULT))
    repetitions = result.get('mc', {}).get('probs', {}).get('repetitions', 0)
    return bool(result) and ('mc' not in result or repetitions >= job.repeats)


def ready(name: str) -> bool:
    """Whether a set of data has been prepared."""
    return os.path.exists(os.path.join(sets.DATA, name, sets.MANIFEST))


def _read(path):
    """The dictionary in a JSON file; {} where there is none, or a damaged one: its job will say so."""
    try:
        return store.read_json(path) or {}
    except (OSError, UserError):
        return {}


def stamp(name: str) -> str:
    """The file, below the plan's folder, that tells Snakemake of a finished job or prepared set."""
    return 'stamps/%s.done' % name


def data_sets(plan: Plan) -> List[str]:
    """The sets of data that the jobs need."""
    return sorted(set(name for job in plan.jobs.values() for name in job.needs))


def forget_vanished(plan: Plan) -> None:
    """Removes the stamps of work that is not there any more: files are the state, stamps only repeat it."""
    finished = {'data-' + name: ready(name) for name in data_sets(plan)}
    finished.update((name, done(job)) for name, job in plan.jobs.items())
    for name, there in finished.items():
        path = os.path.join(plan.folder, stamp(name))
        if not there and os.path.exists(path):
            os.remove(path)
