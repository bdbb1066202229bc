"""What tools/test.sh shows of the tests: in a pipe, on a terminal, and in which order they run."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest

from conftest import ROOT
from terminal import Terminal

FILES = {'test_a.py': 'def test_one(): pass\ndef test_two(): assert False\n',
         'test_b.py': 'import pytest, time\ndef test_long(): time.sleep(1.5)\ndef test_not(): pytest.skip("why not")\n'}


@pytest.fixture
def project(tmp_path):
    (tmp_path / 'pytest.ini').write_text('[pytest]\naddopts = -p no:cacheprovider\n')
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / 'durations.json').write_text('{"test_a.py": [1.0, 2], "test_b.py": [3.0, 2]}')
    return tmp_path


def command(project, *options):
    return [sys.executable, '-m', 'pytest', '-p', 'tests.showing', '--durations-file', str(project / 'durations.json'),
            '--rootdir', str(project), '-c', str(project / 'pytest.ini')] + list(options) + [str(project)]


def piped(project, *options):
    return subprocess.run(command(project, *options), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, universal_newlines=True)


@pytest.mark.parametrize('workers', [1, 2])
def test_in_a_pipe_failures_come_at_once_and_the_end_counts(project, workers):
    said = piped(project, '-n', str(workers), '--dist', 'loadfile')
    assert said.returncode == 1
    assert '4 tests on %d core%s, about %d s\n' % (workers, 's' * (workers - 1), 4 // workers) in said.stdout
    assert re.search(r'^ +0:0\d  FAILED test_a.py::test_two$', said.stdout, re.MULTILINE)
    assert '1 failed, 2 passed, 1 skipped in' in said.stdout
    assert not re.search(r'^gw\d', said.stdout, re.MULTILINE)  # xdist's own lines (a path may have its names too)
    assert '\033' not in said.stdout


def test_the_longest_file_comes_first(project):
    listed = piped(project, '-v').stdout
    assert listed.index('test_b.py::test_long') < listed.index('test_a.py::test_one')
    (project / 'durations.json').write_text('{"test_a.py": [9.0, 2], "test_b.py": [3.0, 2]}')
    listed = piped(project, '-v').stdout
    assert listed.index('test_a.py::test_one') < listed.index('test_b.py::test_long')


def test_what_prepares_data_for_others_comes_before_all(project):
    (project / 'test_data_cifar.py').write_text('def test_quick(): pass\n')
    listed = piped(project, '-v').stdout
    assert listed.index('test_data_cifar.py::test_quick') < listed.index('test_b.py::test_long')


def test_durations_are_recorded_by_file(project):
    piped(project, '--record-durations', '-n', '1')
    found = json.loads((project / 'durations.json').read_text())
    assert set(found) == {'test_a.py', 'test_b.py'} and found['test_a.py'][1] == found['test_b.py'][1] == 2
    assert found['test_b.py'][0] >= 1.5 > found['test_a.py'][0]


def test_durations_of_some_files_leave_those_of_others_and_drop_what_is_gone(project):
    (project / 'durations.json').write_text('{"test_a.py": [9.0, 5], "test_b.py": [7.0, 5], "test_gone.py": [1.0, 1]}')
    words = command(project, '--record-durations', '-n', '1')[:-1] + [str(project / 'test_a.py')]
    subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    found = json.loads((project / 'durations.json').read_text())
    assert set(found) == {'test_a.py', 'test_b.py'} and found['test_b.py'] == [7.0, 5] and found['test_a.py'][1] == 2


def test_on_a_terminal_the_last_screen_is_pytests_own(project):
    output, terminal = b'', Terminal(200)
    master, slave = pty.openpty()
    process = subprocess.Popen(command(project, '-n', '1'), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                               env=dict(os.environ, TERM='xterm', LC_ALL='C.UTF-8'))
    os.close(slave)
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # nobody writes any more
            break
        if not part:
            break
        output += part
    assert process.wait() == 1
    os.close(master)
    text = output.decode()
    assert re.search(r'test_b.py  .*test_long', text) and ' left' in text  # it was shown while it ran
    seen = terminal.feed(text).seen()
    assert any('FAILED test_a.py::test_two' in row for row in seen)
    assert not any(' left' in row for row in seen)  # what moved is gone
