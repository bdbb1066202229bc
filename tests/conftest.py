"""Tests by the package that they test; commands: whole tools; project: the code base itself; campaigns: the long ones.

A module of tests that need real Caffe says so (pytestmark); whole tools and campaigns always do.
"""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, settings

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ROOT, os.path.join(ROOT, 'analysis')]

from bcnn.system import blas  # noqa: E402

blas.prepare()  # as the tools compute; before a test imports numpy
# Started in the background by a shell, SIGINT is ignored, and commands that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A busy machine is no failure, and the same examples are tried everywhere; the campaign of faults draws new ones.
settings.register_profile('here', deadline=None, derandomize=True, suppress_health_check=HealthCheck.all())
settings.load_profile('here')


def pytest_collection_modifyitems(items):
    for item in items:
        folder = os.path.relpath(str(item.fspath), os.path.join(ROOT, 'tests')).split(os.sep)[0]
        if folder in ('commands', 'campaigns'):
            item.add_marker(pytest.mark.caffe)


def project_files():
    """The files of the project, relative to its folder: what git knows or would add, or all but what runs leave behind.

    The Docker image has no .git; .dockerignore has left out there what git would not know.
    """
    listed = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=ROOT,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) if shutil.which('git') else None
    if listed is not None and listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split('\0') if name]
    else:
        names = [os.path.relpath(os.path.join(place, name), ROOT) for place, _, files in os.walk(ROOT) for name in files]
        names = [name for name in names if not re.match(r'(\.git|\.caffe|data|debs|runs/(?!README))|.*(__pycache__|\.hypothesis)/',
                                                        name)]
    return sorted(name for name in names if os.path.isfile(os.path.join(ROOT, name)))


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
