"""Antithetic masks: outputs those of full passes, unbiased against exact enumeration, standard errors that hold."""

import itertools

import numpy as np
import pytest
from google.protobuf import text_format

from bcnn import engine, nets
from bcnn.errors import UserError
from bcnn.mc import antithetic, evaluation, forward, metrics, running_sums, targets
from bcnn.prototxt import masks, versions
from bcnn.studies import antithetic_gain

pytestmark = pytest.mark.caffe

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
    net, wiring = loaded
    passes = forward.in_groups(antithetic.groups_of(net, wiring, np.random.RandomState(seed)), IMAGES, T)
    return running_sums.sample(passes, np.zeros(3, int), 2, True, wiring.size)


def masked_passes(net, wiring, images, T, seed=1):
    """[(outputs, masks)] of T passes: the masks, a list in the order of wiring.masks, that each pass is to be of."""
    passes = antithetic.groups_of(net, wiring, np.random.RandomState(seed))
    choices = list(antithetic.choices(len(wiring.parts)))
    for k, (_, scores) in enumerate(forward.in_groups(passes, images, T)):
        first, *others = [net.blobs[name].data.copy() for name in wiring.masks]
        if wiring.pool:  # the mask is that of windows
            n, places, channels, height, width = passes.kept.shape
            windows = (-2 * passes.kept).reshape(n, wiring.pool, wiring.pool, channels, height, width)
            first[...] = windows.transpose(0, 3, 4, 1, 5, 2).reshape(first.shape)
        points = [first.shape[1] * g // len(wiring.parts) for g in range(len(wiring.parts) + 1)]
        for start, stop, other in zip(points, points[1:], choices[k % wiring.size]):
            if other:
                first[:, start:stop] = 2 - first[:, start:stop]
        yield scores.copy(), [first] + others


def test_a_group_is_every_choice_once_and_each_before_its_complement():
    assert list(antithetic.choices(1)) == [(0,), (1,)]
    assert list(antithetic.choices(2)) == [(0, 0), (1, 1), (0, 1), (1, 0)]
    four = list(antithetic.choices(4))
    assert len(set(four)) == 16 and all(np.add(a, b).tolist() == [1] * 4 for a, b in zip(four[::2], four[1::2]))


@pytest.mark.parametrize('groups', [1, 2])
def test_masks_are_fair_and_the_next_is_what_the_last_dropped(tiny, groups):
    net, wiring = antithetic.load(tiny[0], tiny[1], groups)
    found = np.array([np.hstack(both) for _, both in masked_passes(net, wiring, IMAGES, 200)])
    assert set(np.unique(found)) == {0, 2} and found.shape == (200, 3, 5)
    assert (found[0::2] + found[1::2] == 2).all()
    assert np.abs(found[0::2].mean(axis=(0, 1)) - 1).max() < 0.25 * groups ** 0.5  # 4 standard errors of 300 coins
    assert len(np.unique(found[0::wiring.size].reshape(200 // wiring.size, -1), axis=0)) > 0.9 * 200 / wiring.size
    if groups == 2:  # a factorial design: the four choices for two values, whatever the first mask was
        assert all(len(np.unique(one[:, k, :2], axis=0)) == 4 for one in found.reshape(50, 4, 3, 5) for k in range(3))


def test_with_the_same_masks_it_is_caffes_own_dropout(tiny):
    """Masks read off the stock net give the same outputs."""
    stock = engine.load_net(tiny[0], tiny[1])
    stock.blobs['data'].data[...] = IMAGES
    net, wiring = antithetic.load(tiny[0], tiny[1])
    net.blobs['data'].data[...] = IMAGES
    engine.set_seed(3)
    stock.forward()
    for drop, mask in zip(('drop1', 'drop2'), wiring.masks):
        kept = stock.blobs[drop].data != 0  # or nothing was there to drop
        net.blobs[mask].data[...] = 2 * kept
    net.forward()
    assert net.blobs['prob'].data == pytest.approx(stock.blobs['prob'].data, abs=1e-6)


PAPER = [(dataset, name) for dataset in ('mnist', 'cifar10') for name in ('lenet_all', 'lenet_ip')] + [
    ('cifar10', name) for name in ('nin', 'dsn', 'dsn_aug')]


@pytest.mark.parametrize('dataset, name', PAPER)
def test_the_outputs_are_those_of_full_passes_under_the_same_masks(dataset, name, tmp_path):
    """For every net of the paper: what is computed once for several masks against a net that computes all of each."""
    message, path = nets.mc(name, dataset, batch=2), str(tmp_path / 'w.caffemodel')
    engine.set_seed(3)
    engine.load_net(message).save(path)
    reference, _ = antithetic.load(message, path)
    images = np.random.RandomState(0).rand(*reference.blobs['data'].data.shape).astype(np.float32)
    reference.blobs['data'].data[...] = images
    for groups in (1,) if name == 'lenet_all' else (1, 2) if name == 'lenet_ip' else (1, 2, 3):
        net, wiring = antithetic.load(message, path, groups)
        made = []
        for scores, both in masked_passes(net, wiring, images, 2 * wiring.size if groups < 3 else 8):
            for blob, mask in zip(wiring.masks, both):
                reference.blobs[blob].data[...] = mask
            reference.forward()
            expected = reference.blobs[wiring.score].data.reshape(2, -1)
            assert bool(wiring.pool) == (name == 'lenet_all')
            if wiring.pool:  # and bit for bit, but for the sign of 0
                assert np.array_equal(net.blobs['pool1'].data, reference.blobs['pool1'].data)
            assert scores == pytest.approx(expected, abs=2e-6 * max(1, np.abs(expected).max()))
            made.append(scores)
        assert np.abs(np.diff(made, axis=0)).max(axis=(1, 2)).min() > 1e-4  # the masks matter


def test_whole_numbers_in_the_order_of_floats():
    floats = np.array([-np.inf, -3e38, -2.5, -1e-45, -0.0, 0.0, 1e-45, 1e-20, 0.5, 7, np.inf], np.float32)
    numbers = antithetic.ordered(floats.view(np.int32))
    assert (np.diff(numbers) > 0).all() and numbers[5] == 0
    assert antithetic.ordered(numbers).tobytes() == floats.tobytes()


@pytest.mark.parametrize('form, rows', [
    ('kernel_size: 2 stride: 2', 2), ('pool: MAX kernel_size: 4 stride: 4', 4), ('kernel_size: 3 stride: 2', 0),
    ('pool: AVE kernel_size: 2 stride: 2', 0), ('kernel_size: 2 stride: 2 pad: 1', 0), ('kernel_size: 3 stride: 3', 0),
    ('kernel_h: 2 kernel_w: 2 stride: 2', 0), ('kernel_size: 1 stride: 1', 0)])
def test_which_pooling_is_done_outside_caffe(form, rows):
    """Windows side by side that fill maps of 4 x 4; the outputs of all are those of full passes."""
    text = POOLED.replace('pool: MAX kernel_size: 2 stride: 2', form)
    message = text_format.Parse(text, engine.caffe_pb2.NetParameter())
    net, wiring = antithetic.load(message, None)
    reference, _ = antithetic.load(message, None)
    assert wiring.pool == rows
    images = np.random.RandomState(0).randn(2, 3, 4, 4).astype(np.float32)
    for one in (net, reference):
        one.params['ip'][0].data[...] = np.random.RandomState(1).randn(*one.params['ip'][0].data.shape)
    reference.blobs['data'].data[...] = images
    for scores, both in masked_passes(net, wiring, images, 6):
        reference.blobs[wiring.masks[0]].data[...] = both[0]
        reference.forward()
        assert scores == pytest.approx(reference.blobs['ip'].data, abs=1e-5)


@pytest.mark.parametrize('name, chain', [('lenet_all', []), ('lenet_ip', ['ip2']), ('nin', ['conv2']),
                                         ('dsn', ['mask3', 'conv2'])])
def test_what_is_linear_behind_the_first_dropout(name, chain):
    steps = versions.steps_of(nets.mc(name, 'cifar10').layer)
    first = next(step for step in steps if step.layer.type == 'Dropout')
    assert [step.layer.name for step in masks.chain_after(steps, first)] == chain


@pytest.mark.parametrize('groups', [1, 2])
def test_the_mean_is_the_exact_one_and_the_standard_errors_hold(tiny, groups):
    T = 40
    loaded = antithetic.load(tiny[0], tiny[1], groups)
    runs = [sample(loaded, T, seed) for seed in range(150)]
    means = np.array([one.probs / T for one in runs])
    errors = np.array([metrics.mean_errors(one.squares, one.probs / T, one.passes // 2 ** groups) for one in runs])
    spread = means.std(axis=0, ddof=1)
    assert (np.abs(means.mean(axis=0) - tiny[2]) < 4 * spread / np.sqrt(len(runs))).all()
    assert np.sqrt((errors ** 2).mean(axis=0)) == pytest.approx(spread, rel=0.25)


@pytest.mark.parametrize('groups', [1, 2])
def test_the_variances_are_those_of_many_passes(tiny, groups):
    """What `Moments` says of groups: the variance of a pass, and that of a mean of a group times its passes."""
    net, wiring = antithetic.load(tiny[0], tiny[1], groups)
    stream = forward.in_groups(antithetic.groups_of(net, wiring, np.random.RandomState(2)), IMAGES, 4000)
    passes = np.array([probs.astype(np.float64) for probs, _ in stream])
    moments, rows = running_sums.Moments(), passes.reshape(-1, wiring.size, 3, 2)
    for group in rows:
        moments.add(group)
    alone, together = moments.variances()
    assert together == pytest.approx(wiring.size * rows.mean(axis=1).var(axis=0, ddof=1).sum(axis=1), rel=1e-6)
    assert alone == pytest.approx(passes.var(axis=0, ddof=1).sum(axis=1), rel=0.01)
    assert antithetic_gain.ratio(np.array([2.0, 4.0, 6.0]), np.array([4.0, 8.0, 12.0])) == pytest.approx((0.5, 0))


def test_only_half_can_be_complemented(tiny):
    tiny[0].layer[4].dropout_param.dropout_ratio = 0.3
    with pytest.raises(UserError, match="'drop2' drops a share of 0.3: only at 0.5"):
        antithetic.load(tiny[0], tiny[1])


POOLED = """
name: "pooled"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } } }
layer { name: "drop" type: "Dropout" bottom: "data" top: "drop" phase: TRAIN dropout_param { dropout_ratio: 0.5 } }
layer { name: "pool" type: "Pooling" bottom: "drop" top: "pool" pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool" top: "ip" inner_product_param { num_output: 2 } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""


def test_how_many_groups(tiny):
    """As many as suit net and T where nobody asks; what the net cannot have is refused."""
    assert [antithetic.settle(tiny[0], 0, T)[0] for T in (8, 6, 7)] == [2, 1, 1]
    assert antithetic.settle(tiny[0], 1, 8)[0] == 1
    with pytest.raises(UserError, match="'ip1' has 2 input channels: no 3 groups"):
        antithetic.settle(tiny[0], 3, 8)
    with pytest.raises(UserError, match='at most 8'):
        antithetic.settle(tiny[0], 9, 512)
    pooled = text_format.Parse(POOLED, engine.caffe_pb2.NetParameter())
    assert antithetic.settle(pooled, 0, 8)[0] == 1
    with pytest.raises(UserError, match="follows the dropout layer 'drop' directly .*--groups 1"):
        antithetic.settle(pooled, 2, 8)
    # what is kept beside the blobs counts: twice the output, and that under the complement, of 3 numbers of 4 bytes
    need = antithetic.settle(tiny[0], 1, 8)[1].bytes
    assert need == 4 * (2 + 2 + 3 + 2 + 2 + 3 + 3 + 2 + 2) + 2 * 4 * 3


@pytest.mark.parametrize('T, size, views, near', [(7, 2, 1, '6 or 8'), (50, 4, 1, '48 or 52'), (1, 2, 1, '2'),
                                                  (20, 2, 4, '16 or 24'), (100, 8, 1, '96 or 104')])
def test_the_nearest_number_of_passes(T, size, views, near):
    with pytest.raises(UserError, match='^T is %d: .* groups of %d .* nearest is %s$' % (T, size, near)):
        antithetic.check_multiple(T, size, views)
    antithetic.check_multiple(size * views * 3, size, views)


# --- whole evaluations -------------------------------------------------------------------------

@pytest.fixture
def target(tiny, tmp_path):
    rng = np.random.RandomState(0)
    np.savez(str(tmp_path / 'x.npz'), images=rng.randn(13, 2, 1, 1), labels=rng.randint(0, 2, 13))
    standard = engine.caffe_pb2.NetParameter()
    standard.CopyFrom(tiny[0])
    for layer in standard.layer:
        layer.ClearField('phase')
    return targets.Target('tiny', standard, tiny[0], tiny[1], False, targets.sources.open_images(str(tmp_path / 'x.npz')), 13)


def here(make, tasks, _jobs):
    """`engine.work` in this process, to look into it."""
    return [(task, make()(task)) for task in tasks]


def evaluate(target, folder, jobs=1, **changes):
    settings = evaluation.Settings(T=10, repeats=2, seed=1, mode='antithetic', batch=5, crops=None,
                                   gpu=None)._replace(**changes)
    evaluation.run(target, evaluation.prepare(target, settings), str(folder), jobs)
    return {path.name: path.read_bytes() for path in folder.rglob('*') if path.is_file()}


def test_jobs_change_no_byte_and_the_config_says_it(target, tmp_path):
    one, two = evaluate(target, tmp_path / 'one'), evaluate(target, tmp_path / 'two', jobs=2)
    assert one == two and b'"mode": "antithetic"' in one['config.json']
    plain = evaluate(target, tmp_path / 'plain', mode='stream')
    assert plain['images.npz'] != one['images.npz']


@pytest.mark.parametrize('groups', [1, 2])
def test_stored_standard_errors_are_those_of_groups(target, tmp_path, monkeypatch, groups):
    seen, add, size = [], running_sums.Sums.add, 2 ** groups

    def spy(sums, probs, scores, images=slice(None)):
        seen.append(probs.astype(np.float64))
        add(sums, probs, scores, images)

    monkeypatch.setattr(running_sums.Sums, 'add', spy)
    monkeypatch.setattr(engine, 'work', here)
    evaluate(target, tmp_path / 'out', repeats=1, batch=13, T=5 * size, groups=groups)
    rows, grouped = np.array(seen), np.array(seen).reshape(5, size, 13, 2)
    votes = (rows.argmax(axis=2)[:, :, None] == [0, 1]).reshape(5, size, 13, 2).mean(axis=1)
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        assert stored['mc_probs'][0] == pytest.approx(rows.mean(axis=0), abs=1e-6)
        expected = grouped.mean(axis=1).std(axis=0, ddof=1) / np.sqrt(5)
        assert stored['mc_standard_error'][0] == pytest.approx(expected, abs=1e-6)
        entropies = metrics.entropy(grouped).mean(axis=1)
        assert stored['expected_entropy_se'][0] == pytest.approx(entropies.std(axis=0, ddof=1) / np.sqrt(5), abs=1e-6)
        assert stored['variation_ratio_se'][0] == pytest.approx(votes[:, :, 0].std(axis=0, ddof=1) / np.sqrt(5), abs=1e-6)


def test_the_measured_gain_is_that_of_repeated_evaluations(target, tmp_path):
    """The rows of a net, against the spread of 60 repetitions with each kind of masks."""
    spread = {}
    for groups in (None, 1, 2):
        folder = tmp_path / str(groups)
        evaluate(target, folder, mode='antithetic' if groups else 'stream', repeats=60, batch=13, groups=groups, T=12)
        with np.load(str(folder / 'images.npz')) as stored:
            spread[groups] = stored['mc_probs'].var(axis=0, ddof=1).sum()
    assert antithetic_gain.possible(target, (1, 2, 3)) == [1, 2]
    for groups in (1, 2):
        row = antithetic_gain.measure(target, groups, 300, batch=5)
        assert row['gain'] == pytest.approx(row['variance'] / row['together'])
        assert spread[None] / spread[groups] == pytest.approx(row['gain'], rel=0.3)
        assert row['variance'] / 12 == pytest.approx(spread[None] / 13, rel=0.2)  # T = 12, 13 images
        assert (row['images'], row['draws'], row['groups']) == (13, 300, groups)
        assert row['time'] > 0 and row['worth'] == row['gain'] / row['time']


@pytest.mark.parametrize('changes', [dict(T=9), dict(T=10, crops=2), dict(T=10, groups=2)])
def test_passes_that_are_no_groups_are_refused(target, tmp_path, changes):
    with pytest.raises(UserError, match='come in groups of'):
        evaluate(target, tmp_path / 'out', **changes)
    assert not (tmp_path / 'out').exists()


# --- repetitions that share their masks ----------------------------------------------------------

def probabilities(folder):
    """MC probabilities of a stored evaluation: repetitions x images x classes."""
    with np.load(str(folder / 'images.npz')) as stored:
        return stored['mc_probs'].astype(np.float64)


@pytest.mark.parametrize('repeats, T, size', [(5, 3, 4), (2, 7, 2), (3, 5, 2), (4, 1, 4)])
def test_no_repetition_has_two_passes_of_a_group(target, tmp_path, monkeypatch, repeats, T, size):
    numbers, dealt, add = itertools.count(), {}, running_sums.Sums.add

    def numbered(passes, _once):
        assert passes.size == size
        for number in itertools.islice(numbers, size):
            yield np.full((13, 2), number), np.zeros((13, 2))

    def spy(sums, probs, scores, images=slice(None)):
        dealt.setdefault(id(sums), []).append(int(probs[0, 0]))
        add(sums, np.full((13, 2), 0.5), scores, images)

    monkeypatch.setattr(antithetic.Groups, 'group', numbered)
    monkeypatch.setattr(running_sums.Sums, 'add', spy)
    monkeypatch.setattr(engine, 'work', here)
    evaluate(target, tmp_path / 'out', mode='shared', repeats=repeats, batch=13, T=T)
    assert list(dealt.values()) == [list(range(first, repeats * T, repeats)) for first in range(repeats)]
    assert all(len({number // size for number in passes}) == T for passes in dealt.values())


def test_within_a_repetition_passes_are_independent_and_the_mean_is_exact(tiny, target, tmp_path):
    """A repetition varies over seeds as T independent passes do, and is as unbiased."""
    np.savez(str(tmp_path / 'y.npz'), images=IMAGES, labels=np.zeros(3, int))
    known = target._replace(source=targets.sources.open_images(str(tmp_path / 'y.npz')), count=3)
    T, repeats, seeds = 6, 16, range(1, 31)
    for seed in seeds:
        evaluate(known, tmp_path / str(seed), mode='shared', repeats=repeats, groups=2, T=T, batch=3, seed=seed)
    means = np.stack([probabilities(tmp_path / str(seed)) for seed in seeds])  # seeds x repetitions x images x classes
    evaluate(known, tmp_path / 'plain', mode='stream', repeats=480, T=T, batch=3)
    plain = probabilities(tmp_path / 'plain')
    each = means.reshape(480, 3, 2)
    assert (np.abs(each.mean(axis=0) - tiny[2]) < 4 * plain.std(axis=0) / np.sqrt(480)).all()
    assert each.var(axis=0).sum() == pytest.approx(plain.var(axis=0).sum(), rel=0.2)
    # opposite masks in different repetitions: their mean is closer to the exact one than that of independent ones
    assert repeats * means.mean(axis=1).var(axis=0).sum() < 0.8 * plain.var(axis=0).sum()


def test_shared_evaluations_go_on_where_they_were_stopped_and_jobs_change_no_byte(target, tmp_path):
    one = evaluate(target, tmp_path / 'one', mode='shared', repeats=5, T=7)
    two = evaluate(target, tmp_path / 'two', jobs=2, mode='shared', repeats=5, T=7)
    assert one == two and b'"mode": "shared"' in one['config.json'] and b'"repeats": 5' in one['config.json']
    for name in ('mc3-00001.npz', 'mc1-00002.npz', 'standard-00000.npz'):
        (tmp_path / 'two' / 'blocks' / name).unlink()
    assert evaluate(target, tmp_path / 'two', mode='shared', repeats=5, T=7) == one
    with pytest.raises(UserError, match='repeats'):  # the passes would be dealt out otherwise
        evaluate(target, tmp_path / 'two', mode='shared', repeats=6, T=7)


@pytest.mark.parametrize('changes, words', [
    (dict(repeats=1), 'in groups of 2: give --repeats 2 or more, not 1'),
    (dict(repeats=3, groups=2), 'in groups of 4: give --repeats 4 or more, not 3'),
    (dict(crops=2), 'not with crops'), (dict(rule=evaluation.adaptive.Rule()), 'not with crops or adaptive T')])
def test_what_cannot_be_shared_is_refused(target, tmp_path, changes, words):
    with pytest.raises(UserError, match=words):
        evaluate(target, tmp_path / 'out', mode='shared', **dict(dict(repeats=5), **changes))
    assert not (tmp_path / 'out').exists()
