"""tools/predict.py as people type it: a line a picture, a table, a drawing; every refusal is one line."""

import csv
import os

import numpy as np
import pytest
from PIL import Image

import ownhelp
from bcnn import engine, nets
from conftest import one_clear_line


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp('predict')
    ownhelp.write_net(place)
    ownhelp.write_class_folders(place / 'pictures')
    (place / 'classes.txt').write_text('dark\nlight\n')
    engine.call(lambda: engine.load_net(nets.deploy('lenet_all', 'mnist')).save(str(place / 'lenet.caffemodel')))
    return place


OWN = ('--prototxt', 'deploy.prototxt', '--weights', 'bright.caffemodel', '--jobs', 1)


def test_a_line_a_picture(tool, place):
    result = tool('predict.py', *OWN + ('--scale', '1/256', '--classes', 'classes.txt', 'pictures/0/000.png',
                                        'pictures/1/003.png', 'pictures/1/000.png'), cwd=place)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert 'times 0.00390625' in lines[0]
    head = lines.index('picture             class  MC              Standard     entropy  mutual inf.')
    words = [line.split() for line in lines[head + 1:head + 4]]
    assert [row[0] for row in words] == ['pictures/0/000.png', 'pictures/1/003.png', 'pictures/1/000.png']
    assert [row[1] for row in words] == ['dark', 'light', 'light'] and [row[5] for row in words] == ['dark', 'light', 'light']
    assert [row[-1] == 'unsure' for row in words] == [False, False, True]  # the last is near the border
    assert lines[-1] == 'unsure: an entropy above 0.5 nats; the most that 2 classes can have is 0.69'


def test_the_table_and_the_drawing(tool, place, tmp_path):
    names = ['pictures/%d/%03d.png' % (k, i) for k in (0, 1) for i in range(4)]
    result = tool('predict.py', *OWN + ('--scale', '1/256', '--csv', tmp_path / 'x.csv', '--draw', tmp_path / 'x.png',
                                        '--unsure', 0.1, '--T', 20) + tuple(names), cwd=place)
    assert result.returncode == 0, result.stderr
    with open(str(tmp_path / 'x.csv')) as file:
        rows = list(csv.DictReader(file))
    assert [row['file'] for row in rows] == names and [row['class'] for row in rows] == list('00001111')
    for row in rows:
        assert float(row['mc 0']) + float(row['mc 1']) == pytest.approx(1, abs=1e-5)
        assert row['mc_p'] == row['mc ' + row['class']] and float(row['std 0']) == pytest.approx(float(row['mc_std']), rel=1e-3)
        assert (row['unsure'] == 'yes') == (float(row['entropy']) > 0.1) and row['passes'] == '20'
    drawing = np.asarray(Image.open(str(tmp_path / 'x.png')).convert('RGB'), int)
    assert drawing.shape[0] > 8 * 150
    blue = (np.abs(drawing - [0x3b, 0x75, 0xaf]).sum(axis=2) < 30).sum()
    red = (np.abs(drawing - [0xc4, 0x4e, 0x52]).sum(axis=2) < 30).sum()
    assert blue > 5000 and red > 8 * 10  # bars, and a mark for Standard in each row


def test_photos_of_digits_are_made_like_mnists_and_that_is_said(tool, place, tmp_path):
    page = np.full((200, 300), 230, np.uint8)
    page[40:160, 60:80] = 20
    Image.fromarray(page).save(str(tmp_path / 'one.jpg'))
    words = ('--net', 'lenet_all', '--weights', place / 'lenet.caffemodel', '--T', 3, '--jobs', 1, tmp_path / 'one.jpg')
    result = tool('predict.py', *words, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert 'one.jpg: grey, inverted, cut to the ink' in result.stdout and 'scaled to 20, centred' in result.stdout
    one_clear_line(tool('predict.py', '--as-it-is', *words, cwd=tmp_path), '1x200x300', '--resize 28,28')
    result = tool('predict.py', '--resize', '28,28', *words, cwd=tmp_path)
    assert result.returncode == 0 and 'inverted' not in result.stdout and 'resized to 28 x 28' in result.stdout


@pytest.mark.parametrize('words, parts', [
    (OWN, ['PICTURE']),
    (OWN + ('no.png',), ['no.png', 'No such file']),
    (OWN + ('deploy.prototxt',), ['deploy.prototxt', 'not a readable picture']),
    (OWN + ('pictures/0/000.png', '--draw', 'x.pdf'), ['x.pdf', '.png or an .svg']),
    (OWN + ('pictures/0/000.png', '--T', '0'), ['--T is 0']),
    (OWN[:2] + ('pictures/0/000.png',), ['--weights']),
    (OWN + ('pictures/0/000.png', '--classes', 'deploy.prototxt', '--scale', 'x'), ['--scale x']),
])
def test_refusals(tool, place, words, parts):
    result = tool('predict.py', *words, cwd=place)
    if parts == ['PICTURE']:  # argparse's own
        assert result.returncode == 2 and 'PICTURE' in result.stderr
        return
    one_clear_line(result, *parts)


def test_help_has_an_example(tool):
    assert 'python tools/predict.py --net lenet_all digit.png' in tool('predict.py', '--help').stdout


def test_nothing_is_left_where_a_drawing_cannot_be_written(tool, place, tmp_path):
    result = tool('predict.py', *OWN + ('pictures/0/000.png', '--draw', tmp_path / 'none' / 'x.png'), cwd=place)
    assert result.returncode != 0 and 'Traceback' not in result.stderr
    assert os.listdir(str(tmp_path)) == []
