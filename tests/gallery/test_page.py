"""The page of an evaluation: what is on it, and what it looks like, up to the browser (tests/commands/test_gallery.py)."""

import base64
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

import trainhelp
from bcnn.errors import UserError
from bcnn.gallery import page, pixels, sheets
from galleryhelp import write_evaluation

pytestmark = pytest.mark.caffe  # of bcnn.mc, which imports it


def contents(path):
    """What the page's script reads."""
    with open(str(path), encoding='utf-8') as file:
        found = re.search(r'<script id="data" type="application/json">(.*?)</script>', file.read(), re.DOTALL)
    return json.loads(found.group(1))


def unpacked(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def decoded(address):
    return np.array(Image.open(io.BytesIO(base64.b64decode(address.split(',')[1]))))


# --- numbers --------------------------------------------------------------------------------------

# Two passes over four images of three classes: what the mean and its spread are is seen at once.
LABELS = [0, 1, 2, 0]
STANDARD = [[.8, .1, .1], [.6, .3, .1], [.1, .2, .7], [.2, .5, .3]]
PASSES = [[[.7, .2, .1], [.1, .8, .1], [.1, .8, .1], [.3, .4, .3]],
          [[.9, .0, .1], [.3, .6, .1], [.1, .6, .3], [.1, .6, .3]]]


def test_the_numbers_of_a_page(tmp_path):
    images = np.arange(4 * 4, dtype=np.uint8).reshape(4, 1, 2, 2)
    write_evaluation(tmp_path, LABELS, STANDARD, PASSES, images)
    found = contents(page.write(str(tmp_path))[0])
    assert (found['count'], found['T'], found['classCount'], found['title']) == (4, 2, 3, 'made by hand')
    assert list(unpacked(found['standardRight'], 'u1')) == [1, 0, 1, 0]   # right, put right, spoilt, wrong with both
    assert list(unpacked(found['mcRight'], 'u1')) == [1, 1, 0, 0]
    assert list(unpacked(found['mcBest'], '<u2')) == [0, 1, 1, 1] and list(unpacked(found['standardBest'], '<u2')) == [0, 0, 2, 1]
    shares = {name: unpacked(found[name], '<u2').reshape(4, 3) / 65535.0 for name in ('standard', 'mean', 'std')}
    np.testing.assert_allclose(shares['standard'], STANDARD, atol=1e-5)
    np.testing.assert_allclose(shares['mean'], np.mean(PASSES, axis=0), atol=1e-5)
    np.testing.assert_allclose(shares['std'], np.std(PASSES, axis=0, ddof=1), atol=1e-5)
    measures = {one['key']: unpacked(one['values'], '<f4') for one in found['measures']}
    assert found['measures'][0]['key'] == 'entropy' and 'passes' not in measures
    np.testing.assert_allclose(measures['mc_doubt'], [.2, .3, .3, .5], atol=1e-6)
    np.testing.assert_allclose(measures['variation_ratio'], [0, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(measures['mc_std'], [.2 / 2 ** .5, .2 / 2 ** .5, .2 / 2 ** .5, .2 / 2 ** .5], atol=1e-6)
    sheet = decoded(found['sheets']['files'][0])
    for i, image in enumerate(images):  # row by row, byte by byte
        np.testing.assert_array_equal(sheet[:2, 2 * i:2 * i + 2], image[0])


def test_without_passes_there_is_only_standard(tmp_path):
    write_evaluation(tmp_path, LABELS, STANDARD, None, np.zeros((4, 1, 2, 2), np.uint8))
    found = contents(page.write(str(tmp_path))[0])
    assert found['T'] is None and found['mean'] is None and found['mcRight'] is None
    assert [one['key'] for one in found['measures']] == ['standard_doubt', 'standard_entropy']


def test_of_many_classes_the_likeliest_and_the_true_one():
    standard = np.tile(np.arange(20.0) / 190, (2, 1))
    mean = standard[:, ::-1]
    which = page._likeliest(standard, mean, np.array([19, 10]))
    assert which.shape == (2, 12) and set(which[0]) == {0, 1, 2, 3, 4, 5, 14, 15, 16, 17, 18, 19}
    assert set(which[1]) - set(which[0]) == {10} and which[1, -1] == 10


def test_a_name_cannot_end_the_script(tmp_path):
    write_evaluation(tmp_path, LABELS, STANDARD, PASSES, np.zeros((4, 1, 2, 2), np.uint8),
                     name='</script><script>alert(1)</script> {{script}} & Co')
    path = page.write(str(tmp_path), str(tmp_path / 'p.html'))[0]
    assert contents(path)['title'].startswith('</script><script>')
    with open(path) as file:
        assert 'alert' not in re.sub(r'<script id="data".*?</script>', '', file.read(), flags=re.DOTALL)


def test_the_page_names_nothing_outside_of_it():
    text = page.fill({'title': ''})
    assert '{{' not in text and not re.search(r'(src|href)="(?!data:)|https?:|//cdn|@import|url\(', text)


# --- pictures -------------------------------------------------------------------------------------

def test_pictures_of_several_sizes_stand_in_the_middle_of_their_places():
    small, large = np.full((2, 4), 9, np.uint8), np.full((6, 4), 5, np.uint8)
    packed = sheets.pack([small, large])
    assert (packed.width, packed.height) == (4, 6)
    sheet = decoded(packed.files[0])
    assert sheet[:6, 0].tolist() == [0, 0, 9, 9, 0, 0] and (sheet[:6, 4:8] == 5).all()


def test_a_coloured_picture_does_not_bleed_into_its_neighbours():
    rng = np.random.RandomState(0)
    one, two = (np.full((30, 30, 3), colour, np.uint8) for colour in ((255, 0, 0), (0, 0, 255)))
    packed = sheets.pack([one, two, rng.randint(0, 256, (30, 30)).astype(np.uint8)])
    assert packed.width == 32
    sheet = decoded(packed.files[0]).astype(int)
    assert abs(sheet[1:31, 1:31] - one).max() < 20 and abs(sheet[1:31, 33:63] - two).max() < 20


def test_a_second_sheet_begins_after_1024_pictures():
    packed = sheets.pack([np.full((1, 1), i % 251, np.uint8) for i in range(1030)])
    assert len(packed.files) == 2 and decoded(packed.files[1])[0, :6].tolist() == [(1024 + i) % 251 for i in range(6)]


@pytest.mark.parametrize('order, first', [(None, [3, 2, 1]), ('bgr', [3, 2, 1]), ('rgb', [1, 2, 3])])
def test_colours_of_arrays_are_in_the_order_that_is_said(tmp_path, order, first):
    images = np.array([1, 2, 3], np.uint8).reshape(1, 3, 1, 1)
    np.savez(str(tmp_path / 'i.npz'), images=images, labels=[0])
    seen = pixels.of_evaluation({'images': str(tmp_path / 'i.npz')}, np.array([0]), order=order)
    assert seen.pictures[0][0, 0].tolist() == first


def test_numbers_that_are_no_bytes_are_stretched_and_that_is_said(tmp_path):
    np.savez(str(tmp_path / 'i.npz'), images=np.array([-2.0, 0.0, 2.0]).reshape(1, 1, 1, 3), labels=[1])
    seen = pixels.of_evaluation({'images': str(tmp_path / 'i.npz')}, np.array([1]))
    assert seen.pictures[0].tolist() == [[0, 128, 255]] and 'lowest number' in seen.note


def test_whitened_images_of_a_prepared_set_are_shown_as_they_were_before(tmp_path):
    """With red first, and named as the set has it; stretched where the images before are not here."""
    labels, raw = np.array([3, 9]), np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 2, 2)
    white = raw.astype(np.float32) - 7
    trainhelp.make_set(tmp_path, 'cifar10', test=(white, labels))
    about = {'images': str(tmp_path / 'cifar10' / 'test_lmdb')}
    seen = pixels.of_evaluation(about, labels)
    assert seen.note and seen.pictures[0].max() == 255 and seen.classes[3] == 'cat'
    trainhelp.make_set(tmp_path, 'cifar10_raw', test=(raw, labels))
    seen = pixels.of_evaluation(about, labels)
    assert seen.note == '' and seen.classes[9] == 'truck'
    np.testing.assert_array_equal(seen.pictures, raw.transpose(0, 2, 3, 1))


def test_large_pictures_are_made_small(tmp_path):
    Image.new('RGB', (300, 100), (10, 20, 30)).save(str(tmp_path / 'a.png'))
    seen = pixels.of_evaluation({'images': str(tmp_path), 'files': ['a.png']}, np.array([0]))
    assert seen.pictures[0].shape == (43, 128, 3) and seen.reduced
    assert seen.pictures[0][5, 5].tolist() == [10, 20, 30]
    assert pixels._side(10000) == 64 and pixels._side(2000) == 128


@pytest.mark.parametrize('about, message', [
    ({}, '--data PATH'), ({'images': 'nowhere.npz'}, 'nowhere.npz.*not there any more.*--data'),
    ({'images': '.', 'files': ['no.png']}, 'no.png.*not there any more.*--data')])
def test_images_that_are_gone_are_asked_for(about, message):
    with pytest.raises(UserError, match=message):
        pixels.of_evaluation(about, np.array([0]))


def test_other_images_are_refused(tmp_path):
    np.savez(str(tmp_path / 'i.npz'), images=np.zeros((2, 1, 1, 1), np.uint8), labels=[0, 1])
    for labels, message in (([0, 2], 'image 1 is not of class 2'), ([0, 1, 1], 'has 2 images, the evaluation 3')):
        with pytest.raises(UserError, match=message):
            pixels.of_evaluation({'images': str(tmp_path / 'i.npz')}, np.array(labels))


@pytest.mark.parametrize('name, text', [
    ('source.json', '{"images": 7}'), ('source.json', '{"images": ".", "files": 5}'), ('source.json', '['), ('images.npz', 'x'),
    ('config.json', '{"T": 2}'), ('blocks/mc1-00000.npz', 'x')])
def test_damaged_files_are_one_line(tmp_path, name, text):
    write_evaluation(tmp_path, LABELS, STANDARD, PASSES, np.zeros((4, 1, 2, 2), np.uint8))
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match='damaged|not readable|do not fit together'):
        page.write(str(tmp_path))
    assert not (tmp_path / 'gallery.html').exists()


def test_fewer_names_than_images_are_one_line(tmp_path):
    write_evaluation(tmp_path, LABELS, STANDARD, PASSES, np.zeros((4, 1, 2, 2), np.uint8))
    Image.new('L', (2, 2)).save(str(tmp_path / 'a.png'))
    (tmp_path / 'source.json').write_text(json.dumps({'images': str(tmp_path), 'files': ['a.png']}))
    with pytest.raises(UserError, match='1 file names, 4 images'):
        page.write(str(tmp_path))


def test_a_folder_that_is_no_evaluation_is_refused_and_one_below_is_named(tmp_path):
    with pytest.raises(UserError, match='no finished evaluation here; tools/mc_eval.py'):
        page.write(str(tmp_path))
    (tmp_path / 'mc' / 'T2').mkdir(parents=True)
    write_evaluation(tmp_path / 'mc' / 'T2', LABELS, STANDARD, PASSES, np.zeros((4, 1, 2, 2), np.uint8))
    with pytest.raises(UserError, match='no finished evaluation here; there is .*mc/T2'):
        page.write(str(tmp_path))
