"""A small fault campaign: some faults on some commands, and that a command which is not safe is found. More: campaign.py."""

import itertools
import json
import os
import random
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import campaign  # noqa: E402
import inject  # noqa: E402
import ledger  # noqa: E402
import soak  # noqa: E402
import targets  # noqa: E402

from bcnn.errors import UserError  # noqa: E402
from bcnn.results import csv_tables  # noqa: E402
from bcnn.system import locks  # noqa: E402
from bcnn.training import solver_loop  # noqa: E402


class OneFigure(targets.Plot):
    """A part of analysis/plot.py, which as a whole takes a minute for this."""

    def command(self):
        _, *options = super().command()
        return [os.path.join(targets.ROOT, 'analysis', 'fig3.py')] + options


TARGETS = dict(targets.TARGETS, figure=OneFigure)


@pytest.fixture(scope='module')
def calm(tmp_path_factory):
    """(target, its undisturbed run), made when first asked for."""
    made, place, number = {}, tmp_path_factory.mktemp('faults'), itertools.count()

    def get(name):
        if name not in made:  # also after one that could not be made and left its folder
            target = TARGETS[name](str(place / str(next(number))))
            made[name] = target, campaign.Calm(target)
        return made[name]
    return get


@pytest.mark.parametrize('name, fault', [
    ('mc_eval', 'kill -9, a worker'), ('mc_eval', 'stopped, then killed'), ('mc_eval', 'disk full'),
    ('mc_eval', 'file size limit'), ('mc_eval', 'clock jumps'),
    ('record', 'kill -9, all processes'), ('record', 'two at once'), ('record', 'disk read-only'),
    ('convert_net', 'two at once'), ('convert_net', 'inputs vanish'), ('figure', 'disk full')])
def test_after_a_fault_the_rerun_gives_the_same_bytes(calm, tmp_path, name, fault):
    if fault in inject.NEED_DISK and not campaign.can_mount(str(tmp_path)):
        pytest.skip('mounting a small disk needs root')
    target, undisturbed = calm(name)
    counts, problems = campaign.disturb(target, undisturbed, fault, random.Random(name + fault), most_faults=2)
    assert problems == []
    assert (counts['resumed'], counts['bytes_different'], counts['results_lost']) == (1, 0, 0)


@pytest.mark.slow
def test_the_same_of_training(calm, tmp_path):
    test_after_a_fault_the_rerun_gives_the_same_bytes(calm, tmp_path, 'train', 'stopped, then killed')


STOPPED = '''
import os, signal, sys, time
sys.path.insert(0, sys.argv[1])
from bcnn.system import processes
parent = os.getpid()
if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGSTOP)   # as a child is that was forked a moment before
    if sys.argv[2] == 'careful':
        processes.die_with(parent)
    time.sleep(60)
os.waitpid(-1, os.WUNTRACED)
'''


@pytest.mark.parametrize('how, problems', [('careful', []), ('careless', ['processes left: 1'])])
def test_a_child_that_was_stopped_when_its_parent_died_ends_once_it_goes_on(how, problems):
    trial = campaign.Trial(None, None, random.Random(how))
    subprocess.check_call([sys.executable, '-c', STOPPED, targets.ROOT, how],
                          env=dict(os.environ, **{inject.MARK: trial.mark}))
    assert len(inject.marked(trial.mark)) == 1
    assert campaign.left_over(trial) == problems


# --- a command that is not safe

CARELESS = '''
import os, sys, time
out = sys.argv[1]
os.makedirs(out, exist_ok=True)
for part in range(10):
    with open(os.path.join(out, 'result'), 'a') as file:   # appends: a second run repeats what the first had done
        file.write('%d\\n' % part)
    time.sleep(0.1)
with open(os.path.join(out, 'last'), 'w') as file:
    file.write('x')
'''


class Careless(targets.Target):
    def prepare(self):
        with open(os.path.join(self.place, 'careless.py'), 'w') as file:
            file.write(CARELESS)

    def command(self):
        return [os.path.join(self.place, 'careless.py'), self.out]


def test_a_careless_command_is_found(tmp_path):
    target = Careless(str(tmp_path / 'careless'))
    undisturbed = campaign.Calm(target)
    found = [campaign.disturb(target, undisturbed, 'kill -9, all processes', random.Random(seed), 1) for seed in range(3)]
    assert sum(counts['bytes_different'] for counts, _ in found) >= 1
    assert any('differs: result' in problem for _, problems in found for problem in problems)
    outcome = inject.Outcome(1, 'Traceback (most recent call last):\n  x\nKeyError: 1\n', True)
    assert campaign.complaints(outcome) and campaign.complaints(inject.Outcome(1, '', True))
    assert campaign.complaints(inject.Outcome('hangs', '', True))
    assert campaign.complaints(inject.Outcome(1, 'mc: 40% of 100 passes, 0:10, 0:15 left\ntool: no space\n', True)) == []


# --- the report, the soak's rule, the clock

def test_counts_go_into_the_table(tmp_path):
    row = ledger.new_row('fault', 'train', 'disk full', 1)
    row.update(cases=3, resumed=3)
    path = str(tmp_path / 'faults.csv')
    ledger.store(path, [row])
    ledger.store(path, [dict(row, cases=5), ledger.new_row('input', 'idx', 'x', 1)])
    rows = csv_tables.read(str(tmp_path), 'faults')
    assert [(found['kind'], found['cases']) for found in rows] == [('fault', 5), ('input', 0)]
    assert rows[0]['caffe'].startswith('1.0') and rows[0]['seed'] == 1


def test_what_grows_is_not_flat():
    flat = [[i] + [100] * (len(soak.COLUMNS) - 1) for i in range(30)]
    assert soak.growing(flat) == []
    leak = [row[:soak.COLUMNS.index('trainer_mb')] + [100 + 2 * row[0]] + row[soak.COLUMNS.index('trainer_mb') + 1:] for row in flat]
    assert [name for name, _, _ in soak.growing(leak)] == ['trainer_mb']


def test_a_clock_set_back_does_not_stop_snapshots(monkeypatch):
    """With the time of day, a clock set back by a year meant no snapshot for a year."""
    made = solver_loop._Loop.__new__(solver_loop._Loop)
    made.bad, made.cost, made.settings = 0, 0.0, targets.trainhelp.settings(snapshot_every=None)
    made.saved_at = solver_loop.time.monotonic() - solver_loop.SNAPSHOT_SECONDS - 1
    monkeypatch.setattr(solver_loop.time, 'time', lambda: 0.0)
    assert made._snapshot_due(5)


def test_a_full_disk_leaves_no_traceback_of_numpys(tmp_path, capfd):
    if not campaign.can_mount(str(tmp_path)):
        pytest.skip('mounting a small disk needs root')
    import gc
    import subprocess

    import numpy as np

    from bcnn.system import npz
    place = tmp_path / 'disk'
    place.mkdir()
    campaign.mount(str(place), 'size=100k')
    try:
        with pytest.raises(UserError, match='no space left'):
            npz.write(str(place / 'x.npz'), {'a': np.random.rand(100000)})
        gc.collect()
    finally:
        subprocess.check_call(['umount', str(place)])
    assert capfd.readouterr().err == ''


def test_hostile_records_of_a_run_are_one_line(tmp_path):
    from bcnn.workflow import status
    run = tmp_path / 'runs' / 'mnist-lenet_all-seed1'
    run.mkdir(parents=True)
    (run / 'provenance.json').write_text('{}')
    for config in ({}, {'iterations': 5}, {'iterations': []}, {'iterations': ['x']}):
        (run / 'config.json').write_text(json.dumps(config))
        assert status.row(str(run))[0] == 'damaged'
    assert locks.alive(os.getpid()) and not locks.alive(2 ** 22 + 5)
