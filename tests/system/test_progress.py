"""bcnn.progress: a bar on a terminal, lines now and then elsewhere, nothing for a short step."""

import os
import pty
import re
import subprocess
import sys

from bcnn.system import progress
from datahelp import ROOT, python

STEPS = ('import time; from bcnn.system import progress\n'
         'with progress.bar("writing", total=40, unit="images") as step:\n'
         ' for _ in range(4): step(10); time.sleep(0.15)')


def test_a_bar_with_the_time_left_on_a_terminal():
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, '-c', STEPS], stderr=theirs, env=dict(os.environ, PYTHONPATH=ROOT))
    assert process.wait() == 0
    os.close(theirs)
    shown = os.read(ours, 100000).decode()
    assert 'writing' in shown and re.search(r'100%.* 40/40 \[00:00<00:00, .* images/s', shown)


def test_nothing_for_a_short_step_where_there_is_no_terminal():
    assert python(STEPS).communicate()[0] == ''


def test_lines_now_and_then_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, 'EVERY', 0.0)
    with progress.bar('writing', total=40, unit='images') as step:
        step(10)
        step(30)
    with progress.bar('reading', unit='B', scale=True) as step:
        step(2500000, 'error 1.5%')
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith('writing: 25% of 40 images, 0:00, 0:00 left')
    assert lines[1].startswith('writing: 100% of 40 images')
    assert lines[2] == 'reading: 2.5M B, 0:00, error 1.5%'


def test_the_time_left():
    lines = progress._Lines('x', 100, 'images', False)
    lines.done = 25
    assert lines.line(30) == 'x: 25% of 100 images, 0:30, 1:30 left'
