"""The steps of a plan as someone who watches sees them: what waits, runs, is done or failed, and how far it is.

All of it comes from files that the jobs write (stamps, logs, status.json, curves, blocks), so that it is the same for
jobs on this machine and on the nodes of a cluster.
"""

import os
import time
from typing import List, NamedTuple, Optional, Tuple

from .. import beyond, paper
from ..data import sets
from ..errors import UserError
from ..mc import evaluation
from ..system import places, store
from ..training import curve
from . import cost
from . import plan as plans
from .jobs import Evaluate, Job, Plan, Study, Train

WAITING, RUNNING, DONE, FAILED = 'waiting', 'running', 'done', 'failed'
# Seconds of what is no job: checking nets, fetching and preparing data, drawing.
OTHERS = {'nets': 3.0, 'data-mnist': 8.0, 'data-fashion_mnist': 10.0, 'data-cifar10': 150.0, 'data-cifar10_pad4': 30.0,
          'data-nin_weights': 2.0, 'report': 15.0}
STEADY = 10.0  # seconds that a status may be old and still tell, with its speed, where a training is now


class Step(NamedTuple):
    """A rule of workflow/Snakefile with what it is for."""

    name: str                 # of its stamp and its log: 'data-mnist', 'train-mnist-lenet_all-seed1', 'report'
    title: str                # for people: 'prepare MNIST'
    job: Optional[Job]        # None for what is neither training nor evaluation
    after: Tuple[str, ...]    # the names of the steps that it waits for
    cores: int
    expected: float           # seconds; 0 where nothing is known


class Look(NamedTuple):
    """A step at one moment."""

    state: str                # of the four above
    share: Optional[float]    # that is done, 0 to 1; None where nobody knows
    seconds: float            # since it began, or that it took; 0 before
    text: str                 # where it is; its result at the end


# --- what there is to do -----------------------------------------------------------------------

def of_plan(plan: Plan, known: cost.Speeds) -> List[Step]:
    """The Steps of a plan, in an order in which each comes after what it waits for. known: of cost.speeds."""
    todo = [_other('nets', 'check the nets')]
    todo += [_other('data-' + name, 'prepare %s' % _data_set(name)) for name in plans.data_sets(plan)]
    seeds = len(set(getattr(job, 'seed', 1) for job in plan.jobs.values()))
    for job in plan.jobs.values():
        after = ('nets',) + tuple('data-' + name for name in job.needs)
        after += (job.after,) if getattr(job, 'after', None) in plan.jobs else ()
        todo.append(Step(name=job.name, title=_title(job, seeds > 1), job=job, after=after, cores=job.cores,
                         expected=cost.on_clock(job, known) or 0.0))
    return todo + [_other('report', 'draw the report', tuple(plan.jobs))]


def _other(name, title, after=()):
    return Step(name=name, title=title, job=None, after=after, cores=1, expected=OTHERS.get(name, 5.0))


def _data_set(name):
    if name == 'cifar10_pad4':
        return 'CIFAR-10 with a margin'
    return "NIN's weights" if name == 'nin_weights' else paper.title(name)


def _title(job, with_seed):
    verb = 'evaluate' if isinstance(job, Evaluate) else '%s of' % job.study if isinstance(job, Study) else 'train'
    run = job.run if isinstance(job, Study) else job.folder.split(os.sep + places.EVALUATIONS)[0]
    seed = ', ' + run.rpartition('-')[2] if with_seed else ''
    return '%s %s on %s%s' % (verb, beyond.title(job.net), paper.title(job.dataset), seed)


# --- what is going on --------------------------------------------------------------------------

def forget(folder: str) -> None:
    """Removes the marks of steps that began or failed in an earlier call."""
    place = os.path.join(folder, 'stamps')
    for name in os.listdir(place) if os.path.isdir(place) else ():
        if name.endswith(('.begun', '.failed')):
            os.remove(os.path.join(place, name))


def look(step: Step, folder: str, known: cost.Speeds, now: Optional[float] = None) -> Look:
    """The Look of a step of the plan in this folder."""
    now = time.time() if now is None else now
    begun, done, failed = (_time(os.path.join(folder, 'stamps', step.name + end)) for end in
                           ('.begun', '.done', '.failed'))
    if step.name == 'report':
        done = _report_time(folder)
    if done is not None:
        return Look(state=DONE, share=1.0, seconds=max(done - begun, 0) if begun else 0.0, text=result(step))
    if failed is not None:
        return Look(state=FAILED, share=None, seconds=max(failed - (begun or failed), 0),
                    text=last_words(log_of(folder, step.name)))
    if begun is None and not _is_held(step):
        return Look(state=WAITING, share=_share(step, known, now)[0] or 0.0, seconds=0.0, text='')
    share, text = _share(step, known, now)
    if step.job is None:
        text = last_words(log_of(folder, step.name))
    return Look(state=RUNNING, share=share, seconds=max(now - begun, 0) if begun else 0.0, text=text)


def _report_time(folder):
    """When the report of all that is done was made; None where there is none, or an older one."""
    drawn = _time(os.path.join(folder, 'report', 'report.html'))
    stamps = os.path.join(folder, 'stamps')
    names = os.listdir(stamps) if drawn is not None and os.path.isdir(stamps) else ()
    newest = max((_time(os.path.join(stamps, name)) or 0 for name in names if name.endswith('.done')), default=0)
    return drawn if drawn is not None and drawn >= newest - 1 else None


def _is_held(step):
    """Whether a training runs that another call of run_all.sh began, on a cluster's node."""
    return isinstance(step.job, Train) and places.holder(step.job.folder) is not None


def _time(path):
    try:
        return os.stat(path).st_mtime
    except OSError:
        return None


def log_of(folder: str, name: str) -> str:
    return os.path.join(folder, 'logs', name + '.log')


def last_words(log: str) -> str:
    """The last line of a log that says something; '' where there is none."""
    try:
        with open(log, 'rb') as file:
            file.seek(max(0, os.path.getsize(log) - 4096))
            lines = file.read().decode('utf-8', 'replace').replace('\r', '\n').splitlines()
    except OSError:
        return ''
    return next((line.strip() for line in reversed(lines) if line.strip()), '')


# --- how far a job is --------------------------------------------------------------------------

def _share(step, known, now):
    """(share that is done, where it is in words) of a job."""
    if step.job is None or isinstance(step.job, Study):
        return None, ''
    try:
        if isinstance(step.job, Evaluate):
            there, needed = evaluation.progress_of(step.job.folder, step.job.repeats)
            return min(there / float(needed), 0.99), plans.about(step.job)
        return _training(step.job, known, now)
    except (UserError, OSError, KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None, ''  # damaged: the job itself will say so


def _training(job, known, now):
    status = store.read_json(os.path.join(job.folder, places.STATUS)) or {}
    rows = curve.read(os.path.join(job.folder, places.CURVE))
    stage = status.get('stage') or 1
    iteration = min(status.get('iteration', 0) + _since(status, now), job.iterations[stage - 1])
    steps, measuring = cost.parts(job, known) or (1.0, 0.0)
    points = max(cost.points(job), len(rows))
    measured = min(len(rows) + (status.get('measured') or 0.0), points) / float(points)
    trained = (sum(job.iterations[:stage - 1]) + iteration) / float(sum(job.iterations))
    return (min((trained * steps + measured * measuring) / (steps + measuring), 0.99),
            _where(job, stage, iteration, status, rows))


def _since(status, now):
    """Iterations since the status was written."""
    old = now - status.get('time', now)
    return 0 if status.get('measuring') or not 0 < old < STEADY else int(old * status.get('iterations_a_second', 0))


def _where(job, stage, iteration, status, rows):
    text = 'stage %d of %d, ' % (stage, len(job.iterations)) if len(job.iterations) > 1 else ''
    text += 'iteration {:,} of {:,}'.format(iteration, job.iterations[stage - 1])
    if status.get('measuring'):
        text += ', measuring'
    return text + (', %s at %s' % (curve.percent(rows[-1]), '{:,}'.format(rows[-1].iteration)) if rows else '')


# --- what came of it ---------------------------------------------------------------------------

def result(step: Step) -> str:
    """What a finished step gave, in a few words."""
    try:
        if step.job is not None:
            return errors(step.job)
        if step.name.startswith('data-'):
            splits = (sets.manifest(step.name[5:]) or {}).get('splits', {})
            return ', '.join('{:,} {}'.format(splits[split]['records'], words) for split, words in
                             (('train', 'training images'), ('test', 'test images')) if split in splits)
    except (UserError, KeyError, TypeError, ValueError):
        pass
    return ''


def errors(job: Job) -> str:
    """'Standard 2.57%, MC 1.86%': the errors of a finished job; a study has more to say than fits here."""
    if isinstance(job, Study):
        return ''
    if not isinstance(job, Evaluate):
        rows = curve.read(os.path.join(job.folder, places.CURVE))
        return curve.percent(rows[-1]) if rows else 'not measured'
    stored = store.read_json(os.path.join(job.folder, places.RESULT))
    mc = stored['mc']['probs']
    spread = ' +- %.2f' % mc['std'] if mc['std'] is not None else ''
    return 'Standard %.2f%%, MC %.2f%s%%' % (stored['standard']['error'], mc['mean'], spread)
