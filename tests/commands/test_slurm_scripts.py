"""workflow/slurm/: what Snakemake is told of a job, and what Slurm is asked, with stand-ins for Slurm's commands.

The real Slurm is in tests/campaigns/slurm_quick.py, on request.
"""

import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SLURM = os.path.join(ROOT, 'workflow', 'slurm')
UP = "case $1 in ping) echo 'Slurmctld(primary) at head is UP';; esac"


class Slurm:
    """A folder where Slurm's commands are small scripts; `asked` has what they were called with."""

    def __init__(self, folder):
        self.folder, self.bin = folder, folder / 'bin'
        (folder / '.snakemake' / 'slurm').mkdir(parents=True)
        self.bin.mkdir()
        for name in ('scontrol', 'squeue', 'scancel', 'sbatch', 'sleep'):
            self.does(name, ':')

    def does(self, name, script):
        path = self.bin / name
        path.write_text('#!/bin/sh\necho "%s $*" >>"%s/asked"\n%s\n' % (name, self.folder, script))
        path.chmod(0o755)

    def asked(self):
        return (self.folder / 'asked').read_text()

    def note(self, number, code):
        (self.folder / '.snakemake' / 'slurm' / (number + '.exit')).write_text(code + '\n')

    def run(self, script, *words, **variables):
        environment = dict(os.environ, PATH='%s:%s' % (self.bin, os.environ['PATH']), **variables)
        return subprocess.run([os.path.join(SLURM, script)] + list(words), cwd=str(self.folder), env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60)

    def status(self):
        result = self.run('status.sh', '7')
        assert result.returncode == 0  # anything else stops Snakemake
        return result.stdout

    def submit(self, cpus='1', memory='3000', gpus='0', **variables):
        script = self.folder / 'train-net-seed1.12'
        script.write_text('#!/bin/sh\ncd here && \\\npython \\\n-m snakemake stamps/x.done && exit 0 || exit 1\n')
        return self.run('submit.sh', cpus, memory, gpus, str(script), **variables)


@pytest.fixture
def slurm(tmp_path):
    return Slurm(tmp_path)


# --- status.sh ---------------------------------------------------------------------------------

@pytest.mark.parametrize('state, word', [
    ('COMPLETED', 'success'), ('FAILED', 'failed'), ('CANCELLED', 'failed'), ('TIMEOUT', 'failed'),
    ('NODE_FAIL', 'failed'), ('OUT_OF_MEMORY', 'failed'), ('PREEMPTED', 'failed'),
    ('PENDING', 'running'), ('RUNNING', 'running'), ('COMPLETING', 'running'), ('REQUEUED', 'running')])
def test_states_of_slurm(slurm, state, word):
    slurm.does('scontrol', "echo 'JobId=7 JobName=x JobState=%s Reason=None'" % state)
    assert slurm.status() == word + '\n'


@pytest.mark.parametrize('words', ['Unable to contact slurm controller (connect failure)',
                                   'Socket timed out on send/recv operation', ''])
def test_a_controller_that_is_away_is_no_news(slurm, words):
    slurm.note('7', '0')  # of another job of that number, perhaps
    slurm.does('scontrol', "echo 'slurm_load_jobs error: %s' >&2; exit 1" % words)
    assert slurm.status() == 'running\n'


@pytest.mark.parametrize('code, word', [('0', 'success'), ('1', 'failed'), (None, 'failed')])
def test_a_forgotten_job_has_left_a_note(slurm, code, word):
    slurm.does('scontrol', "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    if code:
        slurm.note('7', code)
    assert slurm.status() == word + '\n'


def test_a_job_that_was_complete_when_its_time_was_over(slurm):
    slurm.does('scontrol', "echo 'JobId=7 JobState=TIMEOUT'")
    slurm.note('7', '0')
    assert slurm.status() == 'success\n'


# --- submit.sh ---------------------------------------------------------------------------------

def test_what_slurm_is_asked_for(slurm):
    slurm.does('scontrol', UP)
    slurm.does('sbatch', 'cat >"%s/script"; echo "41;west"' % slurm.folder)
    result = slurm.submit('2', '3000', '1', BCNN_PARTITION='gpu', BCNN_TIME='2-00:00:00')
    assert result.stdout == '41\n'
    asked = [line for line in slurm.asked().splitlines() if line.startswith('sbatch')]
    assert len(asked) == 1
    for words in ('--cpus-per-task=2', '--mem=3000', '--gres=gpu:1', '--partition=gpu', '--time=2-00:00:00', '--requeue'):
        assert words in asked[0].split()


def test_no_gpu_and_nothing_of_the_queue_unless_wanted(slurm):
    slurm.does('scontrol', UP)
    slurm.does('sbatch', 'cat >/dev/null; echo 41')
    slurm.submit(BCNN_MEM='9G', BCNN_PARTITION='', BCNN_TIME='')
    asked = slurm.asked()
    assert '--mem=9G' in asked and '--mem=3000' not in asked
    assert 'gres' not in asked and 'partition' not in asked and '--time' not in asked


def test_the_job_notes_its_end(slurm):
    slurm.does('scontrol', UP)
    slurm.does('sbatch', 'cat >"%s/script"; echo 41' % slurm.folder)
    slurm.submit()
    text = (slurm.folder / 'script').read_text()
    assert '-m snakemake --scheduler greedy stamps/x.done' in text
    slurm.does('python', 'exit "$CODE"')
    (slurm.folder / 'here').mkdir()  # the job's own cd must not lead its note astray
    for code, expected in (('0', '0\n'), ('3', '1\n')):
        result = subprocess.run(['sh', 'script'], cwd=str(slurm.folder), timeout=60, env=dict(
            os.environ, PATH='%s:%s' % (slurm.bin, os.environ['PATH']), CODE=code, SLURM_JOB_ID='41',
            SLURM_JOB_NAME='name'))
        assert result.returncode == int(expected)
        assert (slurm.folder / '.snakemake' / 'slurm' / '41.exit').read_text() == expected


def test_a_refusal_is_not_tried_again_and_stands_in_the_log(slurm):
    slurm.does('scontrol', UP)
    slurm.does('sbatch', 'cat >/dev/null; echo "sbatch: error: Invalid partition" >&2; exit 1')
    result = slurm.submit()
    assert (result.returncode, result.stdout) == (1, '')
    assert result.stderr == 'sbatch: error: Invalid partition\n'
    assert (slurm.folder / 'logs' / 'train-net-seed1.log').read_text() == result.stderr
    assert slurm.asked().count('sbatch') == 1


def test_a_controller_that_comes_back_is_waited_for(slurm):
    away = slurm.folder / 'away'
    away.write_text('')
    slurm.does('scontrol', 'if [ -e "%s" ]; then exit 1; fi\n%s' % (away, UP))
    slurm.does('sleep', 'if [ -e "%s.once" ]; then rm "%s"; fi; : >"%s.once"' % (away, away, away))
    slurm.does('sbatch', 'cat >/dev/null; echo 41')
    result = slurm.submit()
    assert (result.returncode, result.stdout) == (0, '41\n')
    assert slurm.asked().count('sleep 5') == 2


def test_a_controller_lost_while_submitting(slurm):
    """sbatch fails and nobody answers; when the controller is back it runs the job: not twice."""
    taken = slurm.folder / 'taken'
    slurm.does('scontrol', 'if [ -e "%s" ] && [ ! -e "%s.back" ]; then exit 1; fi\n%s' % (taken, taken, UP))
    slurm.does('sbatch', 'cat >/dev/null; : >"%s"; exit 1' % taken)
    slurm.does('sleep', ': >"%s.back"' % taken)
    slurm.does('squeue', 'if [ -e "%s.back" ]; then echo 41; fi' % taken)
    result = slurm.submit()
    assert (result.returncode, result.stdout) == (0, '41\n')
    assert slurm.asked().count('sbatch') == 1


def test_a_job_that_runs_is_adopted_and_one_that_waits_is_not(slurm):
    slurm.does('scontrol', UP)
    slurm.does('squeue', 'echo 40')
    slurm.note('40', '0')
    assert slurm.submit().stdout == '40\n'
    asked = slurm.asked().splitlines()
    assert not [line for line in asked if line.startswith('sbatch')]
    assert [line for line in asked if line.startswith('scancel')][0].endswith('--state=PENDING')


def test_the_note_of_an_earlier_job_with_this_number_is_gone(slurm):
    slurm.does('scontrol', UP)
    slurm.does('sbatch', 'cat >/dev/null; echo 41')
    slurm.note('41', '0')
    slurm.submit()
    slurm.does('scontrol', "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert slurm.run('status.sh', '41').stdout == 'failed\n'


def test_names_differ_between_folders_but_not_between_calls(tmp_path):
    first, second = Slurm(tmp_path / 'first'), Slurm(tmp_path / 'second')
    names = []
    for slurm in (first, second, first):
        slurm.does('scontrol', UP)
        slurm.does('sbatch', 'cat >/dev/null; echo 41')
        slurm.submit()
        line = [line for line in slurm.asked().splitlines() if line.startswith('sbatch')][-1]
        names += [word for word in line.split() if word.startswith('--job-name=train-net-seed1.')]
    assert len(names) == 3 and names[0] == names[2] != names[1]
