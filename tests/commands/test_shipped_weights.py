"""The weights that are in weights/: evaluated again on real test images, against what is recorded of them."""

import os
import re

import numpy as np
import pytest

import trainhelp
from bcnn import engine, nets, weights
from bcnn.mc import forward, metrics, targets
from bcnn.results import csv_tables
from bcnn.system import places
from conftest import ROOT
from datahelp import prepared

# Images of play: other BLAS kernels sum in another order, which may turn one that two classes tie for.
PLAY = 2
ENTRIES = weights.index()


def test_every_file_has_an_entry():
    """So that none is left out below."""
    there = [name for name in os.listdir(weights.FOLDER) if name.endswith('.caffemodel')]
    assert sorted(there) == [entry.file for entry in ENTRIES]


def target(entry):
    """An entry's net and its test images; skips where they are out of reach."""
    prepared(nets.find(entry.dataset, entry.net).data.test.split('/')[1])
    return targets.of_paper(entry.net, entry.dataset, weights.require(entry), standard_only=True)


def recorded_wrong(entry, count, method='standard'):
    """How many of the first images are recorded as wrong, of each repetition (Standard dropout has one)."""
    rows = [row for row in csv_tables.read(places.RESULTS, 'wrong')
            if (row['config'], row['method']) == (entry.evaluation, method)]
    numbers = [np.array((row['wrong'] or '').split(), int) for row in rows]
    assert [len(wrong) for wrong in numbers] == ([entry.standard_errors] if method == 'standard' else list(entry.mc_errors))
    return [int((wrong < count).sum()) for wrong in numbers]


@pytest.mark.parametrize('entry', ENTRIES, ids=[entry.file for entry in ENTRIES])
def test_standard_errors_on_1000_images_are_those_recorded(entry):
    """Or on fewer, where fewer were evaluated."""
    what, count = target(entry), min(1000, entry.images)
    pixels, labels = what.source.read(0, count)

    def probs():
        net = engine.load_net(what.standard, what.weights)
        wiring = forward.wiring_of(what.standard, net)
        return np.concatenate([forward.standard(net, wiring, pixels[i:i + 100])[0] for i in range(0, count, 100)])

    wrong = int((~metrics.correct(engine.call(probs), labels)).sum())
    assert abs(wrong - recorded_wrong(entry, count)[0]) <= PLAY


# As the README has them, on fewer images: the LeNet with all passes, Augmented-DSN with adaptive T.
TYPED = [(entry, words) for entry in ENTRIES for net, words in (
    ('lenet_all', ('--T', 50, '--repeats', 1, '--limit', 1000)),
    ('dsn_aug', ('--T', 100, '--repeats', 1, '--adaptive', '--limit', 100)))
    if entry.net == net and entry.seed == 1 and entry.init is None]


@pytest.mark.slow
@pytest.mark.parametrize('entry, words', TYPED, ids=[entry.file for entry, _ in TYPED])
def test_the_commands_of_the_readme_agree_with_the_record(entry, words, tmp_path):
    target(entry)
    clone = trainhelp.make_clone(tmp_path, weights.FOLDER, places.RESULTS, os.path.join(ROOT, 'data'))
    said = trainhelp.typed(clone, 'tools/mc_eval.py', '--net', entry.net, *words)
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith('weights: weights/%s: ' % entry.file)
    T, count = words[1], words[-1]
    for method, title in (('standard', 'Standard dropout'), ('mc', 'MC dropout T=%d, probs' % T)):
        percent = float(re.search(r'^%s.*? +(\d+\.\d\d)' % title, said.stdout, re.M).group(1))
        recorded = recorded_wrong(entry, count, method)
        # the masks are those of the first repetition, but for adaptive T, which stops where no more passes are needed
        assert min(recorded) - PLAY <= percent * count / 100 <= max(recorded) + PLAY, method
