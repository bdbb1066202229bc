"""Antithetic masks: complementary, unbiased against exact enumeration, with standard errors that hold."""

import itertools

import numpy as np
import pytest
from google.protobuf import text_format

from bcnn import antithetic, engine, evaluation, jobs, mc, metrics
from bcnn.errors import UserError

# Two layers of dropout on two and three units: 32 masks, so the exact average can be enumerated.
TINY = '''
name: "tiny"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 3 dim: 2 dim: 1 dim: 1 } } }
layer { name: "flat" type: "Flatten" bottom: "data" top: "flat" }
layer { name: "drop1" type: "Dropout" bottom: "flat" top: "drop1" phase: TRAIN dropout_param { dropout_ratio: 0.5 } }
layer { name: "ip1" type: "InnerProduct" bottom: "drop1" top: "ip1"
        inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "drop2" type: "Dropout" bottom: "ip1" top: "drop2" phase: TRAIN dropout_param { dropout_ratio: 0.5 } }
layer { name: "ip2" type: "InnerProduct" bottom: "drop2" top: "ip2"
        inner_product_param { num_output: 2 weight_filler { type: "gaussian" std: 0.7 } } }
layer { name: "prob" type: "Softmax" bottom: "ip2" top: "prob" }
'''
IMAGES = np.array([[1, 2], [0.5, -1], [-2, 1.5]], np.float32).reshape(3, 2, 1, 1)


@pytest.fixture
def tiny(tmp_path):
    """(message, weights file, exact mean of the softmax over all masks)."""
    message = text_format.Parse(TINY, engine.caffe_pb2.NetParameter())
    engine.set_seed(5)
    net = engine.load_net(message)
    net.save(str(tmp_path / 'w.caffemodel'))
    first, second = net.params['ip1'][0].data, net.params['ip2'][0].data
    total = np.zeros((3, 2))
    for mask in itertools.product((0, 2), repeat=5):
        scores = ((IMAGES.reshape(3, 2) * mask[:2]) @ first.T * mask[2:]) @ second.T
        total += metrics.softmax(scores)
    return message, str(tmp_path / 'w.caffemodel'), total / 32


def sample(loaded, T, seed):
    net, how = loaded
    return mc.sample(antithetic.stream(net, how, IMAGES, T, np.random.RandomState(seed)), np.zeros(3, int), 2, True, 2)


def test_the_second_mask_is_what_the_first_dropped(tiny):
    net, how = antithetic.load(tiny[0], tiny[1])
    masks = []
    for _ in antithetic.stream(net, how, IMAGES, 200, np.random.RandomState(1)):
        masks.append(np.hstack([net.blobs[name + '_mask'].data.reshape(3, -1).copy() for name in ('drop1', 'drop2')]))
    masks = np.array(masks)
    assert set(np.unique(masks)) == {0, 2}
    assert (masks[0::2] + masks[1::2] == 2).all()
    assert np.abs(masks[0::2].mean(axis=(0, 1)) - 1).max() < 0.25  # 4 standard errors of 300 coins
    assert len(np.unique(masks[0::2].reshape(100, -1), axis=0)) > 90


def test_with_the_same_masks_it_is_caffes_own_dropout(tiny):
    """Masks read off the stock net give the same outputs."""
    stock = engine.load_net(tiny[0], tiny[1])
    stock.blobs['data'].data[...] = IMAGES
    net, how = antithetic.load(tiny[0], tiny[1])
    net.blobs['data'].data[...] = IMAGES
    engine.set_seed(3)
    stock.forward()
    for drop in ('drop1', 'drop2'):
        kept = stock.blobs[drop].data != 0  # or nothing was there to drop
        net.blobs[drop + '_mask'].data[...] = 2 * kept
    net.forward()
    assert net.blobs['prob'].data == pytest.approx(stock.blobs['prob'].data, abs=1e-6)


def test_the_mean_is_the_exact_one_and_the_standard_errors_hold(tiny):
    T = 40
    loaded = antithetic.load(tiny[0], tiny[1])
    runs = [sample(loaded, T, seed) for seed in range(150)]
    means = np.array([one.probs / T for one in runs])
    errors = np.array([metrics.mean_errors(one.squares, one.probs / T, one.passes // 2) for one in runs])
    spread = means.std(axis=0, ddof=1)
    assert (np.abs(means.mean(axis=0) - tiny[2]) < 4 * spread / np.sqrt(len(runs))).all()
    assert np.sqrt((errors ** 2).mean(axis=0)) == pytest.approx(spread, rel=0.25)


def test_the_gain_is_that_of_the_spread_of_many_runs(tiny):
    """What `Moments` says of pairs: variance of a pass and covariance, against the variance of means of pairs."""
    net, how = antithetic.load(tiny[0], tiny[1])
    passes = [probs.astype(np.float64) for probs, _ in antithetic.stream(net, how, IMAGES, 4000, np.random.RandomState(2))]
    moments = antithetic.Moments()
    for first, second in zip(passes[0::2], passes[1::2]):
        moments.add(first, second)
    variance, covariance = moments.variances()
    of_pairs = ((np.array(passes[0::2]) + passes[1::2]) / 2).var(axis=0, ddof=1).sum(axis=1)
    assert (variance + covariance) / 2 == pytest.approx(of_pairs, rel=1e-6)
    assert antithetic.ratio(np.array([2.0, 4.0, 6.0]), np.array([4.0, 8.0, 12.0])) == pytest.approx((0.5, 0))


def test_only_half_can_be_complemented(tiny):
    tiny[0].layer[4].dropout_param.dropout_ratio = 0.3
    with pytest.raises(UserError, match="'drop2' drops a share of 0.3: only at 0.5"):
        antithetic.load(tiny[0], tiny[1])


# --- whole evaluations -------------------------------------------------------------------------

@pytest.fixture
def job(tiny, tmp_path):
    rng = np.random.RandomState(0)
    np.savez(str(tmp_path / 'x.npz'), images=rng.randn(13, 2, 1, 1), labels=rng.randint(0, 2, 13))
    standard = engine.caffe_pb2.NetParameter()
    standard.CopyFrom(tiny[0])
    for layer in standard.layer:
        layer.ClearField('phase')
    return jobs.Job('tiny', standard, tiny[0], tiny[1], False, jobs.images.open_images(str(tmp_path / 'x.npz')), 13)


def evaluate(job, folder, jobs=1, **changes):
    settings = evaluation.Settings(T=10, repeats=2, seed=1, mode='antithetic', batch=5, crops=None,
                                   gpu=None)._replace(**changes)
    evaluation.run(job, evaluation.prepare(job, settings), str(folder), jobs)
    return {path.name: path.read_bytes() for path in folder.rglob('*') if path.is_file()}


def test_jobs_change_no_byte_and_the_config_says_it(job, tmp_path):
    one, two = evaluate(job, tmp_path / 'one'), evaluate(job, tmp_path / 'two', jobs=2)
    assert one == two and b'"mode": "antithetic"' in one['config.json']
    plain = evaluate(job, tmp_path / 'plain', mode='stream')
    assert plain['images.npz'] != one['images.npz']


def test_stored_standard_errors_are_those_of_pairs(job, tmp_path, monkeypatch):
    seen, add = [], mc.Sums.add

    def spy(sums, probs, scores, images=slice(None)):
        seen.append(probs.astype(np.float64))
        add(sums, probs, scores, images)

    monkeypatch.setattr(mc.Sums, 'add', spy)
    monkeypatch.setattr(engine, 'work', lambda make, tasks, jobs: [(task, make()(task)) for task in tasks])
    evaluate(job, tmp_path / 'out', repeats=1, batch=13)
    rows, pairs = np.array(seen), np.array(seen).reshape(5, 2, 13, 2)
    votes = (rows.argmax(axis=2)[:, :, None] == [0, 1]).reshape(5, 2, 13, 2).mean(axis=1)
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        assert stored['mc_probs'][0] == pytest.approx(rows.mean(axis=0), abs=1e-6)
        expected = pairs.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(5)
        assert stored['mc_standard_error'][0] == pytest.approx(expected, abs=1e-6)
        entropies = metrics.entropy(pairs).mean(axis=1)
        assert stored['expected_entropy_se'][0] == pytest.approx(entropies.std(axis=0, ddof=1) / np.sqrt(5), abs=1e-6)
        assert stored['variation_ratio_se'][0] == pytest.approx(votes[:, :, 0].std(axis=0, ddof=1) / np.sqrt(5), abs=1e-6)


def test_the_measured_gain_is_that_of_repeated_evaluations(job, tmp_path):
    """The row of a net, against the spread of 60 repetitions with either kind of masks."""
    row = antithetic.measure(job, 400, batch=5)
    spread = {}
    for mode in ('stream', 'antithetic'):
        evaluate(job, tmp_path / mode, mode=mode, repeats=60, batch=13)
        with np.load(str(tmp_path / mode / 'images.npz')) as stored:
            spread[mode] = stored['mc_probs'].var(axis=0, ddof=1).sum()
    assert row['gain'] == pytest.approx(1 / (1 + row['correlation']))
    assert spread['stream'] / spread['antithetic'] == pytest.approx(row['gain'], rel=0.3)
    assert row['variance'] / 10 == pytest.approx(spread['stream'] / 13, rel=0.2)  # T = 10, 13 images
    assert (row['images'], row['pairs']) == (13, 400) and row['time'] > 0 and row['worth'] == row['gain'] / row['time']


@pytest.mark.parametrize('changes', [dict(T=9), dict(T=10, crops=2)])
def test_an_odd_number_of_passes_is_refused(job, tmp_path, changes):
    with pytest.raises(UserError, match='in pairs'):
        evaluate(job, tmp_path / 'out', **changes)
