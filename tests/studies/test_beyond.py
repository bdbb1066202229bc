"""Studies beyond the paper: known answers by hand in real Caffe, then from a real run to the recorded tables."""

import json
import os
import shutil

import numpy as np
import pytest

import trainhelp
from bcnn import beyond, engine
from bcnn.errors import UserError
from bcnn.mc import forward
from bcnn.prototxt import reading
from bcnn.results import csv_tables, verify
from bcnn.studies import approximation, off_data, trained
from conftest import one_clear_line

pytestmark = pytest.mark.caffe

POOLED = '''
name: "pooled"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 50 dim: 1 dim: 2 dim: 2 } } }
layer { name: "drop" type: "Dropout" bottom: "data" top: "drop" dropout_param { dropout_ratio: 0.5 } %s }
layer { name: "pool" type: "Pooling" bottom: "drop" top: "pool" pooling_param { pool: %s kernel_size: 2 stride: 2 } }
layer { name: "prob" type: "Softmax" bottom: "pool" top: "prob" }
'''


# --- layer by layer ----------------------------------------------------------------------------------------

def departures(pooling, T=400):
    """Those of 50 images of ones, after dropout and after pooling."""
    def measure():
        engine.use_device(None)
        nets = []
        for phase in ('', 'phase: TRAIN'):
            message = reading.parse(POOLED % (phase, pooling))
            nets.append((engine.load_net(message), forward.wiring_of(message, engine.load_net(message))))
        engine.set_seed(1)
        return approximation.of_block(nets[0], nets[1], np.ones((50, 1, 2, 2), np.float32), T, ['drop', 'pool'])
    return engine.call(measure)


def test_max_pooling_breaks_weight_averaging_by_as_much_as_it_should():
    """The largest of four that are 0 or 2 is 2 in 15 cases of 16: 1.875 on average, where weight averaging says 1."""
    found = departures('MAX')
    assert found['drop'].distance.mean() == pytest.approx(0, abs=0.002)
    assert found['pool'].distance.mean() == pytest.approx((0.875 / 1.875) ** 2, abs=0.005)
    assert approximation.common([found['pool']]) == pytest.approx(1, abs=0.01)  # the images are the same


def test_average_pooling_does_not():
    found = departures('AVE')
    assert [found[name].distance.mean() for name in ('drop', 'pool')] == pytest.approx([0, 0], abs=0.002)


def test_the_distance_has_no_bias_of_few_passes():
    """With four passes a mean of noise is far from its expectation: its square by the variance over four."""
    random, found = np.random.RandomState(1), []
    for _ in range(2000):
        means = approximation.Means((1, 5))
        for _ in range(4):
            means.add(10 + random.randn(1, 5))
        found.append(means.departure(np.full((1, 5), 10.0)).distance[0])
    biased = 5 / 4.0 / (5 * 100)
    assert abs(np.mean(found)) < biased / 10
    assert np.mean(found) == pytest.approx(0, abs=4 * np.std(found) / np.sqrt(2000))


def departures_of(vectors, noise, T, random):
    """Departures of images, one a row, in two batches, from means of T noisy passes; weight averaging says 10."""
    parts = []
    for batch in np.array_split(vectors, 2):
        means = approximation.Means(batch.shape)
        for _ in range(T):
            means.add(10 + batch + noise * random.randn(*batch.shape))
        parts.append(means.departure(np.full(batch.shape, 10.0)))
    return parts


def test_the_share_that_is_the_same_for_all_images():
    """By hand: two images, departures (2, 0) and (2, 2). Their product is 4, the mean of their squares 6."""
    exact = departures_of(np.array([[2.0, 0.0], [2.0, 2.0]]), 0, 2, np.random)
    assert approximation.common(exact) == pytest.approx(4 / 6.0)
    assert approximation.common(exact[:1]) is None  # one image
    assert approximation.common(departures_of(np.zeros((2, 2)), 0, 2, np.random)) is None  # no departure
    opposite = departures_of(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 0, 2, np.random)
    assert approximation.common(opposite) == pytest.approx(-1 / 3.0)  # for few images: pairs leave each one out


def test_the_share_has_no_bias_of_few_passes():
    """A constant and as much again that differs: half, though the noise of four passes is as large as both."""
    random = np.random.RandomState(1)
    found = [approximation.common(departures_of(1 + random.randn(20, 30), 2.0, 4, random)) for _ in range(200)]
    assert np.mean(found) == pytest.approx(0.5, abs=0.02)


# --- off the data ------------------------------------------------------------------------------------------

def test_quarters_of_a_turn_are_exact_and_other_angles_keep_the_ink():
    images = np.random.RandomState(1).randint(0, 256, (3, 1, 28, 28)).astype(np.uint8)
    assert np.array_equal(off_data.rotate(images, 0), images)
    assert np.array_equal(off_data.rotate(images, 90), np.rot90(images, 1, axes=(2, 3)))
    assert np.array_equal(off_data.rotate(images, 180), images[..., ::-1, ::-1])
    dot = np.zeros((1, 1, 28, 28), np.uint8)
    dot[..., 5:9, 12:16] = 200
    turned = off_data.rotate(dot, 45)
    assert int(turned.sum()) == pytest.approx(int(dot.sum()), rel=0.05)
    rows, columns = np.nonzero(turned[0, 0])
    # the dot is 7 above the centre; half of a quarter counter-clockwise brings it up and to the left
    assert (rows.mean(), columns.mean()) == (pytest.approx(13.5 - 7 / np.sqrt(2), abs=0.3),
                                             pytest.approx(13.5 - 7 / np.sqrt(2), abs=0.3))


def test_auroc_by_counting_pairs():
    random = np.random.RandomState(1)
    inside, outside = random.randint(0, 8, 40) / 8.0, random.randint(2, 10, 30) / 8.0
    pairs = (outside[:, None] > inside) + 0.5 * (outside[:, None] == inside)
    ranking = off_data.Ranking(inside, outside)
    assert ranking.auroc() == pytest.approx(pairs.mean())
    often = random.randint(0, 3, 40).astype(float), random.randint(0, 3, 30).astype(float)
    weights = often[1][:, None] * often[0]
    assert ranking.auroc(*often) == pytest.approx((pairs * weights).sum() / weights.sum())


def test_a_gain_over_the_measure_before_has_an_interval_and_the_same_measure_has_none():
    random = np.random.RandomState(1)
    inside, outside = random.randn(400), random.randn(300) + 1
    (first, *nothing), (second, gain, low, high), (_, same, *none) = off_data.compared(
        [inside, inside, inside], [outside, outside + 1, outside + 1], paired=False)
    assert nothing == [None, None, None] and gain == pytest.approx(second - first) and low < gain < high
    assert 0 < low and 0.02 < high - low < 0.1
    assert (same, none) == (0, [0, 0])


def test_rotated_digits_are_drawn_with_their_own_upright_ones():
    ours, theirs = off_data.counts(True, 5, 15, np.random.RandomState(1))
    assert ours.sum() == 5 and np.array_equal(theirs, np.tile(ours, 3))
    assert off_data.counts(False, 5, 7, np.random.RandomState(1))[1].sum() == 7


# --- from a run to the tables ------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """Small data, and a run of profile beyond."""
    place = tmp_path_factory.mktemp('beyond')
    data = trainhelp.make_data(place / 'data')
    images, labels = trainhelp.mnist('test', 60)
    trainhelp.make_set(data, 'fashion_mnist', train=(255 - images, labels), test=(255 - images, labels))
    trainhelp.command('train.py', '--net', 'lenet_all_ave', '--seed', 2, '--cpu', '--data', data, '--iters', 20, '--T', 2,
                      '--eval-points', '10,20', '--jobs', 1, '--streams', 1,
                      '--out', place / 'runs' / 'beyond' / 'mnist-lenet_all_ave-seed2')
    return place


def run_of(place):
    return place / 'runs' / 'beyond' / 'mnist-lenet_all_ave-seed2'


def study(place, name, *words):
    return trainhelp.command('study.py', name, run_of(place), '--data', place / 'data', '--T', 20, '--limit', 60,
                             '--jobs', 1, *words)


def test_from_a_run_to_the_tables(place):
    said = study(place, 'approximation')
    assert 'lenet-all, AVE pooling, mnist, seed 2, 20 iterations' in said and 'pool2' in said
    study(place, 'quality', '--iteration', 10)
    study(place, 'off_data')
    results = str(place / 'results')
    trainhelp.command('record.py', place / 'runs', '--results', results, '--data', place / 'data')
    rows = {name: csv_tables.read(results, name)
            for name in ('approximation', 'quality', 'kernels', 'off_data', 'rotation', 'curves', 'provenance')}
    for name, some in rows.items():
        assert some and {row['net'] for row in some} == {'lenet_all_ave'}, name
        assert {row['seed'] for row in some} == {2} and name == 'provenance' or {row['experiment'] for row in some} == {
            'beyond'}, name
    # linear up to the ReLU: nothing departs there but by chance
    by_layer = {row['layer']: row for row in rows['approximation']}
    assert list(by_layer) == ['dropC1', 'pool1', 'conv2', 'dropC2', 'pool2', 'ip1', 'relu1', 'drop1', 'ip2', 'prob'] or (
        len(by_layer) == 10)
    for name in ('dropC1', 'pool1', 'conv2', 'dropC2', 'pool2', 'ip1'):
        assert abs(by_layer[name]['distance']) < 5 * by_layer[name]['distance_se'] + 1e-3, name
    assert [row['iterations'] for row in rows['quality']] == [10, 10] and len(rows['kernels']) == 20
    assert len(rows['off_data']) == 3 * (2 + len(beyond.ANGLES))
    assert {row['angle'] for row in rows['rotation']} == set(range(0, 181, 15))
    assert all(len(row['probs'].split()) == 100 for row in rows['rotation'])
    again = trainhelp.command('record.py', place / 'runs', '--results', results, '--data', place / 'data')
    assert 'new rows: none' in again


def test_a_study_that_is_there_is_not_made_again_and_another_is_refused(place):
    study(place, 'approximation')
    result = run_of(place) / 'studies' / 'approximation-20' / 'result.json'
    before = result.stat().st_mtime_ns
    study(place, 'approximation')
    assert result.stat().st_mtime_ns == before
    done = trainhelp.typed(trainhelp.datahelp.ROOT, 'tools/study.py', 'approximation', run_of(place), '--data',
                           place / 'data', '--T', 10, '--limit', 60)
    one_clear_line(done, 'holds another study (T 20, here 10)')


def test_a_study_of_before_a_column_came_is_recorded_without_it(place, tmp_path):
    study(place, 'approximation')
    copy = tmp_path / 'approximation-20'
    shutil.copytree(str(run_of(place) / 'studies' / 'approximation-20'), str(copy))
    stored = json.loads((copy / 'result.json').read_text())
    for row in stored['rows']['approximation']:
        del row['common']
    (copy / 'result.json').write_text(json.dumps(stored))
    trainhelp.command('record.py', copy, '--results', tmp_path / 'results', '--data', place / 'data')
    rows = csv_tables.read(str(tmp_path / 'results'), 'approximation')
    assert len(rows) == 10 and {row['common'] for row in rows} == {None}


def test_verify_knows_studies(place):
    study(place, 'approximation')
    folder = str(run_of(place) / 'studies' / 'approximation-20')
    found = list(verify.check(folder, str(place / 'data')))
    # a project without .git, as in a container, has no commit to name
    assert {finding.text for finding in found if finding.state != 'ok'} <= {'does not name commit'}, found
    config = os.path.join(folder, 'config.json')
    with open(config) as file:
        told = json.load(file)
    with open(config, 'w') as file:
        json.dump(dict(told, weights='ab' * 32), file)
    assert any('its weights are not here' in finding.text for finding in verify.check(folder, str(place / 'data')))
    with open(config, 'w') as file:
        json.dump(told, file)


@pytest.mark.parametrize('iteration, words', [(15, 'no weights of iteration 15; there are: 10'), (None, None), (10, None)])
def test_weights_of_an_iteration(place, iteration, words):
    if words:
        with pytest.raises(UserError, match=words):
            trained.subject(str(run_of(place)), iteration)
    else:
        subject = trained.subject(str(run_of(place)), iteration)
        assert (subject.iterations, subject.seed, subject.net) == (iteration or 20, 2, 'lenet_all_ave')
        assert os.path.basename(subject.weights) == ('weights.caffemodel' if iteration else 'final.caffemodel')


def test_what_is_no_run_is_refused(place, tmp_path):
    with pytest.raises(UserError, match='neither the folder of a training run'):
        trained.subject(str(tmp_path))
    (tmp_path / 'other.caffemodel').write_bytes(b'weights')
    with pytest.raises(UserError, match='not one of weights/'):
        trained.subject(str(tmp_path / 'other.caffemodel'))
