"""The source itself: for which Python, no unused names, nothing of this machine, imports where they belong."""

import ast
import glob
import os
import re
import subprocess
import sys

import pytest

from conftest import project_files

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = sorted(path for pattern in ('bcnn/**/*.py', 'tools/*.py', 'analysis/**/*.py', 'workflow/**/*.py')
                 for path in glob.glob(os.path.join(ROOT, pattern), recursive=True))
TESTS = sorted(glob.glob(os.path.join(ROOT, 'tests', '**', '*.py'), recursive=True))


def relative(path):
    return os.path.relpath(path, ROOT)


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def imported_by(path):
    """The files of ours that are loaded with a file: its imports outside of functions, and theirs."""
    found, todo = set(), [path]
    while todo:
        here = todo.pop()
        found.add(here)
        todo += [place for place in places_of_imports(here) if os.path.isfile(place) and place not in found]
    return found


def places_of_imports(path):
    """Where the modules would be that a file imports at its top, if they were ours."""
    for node in at_the_top(ast.parse(read(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            base = node.module or ''
            if node.level:  # from . import a, from ..b import c
                package = relative(path).split(os.sep)[:-node.level]
                base = '.'.join(package + [base] if base else package)
            names = [base] + ['%s.%s' % (base, alias.name) for alias in node.names]
        for name in names:
            parts = name.split('.')
            for folder in (ROOT, os.path.dirname(path)):  # the scripts of analysis/ find each other by name
                yield os.path.join(folder, *parts) + '.py'
                for k in range(len(parts)):
                    yield os.path.join(folder, *parts[:k + 1] + ['__init__.py'])


def at_the_top(tree):
    """The import statements that run when a module is loaded, those in if and try included."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) and not for_types_only(node):
            yield from at_the_top(node)


def for_types_only(node):
    """Whether it is `if TYPE_CHECKING:`, which never runs."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == 'TYPE_CHECKING'


# Figures are drawn on any machine; what has to do with Caffe runs on conda's Python 3.8 at the oldest.
ANYWHERE = sorted(set().union(*map(imported_by, (path for path in SOURCES if relative(path).startswith('analysis')))))
WITH_CAFFE = sorted(set(SOURCES) - set(ANYWHERE))
OLDEST = [(path, (3, 6)) for path in ANYWHERE] + [(path, (3, 8)) for path in WITH_CAFFE]


def newer_syntax(source, version):
    """Lines with syntax or modules after a version of Python, as far as the parser of this one tells; vermin knows more."""
    try:
        tree = ast.parse(source, feature_version=version)
    except SyntaxError as error:
        return [error.lineno]
    return [getattr(node, 'lineno', '?') for node in ast.walk(tree) if version < since(node)]


def since(node):
    """The Python that brought what the parser of a newer one lets pass."""
    if isinstance(node, ast.NamedExpr) or getattr(node, 'posonlyargs', None):
        return 3, 8
    if isinstance(node, ast.ImportFrom) and node.module in ('dataclasses', '__future__'):
        return 3, 7
    return 3, 0


@pytest.mark.parametrize('path', SOURCES, ids=relative)
def test_lines_are_at_most_120_characters(path):
    assert [k for k, line in enumerate(read(path).splitlines(), 1) if len(line) > 120] == []


def test_what_analysis_loads_is_known():
    """Its own scripts, the paper and the tables; nothing that would need Caffe."""
    names = set(map(relative, ANYWHERE))
    assert {'analysis/fig2.py', 'analysis/records/load.py', 'bcnn/paper.py', 'bcnn/results/schema.py', 'bcnn/__init__.py'} <= names
    assert not {'bcnn/engine.py', 'bcnn/system/store.py', 'bcnn/training/driver.py'} & names and 'bcnn/engine.py' in map(relative, WITH_CAFFE)


@pytest.mark.parametrize('path, version', OLDEST, ids=lambda value: value if isinstance(value, tuple) else relative(value))
def test_syntax_is_of_the_oldest_python(path, version):
    assert newer_syntax(read(path), version) == []


@pytest.mark.parametrize('version, source', [
    ((3, 6), 'if (n := 1): pass'), ((3, 6), 'def f(a, /): pass'), ((3, 6), 'from dataclasses import dataclass'),
    ((3, 6), 'from __future__ import annotations'), ((3, 8), 'match x:\n  case 1: pass')])
def test_newer_syntax_is_found(version, source):
    assert len(newer_syntax('x = 1\n' + source, version)) == 1


def test_syntax_of_the_oldest_python_is_not_found():
    assert newer_syntax("if (n := 1): pass\nfrom dataclasses import dataclass", (3, 8)) == []
    assert newer_syntax("print(f'{1}')", (3, 6)) == []


@pytest.fixture(scope='session')
def vermin(tmp_path_factory):
    """A command that runs vermin, which knows in which Python each library function appeared; a version is to follow."""
    folder = str(tmp_path_factory.mktemp('vermin'))
    install = ['python3', '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps',
               '--target', folder, 'vermin==1.6.0']
    try:
        subprocess.run(install, check=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except (OSError, subprocess.SubprocessError):
        pytest.skip('vermin cannot be installed here: no pip, or no package index')
    return [sys.executable, '-c', 'import sys; sys.path.insert(0, %r); import vermin; sys.exit(vermin.main())' % folder,
            '--violations', '--no-tips', '--eval-annotations']


@pytest.mark.parametrize('version, paths', [('3.6', ANYWHERE), ('3.8', WITH_CAFFE)], ids=['analysis', 'with Caffe'])
def test_library_use_is_of_the_oldest_python(vermin, version, paths):
    result = subprocess.run(vermin + ['--target=%s-' % version] + paths, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            universal_newlines=True)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize('version, source, word', [
    ('3.6', 'import subprocess\nsubprocess.run(["ls"], capture_output=True)\n', 'capture_output'),
    ('3.8', "print('abc'.removeprefix('a'))\n", 'removeprefix'),
    ('3.8', 'def f(x: list[int]): pass\n', 'list')])
def test_newer_library_use_is_found(vermin, tmp_path, version, source, word):
    (tmp_path / 'new.py').write_text(source)
    result = subprocess.run(vermin + ['--target=%s-' % version, str(tmp_path / 'new.py')], stdout=subprocess.PIPE,
                            universal_newlines=True)
    assert result.returncode == 1
    assert word in result.stdout


def linter(name, *options, source=None):
    """What flake8 or isort says of the project, or of a source; test_packages.py sees to it that they are installed."""
    pytest.importorskip(name)
    result = subprocess.run([sys.executable, '-m', name] + list(options), cwd=ROOT, input=source, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, universal_newlines=True)
    return result.returncode, result.stdout


def test_flake8_finds_nothing():
    assert linter('flake8') == (0, '')


def test_imports_are_sorted():
    assert linter('isort', '--check', '.')[0] == 0, linter('isort', '--check', '.')[1]


@pytest.mark.parametrize('name, options, source', [
    ('flake8', ('-',), 'import os\n'), ('flake8', ('-',), 'x = %s\n' % ('1' * 120)), ('flake8', ('-',), 'print( 1)\n'),
    ('isort', ('--check', '-'), 'import sys\nimport os\n\nprint(os, sys)\n')])
def test_linters_find_what_they_should(name, options, source):
    code, said = linter(name, *options, source=source)
    assert code == 1 and said


@pytest.mark.parametrize('folder', ['bcnn/data', 'tests/data'])
def test_linters_look_into_folders_called_as_one_that_is_left_out(folder):
    """data/ and runs/ are left out, at the root only; every file has a docstring of more than one character."""
    names = sorted(relative(path) for path in SOURCES + TESTS if os.path.dirname(relative(path)) == folder)
    assert sorted(linter('flake8', '-q', '--select=W505', '--max-doc-length=1', folder)[1].split()) == names
    assert sorted(map(os.path.normpath, linter('isort', '--show-files', folder)[1].split())) == names


# --- what travels between packages ------------------------------------------------------------------------

def without_hints(source):
    """The names of public functions and methods that lack a hint, for an argument or for what they give back."""
    def look(body, owner):
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
                yield from look(node.body, owner + node.name + '.')
            elif isinstance(node, ast.FunctionDef) and (not node.name.startswith('_') or node.name == '__init__'):
                given = node.args
                arguments = given.args + given.kwonlyargs + [one for one in (given.vararg, given.kwarg) if one]
                hints = [argument.annotation for argument in arguments if argument.arg not in ('self', 'cls')]
                hints += [] if node.name == '__init__' else [node.returns]
                if None in hints:
                    yield owner + node.name
    return list(look(ast.parse(source).body, ''))


@pytest.mark.parametrize('path', [path for path in SOURCES if relative(path).startswith('bcnn')], ids=relative)
def test_public_functions_have_type_hints(path):
    assert without_hints(read(path)) == []


@pytest.mark.parametrize('source, names', [
    ('def f(a: int) -> int: pass\ndef _g(a): pass', []), ('def f(a) -> int: pass', ['f']), ('def f(a: int): pass', ['f']),
    ('class C:\n  def __init__(self, a): pass\n  def m(self): pass', ['C.__init__', 'C.m'])])
def test_a_missing_hint_is_found(source, names):
    assert without_hints(source) == names


def records_of(source):
    """{name: number of fields} of the NamedTuple classes in a source."""
    return {node.name: sum(isinstance(part, ast.AnnAssign) for part in node.body) for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ClassDef) and any(getattr(base, 'id', '') == 'NamedTuple' for base in node.bases)}


def test_records_of_more_than_four_fields_are_classes_built_by_keyword():
    """Those made of a line of a CSV file, by *line, have its order."""
    for path in SOURCES:
        large = {name for name, fields in records_of(read(path)).items() if fields > 4}
        for node in ast.walk(ast.parse(read(path))):
            name = getattr(node.func, 'id', '') if isinstance(node, ast.Call) else ''
            assert name != 'namedtuple', '%s line %d: a class of typing.NamedTuple' % (relative(path), node.lineno)
            if name in large and not any(isinstance(value, ast.Starred) for value in node.args):
                assert len(node.args) < 4, '%s line %d' % (relative(path), node.lineno)


def test_what_begins_as_a_command_can_be_typed_as_one():
    """A line #! and the right to execute, both or neither."""
    for name in project_files():
        path = os.path.join(ROOT, name)
        with open(path, 'rb') as file:
            assert (file.read(2) == b'#!') == os.access(path, os.X_OK), name


def test_only_the_engine_imports_caffe():
    importing = [relative(path) for path in SOURCES if re.search(r'^\s*(import caffe|from caffe)\b', read(path), re.M)]
    assert importing == ['bcnn/engine.py']


def test_no_registry_host_and_no_path_of_a_machine():
    hosts = ['deb.' + 'debian.org', 'archive.' + 'debian.org', 'pypi.' + 'org', 'registry.' + 'npmjs', 'conda.' + 'anaconda']
    places = ['/' + 'work/', '/' + 'root/']
    for name in project_files():
        path = os.path.join(ROOT, name)
        if name.endswith(('.png', '.pdf')):
            continue
        with open(path, 'rb') as file:
            data = file.read()
        for word in hosts + places:
            assert word.encode() not in data, '%s names %s' % (name, word)
