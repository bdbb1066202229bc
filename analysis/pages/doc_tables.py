"""The tables of README.md and docs/, as Markdown, from the recorded results; analysis/docs.py puts them there."""

import os
from typing import NamedTuple, Optional

from drawing import bench_chart
from pages import speed_tables
from pages.markdown import block, markdown
from records import curves, evaluations, names, smaller
from records.from_bcnn import cost, durations, paper
from records.load import Tables, where
from verdicts import statements
from verdicts.judging import CONTRADICTED, SUPPORTED, UNDECIDED

HEADLINE = (('cifar10', 'nin'), ('cifar10', 'dsn'), ('cifar10', 'dsn_aug'), ('mnist', 'lenet_all'),
            ('mnist', 'lenet_ip'), ('mnist', 'lenet_none'))


# --- test errors -----------------------------------------------------------------------------------

class Result(NamedTuple):
    """The last test errors of a net on a data set, in percent."""
    training: str              # how long it was trained
    n: int                     # test images
    T: Optional[int]           # passes; None without MC dropout
    standard: str
    mc: str
    spread: str                # what a +- is taken over; '' for one measurement


def result(tables: Tables, dataset: str, net: str) -> Optional[Result]:
    """The Result of the evaluation that went furthest, else of the end of the training curve; None where neither is."""
    groups = evaluations.chosen(tables, dataset, net)
    return _evaluated(dataset, net, groups) if groups else _end_of_curve(tables, dataset, net)


def _evaluated(dataset, net, groups):
    """By evaluations, the longest first: of one training over repetitions, of several over the trainings."""
    first = groups[0].iloc[0]
    alike = [group for group in groups if all(str(group[name].iloc[0]) == str(first[name])
                                              for name in ('iterations', 'schedule'))]
    lines = [evaluations.measured(group) for group in alike]
    if len(lines) > 1:
        spread = '%d trainings' % len(lines)
        standard, mc = (_over([line[name] for line in lines]) for name in ('standard', 'mc'))
    else:
        spread = names.plural(lines[0]['repetitions'], 'repetition') if lines[0]['repetitions'] > 1 else ''
        standard, mc = '%.2f' % lines[0]['standard'], names.spread(lines[0]['mc'], lines[0]['std'])
    training = 'published weights' if first['weights'] == 'published' else (
        '%s iterations from %s' % (names.count(first['iterations']), names.start(first['init'])) if first['init'] else
        _training(dataset, net, first['iterations'], first['schedule']))
    return Result(training=training, n=lines[0]['n'], T=lines[0]['T'], standard=standard, mc=mc, spread=spread)


def _end_of_curve(tables, dataset, net):
    """By the last point of the training curve that all seeds have."""
    ends, methods = {}, ('standard',) if net == 'lenet_none' else ('standard', 'mc')
    schedule = curves.schedule_for(tables, dataset, [(net, method) for method in methods])
    for method in methods:
        rows = curves.curve(tables, dataset, net, method, schedule=schedule)
        if len(rows):
            ends[method] = where(rows, iteration=curves.over_seeds(rows)['iteration'].max())
    if 'standard' not in ends:
        return None
    last = ends['standard']
    seeds = len(set(last['seed']))
    return Result(training=_training(dataset, net, last['iteration'].iloc[0], schedule), n=int(last['n'].iloc[0]),
                  T=int(ends['mc']['T'].iloc[0]) if 'mc' in ends else None, standard=_over(last['error']),
                  mc=_over(ends['mc']['error']) if 'mc' in ends else '',
                  spread='%d trainings' % seeds if seeds > 1 else '')


def _over(errors):
    """Mean and standard deviation of some errors."""
    values = list(errors)
    mean = sum(values) / len(values)
    if len(values) == 1:
        return names.spread(mean, None)
    return names.spread(mean, (sum((value - mean) ** 2 for value in values) / (len(values) - 1.0)) ** 0.5)


def _training(dataset, net, iterations, schedule):
    """How much of the paper's training a run had."""
    full = paper.schedule(paper.experiment_of(dataset, net), dataset, net)
    return smaller.length(iterations, full, schedule) or 'as in the paper'


def errors_table(tables, targets):
    """A line a net and data set, beside what the paper gives; below a net what was started from given weights."""
    rows = []
    for dataset, net in targets:
        rows.append(_line(dataset, net, result(tables, dataset, net), _published(net)))
        rows += [_line(dataset, net, _evaluated(dataset, net, [group]), 'not in it')
                 for group in evaluations.from_weights(tables, dataset, net)]
    return markdown(['net', 'training', 'test images', 'T', 'Standard %', 'MC %', '+- over', 'paper: Standard, MC'],
                    rows, left=2)


def _line(dataset, net, found, published):
    name = '%s on %s' % (paper.title(net), paper.title(dataset))
    if found is None:
        return [name, 'not run'] + [''] * 5 + [published]
    return [name, found.training, names.count(found.n), '' if found.T is None else '%d' % found.T, found.standard,
            found.mc, found.spread, published]


def _published(net):
    """What the paper gives of a net, in words."""
    known = paper.PUBLISHED.get(net)
    return '%.2f, %s' % (known.standard, names.spread(known.mc, known.std)) if known else 'a curve'


def headline(tables):
    """The results of the README, as far as there are any."""
    return errors_table(tables, [target for target in HEADLINE if result(tables, *target)])


def results(tables):
    """Every run of the paper."""
    every = []
    for run in paper.RUNS:
        if (run.dataset, run.net) not in every:
            every.append((run.dataset, run.net))
    return errors_table(tables, every)


def claims(tables):
    """How many of the paper's claims the results support."""
    verdicts = [claim.verdict for claim in statements.of_paper(tables)]
    return ('The report judges %d claims of the paper. The results so far support %d of them and contradict %d; '
            '%d are undecided: they need longer runs or more seeds.'
            % (len(verdicts), verdicts.count(SUPPORTED), verdicts.count(CONTRADICTED), verdicts.count(UNDECIDED)))


# --- what commands print ---------------------------------------------------------------------------

def profiles(tables):
    """The profiles of tools/run_all.sh, with what their jobs should take by the recorded speeds."""
    from bcnn.workflow import plan  # needs the standard library alone, but more of bcnn than analysis/ should
    speeds, rows = cost.speeds(tables['bench'].to_dict('records')), []
    for name, said in plan.profiles().items():
        seconds = [cost.seconds(job, speeds) for job in plan.load(name).jobs.values()]
        rows.append(['`%s`' % name, said['about'], said['disk'],
                     durations.rough(None if None in seconds else sum(seconds))])
    return markdown(['profile', 'what', 'disk', 'one CPU core'], rows, left=2)


def quick(tables):
    """The headlines at the end of tools/run_all.sh, by results of its quick profile that others' should agree with."""
    from bcnn.system import places
    from bcnn.workflow import plan
    recorded = tables['reference']
    kernel = recorded['blas_kernel'].iloc[0] if len(recorded) else None
    lines, pages = [], []
    for job in plan.load('quick').jobs.values():
        kind = 'curve' if isinstance(job, plan.Train) else 'evaluation'
        seed = ', seed %d' % job.seed if kind == 'curve' else ''
        rows = where(recorded, dataset=job.dataset, net=job.net, kind=kind, blas_kernel=kernel)
        lines.append('%s%s, %s: %s' % (names.target(job.dataset, job.net), seed, plan.about(job), _errors(rows, job)))
        if kind == 'evaluation':
            pages.append('gallery: .../%s' % os.path.relpath(os.path.join(job.folder, places.GALLERY), places.ROOT))
    return block(lines + pages + ['report: .../runs/quick/report/report.html'])


def _errors(rows, job):
    """'Standard 2.66%, MC 1.91%' at the end of a job; '...' in the place of what is not recorded yet."""
    said = []
    for method, title in (('standard', 'Standard'), ('mc', 'MC'))[:1 if job.net == 'lenet_none' else 2]:
        last = where(rows, method=method).sort_values('iteration')[-1:]
        errors = 100.0 * last['errors'] / last['n']
        said.append('%s %s%%' % (title, '%.2f' % errors.iloc[0] if len(last) else '...'))
    return ', '.join(said)


def evaluation(tables):
    """The table that tools/mc_eval.py prints, for lenet-all on MNIST."""
    group = evaluations.chosen(tables, 'mnist', 'lenet_all')[0]
    found, rows = evaluations.measured(group), []
    for title, method, average in (('Standard dropout', 'standard', ''),
                                   ('MC dropout T=%d, probs' % found['T'], 'mc', 'probs'),
                                   ('MC dropout T=%d, scores' % found['T'], 'mc', 'scores')):
        some = where(group, method=method, average=average)
        first, errors = some.iloc[0], 100.0 * some['errors'] / some['n']
        error = '%.2f' % errors.iloc[0] if method == 'standard' else '%s, lowest %.2f, of %d' % (
            _over(errors), errors.min(), len(errors))
        rows.append([title, error] + ['%.4f' % first[name] for name in ('nll', 'brier', 'ece')])
    return markdown(['', 'error %', 'NLL', 'Brier', 'ECE'], rows)


# --- fewer passes, other places ----------------------------------------------------------------------

def adaptive(tables):
    """What --adaptive-check found, a line a net: evaluations of the same number of images together."""
    rows = tables['adaptive'][tables['adaptive']['different'].notnull()]
    lines = []
    for (net, groups), of_net in rows.groupby(['net', rows['groups'].fillna(0)]):
        whole = where(of_net, n=of_net['n'].max())
        images = int(whole['n'].sum())
        masks = ', groups of %d' % 2 ** groups if groups else ''
        lines.append([bench_chart.title(net) + masks, '%d' % whole['T'].iloc[0], names.count(images),
                      '%.1f%%' % whole['percent'].mean(), names.count(whole['different'].sum()),
                      '%.3f' % (100.0 * whole['errors'].sum() / images),
                      '%.3f' % (100.0 * whole['full_errors'].sum() / images)])
    return markdown(['net', 'T', 'predictions', 'passes taken', 'predictions that differ', 'error %',
                     'error % with all passes'], lines)


def sampler(tables):
    """How many times less variance antithetic masks have, by the size of their groups, and on which machine."""
    rows = [[bench_chart.title(row['net']), names.count(row['images']), '%d' % 2 ** row['groups'],
             '%.1f +- %.1f' % (row['gain'], row['gain_se']), '%.2f' % row['time'], '%.1f' % row['worth']]
            for _, row in tables['sampler'].iterrows()]
    return markdown(['net', 'images', 'passes in a group', 'times less variance', 'time of a pass',
                     'times less variance in equal time'], rows) + '\n\nMeasured on: %s.' % '; '.join(
                         sorted(set(tables['sampler']['machine'])))


def placement(tables):
    """The error by where dropout samples."""
    rows = [[bench_chart.title(row['net']), row['placement'], '%d' % row['T'],
             '%.2f' % (100.0 * row['standard_errors'] / row['n']), '%.2f' % (100.0 * row['errors'] / row['n'])]
            for _, row in tables['placement'].iterrows()]
    return markdown(['net', 'dropout', 'T', 'Standard %', 'MC %'], rows, left=2)


# --- containers ------------------------------------------------------------------------------------

def containers(tables):
    """What was done with the CPU's image."""
    return _steps(where(tables['containers'], image='cpu'))


def gpu_image(tables):
    """What was done with the GPU's packages and image, where there was no GPU."""
    return _steps(where(tables['containers'], image='gpu'))


def _steps(rows):
    """A line a step; below it why tests were skipped."""
    if not len(rows):
        return 'Not run yet.'
    lines, skipped = [], []
    for _, row in rows.iterrows():
        said = row['note']
        if row['passed'] == row['passed']:  # of tests: NaN elsewhere
            said = '%s passed, %d skipped, %d failed' % (names.count(row['passed']), row['skipped'], row['failed'])
            skipped.append('Skipped in the step *%s*: %s.' % (row['step'], row['note']))
        size = '%s MB' % names.count(round(row['megabytes'])) if row['megabytes'] == row['megabytes'] else ''
        command = '`%s`' % row['command'] if row['command'] else ''
        lines.append([row['step'], command, durations.rough(row['seconds']), size, said])
    table = markdown(['step', 'command', 'time', 'size', 'what came of it'], lines, left=5)
    return '\n\n'.join([table] + skipped + ['Built and run with: %s.' % '; '.join(sorted(set(rows['engine'])))])


TABLES = {function.__name__: function for function in (
    headline, results, claims, profiles, quick, evaluation, adaptive, sampler, placement, containers, gpu_image,
    speed_tables.training_times, speed_tables.training_steps, speed_tables.ways, speed_tables.equal_accuracy,
    speed_tables.settings, speed_tables.growth, speed_tables.machine)}
