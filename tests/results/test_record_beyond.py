"""Runs beyond the paper in the tables: never under the paper's experiments, and the same measurement only once."""

import types

import pytest
from test_record_merge import training, write_json

from bcnn.results import csv_tables, record


def recorded(tmp_path, *folders, profile=None):
    """[(iteration, experiment)] of the Standard rows of curves.csv after recording some folders."""
    args = types.SimpleNamespace(folders=[str(folder) for folder in folders], results=str(tmp_path / 'results'),
                                 data=str(tmp_path / 'data'), profile=profile, unfinished=False, replace=False,
                                 forget=None, no_prepare=True)
    assert record.command(args) == 0
    rows = csv_tables.read(str(tmp_path / 'results'), 'curves')
    return [(row['iteration'], row['experiment']) for row in rows if row['method'] == 'standard']


@pytest.mark.parametrize('place, profile', [('runs', 'beyond'), ('runs/beyond', None)])
def test_a_run_of_profile_beyond_is_not_the_papers(tmp_path, place, profile):
    training(tmp_path / place)
    assert recorded(tmp_path, tmp_path / 'runs', profile=profile) == [(100, 'beyond'), (200, 'beyond')]


@pytest.mark.parametrize('first', ['beyond', 'evidence'])
def test_a_point_that_the_papers_run_has_too_is_the_papers_whoever_came_first(tmp_path, first):
    """lenet-all on MNIST goes to 20,000 iterations for a question, and further for Figure 2: the same bytes."""
    points = tuple('1,%d,0.0099,0.75,33,28,29,500,5' % iteration for iteration in (100, 200, 300))
    training(tmp_path / 'beyond', curve=points[:2])
    training(tmp_path / 'evidence', curve=points[1:], iterations=(300,))
    second = 'evidence' if first == 'beyond' else 'beyond'
    recorded(tmp_path, tmp_path / first)
    assert recorded(tmp_path, tmp_path / second) == [(100, 'beyond'), (200, 'fig2'), (300, 'fig2')]


def test_a_study_with_other_columns_is_refused_and_one_that_is_not_finished_is_left_out(tmp_path, capsys):
    folder = tmp_path / 'runs' / 'studies' / 'quality-10'
    folder.mkdir(parents=True)
    write_json(folder / 'config.json', dict(study='quality', net='lenet_all', dataset='mnist', seed=1, iterations=[10]))
    assert recorded(tmp_path, tmp_path / 'runs') == []
    write_json(folder / 'result.json', dict(rows=dict(quality=[dict(iterations=10)])))
    with pytest.raises(AssertionError):
        recorded(tmp_path, tmp_path / 'runs')
    assert 'other columns than the tables have' in capsys.readouterr().err
