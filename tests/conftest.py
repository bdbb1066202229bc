"""Layers of tests, by folder: unit (no Caffe), caffe (real Caffe, tiny nets), commands (whole tools), faults."""

import os
import signal
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from bcnn import blas  # noqa: E402

blas.prepare()  # as the tools compute; before a test imports numpy
# Started in the background by a shell, SIGINT is ignored, and commands that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    for item in items:
        layer = os.path.relpath(str(item.fspath), os.path.join(ROOT, 'tests')).split(os.sep)[0]
        if layer in ('caffe', 'commands', 'faults'):
            item.add_marker(pytest.mark.caffe)


@pytest.fixture(scope='session')
def tool():
    """Runs a tool as a user would: tool('X.py', '--flag'); gives back exit code, stdout and stderr."""
    def run(name, *args, python='python3', cwd=ROOT, env=None, timeout=600):
        command = [os.path.join(ROOT, 'tools', name)]
        if name.endswith('.py'):
            command = [python] + command
        return subprocess.run(command + [str(arg) for arg in args], cwd=str(cwd), timeout=timeout,
                              env=dict(os.environ, **(env or {})), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    return run


def one_clear_line(result, *parts):
    """Asserts a refusal: a non-zero exit, one line that has all `parts`, and no traceback."""
    assert result.returncode not in (0, 134, -6), result.stdout
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    for part in parts:
        assert part in lines[0], '%r not in %r' % (part, lines[0])
