"""bcnn.load(...).predict(...): the numbers of mc_eval.py, from every kind of images; a bad file is an exception."""

import doctest
import os
import shutil
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from PIL import Image

import bcnn
import ownhelp
from bcnn import engine, nets
from bcnn.inputs.preprocessing import Options
from bcnn.mc import evaluation, targets
from conftest import ROOT

pytestmark = pytest.mark.caffe


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    return ownhelp.make_place(tmp_path_factory)


@pytest.fixture(scope='module')
def net(place):
    with bcnn.load(str(place / 'deploy.prototxt'), str(place / 'bright.caffemodel'), scale=1 / 256) as net:
        yield net


@pytest.fixture
def images():
    return np.stack([ownhelp.grey(level)[None] for level in ownhelp.DARK + ownhelp.LIGHT])


LABELS = [0] * 4 + [1] * 4


def stored(place, folder, **settings):
    """images.npz of an evaluation of the pictures as mc_eval.py makes it."""
    target = targets.of_prototxt(str(place / 'deploy.prototxt'), str(place / 'bright.caffemodel'), str(place / 'pictures'),
                                 options=Options(scale=1 / 256))
    settings = evaluation.Settings(**dict(dict(T=20, repeats=2, seed=3, mode='stream'), **settings))
    evaluation.run(target, evaluation.prepare(target, settings), str(folder))
    with np.load(str(folder / 'images.npz')) as arrays:
        return dict(arrays)


@pytest.mark.parametrize('options, mode', [
    ({}, {}), ({'antithetic': True}, {'mode': 'antithetic'}),
    ({'adaptive': 0.05}, {'mode': 'adaptive', 'rule': evaluation.adaptive.Rule(0.05)}), ({'batch': 3}, {'batch': 3}),
    ({'adaptive': 0.05, 'antithetic': True}, {'mode': 'adaptive', 'rule': evaluation.adaptive.Rule(0.05), 'groups': 0})],
    ids=['plain', 'antithetic', 'adaptive', 'batch', 'both'])
def test_the_numbers_are_mc_evals(place, net, images, tmp_path, options, mode):
    theirs = stored(place, tmp_path / 'out', **mode)
    result = net.predict(images, T=20, seed=3, **options)
    assert np.array_equal(result.mean, theirs['mc_probs'][0])
    assert np.array_equal(result.standard, theirs['standard_probs'])
    for name in ('entropy', 'expected_entropy', 'mutual_information', 'variation_ratio', 'passes'):
        assert np.array_equal(getattr(result, name), theirs[name][0]), name
    assert result.best.tolist() == LABELS


@pytest.mark.parametrize('options', [{}, {'antithetic': True}], ids=['independent', 'antithetic'])
def test_samples_and_what_is_made_of_them(net, images, options):
    result = net.predict(images, T=30, keep_samples=True, **options)
    assert result.samples.shape == (30, 8, 2) and result.samples.std(axis=0).max() > 0.01
    assert np.allclose(result.mean, result.samples.mean(axis=0), atol=1e-6)
    assert np.allclose(result.std, result.samples.std(axis=0, ddof=1), atol=1e-6)
    votes = np.array([np.bincount(column, minlength=2).max() for column in result.samples.argmax(axis=2).T])
    assert np.allclose(result.variation_ratio, 1 - votes / 30)
    assert net.predict(images, T=30).samples is None


def test_every_kind_of_images_gives_the_same(place, net, images):
    names = sorted(str(path) for path in (place / 'pictures').rglob('*.png'))
    right = net.predict(images, T=10)
    for same in (images[:, 0], images.transpose(0, 2, 3, 1), images.astype(np.int64), images.astype(np.float64), names,
                 [Image.open(name) for name in names], [Image.open(names[0])] + names[1:]):
        result = net.predict(same, T=10)
        assert np.array_equal(result.mean, right.mean) and np.array_equal(result.standard, right.standard)
    one = net.predict(names[2], T=10)
    assert one.mean.shape == (1, 2) and np.array_equal(one.standard[0], right.standard[2])


def test_relative_names_after_a_change_of_folder(place, images, monkeypatch):
    monkeypatch.chdir(place)
    with bcnn.load('deploy.prototxt', 'bright.caffemodel', scale=1 / 256) as net:
        monkeypatch.chdir(place / 'pictures')
        right = net.predict(images[:1], T=5)
        assert np.array_equal(net.predict('0/000.png', T=5).mean, right.mean)
        net.close()  # and the net is loaded again, from where it was
        assert np.array_equal(net.predict('0/000.png', T=5).mean, right.mean)


@pytest.mark.parametrize('bad, words', [
    (np.zeros((4, 4), np.uint8), 'N,C,H,W'), (np.zeros((2, 3, 4, 4)), 'channels'), (np.zeros((0, 1, 4, 4)), 'shape'),
    (np.array(['x']), 'numbers'), (7, 'int'), ([], 'images are'), ([np.zeros((4, 4))], 'image 0 is ndarray'),
    ('no.png', 'no.png'), (np.zeros((2, 1, 5, 4), np.uint8), '1x5x4'), (np.full((1, 1, 4, 4), np.nan), 'not finite')],
    ids=lambda bad: getattr(bad, 'shape', bad) if not isinstance(bad, str) else bad)
def test_bad_images_are_one_line(net, images, bad, words):
    with pytest.raises(bcnn.UserError, match=words):
        net.predict(bad, T=2)
    assert net.predict(images, T=2).best.tolist() == LABELS  # and the net goes on


@pytest.mark.parametrize('options, words', [
    ({'T': 0}, 'T is 0'), ({'adaptive': 2.0}, 'error probability'), ({'T': 5, 'antithetic': True}, 'nearest is 4 or 6'),
    ({'adaptive': True, 'keep_samples': True}, 'samples'), ({'channels': 'brg'}, 'rgb or bgr'), ({'batch': 0}, 'batch')])
def test_bad_options_are_one_line(net, images, options, words):
    with pytest.raises(bcnn.UserError, match=words):
        net.predict(images, **dict({'T': 4}, **options))


def test_the_order_of_an_arrays_colours(tmp_path):
    """A net that looks at the first colour it gets: blue, as Caffe's nets do."""
    text = ownhelp.DEPLOY.replace('dim: 1 dim: 1', 'dim: 1 dim: 3')

    def first_channel(params):
        params['ip1'][0].data[...] = 0
        params['ip1'][0].data[:, :16] = 1.0 / 16
    (tmp_path / 'net.prototxt').write_text(text)
    ownhelp.save(ownhelp.reading.parse(text), tmp_path / 'w.caffemodel', first_channel)
    blue = np.zeros((1, 4, 4, 3), np.uint8)
    blue[..., 2] = 255  # as PIL and matplotlib have it
    with bcnn.load(tmp_path / 'net.prototxt', tmp_path / 'w.caffemodel', scale=1 / 256) as net:
        assert net.predict(blue, T=2, channels='rgb').best.tolist() == [1]
        assert net.predict(Image.fromarray(blue[0]), T=2).best.tolist() == [1]
        assert net.predict(blue, T=2).best.tolist() == [0]


def test_bad_files_raise_and_end_nothing(place, tmp_path):
    (tmp_path / 'bad.prototxt').write_text(ownhelp.DEPLOY.replace('"InnerProduct"', '"Wonder"'))
    weights = str(place / 'bright.caffemodel')
    for prototxt, caffemodel, words in ((tmp_path / 'bad.prototxt', weights, 'Wonder'),
                                        (tmp_path / 'no.prototxt', weights, 'no such file'),
                                        (place / 'deploy.prototxt', tmp_path / 'bad.prototxt', 'not a caffemodel')):
        with pytest.raises(bcnn.UserError, match=words):
            bcnn.load(str(prototxt), str(caffemodel))
    for wrong in ({}, {'prototxt': 'x'}, {'prototxt': 'x', 'net': 'lenet_all'}, {'net': 'lenet_al'}):
        with pytest.raises(bcnn.UserError):
            bcnn.load(**wrong)


def test_a_net_without_dropout(place, images, tmp_path):
    (tmp_path / 'net.prototxt').write_text(ownhelp.DEPLOY.replace('layer { name: "drop1"', '#'))
    files = str(tmp_path / 'net.prototxt'), str(place / 'bright.caffemodel')
    with pytest.raises(bcnn.UserError, match='no dropout'):
        bcnn.load(*files)
    with bcnn.load(*files, scale=1 / 256, standard_only=True) as net:
        result = net.predict(images)
    assert result.mean is None and result.best.tolist() == LABELS


def test_a_warning_where_a_deploy_net_gets_raw_bytes(place, images, net):
    with bcnn.load(str(place / 'deploy.prototxt'), str(place / 'bright.caffemodel')) as raw:
        with pytest.warns(UserWarning, match='says nothing of scale and mean'):
            raw.predict(images, T=2)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        net.predict(images, T=2)
    with pytest.warns(UserWarning, match='divided by 255'):
        net.predict(images / 255.0, T=2)


def test_the_caffe_process_may_die(net, images):
    before = net.predict(images, T=5).mean
    os.kill(net._process.pid, signal.SIGKILL)
    net._process.wait()
    assert np.array_equal(net.predict(images, T=5).mean, before)
    process = net._process
    threading.Timer(0.5, process.kill).start()
    with pytest.raises(bcnn.UserError, match='has died'):
        net.predict(np.repeat(images, 300, axis=0), T=100000)
    assert np.array_equal(net.predict(images, T=5).mean, before)


def test_an_interrupted_prediction_does_not_spoil_the_next(net, images):
    right = net.predict(images, T=5).mean
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        net.predict(np.repeat(images, 300, axis=0), T=100000)
    assert np.array_equal(net.predict(images, T=5).mean, right)


def in_python(code, cwd, **env):
    """What a script prints, with the Python that has Caffe and no path to this project."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith('OPENBLAS')}
    done = subprocess.run([sys.executable, '-c', 'import sys; sys.path.append(%r)\n' % ROOT + code], cwd=str(cwd),
                          env=dict(environment, **env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_without_a_main_guard_whose_numpy_came_first(place, net, images):
    """numpy has chosen its BLAS settings by then; Caffe's are those of the tools all the same."""
    said = in_python('import numpy, bcnn\n'
                     'net = bcnn.load("deploy.prototxt", "bright.caffemodel", scale=1/256)\n'
                     'r = net.predict(["pictures/0/000.png", "pictures/1/000.png"], T=7)\n'
                     'print(r.mean.tobytes().hex()); print("caffe" in sys.modules)', place)
    right = net.predict(images[[0, 4]], T=7).mean.tobytes().hex()
    assert said.split() == [right, 'False']


def test_no_process_is_left_behind(place):
    said = in_python('import bcnn\nnet = bcnn.load("deploy.prototxt", "bright.caffemodel")\nprint(net._process.pid)', place)
    for _ in range(50):
        if not os.path.exists('/proc/%s' % said.strip()):
            break
        threading.Event().wait(0.1)
    assert not os.path.exists('/proc/%s' % said.strip())


def test_importing_is_light(tmp_path):
    said = in_python('import bcnn\nprint(sorted(name for name in sys.modules if name.split(".")[0] in '
                     '("numpy", "caffe", "google", "bcnn")))', tmp_path)
    assert said.strip() == "['bcnn', 'bcnn.errors']"


def test_a_python_layer_in_the_folder_of_the_script(place, images, tmp_path):
    (tmp_path / 'mylayers.py').write_text(ownhelp.LAYERS)
    (tmp_path / 'net.prototxt').write_text(ownhelp.python_net('half'))
    shutil.copy(str(place / 'bright.caffemodel'), str(tmp_path / 'w.caffemodel'))
    said = in_python('sys.path.insert(0, "")\nimport bcnn, numpy\n'
                     'net = bcnn.load("net.prototxt", "w.caffemodel", scale=1/128)\n'
                     'print(net.predict(numpy.full((1, 1, 4, 4), 200, "uint8"), T=3).best)', tmp_path)
    assert said.strip() == '[1]'


def test_the_docstrings_example_runs(tmp_path, monkeypatch):
    """With the files that a user would have."""
    place = tmp_path / 'mine'
    place.mkdir()
    shutil.copy(os.path.join(ROOT, 'prototxt', 'mnist', 'lenet_all', 'deploy.prototxt'), str(place))
    engine.call(lambda: engine.load_net(nets.deploy('lenet_all', 'mnist')).save(str(place / 'my.caffemodel')))
    monkeypatch.chdir(place)
    found = doctest.DocTestFinder(recurse=False).find(bcnn.load, 'bcnn.load')
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert found and found[0].examples
    for test in found:
        runner.run(test)
    assert runner.failures == 0


def test_a_net_of_the_paper(tmp_path):
    engine.call(lambda: engine.load_net(nets.deploy('lenet_all', 'mnist')).save(str(tmp_path / 'w.caffemodel')))
    with bcnn.load(net='lenet_all', weights=tmp_path / 'w.caffemodel') as net:
        assert net.shape == (1, 28, 28) and net.dropout == ['dropC1', 'dropC2', 'drop1'] and net.names[3] == '3'
        assert net.predict(np.zeros((2, 28, 28), np.uint8), T=3).mean.shape == (2, 10)
