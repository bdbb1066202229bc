"""Whether the results of a plan are those that are recorded, or as far from them as other CPU kernels explain.

With the same data, seed and kernels of the BLAS the bytes are the same. Other kernels round otherwise, a training
takes another way, and its end has another number of errors, as with another seed. How much that is was tried: the
profile quick under several kernels on one machine (tools/agree.py --record), whose errors spread like

    variance = SPREAD * mean,

one number for all nets and both methods. From it comes the interval in which 99 of 100 runs with other kernels end.
Evaluations of the same weights with the same masks differ by rounding alone.
"""

import argparse
import math
import os
from collections import OrderedDict
from typing import Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from ..errors import UserError
from ..mc.sampling import GROUPED
from ..mc.summary import wrong_after
from ..results import csv_tables, writing
from ..system import places, provenance, store
from ..training import curve
from . import plan
from .jobs import Evaluate, Job

COVERED = 0.99   # of the runs with other kernels are in the interval
ROUNDING = 0.0005  # of the images: how many the rounding of other kernels moves, the weights and masks being the same
SAME, EXPLAINED, OFF, UNKNOWN = 'same', 'explained', 'off', 'unknown'


class Point(NamedTuple):
    """What was measured: equal Points of two machines should have equal errors."""

    dataset: str
    net: str
    seed: Optional[int]        # of the training
    schedule: Optional[str]
    kind: str                  # curve, evaluation
    iteration: Optional[int]   # of all stages together; None for published weights
    method: str
    T: int                     # 0 of Standard dropout
    adaptive: Optional[float]  # what adaptive T promised
    repetition: int            # 0 of a curve and of Standard dropout
    n: int
    streams: Optional[int] = None  # version of the random numbers; None for the first


class Recorded(NamedTuple):
    """A number of errors, and what computed it."""

    errors: int
    blas: Optional[str]
    kernel: Optional[str]
    device: Optional[str]
    weights: Optional[str]     # SHA-256 of those evaluated; None of a curve
    where: str                 # the table it stands in


class Finding(NamedTuple):
    """What comparing a job with the records showed."""

    verdict: str               # SAME, EXPLAINED, OFF or UNKNOWN
    text: str                  # in a line


def command(args: argparse.Namespace) -> int:
    """The exit code of what tools/agree.py was asked for: 1 where a result is not explained."""
    folder = args.results or places.RESULTS
    jobs = [job for job in plan.load(args.profile, seeds=args.seeds).jobs.values() if plan.done(job)]
    if args.record:
        print('recorded in %s' % os.path.relpath(record(jobs, folder)))
        return 0
    if not jobs:
        raise UserError('no job of profile %s is done: tools/run_all.sh --profile %s' % (args.profile, args.profile))
    known = records(folder)
    findings = [compare(job, known) for job in jobs]
    for job, finding in zip(jobs, findings):
        print('%s: %s' % (job.name, finding.text))
    print(summary(findings))
    return 1 if any(finding.verdict == OFF for finding in findings) else 0


def summary(findings: Sequence[Finding]) -> str:
    """The Findings of all jobs in a line."""
    count = {verdict: sum(finding.verdict == verdict for finding in findings)
             for verdict in (SAME, EXPLAINED, OFF, UNKNOWN)}
    if count[OFF]:
        return ('AGREEMENT: look at %d of %d results: nothing that is known of explains them'
                % (count[OFF], len(findings)))
    parts = [words % count[verdict] for verdict, words in (
        (SAME, '%d the same as recorded'), (EXPLAINED, '%d within what other kernels of the CPU explain'),
        (UNKNOWN, '%d with nothing recorded to compare with')) if count[verdict]]
    return 'agreement: of %d results %s' % (len(findings), ', '.join(parts))


# --- what was measured here ----------------------------------------------------------------------

def measured(job: Job) -> Dict[Point, Recorded]:
    """{Point: Recorded} of a finished job."""
    software = store.read_json(os.path.join(job.folder, places.PROVENANCE)) or {}
    config = store.read_json(os.path.join(job.folder, places.CONFIG)) or {}

    def recorded(errors):
        return Recorded(errors=errors, blas=software.get('blas'), kernel=software.get('blas_kernel'),
                        device=config.get('device'), weights=config.get('weights'), where='here')

    errors_at = _evaluated(job, config) if isinstance(job, Evaluate) else _trained(job, config)
    return OrderedDict((point, recorded(errors)) for point, errors in errors_at)


def _trained(job, config):
    before = 0
    for stage, iterations in enumerate(job.iterations, 1):
        for row in curve.read(os.path.join(job.folder, places.CURVE)):
            if row.stage == stage:
                common = dict(dataset=job.dataset, net=job.net, seed=job.seed, schedule=config.get('schedule'),
                              kind='curve', iteration=before + row.iteration, repetition=0, n=int(row.n),
                              streams=config.get('streams'))
                yield Point(method='standard', T=0, adaptive=None, **common), int(row.standard_errors)
                if row.mc_errors:
                    promised = float(row.adaptive) if row.adaptive else None
                    yield Point(method='mc', T=int(row.T), adaptive=promised, **common), int(row.mc_errors)
        before += iterations


def _evaluated(job, config):
    result = store.read_json(os.path.join(job.folder, places.RESULT))
    run = os.path.dirname(os.path.dirname(job.folder))
    done = store.read_json(os.path.join(run, places.DONE)) or {}
    training = store.read_json(os.path.join(run, places.CONFIG)) or {} if done else {}
    common = dict(dataset=job.dataset, net=job.net, seed=training.get('seed'), schedule=training.get('schedule'),
                  kind='evaluation', iteration=sum(done['iterations']) if done else None, n=config['count'],
                  streams=config.get('streams'))
    yield (Point(method='standard', T=0, adaptive=None, repetition=0, **common), result['standard']['errors'])
    if job.sampler != plan.INDEPENDENT:  # masks that no other evaluation has
        return
    for k, wrong in enumerate(wrong_after(result, 'probs', config['count']), 1):
        yield Point(method='mc', T=config['T'], adaptive=None, repetition=k, **common), wrong[-1]


# --- what is recorded ------------------------------------------------------------------------------

def records(folder: str = places.RESULTS) -> Dict[Point, List[Recorded]]:
    """{Point: [Recorded]} of reference.csv, curves.csv and evaluations.csv."""
    known = {}
    provenance_of = {row['config']: row for row in csv_tables.read(folder, 'provenance')}
    for name in ('reference', 'curves', 'evaluations'):
        for row in csv_tables.read(folder, name):
            if row.get('average') == 'scores' or row.get('init') or row.get('crops') or row.get('mode') in GROUPED:
                continue
            software = provenance_of.get(row.get('config'), {})
            known.setdefault(_point(name, row, software), []).append(_recorded(name, row, software))
    return known


def _point(name, row, software):
    if name == 'reference':
        return Point(**{field: row[field] for field in Point._fields})
    curves = name == 'curves'
    return Point(dataset=row['dataset'], net=row['net'], seed=row['seed'], schedule=row['schedule'],
                 kind='curve' if curves else 'evaluation', iteration=row['iteration' if curves else 'iterations'],
                 method=row['method'], T=row['T'], adaptive=row.get('adaptive'), repetition=row.get('repetition', 0),
                 n=row['n'], streams=software.get('streams'))


def _recorded(name, row, software):
    told = row if name == 'reference' else software
    return Recorded(errors=row['errors'], blas=told.get('blas'), kernel=told.get('blas_kernel'), device=row['device'],
                    weights=told.get('weights'), where=name + '.csv')


def record(jobs: Iterable[Job], folder: str = places.RESULTS) -> str:
    """Adds the results of finished jobs to reference.csv, and gives its path."""
    rows = []
    for job in jobs:
        software = store.read_json(os.path.join(job.folder, places.PROVENANCE)) or {}
        for point, result in measured(job).items():
            rows.append(OrderedDict(list(point._asdict().items()) + [
                ('errors', result.errors), ('blas', result.blas), ('blas_kernel', result.kernel),
                ('device', result.device), ('weights', result.weights), ('caffe', software.get('caffe')),
                ('commit', provenance.short_commit(software))]))
    if not rows:
        raise UserError('nothing to record: no job of this profile is done')
    return writing.record('reference', rows, folder)


# --- the spread between kernels ----------------------------------------------------------------------

def spread(known: Dict[Point, List[Recorded]]) -> Tuple[Optional[float], int]:
    """(SPREAD, degrees of freedom) from trainings that are recorded with several kernels; (None, 0) without any."""
    total, freedom = 0.0, 0
    for point in _ends(known):
        values = list(OrderedDict((record.kernel, record.errors) for record in known[point]).values())
        mean = sum(values) / float(len(values))
        if len(values) > 1 and mean:
            total += sum((value - mean) ** 2 for value in values) / mean
            freedom += len(values) - 1
    return (total / freedom, freedom) if freedom else (None, 0)


def _ends(known):
    """The last points of the curves that are in reference.csv."""
    last = {}
    for point in known:
        if point.kind == 'curve' and any(record.where == 'reference.csv' for record in known[point]):
            run = point._replace(iteration=None)
            if run not in last or last[run].iteration < point.iteration:
                last[run] = point
    return last.values()


def interval(values: Sequence[int], known: Dict[Point, List[Recorded]]) -> Optional[Tuple[float, float]]:
    """(least, most) errors of COVERED of the runs with other kernels, given those of some; None if it is not known."""
    variance, freedom = spread(known)
    if not freedom:
        return None
    from scipy import stats
    mean = sum(values) / float(len(values))
    half = stats.t.ppf(0.5 + COVERED / 2, freedom) * math.sqrt(max(variance * mean, 1.0) * (1 + 1.0 / len(values)))
    return max(mean - half, 0.0), mean + half


# --- comparing ---------------------------------------------------------------------------------------

def compare(job: Job, known: Dict[Point, List[Recorded]]) -> Finding:
    """The Finding of a finished job. known: of records()."""
    here = measured(job)
    shared = [point for point in here if point in known]
    if not shared:
        return Finding(UNKNOWN, 'no such result is recorded')
    alike = [point for point in shared if any(_alike(record, here[point]) for record in known[point])]
    if alike and all(any(_alike(record, here[point]) and record.errors == here[point].errors
                         for record in known[point]) for point in alike):
        return Finding(SAME, 'the same as recorded with %s' % _computed_by(here[alike[0]]))
    last = [point for point in shared if point.iteration == shared[-1].iteration]
    judged = [_judge(point, here[point], known) for point in last]
    if alike:
        return _differs(judged, here[alike[0]])
    off = [text for fits, text in judged if not fits]
    if off:
        return Finding(OFF, 'NOT EXPLAINED by other kernels of the CPU: %s' % ', '.join(off))
    texts = ', '.join(text for _, text in judged)
    return Finding(EXPLAINED, 'as recorded, but for other kernels of the CPU: %s' % texts)


def _differs(judged, here):
    """The Finding where the kernels are those of a record and the numbers are not."""
    return Finding(OFF, 'NOT THE SAME as recorded with %s, and nothing that is known of explains that: %s' % (
        _computed_by(here), ', '.join(text for _, text in judged)))


def _alike(first, second):
    """Whether two results were computed alike, so that they should be the same."""
    return ((first.blas, first.kernel, first.device) == (second.blas, second.kernel, second.device)
            and first.kernel is not None)


def _computed_by(result):
    return 'a GPU' if result.device == 'gpu' else result.kernel or 'unknown kernels'


def _judge(point, here, known):
    """(whether other kernels explain it, 'Standard 2.57% (recorded 2.66 with SkylakeX, explained 2.2 to 3.1)')."""
    there = known[point]
    same_weights = [record for record in there if record.weights is not None and record.weights == here.weights]
    if same_weights:
        reach = (same_weights[0].errors - ROUNDING * point.n, same_weights[0].errors + ROUNDING * point.n)
    else:
        reach = interval([record.errors for record in there], known)
    name = 'Standard' if point.method == 'standard' else 'MC'
    text = '%s %s%% (recorded %s with %s' % (name, _percent(here.errors, point.n),
                                             ', '.join(_percent(record.errors, point.n) for record in there),
                                             ', '.join(_computed_by(record) for record in there))
    if reach is None:
        return here.errors == there[0].errors, text + ')'
    fits = reach[0] <= here.errors <= reach[1]
    return fits, '%s, explained %s to %s)' % (text, _percent(reach[0], point.n), _percent(reach[1], point.n))


def _percent(errors, n):
    return '%.2f' % (100.0 * errors / n)
