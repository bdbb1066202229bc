"""The rooms of the house: who may know whom, and how large a room may be. docs/design.md says why."""

import ast
import glob
import os
import re
from collections import OrderedDict

import pytest

from conftest import ROOT

BCNN = os.path.join(ROOT, 'bcnn')
MODULES = sorted(os.path.relpath(path, BCNN) for path in glob.glob(os.path.join(BCNN, '**', '*.py'), recursive=True))
MOST_MODULES, MOST_LINES = 12, 350

# room: the rooms of bcnn that it may import, all of them above it. Nothing but tools and tests imports the last four.
BASE = {'errors', 'system'}
PAPER = BASE | {'engine', 'paper', 'beyond', 'nets', 'solvers'}
CAFFE = PAPER | {'prototxt'}
MAY_KNOW = OrderedDict([
    ('errors', set()),
    ('paper', set()),
    ('beyond', {'paper'}),
    ('system', {'errors'}),
    ('imports', set()),
    ('engine', BASE | {'imports'}),
    ('batches', BASE | {'engine'}),
    ('seeds', {'engine', 'errors'}),
    ('selftest', BASE | {'engine'}),
    ('prototxt', BASE | {'engine'}),  # any net's: nothing of the paper's
    ('nets', PAPER - {'nets', 'solvers'}),
    ('solvers', PAPER - {'solvers'}),
    ('net_files', CAFFE),
    ('data', BASE | {'engine', 'paper'}),
    ('weights', PAPER | {'data'}),
    ('inputs', BASE | {'engine', 'data'}),  # a user's images: nothing of nets, so that training, mc and the library share it
    ('mc', CAFFE | {'batches', 'data', 'inputs', 'seeds', 'weights'}),
    ('library', CAFFE | {'data', 'inputs', 'mc', 'seeds'}),  # bcnn.load; its client side imports no Caffe
    ('training', CAFFE | {'batches', 'data', 'inputs', 'seeds', 'mc'}),
    ('results', PAPER | {'data', 'inputs', 'mc', 'training', 'weights'}),
    ('workflow', PAPER | {'data', 'mc', 'training', 'results'}),
    ('studies', CAFFE | {'data', 'inputs', 'seeds', 'mc', 'training', 'weights'}),
    ('gallery', BASE | {'data', 'inputs', 'mc', 'paper'}),  # a page of an evaluation
    ('devices', CAFFE | {'seeds', 'mc', 'training'}),
    ('bench', CAFFE | {'batches', 'data', 'inputs', 'mc', 'results', 'weights'}),
])
# Of each other, training and mc know the public side only.
PUBLIC = {('training', 'mc'): {'adaptive', 'forward', 'running_sums', 'metrics'}}


def room_of(module):
    """'mc' of 'mc/forward.py', 'nets' of 'nets.py'."""
    return module.split(os.sep)[0].replace('.py', '')


def imports_of(module):
    """(room, module in it or None) for each import of bcnn's own, those in functions included."""
    with open(os.path.join(BCNN, module), encoding='utf-8') as file:
        tree = ast.parse(file.read())
    package = module.split(os.sep)[:-1]
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        base = package[:len(package) - node.level + 1] + (node.module.split('.') if node.module else [])
        for alias in node.names:
            path = base + [alias.name]
            yield path[0], path[1] if len(path) > 1 else None


def test_the_table_has_every_room():
    assert {room_of(module) for module in MODULES} - {'__init__'} == set(MAY_KNOW)


def test_no_two_rooms_know_each_other_by_whatever_way():
    """Each knows rooms above it in the table only: there is no way round."""
    rooms = list(MAY_KNOW)
    for place, room in enumerate(rooms):
        assert MAY_KNOW[room] <= set(rooms[:place]), room
    assert not set().union(*MAY_KNOW.values()) & {'studies', 'gallery', 'devices', 'bench'}


@pytest.mark.parametrize('module', [module for module in MODULES if module != '__init__.py'])
def test_a_module_imports_only_what_its_room_may_know(module):
    room = room_of(module)
    for other, part in imports_of(module):
        assert other == room or other in MAY_KNOW[room], '%s imports %s' % (module, other)
        if (room, other) in PUBLIC:
            assert part in PUBLIC[room, other], '%s imports %s.%s' % (module, other, part)


def test_metrics_know_neither_caffe_nor_files():
    assert list(imports_of(os.path.join('mc', 'metrics.py'))) == []


def test_an_import_is_seen():
    assert ('engine', 'TEST') in imports_of('nets.py') and ('system', 'files') in imports_of('mc/evaluation.py')


@pytest.mark.parametrize('package', sorted({os.path.dirname(module) for module in MODULES} - {''}))
def test_a_package_says_what_each_of_its_modules_is_for(package):
    """And what it must not know, or who knows it."""
    with open(os.path.join(BCNN, package, '__init__.py'), encoding='utf-8') as file:
        said = ast.get_docstring(ast.parse(file.read()))
    listed = [name for names in re.findall(r'^    (\w+(?:, \w+)*)   ?', said, re.MULTILINE) for name in names.split(', ')]
    assert sorted(listed) == [os.path.basename(module)[:-3] for module in MODULES
                              if os.path.dirname(module) == package and not module.endswith('__init__.py')]
    assert re.search(r'^(Knows |Nothing else imports it)', said, re.MULTILINE)


def test_no_room_is_crowded():
    folders = {os.path.dirname(module) for module in MODULES}
    for folder in folders:
        here = [module for module in MODULES if os.path.dirname(module) == folder and '__init__' not in module]
        assert len(here) <= MOST_MODULES, '%s has %d modules' % (folder, len(here))


@pytest.mark.parametrize('module', MODULES)
def test_no_module_is_too_long(module):
    with open(os.path.join(BCNN, module), encoding='utf-8') as file:
        assert len(file.readlines()) <= MOST_LINES
