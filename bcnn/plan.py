"""The jobs of a profile: what to train and evaluate, in which folder, by which command.

A profile (workflow/profiles.json) names runs of the paper's table and what it shortens of
them; what it does not name is the paper's. For workflow/Snakefile, which any Snakemake may
read, so only the standard library and bcnn.paper are imported.
"""

import fnmatch
import json
import os
from collections import OrderedDict, namedtuple

from . import paper
from .errors import UserError

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROFILES = os.path.join(ROOT, 'workflow', 'profiles.json')
RUNS = os.path.join(ROOT, 'runs')
NIN_WEIGHTS = os.path.join('nin_weights', 'cifar10_nin.caffemodel')

# A profile as a plan. folder: of its runs, stamps, logs and report. jobs: {name: Train or
# Evaluate}, those asked for.
Plan = namedtuple('Plan', 'profile about time disk folder jobs')
# name: of the job, 'train-mnist-lenet_all-seed1'. experiments: of the paper that it serves.
# iterations: of each stage. limit: of the test images, None for all. processes: that measure.
# needs: the sources of tools/prepare_data.py.
Train = namedtuple('Train', 'name experiments dataset net seed iterations points T limit processes folder needs')
# after: the job that makes the weights, None for published ones.
Evaluate = namedtuple('Evaluate', 'name experiments dataset net weights T repeats limit processes folder after needs')
# What a profile may say of a run, and of its evaluation.
KEYS = ('iterations', 'eval_points', 'T', 'test_limit', 'processes', 'evaluate')
EVALUATION_KEYS = ('T', 'repeats', 'limit')


# --- profiles ----------------------------------------------------------------------------------

def profiles(path=PROFILES):
    """{name: profile} of a file, as it stands there."""
    try:
        with open(path) as file:
            return json.load(file, object_pairs_hook=OrderedDict)
    except (OSError, ValueError) as error:
        raise UserError('%s: not a file of profiles (%s)' % (path, error))


def load(profile='quick', only=None, seeds=1, dataset=None):
    """The Plan of a profile: its name in workflow/profiles.json, or a JSON file that holds one.

    only: a glob for names of runs or experiments. seeds: of the training, 1 to this. dataset:
    in the place of mnist.
    """
    name, found = _find(profile)
    folder = os.path.join(RUNS, name)
    jobs = OrderedDict()
    for run, shorter in _chosen(name, found, dataset):
        for job in _jobs(run, shorter, seeds, folder):
            jobs[job.name] = job
    wanted = OrderedDict((job.name, job) for job in jobs.values() if only is None or _matches(job, only, jobs))
    if not wanted:
        raise UserError('no run of profile %s matches %r: its runs are %s'
                        % (name, only, ', '.join(sorted(set(_run_name(job) for job in jobs.values())))))
    return Plan(name, found['about'], found['time'], found['disk'], folder, wanted)


def _find(profile):
    if profile.endswith('.json'):
        name = os.path.splitext(os.path.basename(profile))[0]
        found = profiles(profile)
    else:
        name, all_profiles = profile, profiles()
        if name not in all_profiles:
            raise UserError('no profile %r; there are: %s, or a file like workflow/profiles.json with one profile'
                            % (name, ', '.join(all_profiles)))
        found = all_profiles[name]
    _check(name, found)
    return name, found


def _check(name, found):
    """Refuses a profile that cannot be what its writer meant."""
    for key in ('about', 'time', 'disk', 'runs'):
        if not isinstance(found, dict) or key not in found:
            raise UserError('profile %s has no "%s"' % (name, key))
    for run, shorter in found['runs'].items():
        for key in shorter:
            if key not in KEYS:
                raise UserError('profile %s, %s: unknown "%s"; there are: %s' % (name, run, key, ', '.join(KEYS)))
        for key in shorter.get('evaluate', ()):
            if key not in EVALUATION_KEYS:
                raise UserError('profile %s, %s: unknown "%s" in "evaluate"; there are: %s'
                                % (name, run, key, ', '.join(EVALUATION_KEYS)))


def _chosen(name, found, dataset):
    """(paper.Run, what the profile says of it) for each run of the profile; the first glob that fits counts.

    Runs of several figures are one: the longest, with the experiments of all.
    """
    used = set()
    for run in _distinct():
        for pattern, shorter in found['runs'].items():
            if fnmatch.fnmatchcase('%s-%s' % (run.dataset, run.net), pattern):
                used.add(pattern)
                _check_shorter(name, run, shorter)
                yield (run._replace(dataset=dataset) if dataset and run.dataset == 'mnist' else run), shorter
                break
    unused = [pattern for pattern in found['runs'] if pattern not in used]
    if unused:
        raise UserError('profile %s: no run of the paper is called %r' % (name, unused[0]))


def _check_shorter(name, run, shorter):
    iterations = shorter.get('iterations', list(run.iterations))
    if len(iterations) != len(run.iterations) or any(new > old for new, old in zip(iterations, run.iterations)):
        raise UserError('profile %s, %s-%s: iterations %s, but a profile only shortens the paper\'s %s'
                        % (name, run.dataset, run.net, iterations, list(run.iterations)))


def _distinct():
    """The paper's runs, each once: `experiment` becomes a tuple of all that show it."""
    runs = OrderedDict()
    for run in paper.RUNS:
        key = run.dataset, run.net
        before = runs.get(key)
        if before is None:
            runs[key] = run._replace(experiment=(run.experiment,))
        else:
            longest = max(before, run, key=lambda one: sum(one.iterations))
            runs[key] = longest._replace(experiment=before.experiment + (run.experiment,))
    return runs.values()


# --- jobs --------------------------------------------------------------------------------------

def _jobs(run, shorter, seeds, runs):
    """The jobs of a run: training and evaluation for each seed, or an evaluation of published weights."""
    evaluation = shorter.get('evaluate')
    if evaluation is None and run.repetitions:
        evaluation = dict(T=run.T, repeats=run.repetitions)
    if run.weights == 'published':
        folder = os.path.join(runs, '%s-%s-published' % (run.dataset, run.net))
        yield _evaluate(run, shorter, evaluation, folder, os.path.join(ROOT, 'data', NIN_WEIGHTS), None)
        return
    for seed in range(1, seeds + 1):
        name = '%s-%s-seed%d' % (run.dataset, run.net, seed)
        train = Train('train-' + name, run.experiment, run.dataset, run.net, seed,
                      tuple(shorter.get('iterations', run.iterations)), shorter.get('eval_points', 'log'),
                      shorter.get('T', run.T), shorter.get('test_limit'), shorter.get('processes', 1),
                      os.path.join(runs, name), _sources(run.dataset))
        yield train
        if evaluation:
            weights = os.path.join(train.folder, 'final.caffemodel')
            yield _evaluate(run, shorter, evaluation, train.folder, weights, train.name)


def _evaluate(run, shorter, evaluation, folder, weights, after):
    needs = _sources(run.dataset) + (() if after else ('nin_weights',))
    return Evaluate('evaluate-' + os.path.basename(folder), run.experiment, run.dataset, run.net, weights,
                    evaluation['T'], evaluation['repeats'], evaluation.get('limit'), shorter.get('processes', 1),
                    os.path.join(folder, 'mc', 'T%d' % evaluation['T']), after, needs)


def _sources(dataset):
    return (paper.base_of(dataset),)


def _run_name(job):
    return job.name.partition('-')[2]


def _matches(job, only, jobs):
    """Whether a job is meant by --only: by its name, its run's, an experiment's; what it needs is meant with it."""
    names = [job.name, _run_name(job)] + list(job.experiments)
    names += ['%s/%s' % (experiment, _run_name(job)) for experiment in job.experiments]
    if any(fnmatch.fnmatchcase(name, only) for name in names):
        return True
    return any(_matches(other, only, {}) for other in jobs.values() if getattr(other, 'after', None) == job.name)


# --- commands ----------------------------------------------------------------------------------

def command(job, gpus=(), on_cluster=False):
    """The words of the command that does a job, without --jobs; on one of some GPUs, or on the CPU."""
    def tool(name):
        return [os.path.join(ROOT, 'tools', 'python'), os.path.join(ROOT, 'tools', name)]

    if isinstance(job, Train):
        words = tool('train.py') + [
            '--net', job.net, '--dataset', job.dataset, '--seed', str(job.seed), '--wait',
            '--iters', ','.join(map(str, job.iterations)), '--eval-points', job.points, '--T', str(job.T)]
        words += ['--test-limit', str(job.limit)] if job.limit else []
    else:
        words = tool('mc_eval.py') + ['--net', job.net, '--dataset', job.dataset, '--weights', job.weights,
                                      '--T', str(job.T), '--repeats', str(job.repeats)]
        words += ['--limit', str(job.limit)] if job.limit else []
    words += ['--out', job.folder]
    if not gpus:
        return words + (['--cpu'] if isinstance(job, Train) else [])
    if on_cluster:  # the scheduler shows a job its own GPU only, as number 0
        return words + ['--gpu', '0']
    return [os.path.join(ROOT, 'workflow', 'on_gpu.sh'), ','.join(map(str, gpus))] + words


def about(job):
    """A job in a few words: what, how long, how many passes."""
    share = ' on %d test images' % job.limit if job.limit else ''
    if isinstance(job, Train):
        passes = '' if job.net == 'lenet_none' else ', T=%d' % job.T
        return '%s iterations%s%s' % (' + '.join('{:,}'.format(n) for n in job.iterations), passes, share)
    return 'T=%d, %d repetition%s%s' % (job.T, job.repeats, 's' if job.repeats > 1 else '', share)


# --- what is done ------------------------------------------------------------------------------

def done(job):
    """Whether the files of a job say that it is complete."""
    if isinstance(job, Train):
        return _read(os.path.join(job.folder, 'done.json')).get('iterations') == list(job.iterations)
    result = _read(os.path.join(job.folder, 'result.json'))
    repetitions = result.get('mc', {}).get('probs', {}).get('repetitions', 0)
    return bool(result) and ('mc' not in result or repetitions >= job.repeats)


def ready(source):
    """Whether a source of data has been prepared."""
    return os.path.exists(os.path.join(ROOT, 'data', source, 'manifest.json'))


def _read(path):
    try:
        with open(path) as file:
            found = json.load(file)
        return found if isinstance(found, dict) else {}
    except (OSError, ValueError):
        return {}


def stamp(name):
    """The file, below the plan's folder, that tells Snakemake of a finished job or prepared source."""
    return 'stamps/%s.done' % name


def sources(plan):
    """The sources of data that the jobs need."""
    return sorted(set(source for job in plan.jobs.values() for source in job.needs))


def forget_vanished(plan):
    """Removes the stamps of work that is not there any more: files are the state, stamps only repeat it."""
    finished = {'data-' + source: ready(source) for source in sources(plan)}
    finished.update((name, done(job)) for name, job in plan.jobs.items())
    for name, there in finished.items():
        path = os.path.join(plan.folder, stamp(name))
        if not there and os.path.exists(path):
            os.remove(path)
