"""The state of all training runs, from the files in their folders."""

import os
import time
from typing import Iterator, Tuple

from ..errors import UserError
from ..system import durations, places, store
from ..training import curve, display


def lines(place: str = places.RUNS) -> Iterator[str]:
    """A line a run for people, after a heading."""
    runs = places.find(place)
    if not runs:
        raise UserError('%s: no training runs here: start one with tools/train.py' % place)
    names = [os.path.relpath(run, place) for run in runs]
    width = max(map(len, names))
    form = '%%-%ds  %%-26s %%-22s %%-34s %%10s  %%s' % width
    yield form % ('run', 'state', 'iteration', 'last test error', 'speed', 'left')
    for name, run in zip(names, runs):
        yield (form % ((name,) + row(run))).rstrip()


def row(run: str) -> Tuple[str, str, str, str, str]:
    """(state, iteration, last errors, speed, time left) of a run, as text."""
    try:
        return _row(run)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        return 'damaged', '', '%s: not the records of a run (%s)' % (run, ' '.join(str(error).split())), '', ''


def _row(run):
    try:
        config = store.read_json(os.path.join(run, places.CONFIG))
        now = store.read_json(os.path.join(run, places.STATUS)) or {}
        rows = curve.read(os.path.join(run, places.CURVE))
    except UserError as error:
        return 'damaged', '', str(error), '', ''
    holder, lengths = places.holder(run), config['iterations']
    stage, iteration = _place(run, now if holder else {})
    speed = now.get('iterations_a_second') if holder else None
    errors = '%s at %d' % (curve.percent(rows[-1]), rows[-1].iteration) if rows else ''
    left = sum(lengths[stage - 1:]) - iteration
    where = '%s%d of %d' % ('stage %d, ' % stage if len(lengths) > 1 else '', iteration, lengths[stage - 1])
    return (_state(run, holder, now), where, errors,
            display.rate(speed) if speed else '', durations.clock(left / speed) if speed else '')


def _place(run, now):
    """(stage, iteration) where a running process is, or the last snapshot of one that is not."""
    if now.get('stage'):
        return now['stage'], now['iteration']
    return (places.stored(run) or [(1, 0, None)])[-1][:2]


def _state(run, holder, now):
    if holder:
        doing = 'measuring' if now.get('measuring') else 'running'
        # A process that waits for a stopped terminal or a dead disk holds the lock, but goes nowhere.
        silent = time.time() - now.get('time', time.time())
        return '%s, process %d%s' % (doing, holder[0], '?' if doing == 'running' and silent > 600 else '')
    if os.path.exists(os.path.join(run, places.DONE)):
        return 'done'
    diverged = store.read_json(os.path.join(run, places.DIVERGED))
    return 'diverged at %s' % diverged.get('iteration') if diverged else 'stopped'
