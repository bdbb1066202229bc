"""What importing Caffe loads: modules later or not at all, and as the engine does it with real Caffe."""

import subprocess
import sys

import pytest

from bcnn import imports
from conftest import ROOT


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of a module that can be imported and has not been."""
    name = 'a_module_that_takes_long'
    (tmp_path / (name + '.py')).write_text('value = 5\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


def test_it_is_loaded_when_asked_for_something(module):
    imports.load_later(module)
    stand_in = __import__(module)
    assert isinstance(stand_in, imports.Later)
    assert stand_in.value == 5 and stand_in.value == 5
    assert __import__(module) is not stand_in and __import__(module).value == 5


def test_what_it_does_not_have_is_said(module):
    imports.load_later(module)
    with pytest.raises(AttributeError, match='nothing'):
        __import__(module).nothing


def test_what_is_loaded_stays(module):
    loaded = __import__(module)
    imports.load_later(module)
    with imports.without(module):
        assert __import__(module) is loaded


def test_without(module):
    with imports.without(module), pytest.raises(ImportError):
        __import__(module)
    assert __import__(module).value == 5


ENGINE = '''
import sys
from bcnn import engine
print([name for name in ('skimage', 'scipy', 'matplotlib', 'pkg_resources') if name in sys.modules])
import caffe, numpy
from caffe.io import Transformer
print(Transformer({'data': (1, 3, 4, 4)}).preprocess, caffe.io.resize_image(numpy.ones((2, 2, 1)), (4, 4)).shape)
'''


@pytest.mark.caffe
def test_the_engine_loads_nothing_that_it_does_not_need_and_caffe_is_whole():
    said = subprocess.run([sys.executable, '-c', ENGINE], cwd=ROOT, stdout=subprocess.PIPE, universal_newlines=True, check=True)
    loaded, whole = said.stdout.splitlines()
    assert loaded == '[]' and whole.startswith('<bound method Transformer.preprocess') and whole.endswith('(4, 4, 1)')
