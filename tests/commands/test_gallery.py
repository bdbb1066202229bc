"""tools/gallery.py, and its page looked at and clicked through in a real Chromium."""

import os

import numpy as np
import pytest
from PIL import Image

import browser
import ownhelp
from conftest import one_clear_line
from galleryhelp import random_probabilities, write_evaluation


@pytest.fixture(scope='module')
def chromium(tmp_path_factory):
    """A Chromium; tests that need one are skipped, with the reason, where there is none and none can be installed."""
    program, why = browser.find_or_install()
    if program is None:
        pytest.skip(why)
    opened = browser.Browser(program, str(tmp_path_factory.mktemp('profile')))
    yield opened
    opened.close()


@pytest.fixture(scope='module')
def evaluation(tool, tmp_path_factory):
    """A net of the user's own on dark and light pictures, of which two lie in the wrong folder: a real mc_eval."""
    place = tmp_path_factory.mktemp('own')
    ownhelp.write_net(place)
    ownhelp.write_class_folders(place / 'pictures')
    Image.fromarray(ownhelp.grey(250)).save(str(place / 'pictures' / '0' / 'light.png'))
    Image.fromarray(ownhelp.grey(5)).save(str(place / 'pictures' / '1' / 'dark <b>.png'))
    (place / 'names.txt').write_text('dark\nlight\n')
    os.rename(str(place / 'pictures' / '0'), str(place / 'pictures' / 'dark'))
    os.rename(str(place / 'pictures' / '1'), str(place / 'pictures' / 'light'))
    result = tool('mc_eval.py', '--prototxt', place / 'deploy.prototxt', '--weights', place / 'bright.caffemodel', '--data',
                  place / 'pictures', '--scale', '1/256', '--classes', place / 'names.txt', '--T', '20', '--repeats', '1',
                  '--out', place / 'out', '--name', 'bright or dark')
    assert result.returncode == 0, result.stderr
    return place / 'out'


def test_a_page_of_an_evaluation_is_clicked_through(tool, chromium, evaluation):
    result = tool('gallery.py', evaluation)
    assert result.returncode == 0, result.stderr
    assert result.stdout == '%s: 10 images\n' % (evaluation / 'gallery.html')
    chromium.resize(1280, 900)
    chromium.events.clear()
    chromium.open('file://%s' % (evaluation / 'gallery.html'))
    assert chromium.texts('h1') == ['bright or dark']
    assert chromium.texts('#summary') == ['10 images \u00b7 wrong with Standard 20.00%, with MC dropout (T=20) 20.00%']
    assert len(chromium.texts('.tile')) == 10 and chromium.texts('#count') == ['10 of 10']
    chromium.click('[data-show="wrong-mc"]')
    assert sorted(chromium.texts('.tile span:first-of-type')) == ['dark \u2192 light', 'light \u2192 dark']
    chromium.choose('#class', '1')
    assert chromium.texts('.tile span:first-of-type') == ['light \u2192 dark']
    chromium.click('.tile')
    assert chromium.texts('#name') == ['light/dark <b>.png']
    i = 5 + ['000.png', '001.png', '002.png', '003.png', 'dark <b>.png'].index('dark <b>.png')
    stored = np.load(str(evaluation / 'images.npz'))
    mean = stored['mc_probs'][0, i]
    std = stored['mc_standard_error'][0, i] * np.sqrt(20)
    assert chromium.texts('#probabilities .number') == ['%.3f \u00b1 %.3f' % pair for pair in zip(mean, std)]
    assert chromium.texts('#probabilities .true') == ['light']
    chromium.wait('document.querySelector("#picture").dataset.painted === "%d"' % i)
    pixels = chromium.run('Array.from(document.querySelector("#picture").getContext("2d").getImageData(0, 0, 4, 4).data)')
    np.testing.assert_array_equal(np.array(pixels).reshape(4, 4, 4)[:, :, 0], ownhelp.grey(5))
    asked = [event['params']['request']['url'] for event in chromium.events if event.get('method') == 'Network.requestWillBeSent']
    assert asked and all(address.startswith(('file:', 'data:', 'about:')) for address in asked)
    assert not [event for event in chromium.events if event.get('method') in ('Runtime.exceptionThrown', 'Log.entryAdded')]


@pytest.fixture(scope='module')
def large(tool, tmp_path_factory):
    """The page of ten thousand images of ten classes; gives (folder, labels, Standard, mean of the passes)."""
    place, rng = tmp_path_factory.mktemp('large'), np.random.RandomState(0)
    labels = rng.randint(0, 10, 10000)
    standard = random_probabilities(rng, 10000, 10, labels, 3)
    passes = [random_probabilities(rng, 10000, 10, labels, 2) for _ in range(3)]
    images = np.zeros((10000, 1, 8, 8), np.uint8)
    images += (np.arange(10000) % 200).astype(np.uint8)[:, None, None, None]
    write_evaluation(place, labels, standard, passes, images)
    assert tool('gallery.py', place, '--out', place / 'page.html').returncode == 0
    return place, labels, standard, np.mean(passes, axis=0)


def test_ten_thousand_images_are_filtered_sorted_and_scrolled(chromium, large):
    place, labels, standard, mean = large
    chromium.resize(1280, 900)
    chromium.open('file://%s' % (place / 'page.html'))
    right, right_mc = standard.argmax(1) == labels, mean.argmax(1) == labels
    kinds = {'all': labels >= 0, 'wrong-standard': ~right, 'wrong-mc': ~right_mc, 'mended': ~right & right_mc,
             'spoilt': right & ~right_mc, 'wrong-both': ~right & ~right_mc}
    assert chromium.texts('#filters span') == ['{:,}'.format(kind.sum()) for kind in kinds.values()]
    assert 10 < chromium.run('document.querySelectorAll(".tile").length') < 300  # what is on the screen, no more
    stored = np.load(str(place / 'images.npz'))

    def first(count=12):
        return [int(i) for i in chromium.run('Array.from(document.querySelectorAll(".tile"), one => one.dataset.image)')][:count]

    chromium.click('[data-show="mended"]')
    for measure in ('entropy', 'mutual_information', 'variation_ratio'):
        chromium.choose('#sort', measure)
        which = np.flatnonzero(kinds['mended'])
        values = stored[measure][0].astype(np.float32)[which]
        assert first() == which[np.argsort(-values, kind='mergesort')][:12].tolist()
    chromium.click('#direction')
    assert first() == which[np.argsort(values, kind='mergesort')][:12].tolist()
    chromium.choose('#class', '3')
    assert chromium.texts('#count') == ['%d of 10,000' % (kinds['mended'] & (labels == 3)).sum()]
    chromium.choose('#class', '')
    chromium.click('[data-show="all"]')
    chromium.choose('#sort', 'order')
    chromium.click('#direction')
    assert first(3) == [0, 1, 2]
    chromium.run('window.scrollTo(0, document.body.scrollHeight)')
    chromium.wait('Array.from(document.querySelectorAll(".tile")).some(one => one.dataset.image === "9999")')
    assert chromium.run('document.querySelectorAll(".tile").length') < 300
    chromium.wait('document.querySelector(".tile[data-image=\\"9999\\"] canvas").dataset.painted === "9999"')
    assert chromium.run('document.querySelector(".tile[data-image=\\"9999\\"] canvas").getContext("2d")'
                        '.getImageData(3, 3, 1, 1).data[0]') == 9999 % 200


def test_on_a_telephone_the_image_chosen_opens_and_closes(chromium, large):
    chromium.resize(390, 844)
    chromium.open('file://%s#sort=order' % (large[0] / 'page.html'))
    assert chromium.run('document.documentElement.scrollWidth') == 390
    assert chromium.run('getComputedStyle(document.querySelector("#panel")).display') == 'none'
    chromium.click('.tile', 1)
    assert chromium.texts('#name') == ['Image 1'] and chromium.run('document.querySelector("#panel").offsetHeight') > 300
    chromium.click('#next')
    chromium.press('ArrowRight')
    assert chromium.texts('#name') == ['Image 3']
    chromium.click('#close')
    assert chromium.run('getComputedStyle(document.querySelector("#panel")).display') == 'none'
    assert 'image=3' in chromium.run('location.hash')


def test_what_is_no_evaluation_is_one_line(tool, tmp_path, evaluation):
    one_clear_line(tool('gallery.py', tmp_path), str(tmp_path), 'no finished evaluation', 'mc_eval.py')
    one_clear_line(tool('gallery.py', evaluation, '--out', tmp_path / 'no' / 'p.html'), 'no folder')
    one_clear_line(tool('gallery.py', evaluation, '--data', tmp_path / 'gone'), 'gone', 'not there any more', '--data')
