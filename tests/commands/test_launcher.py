"""The launcher and tools/python: any python3, any place, arguments and exit codes unchanged."""

import argparse
import json
import os
import shutil
import stat
import subprocess
import sys

import pytest

from bcnn.errors import UserError
from bcnn.system import arguments

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PROBE = '''
import argparse, json, sys
from launcher import start

def run(args):
    import caffe, os
    print(json.dumps({"words": args.words, "cwd": os.getcwd(), "threads": os.environ.get("OPENBLAS_NUM_THREADS")}))
    if args.fail == "user":
        from bcnn.errors import UserError
        raise UserError("the file\\nx is bad")
    if args.fail == "disk":
        raise OSError(28, "No space left on device", "/some/file")
    if args.fail == "bug":
        raise ZeroDivisionError("a bug")
    return args.code

parser = argparse.ArgumentParser()
parser.add_argument("words", nargs="*")
parser.add_argument("--code", type=int, default=0)
parser.add_argument("--fail")
parser.add_argument("--threads", type=int)
start(parser, run)
'''


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """A copy of the project in a path with spaces, with a stand-in `caffe` for one Python only.

    The stand-in is right here: what is tested is which Python is started, not Caffe.
    """
    place = tmp_path_factory.mktemp('a place') / 'my project'
    shutil.copytree(os.path.join(ROOT, 'tools'), str(place / 'tools'))
    shutil.copytree(os.path.join(ROOT, 'bcnn'), str(place / 'bcnn'))
    (place / 'tools' / 'probe.py').write_text(PROBE)
    (place / 'modules').mkdir()
    (place / 'modules' / 'caffe.py').write_text('')
    executable(place / 'plain' / 'python3', 'exec "%s" -S "$@"' % sys.executable)  # -S: no caffe for sure
    executable(place / 'plain' / 'python', 'exec "%s" -S "$@"' % sys.executable)
    executable(place / 'with caffe' / 'bin' / 'python',
               'PYTHONPATH="%s" exec "%s" -S "$@"' % (place / 'modules', sys.executable))
    return place


def executable(path, line):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\n%s\n' % line)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def probe(place, *words, prefix='with caffe', cwd=None, **env):
    environment = {name: value for name, value in os.environ.items() if name not in ('PYTHONPATH', 'CAFFE_PREFIX')}
    environment.update(PATH='%s:/usr/bin:/bin' % (place / 'plain'), CAFFE_PREFIX=str(place / prefix), **env)
    # an empty folder of binaries first on PATH would still leave the system's python3: shadow both names
    return subprocess.run([str(place / 'plain' / 'python3'), str(place / 'tools' / 'probe.py')] + list(words),
                          cwd=str(cwd or place), env=environment, universal_newlines=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)


def test_arguments_pass_through_unchanged(place, tmp_path):
    words = ['two words', '', "it's", '"quoted"', '$HOME `ls` \\', 'ünï', '*']
    result = probe(place, '--', *words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer['words'] == words
    assert os.path.realpath(answer['cwd']) == os.path.realpath(str(tmp_path))


@pytest.mark.parametrize('code', [0, 1, 3, 77])
def test_exit_code_passes_through(place, code):
    assert probe(place, '--code', str(code)).returncode == code


def test_relative_path_from_another_folder(place):
    result = subprocess.run([str(place / 'plain' / 'python3'), '../tools/probe.py', 'x'], cwd=str(place / 'bcnn'),
                            env={'PATH': '/usr/bin:/bin', 'CAFFE_PREFIX': str(place / 'with caffe')},
                            stdout=subprocess.PIPE, universal_newlines=True, timeout=60)
    assert json.loads(result.stdout)['words'] == ['x']


def test_no_caffe_at_all_is_one_line(place):
    result = probe(place, prefix='nowhere')
    assert result.returncode == 2
    assert result.stdout == ''
    assert result.stderr == 'no Caffe on this machine: run %s/tools/setup.sh\n' % place


def test_a_prefix_without_caffe_is_passed_over(place):
    executable(place / 'hollow' / 'bin' / 'python', 'exec "%s" -S "$@"' % sys.executable)
    result = probe(place, prefix='hollow')
    assert result.returncode == 2
    assert 'setup.sh' in result.stderr


def test_help_and_bad_options_need_no_caffe(place):
    assert probe(place, '--help', prefix='nowhere').returncode == 0
    result = probe(place, '--no-such-option', prefix='nowhere')
    assert result.returncode == 2
    assert '--no-such-option' in result.stderr and 'setup.sh' not in result.stderr


def test_user_errors_are_one_line(place):
    result = probe(place, '--fail', 'user')
    assert (result.returncode, result.stderr) == (2, 'probe.py: the file x is bad\n')


def test_system_errors_are_one_line(place):
    result = probe(place, '--fail', 'disk')
    assert (result.returncode, result.stderr) == (1, 'probe.py: /some/file: No space left on device\n')


def test_a_bug_keeps_its_traceback(place):
    result = probe(place, '--fail', 'bug')
    assert result.returncode == 1
    assert 'Traceback' in result.stderr and 'ZeroDivisionError: a bug' in result.stderr


def test_threads_are_set_before_anything_loads(place):
    assert json.loads(probe(place, '--threads', '2').stdout)['threads'] == '2'


def test_output_into_a_closed_pipe_is_no_error_message(place):
    environment = {'PATH': '/usr/bin:/bin', 'CAFFE_PREFIX': str(place / 'with caffe')}
    result = subprocess.run('"%s" "%s" | true' % (place / 'plain' / 'python3', place / 'tools' / 'probe.py'), shell=True,
                            env=environment, stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
    assert 'Traceback' not in result.stderr


@pytest.mark.parametrize('name', arguments.COUNTS)
def test_a_count_of_nothing_is_refused_before_anything_begins(name):
    for value in (1, None):
        arguments.check(argparse.Namespace(**{name: value}))
    for value in (0, -3):
        with pytest.raises(UserError, match='--%s is %d: it must be 1 or more' % (name.replace('_', '-'), value)):
            arguments.check(argparse.Namespace(**{name: value}))


def test_a_seed_may_be_nothing():
    arguments.check(argparse.Namespace(seed=0, gpu=0, record=False))
