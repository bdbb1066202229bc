"""The real CIFAR-10, prepared in full into data/ (once: about two minutes and 2.5 GB), and the published NIN on it."""

import os
import re
import subprocess

import numpy as np
import pytest
from test_data_caffe import data_net

import datahelp
from bcnn.data import check, recipes, records, sets, whiten
from bcnn.data.cifar import TEST_FILES
from datahelp import CIFAR10, PREPARE, real

pytestmark = pytest.mark.slow


@pytest.fixture(scope='module')
def prepared():
    return datahelp.prepared('cifar10')


@pytest.mark.parametrize('name', CIFAR10)
def test_the_records_are_the_same_on_every_machine(prepared, name):
    for split in ('train', 'test'):
        path = os.path.join(sets.require(name), split + '_lmdb')
        assert records.digest(path) == check.DIGESTS[name, split] == sets.manifest(name)['splits'][split]['sha256']


def test_the_statistics_agree_to_their_digits(prepared):
    figures = check.statistics(os.path.join(prepared, 'cifar10'), prepared)
    assert len(figures) == 10
    for title, expected, tolerance, found in figures:
        assert abs(found - expected) <= tolerance, title


def test_the_stored_whitening_makes_the_stored_images(prepared):
    raw, labels = recipes.batches(real('cifar10'), TEST_FILES)
    stored, same = records.load(os.path.join(prepared, 'cifar10', 'test_lmdb'), 3000, 3200)
    made = whiten.load(os.path.join(prepared, 'cifar10', 'zca.npz')).apply(raw[3000:3200])
    assert np.array_equal(made, stored) and np.array_equal(labels[3000:3200], same)


def test_caffe_crops_the_padded_images_to_the_plain_ones(prepared):
    plain = data_net(os.path.join(prepared, 'cifar10', 'test_lmdb'), 100)
    padded = data_net(os.path.join(prepared, 'cifar10_pad4', 'test_lmdb'), 100, 'crop_size: 32')
    for _ in range(5):
        plain.forward()
        padded.forward()
        assert np.array_equal(plain.blobs['data'].data, padded.blobs['data'].data)
        assert np.array_equal(plain.blobs['label'].data, padded.blobs['label'].data)


def test_the_command_shows_all_figures_and_the_published_nins_1043_errors(prepared):
    weights = os.environ.get('BCNN_NIN_WEIGHTS')
    if weights:
        subprocess.check_call(PREPARE + ['nin_weights', '--from', weights])
    output = subprocess.check_output(PREPARE + ['--check', 'cifar10', 'cifar10_pad4'], universal_newlines=True)
    assert output.count(' ok\n') >= 15 and 'all figures agree' in output
    if sets.manifest('nin_weights') is None:
        pytest.skip('all but the 1043: no NIN weights here (prepare_data.py nin_weights, or BCNN_NIN_WEIGHTS=FILE)')
    assert re.search(r'test errors of the published NIN +1043 +expected 1043 +ok', output)
