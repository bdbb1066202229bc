"""The commands that write, check, draw and convert nets, started as a user does."""

import glob
import os
import shutil

import numpy as np
import pytest

from bcnn import beyond
from conftest import ROOT, one_clear_line

COMMITTED = os.path.join(ROOT, 'prototxt')


def texts(folder):
    found = {}
    for path in glob.glob(os.path.join(str(folder), '**', '*.prototxt'), recursive=True):
        with open(path, 'rb') as file:
            found[os.path.relpath(path, str(folder))] = file.read()
    return found


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(COMMITTED, str(tmp_path / 'prototxt'))
    return tmp_path / 'prototxt'


# --- writing and checking -----------------------------------------------------------------------------

def test_committed_files_are_what_the_code_writes(tool, tmp_path):
    assert tool('gen_prototxt.py', '--check').returncode == 0
    assert tool('gen_prototxt.py', '--to', tmp_path / 'new').returncode == 0
    assert texts(tmp_path / 'new') == texts(COMMITTED)
    assert tool('gen_prototxt.py', '--to', tmp_path / 'new').stdout == '0 files written, all others are up to date\n'


def test_the_folders_have_the_files_that_they_should(tool):
    whole = {'train_test', 'deploy', 'mc', 'mc_replicate', 'solver'}
    stages = {'train_test', 'train_test_stage1', 'deploy', 'mc', 'mc_replicate'} | {
        'solver_stage%d' % k for k in (1, 2, 3)}
    right = {'mnist/lenet_all': whole, 'mnist/lenet_ip': whole, 'cifar10/lenet_all': whole, 'cifar10/lenet_ip': whole,
             'mnist/lenet_none': {'train_test', 'deploy', 'solver'},
             'cifar10/lenet_none': {'train_test', 'deploy', 'solver'},
             'cifar10/nin': whole, 'cifar10/dsn': stages, 'cifar10/dsn_aug': stages}
    for net in ('lenet_all', 'lenet_ip', 'lenet_none'):
        right['fashion_mnist/' + net] = right['mnist/' + net]
    for net in beyond.VARIATIONS:
        right['mnist/' + net] = whole
    for k in (2, 4, 8, 16, 32):
        for net in ('lenet_all', 'lenet_ip', 'lenet_none'):
            right['mnist_%d/%s' % (k, net)] = {'train_test', 'solver'}
    found = {}
    for path in texts(COMMITTED):
        folder, name = os.path.split(path)
        found.setdefault(folder, set()).add(name[:-len('.prototxt')])
    assert found == right


@pytest.mark.parametrize('damage, words', [
    (lambda folder: (folder / 'cifar10/nin/mc.prototxt').unlink(), 'cifar10/nin/mc.prototxt is missing'),
    (lambda folder: (folder / 'mnist/lenet_ip/solver.prototxt').write_text('base_lr: 1\n'),
     'mnist/lenet_ip/solver.prototxt differs'),
    (lambda folder: (folder / 'mnist/mine.prototxt').write_text(''), 'mnist/mine.prototxt is not made by the code'),
])
def test_check_fails_where_a_file_differs(tool, copy, damage, words):
    damage(copy)
    one_clear_line(tool('gen_prototxt.py', '--check', '--to', copy), words, 'run tools/gen_prototxt.py')


def test_check_sees_windows_line_ends(tool, copy):
    path = copy / 'mnist/lenet_ip/solver.prototxt'
    path.write_bytes(path.read_bytes().replace(b'\n', b'\r\n'))
    one_clear_line(tool('gen_prototxt.py', '--check', '--to', copy), 'mnist/lenet_ip/solver.prototxt differs')
    assert tool('gen_prototxt.py', '--to', copy).returncode == 0
    assert texts(copy) == texts(COMMITTED)


def test_one_net(tool, tmp_path):
    assert tool('gen_prototxt.py', '--net', 'mnist_4/lenet_ip', '--to', tmp_path).returncode == 0
    assert sorted(texts(tmp_path)) == ['mnist_4/lenet_ip/solver.prototxt', 'mnist_4/lenet_ip/train_test.prototxt']
    assert tool('gen_prototxt.py', '--net', 'nin', '--to', tmp_path).returncode == 0
    assert len(texts(tmp_path)) == 2 + 5
    assert tool('gen_prototxt.py', '--net', 'nin', '--check', '--to', tmp_path).returncode == 0


@pytest.mark.parametrize('name, words', [
    ('lenet', "no net 'lenet'; there are: lenet_"), ('cifar/nin', "no data set 'cifar'; there are: cifar10"),
    ('../../etc', "no data set '../..'")])
def test_unknown_nets_are_refused_in_one_line(tool, tmp_path, name, words):
    one_clear_line(tool('gen_prototxt.py', '--net', name, '--to', tmp_path), words)
    assert not texts(tmp_path)


def test_a_folder_that_cannot_be_written(tool, tmp_path):
    (tmp_path / 'file').write_text('')
    one_clear_line(tool('gen_prototxt.py', '--to', tmp_path / 'file'), 'file')


def test_every_file_says_what_it_is_and_who_made_it():
    for path, text in texts(COMMITTED).items():
        lines = text.decode('ascii').splitlines()
        dataset, net, _ = path.split(os.sep)
        assert lines[0].startswith('# %s on %s: ' % (net, dataset)), path
        assert any('tools/gen_prototxt.py' in line for line in lines[:6]), path
        assert max(map(len, lines)) <= 120, path
        if 'solver' in path:
            assert 'caffe train --solver=prototxt/%s' % path in text.decode('ascii')


# --- pictures -----------------------------------------------------------------------------------------

def test_draw_a_png(tool, tmp_path):
    path = tmp_path / 'dsn.png'
    assert tool('gen_prototxt.py', '--net', 'dsn', '--draw', path).returncode == 0
    from matplotlib.image import imread
    picture = imread(str(path))[..., :3]
    assert min(picture.shape[:2]) > 400
    colours = {tuple(colour) for colour in (picture.reshape(-1, 3) * 255).round().astype(int)}
    # the part before dropout, the part after it, the dropout layers
    assert {(0xdc, 0xe8, 0xf5), (0xfd, 0xeb, 0xd3), (0xf2, 0xa2, 0x3c)} <= colours
    assert np.mean(picture.min(2) == 1) > 0.3  # and white paper


def test_draw_an_svg_with_names_and_shapes(tool, tmp_path):
    for name in ('a.svg', 'b.svg'):
        assert tool('gen_prototxt.py', '--net', 'mnist/lenet_all', '--draw', tmp_path / name).returncode == 0
    text = (tmp_path / 'a.svg').read_text()
    assert text == (tmp_path / 'b.svg').read_text()
    for words in ('lenet_all on mnist', 'dropC1', 'dropout, p = 0.5', '20 x 24 x 24', '400,500 parameters',
                  'computed once', 'random: once for each sample'):
        assert '<!-- %s -->' % words in text
    assert tool('gen_prototxt.py', '--net', 'mnist/lenet_none', '--draw', tmp_path / 'c.svg').returncode == 0
    assert 'random' not in (tmp_path / 'c.svg').read_text()


@pytest.mark.parametrize('options, words', [
    (['--draw', 'x.png'], 'which net to draw?'), (['--net', 'nin', '--draw', 'x.gif'], 'ends in .png'),
    (['--net', 'lenet_all', '--draw', 'x.png'], 'of several data sets: name one'),
    (['--net', 'nin', '--draw', 'no/such/folder/x.png'], 'no/such/folder')])
def test_pictures_that_cannot_be(tool, tmp_path, options, words):
    one_clear_line(tool('gen_prototxt.py', *options, cwd=tmp_path), words)
    assert os.listdir(str(tmp_path)) == []


# --- a user's own net -----------------------------------------------------------------------------------

def test_convert_a_training_file(tool, tmp_path):
    source = os.path.join(COMMITTED, 'mnist', 'lenet_all', 'train_test.prototxt')
    result = tool('convert_net.py', source, '--to', tmp_path / 'out', '--shape', '1,28,28',
                  '--draw', tmp_path / 'x.png')
    assert result.returncode == 0, result.stderr
    assert 'dropout: dropC1, dropC2, drop1; class probabilities: prob' in result.stdout
    assert 'scale: 0.00390625' in result.stdout
    assert sorted(texts(tmp_path / 'out')) == ['deploy.prototxt', 'mc.prototxt']
    for name in ('deploy', 'mc'):
        made = texts(tmp_path / 'out')[name + '.prototxt'].decode().split('name:', 1)[1]
        right = texts(COMMITTED)['mnist/lenet_all/%s.prototxt' % name].decode().split('name:', 1)[1]
        assert made == right
    assert (tmp_path / 'x.png').exists()


NIN = os.path.join(COMMITTED, 'cifar10', 'nin', 'train_test.prototxt')
GOOD = 'input: "data" input_dim: 1 input_dim: 3 input_dim: 4 input_dim: 4\n'


@pytest.mark.parametrize('content, words', [
    (b'', 'no layer in it'),
    (b'layer {\n  nam: "a"\n}', ':2:3: Message type "caffe.LayerParameter" has no field named "nam"'),
    (b'\x08\x96\x01\x00\xff\xfe', 'not a prototxt but a binary file'),
    (GOOD.encode() + b'layer { name: "p" type: "Softmax" bottom: "data" top: "p" }', 'no dropout layer'),
    (GOOD.encode() + b'layer { name: "d" type: "Dropout" bottom: "data" top: "d" }\n'
     b'layer { name: "w" type: "Wonder" bottom: "d" top: "w" }\n'
     b'layer { name: "p" type: "Softmax" bottom: "w" top: "p" }',
     'Unknown layer type: Wonder'),
])
def test_bad_files_in_one_line(tool, tmp_path, content, words):
    path = tmp_path / 'net.prototxt'
    path.write_bytes(content)
    one_clear_line(tool('convert_net.py', path, '--to', tmp_path / 'out'), 'net.prototxt', words)
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('options, words', [
    ([NIN], 'give their shape, for example --shape 3,32,32'), ([NIN, '--shape', '3,5,5'], '(layer pool3)'),
    ([NIN, '--shape', '3,x'], '--shape 3,x: not of the form 3,32,32'),
    (['nowhere.prototxt'], 'nowhere.prototxt: No such file')])
def test_bad_options_in_one_line(tool, tmp_path, options, words):
    one_clear_line(tool('convert_net.py', *(options + ['--to', tmp_path / 'out'])), words)
    assert not (tmp_path / 'out').exists()


@pytest.mark.parametrize('name', ['gen_prototxt.py', 'convert_net.py'])
def test_help_has_an_example(tool, name):
    result = tool(name, '--help')
    assert result.returncode == 0 and 'python tools/%s' % name in result.stdout
