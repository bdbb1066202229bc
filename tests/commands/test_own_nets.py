"""A user's own net and pictures by tools/mc_eval.py: right numbers, or one clear line; never silent nonsense."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import ownhelp
from bcnn.engine import caffe_pb2
from bcnn.prototxt import reading, rewriting
from bcnn.results import csv_tables
from conftest import ROOT, one_clear_line


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    return ownhelp.make_place(tmp_path_factory)


@pytest.fixture
def mc_eval(tool, place, tmp_path):
    """Runs mc_eval.py in the folder of the net; data are the pictures unless given."""
    def run(*words, prototxt='deploy.prototxt', data='pictures', weights='bright.caffemodel', out='out', cwd=place, **options):
        return tool('mc_eval.py', '--prototxt', prototxt, '--weights', weights, '--data', data, '--T', 20, '--repeats', 1,
                    '--jobs', 1, '--out', tmp_path / out, *words, cwd=cwd, **options)
    return run


def errors(result, folder):
    """Standard error in percent of an evaluation that worked."""
    assert result.returncode == 0, result.stderr
    return json.loads((folder / 'out' / 'result.json').read_text())['standard']['error']


# --- 1: what is done to the images ------------------------------------------------------------------------

def test_a_deploy_net_gets_what_the_user_says_and_a_warning_if_they_say_nothing(mc_eval, place, tmp_path):
    raw = mc_eval()
    assert errors(raw, tmp_path) == 50  # the dark ones: nonsense, but said
    assert 'done to them: grey' in raw.stdout.splitlines()[0] and 'times' not in raw.stdout
    assert raw.stderr.startswith('warning: deploy.prototxt says nothing of scale and mean') and '--scale' in raw.stderr
    scaled = mc_eval('--scale', '1/256', out='scaled/out')
    assert errors(scaled, tmp_path / 'scaled') == 0
    assert 'times 0.00390625' in scaled.stdout.splitlines()[0] and scaled.stderr == ''
    assert mc_eval('--scale', '1', out='one').stderr == ''


def test_the_warning_names_the_values_of_a_train_val_beside(mc_eval, place):
    try:
        (place / 'train_val.prototxt').write_text(ownhelp.TRAIN_VAL.replace('scale:', 'mean_value: 3 scale:'))
        (place / 'solver.prototxt').write_text('net: "train_val.prototxt"')
        assert 'train_val.prototxt beside it has --scale 0.00390625 --mean 3' in mc_eval().stderr
    finally:
        (place / 'train_val.prototxt').unlink()
        (place / 'solver.prototxt').unlink()


def test_a_mean_image_and_a_mean_that_is_elsewhere(mc_eval, place, tmp_path):
    """A train_val whose mean file is not there is served by --mean, as a deploy net is."""
    text = ownhelp.TRAIN_VAL.replace('scale:', 'mean_file: "elsewhere/mean.binaryproto" scale:')
    (tmp_path / 'mine.prototxt').write_text(text)
    refused = mc_eval(prototxt=tmp_path / 'mine.prototxt')
    one_clear_line(refused, 'elsewhere/mean.binaryproto', '--mean FILE')
    blob = caffe_pb2.BlobProto(num=1, channels=1, height=4, width=4, data=[100] * 16)
    (tmp_path / 'mean.binaryproto').write_bytes(blob.SerializeToString())
    result = mc_eval('--mean', tmp_path / 'mean.binaryproto', prototxt=tmp_path / 'mine.prototxt')
    assert errors(result, tmp_path) == 37.5  # 150, 180 and 210 less 100 are below 128
    assert 'less the mean image, on average 100; times 0.00390625' in result.stdout


def test_colours_in_the_order_that_the_net_takes(tool, tmp_path):
    """A net that sees red first: class 1 by the first channel alone."""
    from PIL import Image
    text = ownhelp.DEPLOY.replace('dim: 1 dim: 1', 'dim: 1 dim: 3')
    (tmp_path / 'net.prototxt').write_text(text)

    def first_channel(params):
        weights = params['ip1'][0].data
        weights[...] = 0
        weights[:, :16] = 1.0 / 16
    ownhelp.save(rewriting.to_deploy(reading.parse(text)), tmp_path / 'w.caffemodel', first_channel)
    for label, colour in ((0, (10, 10, 250)), (1, (250, 10, 10))):  # blue, red
        (tmp_path / 'pictures' / str(label)).mkdir(parents=True)
        Image.new('RGB', (4, 4), colour).save(str(tmp_path / 'pictures' / str(label) / 'x.png'))
    wrong = {}
    for order in ('rgb', 'bgr'):
        result = tool('mc_eval.py', '--prototxt', tmp_path / 'net.prototxt', '--weights', tmp_path / 'w.caffemodel', '--data',
                      tmp_path / 'pictures', '--scale', '1/256', '--channels', order, '--standard-only', '--out',
                      tmp_path / order / 'out')
        wrong[order] = errors(result, tmp_path / order)
        assert {'rgb': 'red, green, blue', 'bgr': 'blue, green, red'}[order] in result.stdout
    assert wrong == {'rgb': 0, 'bgr': 100}


# --- 2: labels ------------------------------------------------------------------------------------------

def test_a_folder_named_by_a_number_is_that_class(mc_eval, place, tmp_path):
    """A single folder 1 was class 0 once: an error of 100%, exit code 0."""
    ownhelp.write_pictures(tmp_path / 'light' / '1', ownhelp.LIGHT)
    result = mc_eval('--scale', '1/256', data=tmp_path / 'light')
    assert errors(result, tmp_path) == 0
    assert 'labels: the numbers that the folders are named by' in result.stdout


def test_folders_with_names(mc_eval, place, tmp_path):
    ownhelp.write_pictures(tmp_path / 'named' / 'a light one', ownhelp.LIGHT)
    ownhelp.write_pictures(tmp_path / 'named' / 'b dark one', ownhelp.DARK)
    result = mc_eval('--scale', '1/256', data=tmp_path / 'named')
    assert errors(result, tmp_path) == 100  # by order of name they are the wrong way round, which is printed
    assert 'labels: folders numbered in order of name, 0 a light one, 1 b dark one' in result.stdout
    (tmp_path / 'classes.txt').write_text('b dark one\na light one\n')
    result = mc_eval('--scale', '1/256', '--classes', tmp_path / 'classes.txt', data=tmp_path / 'named', out='again/out')
    assert errors(result, tmp_path / 'again') == 0
    rows = (tmp_path / 'again' / 'out' / 'images.csv').read_text().splitlines()
    assert rows[0].startswith('image,file,label,') and rows[1].startswith('0,b dark one/000.png,0,')
    one_clear_line(mc_eval('--classes', tmp_path / 'none.txt', data=tmp_path / 'named', out='third'), 'none.txt')


# --- 3 and 7: which output --------------------------------------------------------------------------------

def test_dense_outputs_are_refused(mc_eval, tmp_path):
    text = ownhelp.INPUT + '''
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 3 kernel_size: 1 } }
layer { name: "drop" type: "Dropout" bottom: "conv" top: "drop" }
layer { name: "prob" type: "Softmax" bottom: "drop" top: "prob" }'''
    (tmp_path / 'seg.prototxt').write_text(text)
    save_any(text, tmp_path / 'seg.caffemodel')
    one_clear_line(mc_eval(prototxt=tmp_path / 'seg.prototxt', weights=tmp_path / 'seg.caffemodel'), "'prob'", '3x4x4',
                   'segmentation')


def save_any(text, path):
    from bcnn import engine
    engine.call(lambda: engine.load_net(reading.parse(text)).save(str(path)))


TWO_HEADS = ownhelp.DEPLOY + '''
layer { name: "other" type: "InnerProduct" bottom: "ip1" top: "other" inner_product_param { num_output: 2 } }
layer { name: "prob2" type: "Softmax" bottom: "other" top: "prob2" }
'''


def test_two_heads_are_asked_about_and_the_scores_are_named(mc_eval, place, tmp_path):
    (tmp_path / 'two.prototxt').write_text(TWO_HEADS)
    ownhelp.save(reading.parse(TWO_HEADS), tmp_path / 'two.caffemodel')
    words = dict(prototxt=tmp_path / 'two.prototxt', weights=tmp_path / 'two.caffemodel')
    one_clear_line(mc_eval('--scale', '1/256', **words), 'several outputs', 'ip2, other', '--output')
    result = mc_eval('--scale', '1/256', '--output', 'ip2', **words)
    assert errors(result, tmp_path) == 0 and 'scores: the blob ip2; probabilities: prob' in result.stdout
    result = mc_eval('--scale', '1/256', '--output', 'prob2', out='other/out', **words)
    assert errors(result, tmp_path / 'other') == 100  # its weights are zero: a tie is wrong
    assert 'scores: the blob other; probabilities: prob2' in result.stdout


# --- 4: numbers that are none -----------------------------------------------------------------------------

def test_weights_that_are_not_finite_stop_it(mc_eval, place, tmp_path):
    def spoil(params):
        params['ip2'][0].data[1, 3] = float('nan')
    ownhelp.save(rewriting.to_deploy(reading.parse(ownhelp.DEPLOY)), tmp_path / 'nan.caffemodel', spoil)
    for k, mode in enumerate([(), ('--adaptive',), ('--mode', 'replicate'), ('--sampler', 'antithetic')]):
        result = mc_eval('--scale', '1/256', *mode, weights=tmp_path / 'nan.caffemodel', out=str(k))
        one_clear_line(result, 'image 0 (0/000.png)', "blob 'ip2'", 'not finite')
    assert not list(tmp_path.glob('*/result.json'))


def test_an_image_that_is_not_finite_is_named(mc_eval, tmp_path):
    images = np.ones((7, 1, 4, 4), np.float32)
    images[5, 0, 2, 2] = np.inf
    np.savez(str(tmp_path / 'x.npz'), images=images, labels=np.zeros(7, int))
    one_clear_line(mc_eval('--batch', 2, data=tmp_path / 'x.npz'), 'image 5', "blob 'data'")


# --- 5: what is of the paper --------------------------------------------------------------------------------

def test_own_evaluations_are_recorded_as_own_and_compared_in_pairs(tool, mc_eval, tmp_path):
    """Two evaluations of the same pictures, under the names that the user gave them."""
    for name, scale in (('good', '1/256'), ('raw', '1')):
        assert mc_eval('--scale', scale, '--name', name, out='runs/%s' % name).returncode == 0
    result = tool('record.py', tmp_path / 'runs', '--results', tmp_path / 'results', '--data', tmp_path)
    assert result.returncode == 0, result.stderr
    rows = csv_tables.read(str(tmp_path / 'results'), 'evaluations')
    assert {(row['experiment'], row['dataset'], row['net'], row['weights']) for row in rows} == {
        ('other', 'own', 'good', 'unknown'), ('other', 'own', 'raw', 'unknown')}
    standard = {row['net']: row['errors'] for row in rows if row['method'] == 'standard'}
    assert standard == {'good': 0, 'raw': 4}
    pairs = subprocess.run([sys.executable, os.path.join(ROOT, 'analysis', 'compare.py'), '--results', str(tmp_path / 'results')],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    assert pairs.returncode == 0, pairs.stdout
    found = [re.split('  +', line.strip())[:5] for line in pairs.stdout.splitlines()]
    assert ['good Standard on own', 'raw Standard on own', '8', '4.0', '0.0'] in found  # what is done to them may differ


def test_a_net_of_the_paper_on_own_pictures_is_own(tool, tmp_path):
    """The report's calibration of lenet-ip was once moved by such rows."""
    from bcnn import engine, nets
    engine.call(lambda: engine.load_net(nets.deploy('lenet_ip', 'mnist')).save(str(tmp_path / 'w.caffemodel')))
    ownhelp.write_class_folders(tmp_path / 'pictures', (28, 28))
    result = tool('mc_eval.py', '--net', 'lenet_ip', '--weights', tmp_path / 'w.caffemodel', '--data', tmp_path / 'pictures',
                  '--T', 2, '--repeats', 1, '--out', tmp_path / 'runs' / 'x')
    assert result.returncode == 0, result.stderr
    assert tool('record.py', tmp_path / 'runs', '--results', tmp_path / 'results').returncode == 0
    assert {(row['dataset'], row['net']) for row in csv_tables.read(str(tmp_path / 'results'), 'evaluations')} == {
        ('own', 'lenet_ip')}


# --- 6: geometry ------------------------------------------------------------------------------------------

def test_pictures_of_another_size_than_the_net_takes(mc_eval, place, tmp_path):
    """A deploy net of 4 pixels on pictures of 8: its fully connected layer would not even have fitted."""
    ownhelp.write_class_folders(tmp_path / 'large', (8, 8))
    one_clear_line(mc_eval('--scale', '1/256', data=tmp_path / 'large'), '1x8x8', '1x4x4', '--resize 4,4', '--crop 4')
    for k, words in enumerate([('--resize', '4,4'), ('--crop', 4), ('--resize', '6,9', '--crop', 4)]):
        result = mc_eval('--scale', '1/256', *words, data=tmp_path / 'large', out='%d/out' % k)
        assert errors(result, tmp_path / str(k)) == 0


def test_a_net_that_would_run_on_any_size_does_not_run_on_the_wrong_one(mc_eval, tmp_path):
    """Convolutions and global pooling fit every size: once a net of 4 pixels ran on pictures of 8 without a word."""
    text = ownhelp.INPUT + '''
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param { num_output: 2 kernel_size: 3 } }
layer { name: "drop" type: "Dropout" bottom: "conv" top: "drop" }
layer { name: "pool" type: "Pooling" bottom: "drop" top: "pool" pooling_param { pool: AVE global_pooling: true } }
layer { name: "prob" type: "Softmax" bottom: "pool" top: "prob" }'''
    (tmp_path / 'conv.prototxt').write_text(text)
    save_any(text, tmp_path / 'conv.caffemodel')
    ownhelp.write_class_folders(tmp_path / 'large', (8, 8))
    words = dict(prototxt=tmp_path / 'conv.prototxt', weights=tmp_path / 'conv.caffemodel', data=tmp_path / 'large')
    one_clear_line(mc_eval(**words), '1x8x8', '1x4x4', '--shape 1,8,8')
    assert mc_eval('--shape', '1,8,8', **words).returncode == 0


def test_an_image_data_layer_is_done_as_it_says(mc_eval, place, tmp_path):
    """Colour pictures of 8 x 8 for a grey net of 4 x 4: all of it stands in the prototxt."""
    from PIL import Image
    data = ('layer { name: "data" type: "ImageData" top: "data" top: "label" transform_param { scale: 0.00390625 crop_size: 4 }'
            ' image_data_param { source: "x" batch_size: 1 new_height: 6 new_width: 5 is_color: false } }\n')
    (tmp_path / 'mine.prototxt').write_text(data + ownhelp.BODY + ownhelp.LOSS)
    for label, levels in ((0, ownhelp.DARK), (1, ownhelp.LIGHT)):
        (tmp_path / 'colour' / str(label)).mkdir(parents=True)
        for level in levels:
            Image.new('RGB', (8, 8), (level,) * 3).save(str(tmp_path / 'colour' / str(label) / ('%d.png' % level)))
    result = mc_eval(prototxt=tmp_path / 'mine.prototxt', data=tmp_path / 'colour')
    assert errors(result, tmp_path) == 0
    assert 'grey; resized to 6 x 5; the centre of 4 x 4; times 0.00390625' in result.stdout


def test_weights_that_do_not_fit_the_size_of_the_images_are_not_blamed_alone(mc_eval, place, tmp_path):
    (tmp_path / 'mine.prototxt').write_text(ownhelp.TRAIN_VAL)
    ownhelp.write_class_folders(tmp_path / 'large', (8, 8))
    one_clear_line(mc_eval(prototxt=tmp_path / 'mine.prototxt', data=tmp_path / 'large'), 'layer ip1', '1x8x8', '--resize')


# --- 8: Python layers -------------------------------------------------------------------------------------

def test_a_python_layer_of_the_users_own_runs(mc_eval, place, tmp_path):
    """Half of twice the scale: the same classes as without the layer. The module is found by PYTHONPATH."""
    (tmp_path / 'modules').mkdir()
    (tmp_path / 'modules' / 'mylayers.py').write_text(ownhelp.LAYERS)
    (tmp_path / 'net.prototxt').write_text(ownhelp.python_net('half'))
    there = {'PYTHONPATH': str(tmp_path / 'modules')}
    result = mc_eval('--scale', '1/128', prototxt=tmp_path / 'net.prototxt', env=there)
    assert errors(result, tmp_path) == 0
    one_clear_line(mc_eval('--scale', '1/128', prototxt=tmp_path / 'net.prototxt', out='other'), 'mylayers', 'PYTHONPATH', 'half')


@pytest.mark.parametrize('kind, words', [('Broken', ['broken', 'KeyError', 'of the user', 'mylayers.py, line 21']),
                                         ('None', ['AttributeError', 'None', 'broken'])])
def test_what_a_python_layer_raises_is_one_line(mc_eval, place, tmp_path, kind, words):
    (tmp_path / 'mylayers.py').write_text(ownhelp.LAYERS)
    (tmp_path / 'net.prototxt').write_text(ownhelp.python_net('broken', kind=kind))
    result = mc_eval('--scale', '1/128', prototxt=tmp_path / 'net.prototxt', env={'PYTHONPATH': str(tmp_path)})
    one_clear_line(result, *words)


# --- 9: smaller things ------------------------------------------------------------------------------------

@pytest.mark.parametrize('text, words', [
    ('net: "train_val.prototxt"\nbase_lr: 0.1\n', ['a solver file', 'the net that it names, train_val.prototxt']),
    (ownhelp.DEPLOY.replace(ownhelp.SOFTMAX, '') + 'layer { name: "target" type: "Input" top: "target" }\n'
     'layer { name: "loss" type: "EuclideanLoss" bottom: "ip2" bottom: "target" }', ['a regression net', "'loss'", 'EuclideanLoss']),
    (ownhelp.INPUT + ownhelp.INPUT.replace('"data"', '"side"') +
     'layer { name: "sum" type: "Eltwise" bottom: "data" bottom: "side" top: "sum" }\n' +
     ownhelp.BODY.replace('bottom: "data"', 'bottom: "sum"') + ownhelp.SOFTMAX, ['2 inputs (data, side)']),
    (ownhelp.DEPLOY.replace('layer { name: "drop1"', '#'), ['no dropout layer', 'train_val']),
    ('layers { layer { name: "old" type: "conv" } }', ['V0', '/bin/upgrade_net_proto_text']),
], ids=['solver', 'regression', 'two inputs', 'no dropout', 'V0'])
def test_what_a_net_is_is_said(mc_eval, tmp_path, text, words):
    (tmp_path / 'x.prototxt').write_text(text)
    one_clear_line(mc_eval(prototxt=tmp_path / 'x.prototxt'), 'x.prototxt', *words)


def test_no_dropout_in_a_deploy_but_in_the_train_val_beside(mc_eval, place, tmp_path):
    (tmp_path / 'deploy.prototxt').write_text(ownhelp.DEPLOY.replace('layer { name: "drop1"', '#'))
    (tmp_path / 'train_val.prototxt').write_text(ownhelp.TRAIN_VAL)
    one_clear_line(mc_eval(prototxt=tmp_path / 'deploy.prototxt'), 'train_val.prototxt beside it has drop1')


def test_names_of_nets_and_folders(tool, place, tmp_path):
    """A net called deploy goes by its folder; an evaluation without passes is not called T100."""
    words = ['--prototxt', 'deploy.prototxt', '--weights', 'bright.caffemodel', '--data', 'pictures', '--scale', '1/256']
    script = ("import sys; sys.path.insert(0, %r); sys.argv[0] = 'mc_eval.py'; import mc_eval; "
              "from bcnn.system import places; places.evaluations.__defaults__ = (%r,); "
              "mc_eval.start(mc_eval.make_parser(), mc_eval.run)") % (os.path.join(ROOT, 'tools'), str(tmp_path))
    for more, shape in ((('--standard-only',), 'bright-bright/mc/standard-'), (('--T', '3'), 'bright-bright/mc/T3-'),
                        (('--T', '3', '--name', 'my net'), 'my net-bright/mc/T3-')):
        said = tool('python', '-c', script, *(words + list(more)), cwd=place)
        assert said.returncode == 0, said.stderr
        assert shape in said.stdout.splitlines()[-1]
    one_clear_line(tool('mc_eval.py', '--name', 'a/b', *words, cwd=place), "--name 'a/b'")


def test_two_inputs_can_be_given_their_shapes(tool, tmp_path):
    text = ''.join('layer { name: "%s" type: "Data" top: "%s" data_param { batch_size: 2 } }\n' % (name, name) for name in 'xy')
    text += ('layer { name: "sum" type: "Eltwise" bottom: "x" bottom: "y" top: "sum" }\n'
             'layer { name: "drop" type: "Dropout" bottom: "sum" top: "drop" }\n'
             'layer { name: "prob" type: "Softmax" bottom: "drop" top: "prob" }\n')
    (tmp_path / 'two.prototxt').write_text(text)
    words = [tmp_path / 'two.prototxt', '--to', tmp_path / 'out']
    one_clear_line(tool('convert_net.py', '--shape', '3,4,4', *words), '--shape x=3,32,32 --shape y=3,32,32')
    one_clear_line(tool('convert_net.py', '--shape', 'x=3,4,4', '--shape', 'z=3,4,4', *words), "no input 'z'")
    result = tool('convert_net.py', '--shape', 'x=3,4,4', '--shape', 'y=3,4,4', *words)
    assert result.returncode == 0, result.stderr
