"""How results are smaller than the paper's, in words: shorter schedules, fewer images, passes and repetitions."""

from typing import List, Optional

import pandas as pd

from . import curves, evaluations, few_images, names
from .from_bcnn import paper
from .load import Tables, where


def length(iterations: float, full: Optional[int], schedule: str = '') -> str:
    """'the first 100,000 of 10,000,000 iterations (1%)', or "the paper's schedule, 1/20 (10,000 of 200,000
    iterations)"; '' where the run is as long as the paper's."""
    if not full or iterations >= full:
        return ''
    if schedule:
        return "the paper's schedule, %s (%s of %s iterations)" % (schedule, names.count(iterations), names.count(full))
    return 'the first %s of %s iterations (%s)' % (names.count(iterations), names.count(full),
                                                   names.percent(iterations / float(full)))


def share(iterations: float, full: Optional[int], schedule: str, n: float) -> str:
    """'1% of the schedule, 1,000 test images', 'schedule 1/20', 'the whole schedule': the same in few words."""
    part = 'the whole schedule' if not full or iterations >= full else (
        'schedule %s' % schedule if schedule else '%s of the schedule' % names.percent(iterations / float(full)))
    return part + ('' if n >= paper.TEST_IMAGES else ', %s test images' % names.count(n))


def images(n: float) -> str:
    """'200 of 10,000 test images', or '' for all of them."""
    if n >= paper.TEST_IMAGES:
        return ''
    return '%s of %s test images' % (names.count(n), names.count(paper.TEST_IMAGES))


def adaptive(rows: pd.DataFrame) -> str:
    """What points of a curve with adaptive T promise, and how many passes an image had."""
    return ('adaptive T: an image is passed until its class after all %d passes is settled, right with a probability '
            'of at least %g%%' % (rows['T'].iloc[0], 100 * (1 - rows['adaptive'].max())))


def evaluation(group: pd.DataFrame) -> List[str]:
    """['the first 300 of 200,000 iterations (0.15%)', ...]: where an evaluation is smaller than the paper's."""
    row, mc = group.iloc[0], where(group, method='mc', average='probs')
    marks = []
    if row['weights'] == 'trained':
        marks.append(length(row['iterations'], paper.schedule(row['experiment'], row['dataset'], row['net']),
                            row['schedule']))
    elif row['weights'] == 'unknown':
        marks.append('weights of unknown training')
    marks.append(few_images.note(group))
    run = paper.run_of(row['experiment'], row['dataset'], row['net'])
    if run and len(mc):
        if mc['T'].max() != run.T:
            marks.append('T = %d of %d' % (mc['T'].max(), run.T) if mc['T'].max() < run.T else
                         'T = %d, the paper has %d' % (mc['T'].max(), run.T))
        if len(mc) < run.repetitions:
            marks.append('%d of %d repetitions' % (len(mc), run.repetitions))
    return [mark for mark in marks if mark]


def departures(group: pd.DataFrame) -> str:
    """How an evaluation departs from the paper's protocol, so that it does not stand in the paper's rows."""
    row, marks = group.iloc[0], []
    if row['crops'] == row['crops']:
        marks.append('%d random crops an image' % row['crops'])
    if row['init']:
        marks.append('started from %s' % names.start(row['init']))
    if row['mode'] not in evaluations.PROTOCOL:
        marks.append('%s passes' % row['mode'])
    if row['experiment'] != paper.experiment_of(row['dataset'], row['net']):
        marks.append('experiment %s' % row['experiment'])
    return '; '.join(marks)


def notes(tables: Tables, experiment: str, runs: List[names.Curve]) -> List[str]:
    """Notes for curves that are missing, shorter than the paper's, on part of the test set, or with another T."""
    missing, short, part = [], {}, {}
    for name in runs:
        dataset, net, method = name
        run = paper.run_of(experiment, dataset, net)
        rows = curves.of_paper(tables, experiment, dataset, net, method)
        if not len(rows):
            missing.append(name)
            continue
        # the shortest of the seeds
        reached = length(rows.groupby('seed')['iteration'].max().min(), sum(run.iterations), rows['schedule'].iloc[0])
        if reached:
            short.setdefault(reached, []).append(name)
        if images(rows['n'].iloc[0]):
            part.setdefault(images(rows['n'].iloc[0]), []).append(name)
        if method == 'mc' and rows['T'].iloc[0] != run.T:
            part.setdefault('T = %d, the paper has %d' % (rows['T'].iloc[0], run.T), []).append(name)
        if method == 'mc' and rows['adaptive'].notna().any():
            part.setdefault(adaptive(rows), []).append(name)
    drawn = [run for run in runs if run not in missing]
    said = ['Shorter than the paper: %s: %s.' % (names.curves(some, drawn), text) for text, some in short.items()]
    said += ['%s: %s.' % (names.curves(some, drawn), text) for text, some in part.items()]
    return said + (['Not run: %s.' % names.curves(missing, runs)] if missing else [])
