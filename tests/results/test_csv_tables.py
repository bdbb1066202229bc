"""The recorded tables as files: what is written is read again, and a malformed file is named with its line."""

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysishelp import Synthetic, whole_paper
from bcnn import paper
from bcnn.errors import UserError
from bcnn.results import csv_tables, schema

HEADER = ','.join(schema.TABLES['curves'].columns)
GOOD = 'fig2,mnist,lenet_all,1,1,1,100,mc,probs,50,5,10000,0.01,0.5,,,,,abc,1.0.0,cpu,,'
# before there were shortened schedules, and before there was adaptive T in curves
OLDER = {',,,,': HEADER.replace(',schedule,init,adaptive,passes', ''), ',,': HEADER.replace(',adaptive,passes', '')}


def test_written_and_read_again(tmp_path):
    made = whole_paper(seeds=(1,))
    made.add('curve_wrong', dataset='mnist', net='lenet_all', seed=1, stage=1, iteration=100, method='mc', average='probs',
             T=50, data='ab' * 32, n=10000, wrong='3 9999', config='0123abcd')
    values = {'int': 3, 'float': 0.25, 'text': 'x'}
    for name in ('approximation', 'quality', 'kernels', 'off_data', 'rotation', 'surprises'):  # beyond the paper
        made.rows[name].append(OrderedDict((column, values.get(kind)) for column, kind in schema.TABLES[name].columns.items()))
    folder = made.write(tmp_path)
    for name, rows in made.rows.items():
        again = csv_tables.read(folder, name)
        assert csv_tables.text(name, again) == csv_tables.text(name, rows)
        assert len(again) == len(rows) > 0 or name == 'bench_gpu'  # nobody has measured a GPU


def test_a_large_test_set_with_most_images_wrong(tmp_path):
    made = Synthetic().wrong('cifar10', 'nin', 'standard', [range(100000)], n=100000)  # longer than csv's own limit
    assert len(csv_tables.read(made.write(tmp_path), 'wrong')[0]['wrong'].split()) == 100000


def test_a_missing_file_is_an_empty_table(tmp_path):
    assert csv_tables.read(str(tmp_path), 'curves') == []


@pytest.mark.parametrize('missing', OLDER)
def test_tables_written_before_there_were_all_columns_are_read(tmp_path, missing):
    (tmp_path / 'curves.csv').write_text('%s\n%s\n' % (OLDER[missing], GOOD.replace(',0.5' + missing, ',0.5')))
    row, = csv_tables.read(str(tmp_path), 'curves')
    assert (row['errors'], row['schedule'], row['adaptive'], row['config']) == (5, None, None, 'abc')
    assert csv_tables.text('curves', [row]).splitlines()[0] == HEADER


@pytest.mark.parametrize('lines, line, problem', [
    ([], 1, 'empty, without a header'),
    (['experiment,dataset'], 1, 'no column net'),
    ([HEADER + ',more'], 1, 'unknown column more'),
    ([','.join(reversed(HEADER.split(',')))], 1, 'columns in another order'),
    ([HEADER, GOOD, GOOD.replace('100,mc', '200,mc') + ',1'], 3, '24 values, there are 23 columns'),
    ([HEADER, GOOD.replace(',5,10000', ',five,10000')], 2, "errors is 'five', not a whole number"),
    ([HEADER, GOOD.replace(',5,10000', ',-5,10000')], 2, "errors is '-5', below zero"),
    ([HEADER, GOOD.replace(',0.01,', ',nan,')], 2, "lr is 'nan', not a number"),
    ([HEADER, GOOD.replace('mnist', '')], 2, 'dataset is empty'),
    ([HEADER, GOOD, '', GOOD], 3, '0 values, there are 23 columns'),
    ([HEADER, GOOD, GOOD], 3, 'the same measurement as line 2'),
    ([HEADER, GOOD.replace('fig2', '"fig2')], 2, 'unexpected end of data'),
])
def test_a_malformed_file_is_named_with_line_and_problem(tmp_path, lines, line, problem):
    path = tmp_path / 'curves.csv'
    path.write_text(''.join(text + '\n' for text in lines))
    with pytest.raises(UserError) as error:
        csv_tables.read(str(tmp_path), 'curves')
    assert str(error.value).startswith('%s, line %d: ' % (path, line)) and problem in str(error.value)


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / 'curves.csv').write_bytes(b'\xff\xfe\x00')
    with pytest.raises(UserError, match="curves.csv, line 1: 'utf-8' codec"):
        csv_tables.read(str(tmp_path), 'curves')


def test_a_header_alone_is_an_empty_table(tmp_path):
    (tmp_path / 'curves.csv').write_text(HEADER + '\n')
    assert csv_tables.read(str(tmp_path), 'curves') == []


@given(st.permutations(list(range(12))))
def test_the_order_of_rows_does_not_matter(order):
    made = Synthetic()
    for seed in (1, 2, 3):
        made.curve('mnist', 'lenet_all', 'standard', {100: 1, 1000: 2, 20: 3, 5000: 4}, seed)
    rows = made.rows['curves']
    assert csv_tables.text('curves', [rows[k] for k in order]) == csv_tables.text('curves', rows)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_are_written_the_same_way_again(number):
    written = csv_tables.cell(number)
    assert csv_tables.cell(float(written)) == written


# --- the paper's table ---------------------------------------------------------------------------

def test_the_papers_runs():
    assert [(run.net, run.iterations, run.T) for run in paper.find('fig2', 'mnist')] == [
        ('lenet_all', (10000000,), 50), ('lenet_ip', (10000000,), 50), ('lenet_none', (10000000,), 50)]
    assert {(run.dataset, run.iterations, run.T) for run in paper.find('fig3')} == {
        (dataset, (1000000,), 10) for dataset in ('mnist', 'mnist_4', 'mnist_32')}
    assert paper.schedule('table1', 'cifar10', 'dsn') == 200000
    assert paper.schedule('fig2', 'cifar10', 'lenet_ip') == 100000
    assert [(run.net, run.T, run.repetitions, run.weights) for run in paper.find('table1')] == [
        ('nin', 100, 5, 'published'), ('dsn', 100, 5, 'trained'), ('dsn_aug', 100, 5, 'trained')]
    assert paper.find('fig4')[0].net == 'dsn_aug' and len(paper.RUNS) == 16


def test_what_was_published():
    assert paper.PUBLISHED['nin'] == (10.43, 10.27, 0.05, None)
    assert paper.PUBLISHED['dsn'] == (9.37, 9.32, 0.02, None)
    assert paper.PUBLISHED['dsn_aug'] == (7.95, 7.71, 0.09, 7.51)


@pytest.mark.parametrize('dataset, net, experiment, fraction, title', [
    ('mnist', 'lenet_all', 'fig2', '1', 'MNIST'), ('mnist_32', 'lenet_ip', 'fig3', '1/32', '1/32 of MNIST'),
    ('cifar10', 'nin', 'table1', '1', 'CIFAR-10'), ('mnist_8', 'lenet_ip', 'other', '1/8', '1/8 of MNIST'),
    ('fashion_mnist', 'lenet_all', 'other', '1', 'Fashion-MNIST')])
def test_names(dataset, net, experiment, fraction, title):
    assert paper.experiment_of(dataset, net) == experiment
    assert (paper.fraction_of(dataset), paper.title(dataset)) == (fraction, title)
