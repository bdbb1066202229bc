"""Whole evaluations on a small net: results known by hand, the same bytes however they are computed."""

import json
import os

import numpy as np
import pytest

import evalhelp
from bcnn import engine, seeds
from bcnn.errors import UserError
from bcnn.inputs import preprocessing, sources
from bcnn.mc import evaluation, forward, targets
from bcnn.prototxt import reading, rewriting

pytestmark = pytest.mark.caffe

COUNT = 23


@pytest.fixture
def small(tmp_path):
    """A Job for a small net with weights and images of its own."""
    return evalhelp.small_target(tmp_path, COUNT)


def settings(**changes):
    return evaluation.Settings(T=10, repeats=3, seed=1, mode='stream', batch=5, crops=None, gpu=None)._replace(**changes)


def evaluate(target, folder, jobs=1, **changes):
    return evaluation.run(target, evaluation.prepare(target, settings(**changes)), str(folder), jobs)


def contents(folder):
    """The bytes of every result file; block files too."""
    found = {}
    for where, _, names in os.walk(str(folder)):
        for name in names:
            path = os.path.join(where, name)
            with open(path, 'rb') as file:
                found[os.path.relpath(path, str(folder))] = file.read()
    return found


def test_the_result_agrees_with_a_plain_loop(small, tmp_path):
    """The same net run pass by pass without any of the machinery: Standard exactly, MC up to float order."""
    result = evaluate(small, tmp_path / 'out', batch=COUNT, repeats=1)
    pixels, labels = small.source.read(0, COUNT)
    net = engine.load_net(small.standard, small.weights)
    net.blobs['data'].reshape(*pixels.shape)
    net.blobs['data'].data[...] = pixels
    probs = net.forward()['prob'].copy()
    assert result['standard']['errors'] == int((probs.argmax(1) != labels).sum())

    sampling = engine.load_net(small.sampling, small.weights)
    sampling.blobs['data'].reshape(*pixels.shape)
    sampling.blobs['data'].data[...] = pixels
    sampling.reshape()
    engine.set_seed(seeds.seed_for('masks', 1, 1, 0))
    passes = np.stack([sampling.forward()['prob'].copy() for _ in range(10)])
    curve = []
    for t in range(10):  # a tie with the true class is wrong, as for Caffe's Accuracy: here a row with all units dropped
        average = passes[:t + 1].astype(float).sum(axis=0)
        others = np.where(np.arange(3) == labels[:, None], -1, average).max(axis=1)
        curve.append(100.0 * np.mean(average[np.arange(COUNT), labels] <= others))
    assert result['mc']['probs']['curve'][0] == pytest.approx(curve, abs=1e-4)
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        assert stored['mc_probs'][0] == pytest.approx(passes.mean(axis=0), abs=1e-6)
        votes = np.stack([np.bincount(passes[:, i].argmax(1), minlength=3) for i in range(COUNT)])
        assert stored['variation_ratio'][0] == pytest.approx(1 - votes.max(1) / 10)
        assert stored['mc_standard_error'][0] == pytest.approx(passes.std(axis=0, ddof=1) / np.sqrt(10), abs=1e-6)


def test_table_1_figures_by_hand(small, tmp_path):
    result = evaluate(small, tmp_path / 'out')
    found = result['mc']['probs']
    finals = [curve[-1] for curve in found['curve']]
    assert len(finals) == 3 and found['error'] == pytest.approx(finals)
    assert found['mean'] == pytest.approx(sum(finals) / 3)
    assert found['std'] == pytest.approx((sum((x - sum(finals) / 3) ** 2 for x in finals) / 2) ** 0.5)
    assert found['lowest'] == pytest.approx(min(finals))
    assert all(len(curve) == 10 for curve in found['curve'])


def test_jobs_and_interruption_change_no_byte(small, tmp_path):
    evaluate(small, tmp_path / 'one')
    evaluate(small, tmp_path / 'two', jobs=2)
    assert contents(tmp_path / 'one') == contents(tmp_path / 'two')
    for name in ('result.json', 'images.npz', 'images.csv'):
        (tmp_path / 'two' / name).unlink()
    for block in sorted((tmp_path / 'two' / 'blocks').iterdir())[::2]:
        block.unlink()
    evaluate(small, tmp_path / 'two', jobs=2)
    assert contents(tmp_path / 'one') == contents(tmp_path / 'two')


def test_finished_blocks_are_not_computed_again(small, tmp_path):
    evaluate(small, tmp_path / 'out', repeats=1)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / 'out' / 'blocks').iterdir()}
    evaluate(small, tmp_path / 'out', repeats=3)
    assert all(path.stat().st_mtime_ns == moment for path, moment in before.items())
    assert len(list((tmp_path / 'out' / 'blocks').iterdir())) == 5 * 4


def test_another_seed_gives_other_samples_and_the_same_standard(small, tmp_path):
    first, second = evaluate(small, tmp_path / 'a'), evaluate(small, tmp_path / 'b', seed=2)
    assert first['standard'] == second['standard']
    assert first['uncertainty'] != second['uncertainty']


def test_repetitions_differ(small, tmp_path):
    evaluate(small, tmp_path / 'out')
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        assert not np.array_equal(stored['mc_probs'][0], stored['mc_probs'][1])


def test_replicate_mode_gives_the_same_rows(small, tmp_path):
    """One dropout layer: the masks are the same numbers in both modes."""
    stream, copies = evaluate(small, tmp_path / 'a'), evaluate(small, tmp_path / 'b', mode='replicate')
    assert stream['mc']['probs']['curve'] == copies['mc']['probs']['curve']
    with np.load(str(tmp_path / 'a' / 'images.npz')) as a, np.load(str(tmp_path / 'b' / 'images.npz')) as b:
        assert a['mc_probs'] == pytest.approx(b['mc_probs'], abs=1e-6)


def test_another_evaluation_in_the_folder_is_refused(small, tmp_path):
    evaluate(small, tmp_path / 'out')
    before = contents(tmp_path / 'out')
    with pytest.raises(UserError, match='T 10, here 12'):
        evaluate(small, tmp_path / 'out', T=12)
    assert contents(tmp_path / 'out') == before


def test_a_damaged_block_is_named(small, tmp_path):
    evaluate(small, tmp_path / 'out')
    block = sorted((tmp_path / 'out' / 'blocks').iterdir())[3]
    block.write_bytes(block.read_bytes()[:-30])
    with pytest.raises(UserError, match=block.name):
        evaluate(small, tmp_path / 'out')


def test_labels_out_of_range_are_found_before_any_work(small, tmp_path):
    path = str(tmp_path / 'bad.npz')
    np.savez(path, images=np.zeros((4, 1, 2, 3), np.float32), labels=np.array([0, 1, 3, 0]))
    bad = small._replace(source=sources.open_images(path), count=4)
    with pytest.raises(UserError, match='image 2 has label 3, but the net has classes 0 to 2'):
        evaluation.prepare(bad, settings())


def test_images_of_another_shape_are_refused(small, tmp_path):
    path = str(tmp_path / 'bad.npz')
    np.savez(path, images=np.zeros((4, 3, 2, 3), np.float32), labels=np.zeros(4, int))
    with pytest.raises(UserError, match='images of 3x2x3, the net small.* takes 1x2x3'):
        evaluation.prepare(small._replace(source=sources.open_images(path), count=4, name='small'), settings())


@pytest.mark.parametrize('changes', [dict(T=0), dict(repeats=0), dict(batch=0), dict(batch=-3), dict(T=10, crops=3), dict(crops=0)])
def test_settings_that_mean_nothing_are_refused(small, changes):
    with pytest.raises(UserError):
        evaluation.prepare(small, settings(**changes))


def test_crops_of_padded_images(tmp_path):
    """With images whose crops all look the same, crops change nothing; with others they do."""
    target = padded_job(tmp_path, lambda rng: np.full((6, 1, 6, 6), 2.0))
    evaluate(target, tmp_path / 'a', repeats=1)
    evaluate(target, tmp_path / 'b', crops=5, repeats=1)
    with np.load(str(tmp_path / 'a' / 'images.npz')) as a, np.load(str(tmp_path / 'b' / 'images.npz')) as b:
        assert np.array_equal(a['mc_probs'], b['mc_probs'])
    target = padded_job(tmp_path, lambda rng: rng.randn(6, 1, 6, 6) * 3)
    evaluate(target, tmp_path / 'c', repeats=1)
    evaluate(target, tmp_path / 'd', crops=5, repeats=1)
    with np.load(str(tmp_path / 'c' / 'images.npz')) as c, np.load(str(tmp_path / 'd' / 'images.npz')) as d:
        assert not np.array_equal(c['mc_probs'], d['mc_probs'])
        assert not np.array_equal(c['standard_probs'], d['standard_probs'])


def test_standard_averages_the_views_that_mc_sees_and_passes_of_a_view_are_one_value(tmp_path):
    """With a net that drops nothing every pass is a Standard one: what is left between the two methods are views."""
    target = padded_job(tmp_path, lambda rng: rng.randn(6, 1, 6, 6) * 3, ratio=0)
    result = evaluate(target, tmp_path / 'a', crops=5, repeats=1)
    assert result['mc']['probs']['mcnemar'] == dict(only_standard_right=0, only_mc_right=0, p=1.0)
    with np.load(str(tmp_path / 'a' / 'images.npz')) as found:
        assert found['mc_probs'][0] == pytest.approx(found['standard_probs'], abs=1e-6)
        rng = np.random.RandomState(seeds.seed_for('crops', 1, 1, 0, 5))
        views = [preprocessing.random_views(target.source.read_whole(0, 5), 4, rng) for _ in range(5)]
        net = engine.load_net(target.standard, target.weights, extra_weights=True)
        wiring = forward.wiring_of(target.standard, net)
        by_view = np.array([forward.standard(net, wiring, view)[0] for view in views])
        assert found['standard_probs'][:5] == pytest.approx(by_view.mean(axis=0), abs=1e-6)
        errors = by_view.std(axis=0, ddof=1) / np.sqrt(5)  # of five views; the two passes of each are equal
        assert found['mc_standard_error'][0, :5] == pytest.approx(errors, rel=1e-3, abs=1e-6)


def padded_job(tmp_path, make, ratio=0.5):
    """6x6 images of which the net sees 4x4."""
    text = evalhelp.NET.replace('scale: 0.1', 'crop_size: 4')
    (tmp_path / 'net.prototxt').write_text(text.replace('type: "Dropout"', 'type: "Dropout" dropout_param { dropout_ratio: %g }' % ratio))
    np.savez(str(tmp_path / 'padded.npz'), images=make(np.random.RandomState(1)), labels=np.arange(6) % 3)
    engine.set_seed(7)
    net = engine.load_net(rewriting.to_deploy(reading.read(str(tmp_path / 'net.prototxt')), (1, 4, 4), 1))
    net.save(str(tmp_path / 'w.caffemodel'))
    return targets.of_prototxt(str(tmp_path / 'net.prototxt'), str(tmp_path / 'w.caffemodel'), str(tmp_path / 'padded.npz'))


def test_the_csv_says_what_the_npz_says(small, tmp_path):
    evaluate(small, tmp_path / 'out')
    lines = (tmp_path / 'out' / 'images.csv').read_text().splitlines()
    assert lines[0] == ('image,label,standard,standard_p,passes,mc,mc_p,mc_p_se,entropy,entropy_se,expected_entropy,'
                        'expected_entropy_se,mutual_information,mutual_information_se,variation_ratio,'
                        'variation_ratio_se')
    assert len(lines) == 1 + COUNT
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        for row, line in enumerate(lines[1:]):
            cells = line.split(',')
            assert (int(cells[0]), int(cells[1])) == (row, stored['labels'][row])
            best = stored['mc_probs'][0, row].argmax()
            assert (int(cells[4]), int(cells[5])) == (10, best)
            assert float(cells[7]) == pytest.approx(stored['mc_standard_error'][0, row, best], rel=1e-4)
            assert float(cells[12]) == pytest.approx(stored['mutual_information'][0, row], rel=1e-4, abs=1e-9)
            assert float(cells[13]) == pytest.approx(stored['mutual_information_se'][0, row], rel=1e-4, abs=1e-9)


def test_uncertainty_adds_up(small, tmp_path):
    evaluate(small, tmp_path / 'out')
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        assert stored['entropy'] == pytest.approx(stored['expected_entropy'] + stored['mutual_information'], abs=1e-6)
    result = json.loads((tmp_path / 'out' / 'result.json').read_text())
    assert result['config']['count'] == COUNT
