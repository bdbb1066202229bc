"""Adaptive T: the stopping rule against exact enumeration, full batches, and whole adaptive evaluations."""

import itertools
import json
import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import evalhelp
from bcnn import engine, nets
from bcnn.errors import UserError
from bcnn.mc import adaptive, antithetic, evaluation, forward, metrics

pytestmark = pytest.mark.caffe


def race(passes, guess=None, error=0.01, minimum=1):
    """(passes taken, class decided on, sums of all passes) for streams of probabilities, (T, images, classes)."""
    T, n, classes = passes.shape
    running = adaptive.Race(n, classes, T, adaptive.Rule(error, minimum), guess)
    taken, going = np.full(n, T), np.arange(n)
    for t in range(T):
        if not len(going):
            break
        decided = running.add(going, passes[t, going])
        taken[going[decided]] = t + 1
        going = going[~decided]
    return taken, running.sums.argmax(axis=1), passes.astype(float).sum(axis=0)


def mistaken(winner, full):
    """Whether the class decided on is not, nor ties with, the one with the largest sum after T passes."""
    return full[np.arange(len(full)), winner] < full.max(axis=1)


# --- the error probability -----------------------------------------------------------------

@pytest.mark.parametrize('classes, T', [(2, 12), (3, 8)])
@pytest.mark.parametrize('error', [0.3, 0.1, 0.03])
def test_the_error_probability_holds_for_every_population_of_passes(classes, T, error):
    """All orders of all one-hot outputs: among the orders of the same T outputs, which are equally likely, at most a
    share of `error` may be decided otherwise than after T. A stronger statement than for any distribution of them."""
    orders = np.array(list(itertools.product(range(classes), repeat=T)))
    passes = np.eye(classes)[orders].transpose(1, 0, 2)
    for guess in [None] + [np.full(len(orders), one) for one in range(classes)]:
        taken, winner, full = race(passes, guess, error)
        wrong = mistaken(winner, full)
        populations, which = np.unique(full, axis=0, return_inverse=True)
        shares = np.bincount(which, weights=wrong) / np.bincount(which)
        assert shares.max() <= error, populations[shares.argmax()]
        assert (taken < T).mean() > 0.2
        if error == 0.3:
            assert wrong.any()  # the bound is not one that never lets go


@settings(max_examples=40)
@given(st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=2, max_size=6), st.sampled_from([None, 0, 1, 2]),
       st.sampled_from([0.5, 0.2]))
def test_the_error_probability_holds_for_any_outputs(rows, guess, error):
    """The same for soft outputs of any kind: every order of a few of them."""
    rows = np.array(rows) / np.sum(rows, axis=1, keepdims=True)
    orders = np.array(list(itertools.permutations(range(len(rows)))))
    guess = None if guess is None else np.full(len(orders), guess)
    _, winner, full = race(rows[orders].transpose(1, 0, 2), guess, error)
    assert (full[np.arange(len(full)), winner] < full.max(axis=1) - 1e-9).mean() <= error


def test_the_error_probability_holds_on_random_streams():
    """Streams of 100 soft outputs of four classes with small gaps, many of which end the other way than they began."""
    rng, n = np.random.RandomState(3), 4000
    passes = rng.dirichlet([0.34, 0.30, 0.05, 0.05], size=(100, n))
    taken, winner, full = race(passes, error=0.05)
    wrong = mistaken(winner, full).mean()
    assert 0 < wrong <= 0.05
    assert taken.mean() < 90
    five = passes[:5].sum(axis=0).argmax(axis=1)
    assert mistaken(five, full).mean() > 0.1  # what five passes for all would give


@pytest.mark.parametrize('error', [0.3, 0.1])
def test_the_error_probability_holds_for_groups_of_passes(error):
    """All orders of all groups of two one-hot outputs of two classes: groups are in random order, and the two of one
    group may depend on one another in any way. Among the orders of the same groups at most a share of `error` may be
    decided otherwise than after all passes."""
    orders = np.array(list(itertools.product(range(3), repeat=9)))  # how many of the two outputs are of class 1
    ones = np.array([(0, 0), (0, 1), (1, 1)])[orders]               # orders x 9 groups x 2 passes
    passes = np.eye(2)[ones].reshape(len(orders), 18, 2).transpose(1, 0, 2)
    for guess in (None, np.zeros(len(orders), int), np.ones(len(orders), int)):
        watch = adaptive.Watch(len(orders), 2, 18, adaptive.Rule(error, 1), guess, group=2)
        for _ in watch.over((rows, rows) for rows in passes):
            pass
        found, full = watch.arrays(), passes.sum(axis=0)
        wrong = mistaken(found['decided'], full)
        populations, which = np.unique(np.sort(orders, axis=1), axis=0, return_inverse=True)
        shares = np.bincount(which.ravel(), weights=wrong) / np.bincount(which.ravel())
        assert shares.max() <= error, populations[shares.argmax()]
        assert (found['decided_after'] < 18).mean() > 0.2 and set(found['decided_after'] % 2) == {0}
        if error == 0.3:
            assert wrong.any()


def test_a_clear_image_by_hand():
    """Money doubles with each pass, and a little more for the passes that are left being fewer."""
    passes = np.zeros((100, 2, 10))
    passes[:, :, 3] = 1
    money = np.cumprod([2 / (1 - t / (100 - t)) for t in range(10)])
    expected = 1 + np.flatnonzero(money >= 100)[0]
    taken, winner, _ = race(passes, np.array([3, 0]), error=0.01)
    assert expected == 7 and taken.tolist() == [7, 8] and winner.tolist() == [3, 3]  # a wrong guess costs its stake
    assert race(passes, error=0.01)[0].tolist() == [8, 8]  # no guess, no bet on the first pass
    assert race(passes, np.array([3, 3]), error=0.2, minimum=5)[0].tolist() == [5, 5]
    assert race(passes, np.array([3, 3]), error=0.2, minimum=1)[0].tolist() == [3, 3]


def test_what_is_certain_needs_no_bet():
    """With an error probability of next to nothing an image leaves when its lead is more than the passes left."""
    passes = np.zeros((100, 1, 2))
    passes[:, :, 1] = 1
    assert race(passes, error=1e-250)[0].tolist() == [51]


@pytest.mark.parametrize('rows', [[[0.5, 0.5]] * 2, [[0.9, 0.1], [0.1, 0.9]], [[0, 1], [1, 0]]])
def test_ties_never_stop_early(rows):
    passes = np.array(rows * 20)[:, None, :]
    for guess in (None, np.array([0]), np.array([1])):
        assert race(passes, guess, error=0.05)[0].tolist() == [40]


def test_the_minimum_is_kept():
    passes = np.full((50, 1, 2), 0.5) + [[[0.5, -0.5]]]
    for minimum in (3, 20):
        assert race(passes, error=0.3, minimum=minimum)[0] >= minimum


# --- full batches --------------------------------------------------------------------------

def lenet(name, keep_all=False):
    message = nets.mc(name, 'mnist', batch=4)
    for layer in message.layer:
        if keep_all and layer.type == 'Dropout':
            layer.dropout_param.dropout_ratio = 0
    engine.set_seed(1)
    net = engine.load_net(message)
    return net, forward.wiring_of(message, net)


def test_batches_stay_full_and_every_image_gets_its_passes():
    """Images leave after a number of passes of their own; all but the last forward passes have a full batch."""
    net, wiring = lenet('lenet_ip')
    pixels = np.random.RandomState(0).rand(30, 1, 28, 28).astype(np.float32)
    wanted = np.random.RandomState(1).randint(1, 9, 30)
    seats = adaptive.Seats(forward.Passes(net, wiring), lambda start, stop: pixels[start:stop], 30, 4)
    got, rows = np.zeros(30, int), []
    while len(seats.images):
        (probs, _), = seats.forward()
        assert len(probs) == len(seats.images) == len(set(seats.images))
        rows.append(len(probs))
        got[seats.images] += 1
        seats.leave(got[seats.images] == wanted[seats.images])
    assert got.tolist() == wanted.tolist() and sum(rows) == wanted.sum()  # no row in vain
    full = rows.index(next(size for size in rows if size < 4))
    assert rows[:full] == [4] * full and full >= wanted.sum() // 4 - max(wanted)
    assert rows == sorted(rows, reverse=True)


@pytest.mark.parametrize('name', ['lenet_ip', 'lenet_all'])
def test_each_row_is_the_image_of_its_seat(name):
    """With a dropout that keeps all, every pass gives for every row what a plain forward gives for its image."""
    net, wiring = lenet(name, keep_all=True)
    pixels = np.random.RandomState(0).rand(11, 1, 28, 28).astype(np.float32)
    expected = np.concatenate([forward.standard(net, wiring, pixels[i:i + 1])[0] for i in range(11)])
    assert np.abs(expected[1:] - expected[:-1]).max(axis=1).min() > 1e-3  # the images can be told apart
    seats = adaptive.Seats(forward.Passes(net, wiring), lambda start, stop: pixels[start:stop], 11, 4)
    passes = np.zeros(11)
    while len(seats.images):
        (probs, _), = seats.forward()
        assert probs == pytest.approx(expected[seats.images], abs=1e-5)
        passes[seats.images] += 1
        seats.leave(passes[seats.images] >= 1 + 7 * seats.images % 5)
    assert passes.tolist() == [1 + 7 * i % 5 for i in range(11)]


@pytest.mark.parametrize('name, groups', [('lenet_ip', 1), ('lenet_ip', 2), ('lenet_all', 1)])
def test_each_group_is_of_the_image_of_its_seat(name, groups, monkeypatch):
    """With masks that keep all, and so complements that drop all: every pass of a group gives for every row what it
    gives for its image alone, though images come and go."""
    monkeypatch.setattr(antithetic, 'draw', lambda shape, rng, kept=2: np.full(shape, kept, np.uint8))
    message = nets.mc(name, 'mnist', batch=4)
    engine.set_seed(1)
    passes = antithetic.groups_of(*antithetic.load(message, None, groups), None)
    pixels = np.random.RandomState(0).rand(11, 1, 28, 28).astype(np.float32)
    expected = np.array([[probs[0].copy() for probs, _ in forward.in_groups(passes, pixels[i:i + 1], passes.size)]
                         for i in range(11)])
    assert np.abs(np.diff(expected[:, 0], axis=0)).max(axis=1).min() > 1e-3  # the images can be told apart
    seats, taken = adaptive.Seats(passes, lambda start, stop: pixels[start:stop], 11, 4), np.zeros(11)
    while len(seats.images):
        for k, (probs, _) in enumerate(seats.forward()):
            assert probs == pytest.approx(expected[seats.images, k], abs=1e-5)
        taken[seats.images] += 1
        seats.leave(taken[seats.images] >= 1 + 7 * seats.images % 5)
    assert taken.tolist() == [1 + 7 * i % 5 for i in range(11)]


def test_kept_blobs_are_what_the_sampled_part_reads():
    net, wiring = lenet('lenet_all')
    assert adaptive.kept_blobs(net, wiring.first) == ['conv1']
    net, wiring = lenet('lenet_ip')
    assert adaptive.kept_blobs(net, wiring.first) == ['relu1']


# --- whole evaluations -------------------------------------------------------------------------

COUNT = 47


@pytest.fixture
def small(tmp_path):
    """A Job for a small net with weights and images of its own."""
    return evalhelp.small_target(tmp_path, COUNT)


def evaluate(target, folder, jobs=1, error=0.05, **changes):
    settings = evaluation.Settings(T=40, repeats=2, seed=1, mode='adaptive', batch=4, crops=None, gpu=None,
                                   rule=adaptive.Rule(error, 5))._replace(**changes)
    return evaluation.run(target, evaluation.prepare(target, settings), str(folder), jobs)


def contents(folder):
    found = {}
    for where, _, names in os.walk(str(folder)):
        for name in names:
            with open(os.path.join(where, name), 'rb') as file:
                found[os.path.relpath(os.path.join(where, name), str(folder))] = file.read()
    return found


def test_jobs_and_interruption_change_no_byte(small, tmp_path):
    evaluate(small, tmp_path / 'one')
    evaluate(small, tmp_path / 'two', jobs=2)
    assert contents(tmp_path / 'one') == contents(tmp_path / 'two')
    blocks = sorted((tmp_path / 'two' / 'blocks').iterdir())
    assert len(blocks) == 3 * 3  # 47 images in blocks of 20, Standard and two repetitions
    for block in blocks[::2]:
        block.unlink()
    evaluate(small, tmp_path / 'two', jobs=2)
    assert contents(tmp_path / 'one') == contents(tmp_path / 'two')


def test_the_sums_and_standard_errors_agree_with_a_plain_loop(small, tmp_path, monkeypatch):
    """Every row of every pass is written down on the way; each image's mean, errors and votes follow from its own."""
    seen, forward = {i: [] for i in range(COUNT)}, adaptive.Seats.forward

    def spy(seats):
        for probs, scores in forward(seats):
            for image, row in zip(seats.images, probs):
                seen[image].append(row.copy())
            yield probs, scores

    monkeypatch.setattr(adaptive.Seats, 'forward', spy)
    monkeypatch.setattr(engine, 'work', lambda make, tasks, jobs: [(task, make()(task)) for task in tasks])
    result = evaluate(small, tmp_path / 'out', repeats=1, batch=10)  # one block
    with np.load(str(tmp_path / 'out' / 'images.npz')) as file:
        stored = {name: file[name] for name in file.files}
    assert stored['passes'][0].tolist() == [len(seen[i]) for i in range(COUNT)]
    assert len(set(stored['passes'][0])) > 5
    for i in range(COUNT):
        rows = np.array(seen[i], np.float64)
        n = len(rows)
        assert stored['mc_probs'][0, i] == pytest.approx(rows.mean(axis=0), abs=1e-6)
        assert stored['mc_standard_error'][0, i] == pytest.approx(rows.std(axis=0, ddof=1) / n ** 0.5, abs=1e-6)
        entropies = metrics.entropy(rows)
        assert stored['expected_entropy'][0, i] == pytest.approx(entropies.mean())
        assert stored['expected_entropy_se'][0, i] == pytest.approx(entropies.std(ddof=1) / n ** 0.5, abs=1e-7)
        moves = rows @ -np.log(rows.mean(axis=0))
        assert stored['entropy_se'][0, i] == pytest.approx(moves.std(ddof=1) / n ** 0.5, abs=1e-6)
        assert stored['mutual_information_se'][0, i] == pytest.approx(
            (moves - entropies).std(ddof=1) / n ** 0.5, abs=1e-6)
        apart = rows.argmax(axis=1) != np.bincount(rows.argmax(axis=1)).argmax()
        assert stored['variation_ratio_se'][0, i] == pytest.approx(apart.std(ddof=1) / n ** 0.5, abs=1e-6)
    labels = stored['labels']
    for t in (1, 6, 40):  # the curve: those decided before t as decided
        sums = np.array([np.sum(seen[i][:t], axis=0, dtype=np.float64) for i in range(COUNT)])
        assert result['mc']['probs']['curve'][0][t - 1] == pytest.approx(metrics.error(sums, labels), abs=1e-6)


def test_groups_of_passes_are_looked_at_one_by_one(small, tmp_path, monkeypatch):
    """With antithetic masks: whole groups an image, decided by their means, with standard errors of groups."""
    seen, forward = {i: [] for i in range(COUNT)}, adaptive.Seats.forward

    def spy(seats):
        for probs, scores in forward(seats):
            for image, row in zip(seats.images, probs):
                seen[image].append(row.astype(np.float64))
            yield probs, scores

    monkeypatch.setattr(adaptive.Seats, 'forward', spy)
    monkeypatch.setattr(engine, 'work', lambda make, tasks, jobs: [(task, make()(task)) for task in tasks])
    evaluate(small, tmp_path / 'out', repeats=1, batch=10, groups=2, T=80)
    with np.load(str(tmp_path / 'out' / 'images.npz')) as file:
        stored = {name: file[name] for name in file.files}
    passes, guess = stored['passes'][0], stored['standard_probs'].argmax(1)
    assert passes.tolist() == [len(seen[i]) for i in range(COUNT)] and set(passes % 4) == {0}
    assert passes.min() >= 20 and len(set(passes)) > 3
    for i in range(COUNT):
        means = np.array(seen[i]).reshape(-1, 4, 3).mean(axis=1)
        n = len(means)
        assert stored['mc_standard_error'][0, i] == pytest.approx(means.std(axis=0, ddof=1) / n ** 0.5, abs=1e-6)
        running = adaptive.Race(1, 3, 20, adaptive.Rule(0.05, 5), guess[i:i + 1])
        ends = [bool(running.add(np.array([0]), one[None])[0]) for one in means]
        assert not any(ends[:-1]) and (ends[-1] or n == 20)
    assert json.loads((tmp_path / 'out' / 'config.json').read_text())['groups'] == 2


def test_a_check_of_groups_decides_as_adaptive_does(small, tmp_path):
    """T groups for all images, watched: whole groups, and most decisions before the end."""
    result = evaluate(small, tmp_path / 'out', mode='antithetic', groups=1, T=40, repeats=1, batch=50)
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        after = stored['decided_after'][0]
        assert (stored['passes'] == 40).all() and set(after % 2) == {0} and after.min() >= 10 and np.median(after) < 40
    assert result['adaptive']['passes'][0]['mean'] == pytest.approx(after.mean())


def test_the_result_states_passes_and_guarantee(small, tmp_path):
    result = evaluate(small, tmp_path / 'out')
    found = result['adaptive']
    assert found['error'] == 0.05 and found['guaranteed_agreement'] == pytest.approx(95)
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        for one, passes in zip(found['passes'], stored['passes']):
            assert one['mean'] == pytest.approx(passes.mean())
            assert one['percent_of_T'] == pytest.approx(100 * passes.mean() / 40)
            assert one['images_by_passes'] == [int((passes == t).sum()) for t in range(1, 41)]
            assert one['all_T'] == (passes == 40).sum()
            assert passes.min() >= 5
    assert 'check' not in found['passes'][0]
    assert set(result['uncertainty_standard_error']) == set(result['uncertainty'])


def test_a_check_is_the_plain_evaluation_and_counts_what_adaptive_had_decided(small, tmp_path, monkeypatch):
    """Every number of the evaluation without it; the decisions are those of the rule on the passes of each image."""
    plain = dict(mode='stream', repeats=4, batch=20)
    expected = evaluate(small, tmp_path / 'plain', rule=None, **plain)
    seen, stream = [], forward.in_groups

    def spy(*wiring):
        seen.append([])
        for probs, scores in stream(*wiring):
            seen[-1].append(np.array(probs))
            yield probs, scores

    monkeypatch.setattr(forward, 'in_groups', spy)
    monkeypatch.setattr(engine, 'work', lambda make, tasks, jobs: [(task, make()(task)) for task in tasks])
    result = evaluate(small, tmp_path / 'out', error=0.6, **plain)
    found = result.pop('adaptive')['passes']
    assert {name: result[name] for name in result if name != 'config'} == {
        name: expected[name] for name in expected if name != 'config'}
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        guess, decided, after = stored['standard_probs'].argmax(1), stored['decided'], stored['decided_after']
        full, labels = stored['mc_probs'].argmax(2), stored['labels']
        assert (stored['passes'] == 40).all()
    for k, one in enumerate(found):
        passes = np.concatenate([np.array(block) for block in seen[3 * k:3 * k + 3]], axis=1)  # 47 images in three blocks
        taken, winner, _ = race(passes, guess, error=0.6, minimum=5)
        assert taken.tolist() == after[k].tolist() and winner.tolist() == decided[k].tolist()
        assert one['mean'] == pytest.approx(taken.mean()) and one['mean'] < 20
        assert one['check'] == {
            'different': (winner != full[k]).sum(), 'agreement': pytest.approx(100 * (winner == full[k]).mean()),
            'error': pytest.approx(100 * (winner != labels).mean()),
            'full_error': pytest.approx(100 * (full[k] != labels).mean())}
    differences = sum(one['check']['different'] for one in found)
    assert 0 < differences <= 0.6 * 4 * COUNT  # so lax an error probability is used


def test_its_predictions_are_those_of_many_passes(small, tmp_path):
    """Where an independent evaluation with many passes leaves no doubt, the adaptive one says the same."""
    evaluate(small, tmp_path / 'a', error=0.001)
    many = evaluation.Settings(T=2000, repeats=1, seed=9, mode='stream', batch=50, crops=None, gpu=None)
    evaluation.run(small, many, str(tmp_path / 'b'))
    with np.load(str(tmp_path / 'a' / 'images.npz')) as a, np.load(str(tmp_path / 'b' / 'images.npz')) as b:
        first, second = np.sort(b['mc_probs'][0], axis=1)[:, [-1, -2]].T
        clear = first - second > 0.3
        assert clear.sum() > 10
        assert (a['mc_probs'][0].argmax(1) == b['mc_probs'][0].argmax(1))[clear].all()
        z = np.abs(a['mc_probs'] - b['mc_probs']) / np.hypot(a['mc_standard_error'], b['mc_standard_error'])
        assert np.mean(z[np.isfinite(z)] < 3) > 0.9


def test_configs(small, tmp_path):
    """New fields only in adaptive configs, so that folders of earlier versions go on; another rule is another folder."""
    plain = evaluation.Settings(T=40, repeats=1, seed=1, mode='stream', batch=4, crops=None, gpu=None, streams=1)
    first = ['net', 'standard_net', 'mc_net', 'dropout', 'weights', 'images', 'count', 'T', 'seed', 'mode', 'batch', 'crops',
             'device']
    assert list(evaluation.config_of(small, plain)) == first
    assert list(evaluation.config_of(small, plain._replace(streams=2))) == first + ['streams']
    evaluate(small, tmp_path / 'out')
    stored = json.loads((tmp_path / 'out' / 'config.json').read_text())
    assert stored['adaptive'] == {'error': 0.05, 'minimum': 5} and stored['block'] == 20
    with pytest.raises(UserError, match=r'adaptive.error 0\.05, here 0\.01'):
        evaluate(small, tmp_path / 'out', error=0.01)
    with pytest.raises(UserError, match='mode adaptive, here stream'):
        evaluation.run(small, plain, str(tmp_path / 'out'))


def test_blocks_of_earlier_versions_are_read(small, tmp_path):
    """Blocks without numbers of passes and standard errors, alone and among new ones."""
    plain = evaluation.Settings(T=40, repeats=2, seed=1, mode='stream', batch=20, crops=None, gpu=None)
    before = evaluation.run(small, plain, str(tmp_path / 'out'))
    blocks = [path for path in sorted((tmp_path / 'out' / 'blocks').iterdir()) if path.name.startswith('mc2')]
    for path in blocks[:2]:
        with np.load(str(path)) as file:
            old = {name: file[name] for name in file.files if name != 'passes' and not name.endswith('_se')}
        np.savez(str(path), **old)
    after = evaluation.run(small, plain, str(tmp_path / 'out'))
    assert after.pop('uncertainty_standard_error')['entropy'] is None
    assert before.pop('uncertainty_standard_error')['entropy'] > 0
    assert after == before
    with np.load(str(tmp_path / 'out' / 'images.npz')) as stored:
        assert 'entropy_se' not in stored.files and (stored['passes'] == 40).all()


@pytest.mark.parametrize('changes, words', [
    (dict(crops=2), 'not with crops'), (dict(error=0), 'above 0 and below 1'), (dict(error=1.0), 'above 0'),
    (dict(error=float('nan')), 'above 0')])
def test_refusals(small, tmp_path, changes, words):
    with pytest.raises(UserError, match=words):
        evaluate(small, tmp_path / 'out', **changes)
