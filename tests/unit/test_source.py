"""The source itself: Python 3.6, no unused names, nothing of this machine, imports where they belong."""

import ast
import glob
import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = sorted(path for pattern in ('bcnn/**/*.py', 'tools/*.py', 'analysis/**/*.py', 'workflow/**/*.py')
                 for path in glob.glob(os.path.join(ROOT, pattern), recursive=True))
TESTS = sorted(glob.glob(os.path.join(ROOT, 'tests', '**', '*.py'), recursive=True))


def relative(path):
    return os.path.relpath(path, ROOT)


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def newer_syntax(source):
    """Lines with syntax after Python 3.6 that the parser of 3.9 still lets pass; vermin knows more."""
    found = []
    for node in ast.walk(ast.parse(source, feature_version=(3, 6))):
        if isinstance(node, ast.NamedExpr) or getattr(node, 'posonlyargs', None):
            found.append(getattr(node, 'lineno', '?'))
        if isinstance(node, ast.ImportFrom) and node.module in ('dataclasses', '__future__'):
            found.append(node.lineno)
    return found


@pytest.mark.parametrize('path', SOURCES, ids=relative)
def test_lines_are_at_most_120_characters(path):
    assert [k for k, line in enumerate(read(path).splitlines(), 1) if len(line) > 120] == []


@pytest.mark.skipif(sys.version_info < (3, 8), reason='Python 3.6 itself parses these files')
@pytest.mark.parametrize('path', SOURCES, ids=relative)
def test_syntax_is_python_3_6(path):
    assert newer_syntax(read(path)) == []


@pytest.mark.skipif(sys.version_info < (3, 8), reason='cannot be written here')
@pytest.mark.parametrize('source', ['if (n := 1): pass', 'from dataclasses import dataclass', 'match x:\n  case 1: pass'])
def test_newer_syntax_is_found(source):
    try:
        assert newer_syntax(source) == [1]
    except SyntaxError:
        pass


@pytest.fixture(scope='session')
def vermin(tmp_path_factory):
    """A command that runs vermin, which knows in which Python each library function appeared."""
    folder = str(tmp_path_factory.mktemp('vermin'))
    install = ['python3', '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps',
               '--target', folder, 'vermin==1.6.0']
    try:
        subprocess.run(install, check=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except (OSError, subprocess.SubprocessError):
        pytest.skip('vermin cannot be installed here: no pip, or no package index')
    return [sys.executable, '-c', 'import sys; sys.path.insert(0, %r); import vermin; sys.exit(vermin.main())' % folder,
            '--target=3.6-', '--violations', '--no-tips', '--eval-annotations', '--backport', 'typing']


def test_library_use_is_python_3_6(vermin):
    result = subprocess.run(vermin + SOURCES, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    assert result.returncode == 0, result.stdout


def test_newer_library_use_is_found(vermin, tmp_path):
    (tmp_path / 'new.py').write_text('import subprocess\nsubprocess.run(["ls"], capture_output=True)\n')
    result = subprocess.run(vermin + [str(tmp_path / 'new.py')], stdout=subprocess.PIPE, universal_newlines=True)
    assert result.returncode == 1
    assert 'capture_output' in result.stdout


def test_pyflakes_finds_nothing():
    pyflakes = pytest.importorskip('pyflakes.api')
    messages = []
    for path in SOURCES + TESTS:
        messages += lint(pyflakes, read(path), relative(path))
    assert messages == []


def test_pyflakes_finds_an_unused_import():
    pyflakes = pytest.importorskip('pyflakes.api')
    assert len(lint(pyflakes, 'import os\n', 'x.py')) == 1
    assert lint(pyflakes, 'import os  # noqa: F401\n', 'x.py') == []


def lint(pyflakes, source, name):
    """pyflakes' messages, but for lines marked noqa."""
    found = []

    class Reporter:
        def unexpectedError(self, filename, message):
            found.append('%s: %s' % (filename, message))

        def syntaxError(self, filename, message, line, offset, text):
            found.append('%s:%s: %s' % (filename, line, message))

        def flake(self, message):
            if 'noqa' not in source.splitlines()[message.lineno - 1]:
                found.append(str(message))

    pyflakes.check(source, name, Reporter())
    return found


def test_only_the_engine_imports_caffe():
    importing = [relative(path) for path in SOURCES if re.search(r'^\s*(import caffe|from caffe)\b', read(path), re.M)]
    assert importing == ['bcnn/engine.py']


def test_no_registry_host_and_no_path_of_a_machine():
    files = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=ROOT,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if files.returncode:
        pytest.skip('not a git checkout')
    hosts = ['deb.' + 'debian.org', 'archive.' + 'debian.org', 'pypi.' + 'org', 'registry.' + 'npmjs', 'conda.' + 'anaconda']
    places = ['/' + 'work/', '/' + 'root/']
    for name in files.stdout.decode().split('\0'):
        path = os.path.join(ROOT, name)
        if not name or not os.path.isfile(path) or name.endswith(('.png', '.pdf')):
            continue
        text = read(path)
        for word in hosts + places:
            assert word not in text, '%s names %s' % (name, word)
