"""The check of a GPU beside the CPU: every net of the paper on both, a table, a verdict, a report to send.

With the CPU on both sides it is a check of itself.
"""

import os
import tempfile
import time
from collections import OrderedDict
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .. import engine
from ..errors import CaffeError, UserError
from ..system import progress, store
from . import side, verdicts


def command(text: str, json: Optional[str] = None) -> int:
    """The exit code of `check_caffe.py --gpu TEXT`, after its table; 1 for a device that is not as it should be."""
    if text != 'none' and not text.isdigit():
        raise UserError('--gpu %s: neither the number of a GPU nor none, for the CPU on both sides' % text)
    report = run(None if text == 'none' else int(text))
    print('\n'.join(table(report)))
    if json:
        store.write_json(json, report)
        print('report: %s' % json)
    return 0 if report['ok'] else 1


def run(gpu: Optional[int] = None, cases: Optional[List[side.Case]] = None,
        here: Optional[side.Side] = None) -> Dict[str, Any]:
    """The report of device `gpu` (None: the CPU) beside the CPU: {about, rows, problems, ok}.

    here: the Side to check, where it is another than that device's own.
    """
    engine.require_device(gpu)
    started = time.time()
    here, there = here or side.Side(gpu), side.Side(None)
    rows, problems = [], []
    cases = cases or side.cases()
    with tempfile.TemporaryDirectory(prefix='bcnn-check-') as folder, progress.bar('nets', len(cases) + 1) as step:
        for case in cases:
            name = '/'.join(case)
            try:
                shown = both(here, there, case, folder)
                rows += verdicts.compare(name, *shown)
            except (CaffeError, UserError, MemoryError) as error:
                problems.append('%s: %s' % (name, error))
            step(1)
        rows += two_at_once(gpu, cases[-1], folder, problems)
        step(1)
    about = describe(gpu, time.time() - started)
    return OrderedDict([('about', about), ('rows', [as_dict(row) for row in rows]), ('problems', problems),
                        ('ok', not problems and all(row.ok for row in rows))])


def both(here: side.Side, there: side.Side, case: side.Case, folder: str) -> List[Dict[str, Any]]:
    """What the two sides show for a net, each in a process of its own."""
    weights = os.path.join(folder, 'weights.caffemodel')
    engine.call(side.make_weights, case, weights)
    shown = []
    for show, place in ((here, 'here'), (there.compared, 'there')):
        run_folder = os.path.join(folder, '-'.join(case) + '-' + place)
        os.makedirs(run_folder)
        shown.append(engine.call(show, case, weights, run_folder))
    return shown


TWO = 'two processes at once'


def two_at_once(gpu: Optional[int], case: side.Case, folder: str, problems: List[str]) -> List[verdicts.Row]:
    """The row of two processes that compute at the same time: on two GPUs where there are two, else on the CPU."""
    gpus = [None, None] if gpu is None else second_gpu(gpu)
    if len(gpus) < 2:
        return []
    weights = os.path.join(folder, 'weights.caffemodel')
    engine.call(side.make_weights, case, weights)

    def work(number):
        engine.use_device(gpus[number])
        return dict(side.Side(gpus[number]).one_pass(case, weights))

    try:
        shown = dict(engine.work(lambda: work, [0, 1], 2))
    except CaffeError as error:
        problems.append('%s: %s' % (TWO, error))
        return []
    rows = []
    for check in ('forward', 'gradients'):
        worst = max((verdicts.apart(shown[0][check][key], shown[1][check][key]), key) for key in shown[0][check])
        rows.append(verdicts.Row(net=TWO, check=check, measured=worst[0], allowed=verdicts.CHECKS[check][1],
                                 where=worst[1]))
    return rows


def second_gpu(gpu: int) -> List[int]:
    """The numbers of this GPU and of another, where there is one."""
    others = [number for number in range(len(engine.gpus()['gpus'])) if number != gpu]
    return [gpu] + others[:1]


# --- what is reported ------------------------------------------------------------------------------

def describe(gpu: Optional[int], seconds: float) -> Dict[str, Any]:
    """What was checked, and where."""
    about = OrderedDict([('device', 'cpu' if gpu is None else 'gpu %d' % gpu), ('seconds', round(seconds, 1))])
    if gpu is not None:
        driver = engine.gpus()
        about.update(driver['gpus'][gpu], driver=driver['driver'], driver_cuda=driver['cuda'], gpus=len(driver['gpus']))
    about.update(engine.describe())
    return about


def as_dict(row: verdicts.Row) -> Dict[str, Any]:
    return OrderedDict([('net', row.net), ('check', row.check), ('measured', row.measured), ('allowed', row.allowed),
                        ('where', row.where), ('ok', row.ok)])


def table(report: Dict[str, Any]) -> Iterator[str]:
    """The lines of a report: what was checked, then for each check the worst net."""
    about = report['about']
    if 'name' in about:
        yield '%s (GPU %s, compute capability %s, %.1f GB), driver %s for CUDA %s, beside the CPU; Caffe %s' % (
            about['name'], about['device'].split()[1], about['capability'], about['memory'] / 1e9,
            about['driver'] or 'of unknown version', about['driver_cuda'], about['caffe'])
    else:
        yield 'the CPU beside itself, a check of the check; Caffe %s' % about['caffe']
    yield ''
    yield '%-60s %4s  %9s  %9s  %s' % ('what', 'nets', 'largest', 'allowed', 'verdict')
    for check, rows in groups(report['rows']):
        worst = max(rows, key=lambda row: (not row['ok'], row['measured'] / (row['allowed'] or 1)))
        wrong = [row for row in rows if not row['ok']]
        yield '%-60s %4d  %9s  %9s  %s' % (check, len(rows), number(worst['measured']), number(worst['allowed']),
                                           'ok' if not wrong else 'WRONG')
        for row in wrong:
            yield '    %s: %s, %s allowed%s' % (row['net'], number(row['measured']), number(row['allowed']),
                                                ' (%s)' % row['where'] if row['where'] else '')
    if not any(row['net'] == TWO for row in report['rows']):
        yield 'two processes on two GPUs: not tried, there is one GPU'
    for problem in report['problems']:
        yield 'FAILED %s' % problem
    yield ''
    yield 'all as it should be' if report['ok'] else 'NOT as it should be'


def groups(rows: List[Dict[str, Any]]) -> List[Tuple[str, List[Dict[str, Any]]]]:
    """(what, its rows) in the order of verdicts.CHECKS; two processes at once are a check of their own."""
    rows_of = OrderedDict((what, []) for what in [what for what, _ in verdicts.CHECKS.values()] + [TWO])
    for row in rows:
        rows_of[TWO if row['net'] == TWO else verdicts.CHECKS[row['check']][0]].append(row)
    return [(what, rows) for what, rows in rows_of.items() if rows]


def number(value: float) -> str:
    return '%d' % value if value == int(min(abs(value), 1e6)) else '%.2g' % value
