"""Streams of random numbers: training and evaluations never draw from the same; what was recorded stays as it was."""

import itertools
import os
import random

import pytest

import evalhelp
import trainhelp
from bcnn import seeds
from bcnn.errors import UserError
from bcnn.mc import evaluation
from bcnn.system import store
from bcnn.training import driver
from trainhelp import result, settings

pytestmark = pytest.mark.caffe

STREAMS = ('solver', 'step', 'measurement', 'masks', 'antithetic', 'crops')


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return trainhelp.make_data(tmp_path_factory.mktemp('data'))


@pytest.fixture
def small(tmp_path):
    (tmp_path / 'small').mkdir()
    return evalhelp.small_target(tmp_path / 'small', 12)


def evaluate(target, folder, **options):
    how = evaluation.Settings(**dict(dict(T=4, repeats=2, seed=1, mode='stream', batch=3), **options))
    return evaluation.run(target, evaluation.prepare(target, how), str(folder))


def test_version_1_is_for_ever():
    assert seeds.seed_for(*seeds.parts_of(1, 'masks', 1, 2, 3)) == seeds.seed_for(1, 2, 3) == 1324654167
    assert seeds.seed_for(*seeds.parts_of(2, 'masks', 1, 2, 3)) == seeds.seed_for('masks', 1, 2, 3) != 1324654167


def test_no_two_streams_of_version_2_meet():
    made = {name: {seeds.seed_for(*seeds.parts_of(2, name, *numbers)) for numbers in itertools.product(range(9), repeat=3)}
            for name in STREAMS}
    for one, other in itertools.combinations(STREAMS, 2):
        assert not made[one] & made[other]
    assert all(len(found) == 9 ** 3 for found in made.values())


@pytest.mark.parametrize('config, asked, right', [
    (None, None, 2), (None, 1, 1), ({}, None, 1), ({'streams': 2}, None, 2), ({}, 2, 2), ({'streams': 2}, 1, 1)])
def test_what_is_stored_goes_on_and_what_is_new_gets_the_newest(config, asked, right):
    assert seeds.version_for(config, asked) == right


def test_streams_of_a_later_version_are_refused():
    with pytest.raises(UserError, match='streams 3'):
        seeds.version_for({'streams': 3})


# --- what real runs and evaluations draw from

@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """A function that gives the seeds drawn since it was last called, in forked children too."""
    log, plain = str(tmp_path / 'seeds'), seeds.seed_for

    def noted(*parts):
        with open(log, 'a') as file:
            file.write('%d\n' % plain(*parts))
        return plain(*parts)

    def since():
        with open(log) as file:
            found = set(map(int, file))
        os.remove(log)
        return found

    monkeypatch.setattr(seeds, 'seed_for', noted)
    return since


@pytest.mark.parametrize('version', seeds.VERSIONS)
def test_a_training_and_an_evaluation_of_one_seed(data, small, tmp_path, drawn, version):
    """With version 1 they did meet, so this would be seen."""
    trainee = trainhelp.trainee(data, 'lenet_ip', batch=8)
    assert driver.run(trainee, settings(iterations=(9,), points='4', streams=version), str(tmp_path / 'run')) == 0
    training = drawn()
    evaluate(small, tmp_path / 'plain', streams=version)
    masks = drawn()
    evaluate(small, tmp_path / 'pairs', mode='antithetic', streams=version)
    assert len(training) > 9 and len(masks) == 8
    pairs = drawn()
    assert bool(training & masks) == (version == 1)
    assert not (training & pairs if version == 2 else set()) and (version == 1 or len(pairs - masks) == 8)


# --- what was begun before there were versions

def test_a_run_without_a_version_goes_on_as_it_began(data, tmp_path):
    trainee = trainhelp.trainee(data, 'lenet_all', batch=8)
    how = settings(iterations=(30,), points='20', streams=1)
    assert driver.run(trainee, how, str(tmp_path / 'whole')) == 0
    assert 'streams' not in store.read_json(str(tmp_path / 'whole' / 'config.json'))
    assert driver.run(trainee, how._replace(iterations=(17,), points='20'), str(tmp_path / 'old')) == 0
    assert driver.run(trainee, how._replace(streams=None), str(tmp_path / 'old')) == 0
    assert result(tmp_path / 'old') == result(tmp_path / 'whole')
    assert driver.run(trainee, how._replace(streams=None), str(tmp_path / 'new')) == 0
    assert store.read_json(str(tmp_path / 'new' / 'config.json'))['streams'] == 2
    assert result(tmp_path / 'new') != result(tmp_path / 'whole')
    with pytest.raises(UserError, match='holds another run .streams none, here 2'):
        driver.run(trainee, how._replace(streams=2), str(tmp_path / 'old'))


def test_an_evaluation_without_a_version_goes_on_as_it_began(small, tmp_path):
    whole = evaluate(small, tmp_path / 'whole', streams=1)
    assert 'streams' not in whole['config']
    evaluate(small, tmp_path / 'old', streams=1, repeats=1)
    assert evaluate(small, tmp_path / 'old') == whole
    new = evaluate(small, tmp_path / 'new')
    assert new['config']['streams'] == 2 and new['mc'] != whole['mc'] and new['standard'] == whole['standard']
    with pytest.raises(UserError, match='holds another evaluation .streams none, here 2'):
        evaluate(small, tmp_path / 'old', streams=2)


def test_the_default_folder_is_that_of_what_was_begun(small, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation.places, 'evaluations', lambda weights, name: str(tmp_path / 'mc'))
    how = evaluation.Settings(T=4, repeats=1, seed=1, mode='stream', batch=3)
    new, old = (evaluation.folder_of(small, how._replace(streams=version)) for version in (2, 1))
    assert new != old and evaluation.folder_of(small, how) == new
    evaluation.run(small, how._replace(streams=1), old)
    assert evaluation.folder_of(small, how) == old and os.path.basename(old) == evaluation.name_of(
        store.read_json(os.path.join(old, 'config.json')))
    evaluation.run(small, how, new)
    assert evaluation.folder_of(small, how) == new


def test_a_killed_run_of_version_2_ends_in_the_same_bytes(data, tmp_path):
    """With crops and mirrors, whose segments are seeded too."""
    trainee = trainhelp.trainee(data, 'dsn_aug', batch=2)
    how = settings(iterations=(12, 2, 2), points='none', snapshot_every=2)
    assert driver.run(trainee, how, str(tmp_path / 'whole')) == 0
    used = trainhelp.kill_until(2, lambda folder: trainhelp.start(trainee, how, folder),
                                (tmp_path / str(k) for k in itertools.count()), random.Random(3), 6)
    assert [result(folder) == result(tmp_path / 'whole') for folder in used] == [True] * len(used)
