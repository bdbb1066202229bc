"""`import bcnn` away from the project: with the Python that has Caffe, and after `pip install .` without a network."""

import os
import subprocess
import zipfile

import pytest

import ownhelp
from bcnn import weights
from bcnn.system import places
from conftest import ROOT

pytestmark = pytest.mark.caffe
SHIPPED = [entry for entry in weights.index() if (entry.dataset, entry.net, entry.seed) == ('mnist', 'lenet_all', 1)]

EXAMPLE = '''
import bcnn
print(bcnn.__file__)
with bcnn.load('deploy.prototxt', 'bright.caffemodel', scale=1/256) as net:
    result = net.predict(['pictures/0/000.png', 'pictures/1/003.png'], T=10)
print(result.best.tolist(), net.names)
try:
    print(bcnn.load(net='lenet_all'))
except bcnn.UserError as error:
    print(error)
'''


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """A folder away from the project with a net of the user's own and pictures."""
    folder = tmp_path_factory.mktemp('elsewhere')
    ownhelp.write_net(folder)
    ownhelp.write_class_folders(folder / 'pictures')
    return folder


def is_of_lenet_all(line, shipped):
    """Whether it is what loading lenet-all must have said: the net where its weights are at hand, else what to do."""
    return ('bcnn net mnist/lenet_all' if shipped else 'tools/train.py --net lenet_all') in line


def said_by(command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def test_the_python_with_caffe_imports_it_from_anywhere(place):
    if 'CONDA_PREFIX' in os.environ:
        pytest.skip('in conda it takes `pip install --no-deps .`')
    said = said_by([os.path.join(ROOT, 'tools', 'python'), '-c', EXAMPLE], cwd=str(place))
    assert said[:2] == [os.path.join(ROOT, 'bcnn', '__init__.py'), '[0, 1] None']
    assert is_of_lenet_all(said[2], SHIPPED or places.furthest('mnist', 'lenet_all', 1))


@pytest.fixture(scope='module')
def pip():
    """pip of the machine, which can install into another Python since 22.3."""
    asked = subprocess.run(['python3', '-m', 'pip', '--python', 'x', '--version'], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           universal_newlines=True)
    if 'No module' in asked.stderr or 'no such option' in asked.stderr:
        pytest.skip('no pip of 22.3 or later here')
    return ['python3', '-m', 'pip', '--disable-pip-version-check', '--no-cache-dir', '--python']


def test_installed_by_pip_without_a_network(pip, place, tmp_path):
    python = tmp_path / 'venv' / 'bin' / 'python'
    said_by([os.path.join(ROOT, 'tools', 'python'), '-m', 'venv', '--system-site-packages', '--without-pip', tmp_path / 'venv'])
    before = set(os.listdir(ROOT))
    said_by(pip + [python, 'install', '--no-index', '--no-deps', '--no-compile', ROOT])
    assert set(os.listdir(ROOT)) == before  # it leaves no build/ behind
    said = said_by([python, '-c', EXAMPLE], cwd=str(place), env=dict(os.environ, BCNN_HOME=str(tmp_path / 'home')))
    assert said[0].startswith(str(tmp_path / 'venv')) and said[1] == '[0, 1] None'
    assert is_of_lenet_all(said[2], SHIPPED)
    asked = 'from bcnn import weights, mc; from bcnn.mc import identity; from bcnn.gallery import page; ' \
            'print(len(weights.index()), len(identity._paper_nets()), len(page.fill({})) > 10000)'
    here = said_by([os.path.join(ROOT, 'tools', 'python'), '-c', asked], cwd=ROOT)
    assert said_by([python, '-c', asked], cwd=str(place)) == here and here[0].endswith('True')


def test_a_wheel_has_what_the_library_reads(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    import build_backend
    with zipfile.ZipFile(str(tmp_path / build_backend.build_wheel(str(tmp_path)))) as wheel:
        names = wheel.namelist()
    assert {'bcnn/__init__.py', 'bcnn/gallery/template/page.js', 'bcnn/shipped/weights/index.json',
            'bcnn/shipped/prototxt/mnist/lenet_all/mc.prototxt'} <= set(names)
    assert not [name for name in names if not name.startswith('bcnn')] and not [name for name in names if '__pycache__' in name]
    with zipfile.ZipFile(str(tmp_path / build_backend.build_editable(str(tmp_path)))) as wheel:
        assert wheel.read('bcnn.pth').decode().strip() == ROOT
