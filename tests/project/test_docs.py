"""README.md and docs/: tables as recorded, links that lead somewhere, names of files that are there."""

import glob
import os
import re
import shutil
import subprocess

import pytest

import docs
from analysishelp import ROOT, Synthetic
from bcnn.errors import UserError
from bcnn.results import schema
from pages import doc_tables, speed_tables
from records import load

PAGES = sorted(os.path.relpath(path, ROOT) for pattern in ('*.md', 'docs/*.md', '*/README.md', 'tests/*/README.md')
               for path in glob.glob(os.path.join(ROOT, pattern)))
FENCE = re.compile(r'^```.*?^```$', re.DOTALL | re.MULTILINE)


def text_of(page):
    with open(os.path.join(ROOT, page), encoding='utf-8') as file:
        return file.read()


# --- pages -----------------------------------------------------------------------------------------

def test_the_readme_is_a_tour():
    assert len(text_of('README.md').splitlines()) <= 170


def test_the_readme_leads_to_every_page():
    linked = re.findall(r'\]\((docs/\w+\.md)\)', text_of('README.md'))
    assert sorted(set(linked)) == sorted(page for page in PAGES if page.startswith('docs/'))


@pytest.mark.parametrize('page', PAGES)
def test_links_lead_somewhere(page):
    for link in re.findall(r'\]\(([^)\s]+)\)', FENCE.sub('', text_of(page))):
        if link.startswith(('http:', 'https:')):
            continue
        path, _, heading = link.partition('#')
        place = os.path.join(ROOT, os.path.dirname(page), path) if path else os.path.join(ROOT, page)
        assert os.path.exists(place), '%s links to %s' % (page, link)
        if heading:
            with open(place, encoding='utf-8') as file:
                headings = re.findall(r'^#+ (.*)$', file.read(), re.MULTILINE)
            assert heading in [re.sub(r'[^\w -]', '', words.lower()).replace(' ', '-') for words in headings], link


@pytest.mark.parametrize('page', PAGES)
def test_files_that_are_named_are_there(page):
    here = os.path.join(ROOT, os.path.dirname(page))
    for path in re.findall(r'`((?:bcnn|tools|analysis|workflow|tests|prototxt|docs)/[\w./*-]*)`', text_of(page)):
        if os.path.dirname(path) == 'analysis/results' and path.endswith('.csv'):  # perhaps nothing is recorded yet
            assert '*' in path or os.path.basename(path)[:-4] in schema.TABLES, path
        elif 'NAME' not in path:
            assert glob.glob(os.path.join(ROOT, path)) or glob.glob(os.path.join(here, path)), path


# --- tables ----------------------------------------------------------------------------------------

def test_the_tables_are_those_of_the_recorded_results():
    result = subprocess.run(['python3', os.path.join(ROOT, 'analysis', 'docs.py'), '--check'], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, universal_newlines=True)
    assert (result.returncode, result.stderr) == (0, '')


def test_every_table_is_on_a_page():
    used = {name for page in PAGES for name in re.findall(r'<!-- table: (\w+) -->', text_of(page))}
    assert used == set(doc_tables.TABLES)


@pytest.fixture
def project(tmp_path):
    """A project with the recorded results and one page."""
    (tmp_path / 'docs').mkdir()
    shutil.copy(os.path.join(ROOT, 'README.md'), str(tmp_path / 'README.md'))
    return tmp_path


def test_a_changed_number_is_found_and_mended(project):
    readme, tables = project / 'README.md', load.load()
    right = readme.read_text(encoding='utf-8')
    row = re.search(r'^\| NIN on CIFAR-10 .*$', right, re.MULTILINE).group()
    readme.write_text(right.replace(row, row.replace('10.43', '10.42', 1)), encoding='utf-8')
    with pytest.raises(UserError, match='README.md: its tables are not those of the recorded results'):
        list(docs.make(tables, str(project), check=True))
    assert list(docs.make(tables, str(project))) == [str(readme)]
    assert readme.read_text(encoding='utf-8') == right
    assert list(docs.make(tables, str(project))) == []


@pytest.mark.parametrize('text, message', [
    ('<!-- table: nothing -->\n<!-- end -->\n', 'no table nothing; there are: adaptive'),
    ('<!-- table: results -->\n', '1 tables begin, 0 are whole')])
def test_a_page_that_cannot_be_filled_is_refused(project, text, message):
    (project / 'docs' / 'new.md').write_text(text)
    with pytest.raises(UserError, match=message):
        list(docs.make(load.load(), str(project)))


def cells(table):
    """The rows of a Markdown table, without its heads."""
    return [[cell.strip() for cell in line.strip('|').split('|')] for line in table.splitlines()[2:]]


def test_errors_of_one_training_spread_over_repetitions_and_of_several_over_trainings():
    made = Synthetic().evaluation('cifar10', 'nin', 1043, [[1040, 1030], [1040, 1020]])
    for seed, standard, mc in ((1, 100, 40), (2, 120, 60)):
        made.evaluation('mnist', 'lenet_all', standard, [[mc + 1, mc]], seed=seed, weights='trained', iterations=1000)
    nin, lenet_all = cells(doc_tables.headline(made.tables()))  # what was not run is no headline
    assert nin == ['NIN on CIFAR-10', 'published weights', '10,000', '2', '10.43', '10.25 +- 0.07', '2 repetitions',
                   '10.43, 10.27 +- 0.05']
    assert lenet_all == ['lenet-all on MNIST', 'the first 1,000 of 10,000,000 iterations (0.01%)', '10,000', '2', '1.10 +- 0.14',
                         '0.50 +- 0.14', '2 trainings', 'a curve']
    every = {row[0]: row for row in cells(doc_tables.results(made.tables()))}
    assert every['lenet-ip on MNIST'][1:3] == ['not run', '']


def test_what_was_started_from_given_weights_stands_below_its_net():
    made = Synthetic().evaluation('cifar10', 'dsn_aug', 795, [[771]], seed=1, weights='trained', iterations=200000)
    made.curve('mnist', 'lenet_none', 'standard', {1000: 200})
    made.evaluation('cifar10', 'dsn_aug', 1060, [[1041], [1043]], seed=1, weights='trained', iterations=750, init='ab' * 32)
    assert [row[1] for row in cells(doc_tables.headline(made.tables()))][::2] == [
        'as in the paper', 'the first 1,000 of 10,000,000 iterations (0.01%)']
    assert cells(doc_tables.headline(made.tables()))[1:2] == [[
        'Augmented-DSN on CIFAR-10', '750 iterations from weights abababab', '10,000', '1', '10.60', '10.42 +- 0.01',
        '2 repetitions', 'not in it']]


def test_errors_of_a_net_that_was_only_trained_are_those_at_the_end_of_its_curve():
    made = Synthetic().curve('mnist_4', 'lenet_all', 'standard', {100: 500, 1000: 200})
    made.curve('mnist_4', 'lenet_all', 'mc', {100: 400, 1000: 100}, T=10)
    assert doc_tables.result(made.tables(), 'mnist_4', 'lenet_all') == doc_tables.Result(
        training='the first 1,000 of 1,000,000 iterations (0.1%)', n=10000, T=10, standard='2.00', mc='1.00', spread='')


def test_speed_tables_are_of_what_was_measured_beside_ours():
    made = Synthetic()
    for way, value, times in (('driver', 2391.7, 1), ('caffe train', 2350.0, 0.98), ('PyTorch', 2966.0, 1.24),
                              ('PyTorch, channels_last', 2500.0, 1.05)):
        made.speed('training', 'cifar10/nin', None, way, value, times=times)
    made.speed('training', 'mnist/lenet_ip', None, 'driver', 24.6)  # alone: nothing to compare it with
    made.speed('training', 'mnist/lenet_none', None, 'driver', 23.2, times=1)
    made.speed('training', 'mnist/lenet_none', None, 'caffe train', 23.4, times=1.01)
    made.speed('training', 'mnist/lenet_none', None, 'PyTorch', None, note='not installed')
    made.speed('settings', 'cifar10/nin', 20, 'as mc_eval.py is set', 4400, times=1.0)
    made.speed('settings', 'cifar10/nin', 20, 'batch of 1', 5500, times=1.25)
    tables = made.tables()
    assert cells(speed_tables.training_steps(tables)) == [['NIN on CIFAR-10', '2,392', '0.98', '1.24', '1.05'],
                                                          ['lenet-none on MNIST', '23.2', '1.01', '', '']]
    assert cells(speed_tables.settings(tables)) == [['batch of 1', 'NIN on CIFAR-10', '1.25']]
