"""analysis/plot.py as a user runs it: from a clone without Caffe, from nothing, from damaged tables, twice."""

import os
import re
import shutil
import subprocess

import pytest

from analysishelp import Synthetic, whole_paper
from conftest import ROOT, one_clear_line

PYTHON = os.path.join(ROOT, 'tools', 'python')
FIGURES = ['fig2', 'fig3', 'fig4', 'reliability', 'risk_coverage', 'uncertain_images', 'bench_chart', 'bench_growth']
MADE = sorted(['figures/%s.%s' % (name, kind) for name in FIGURES for kind in ('png', 'svg')]
              + ['tables/table1.%s' % kind for kind in ('csv', 'md', 'tex')] + ['report.html', 'report_speed.html', 'rules.md'])


def run(script, *args, python=(PYTHON,), root=ROOT):
    return subprocess.run(list(python) + [os.path.join(str(root), 'analysis', script)] + [str(arg) for arg in args],
                          cwd=str(root),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=300)


def files(folder):
    return {os.path.relpath(os.path.join(place, name),
                            str(folder)).replace(os.sep, '/'): open(os.path.join(place, name), 'rb').read()
            for place, _, names in os.walk(str(folder)) for name in names}


@pytest.fixture(scope='module')
def clone(tmp_path_factory):
    """What plot.py may need of a clone, and nothing more: analysis/ and a few light modules."""
    root = tmp_path_factory.mktemp('clone')
    shutil.copytree(os.path.join(ROOT, 'analysis'), str(root / 'analysis'),
                    ignore=shutil.ignore_patterns('results', 'figures', 'tables', 'report*.html', '__pycache__'))
    for name in ('__init__.py', 'paper.py', 'beyond.py', 'errors.py', 'results/__init__.py', 'results/schema.py',
                 'results/csv_tables.py', 'system/__init__.py', 'system/durations.py', 'workflow/__init__.py',
                 'workflow/cost.py', 'workflow/jobs.py'):
        (root / 'bcnn' / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.join(ROOT, 'bcnn', name), str(root / 'bcnn' / name))
    (root / 'analysis' / 'results').mkdir()
    whole_paper(seeds=(1, 2), length=0.01).write(root / 'analysis' / 'results')
    return root


@pytest.mark.slow
def test_everything_from_a_clone_without_caffe_twice_the_same_bytes(clone, tmp_path):
    first = run('plot.py', root=clone)
    assert first.returncode == 0 and first.stderr == '', first.stderr
    made = {name: data for name, data in files(clone / 'analysis').items() if name in MADE}
    assert sorted(made) == MADE and sorted(first.stdout.split()) == sorted('analysis/' + name for name in MADE)
    assert all(made['figures/%s.png' % name].startswith(b'\x89PNG') for name in FIGURES)
    second = run('plot.py', '--results', clone / 'analysis' / 'results', '--out', tmp_path, root=clone)
    assert second.returncode == 0, second.stderr
    assert files(tmp_path) == made


def test_it_loads_neither_caffe_nor_scipy(clone, tmp_path):
    code = ('import sys; sys.argv = ["plot.py"]; sys.path.insert(0, %r); import plot; '
            'print(sorted({"caffe", "scipy", "lmdb", "PIL.ImageTk"} & set(sys.modules)), '
            'sorted(name for name in sys.modules if name.startswith("bcnn")))' % str(clone / 'analysis'))
    result = subprocess.run([PYTHON, '-c', code], stdout=subprocess.PIPE, universal_newlines=True)
    assert result.stdout == ("[] ['bcnn', 'bcnn.beyond', 'bcnn.errors', 'bcnn.paper', 'bcnn.results', 'bcnn.results.csv_tables', "
                             "'bcnn.results.schema', 'bcnn.system', 'bcnn.system.durations', 'bcnn.workflow', "
                             "'bcnn.workflow.cost', 'bcnn.workflow.jobs']\n")


def test_each_script_works_alone(clone, tmp_path):
    result = run('fig3.py', '--results', clone / 'analysis' / 'results', '--out', tmp_path)
    assert result.returncode == 0 and sorted(files(tmp_path)) == ['figures/fig3.png', 'figures/fig3.svg'], result.stderr
    result = run('table1.py', '--results', clone / 'analysis' / 'results', '--out', tmp_path)
    assert result.returncode == 0 and 'tables/table1.tex' in files(tmp_path)
    result = run('claims.py', '--results', clone / 'analysis' / 'results')
    assert result.returncode == 0 and result.stdout.count('\n  ') > 32 and 'Questions of our own:' in result.stdout
    result = run('speed.py', '--results', clone / 'analysis' / 'results', '--out', tmp_path)
    assert result.returncode == 0 and 'figures/bench_growth.svg' in files(tmp_path)
    result = run('compare.py', '--results', clone / 'analysis' / 'results')
    assert result.returncode == 0 and result.stdout.startswith('first ')


def test_an_empty_results_folder_says_which_command_fills_it(tmp_path):
    result = run('fig2.py', '--results', tmp_path / 'none', '--out', tmp_path)
    assert result.returncode == 0 and 'figures/fig2.png' in files(tmp_path)
    assert len(result.stderr.splitlines()) == 1 and '`python tools/record.py`' in result.stderr


def test_a_malformed_table_is_one_line_with_file_line_and_problem(tmp_path):
    Synthetic().curve('mnist', 'lenet_all', 'mc', {100: 5}).write(tmp_path)
    path = tmp_path / 'curves.csv'
    path.write_text(path.read_text().replace(',5,10000,', ',many,10000,'))
    result = run('plot.py', '--results', tmp_path, '--out', tmp_path)
    assert result.returncode == 2
    one_clear_line(result, "curves.csv, line 2: errors is 'many', not a whole number")
    assert sorted(files(tmp_path)) == ['curves.csv']


def test_results_that_are_a_file(tmp_path):
    (tmp_path / 'file').write_text('')
    result = run('plot.py', '--results', tmp_path / 'file', '--out', tmp_path)
    assert result.returncode == 2
    one_clear_line(result, 'file: not a folder')


def test_a_place_that_cannot_be_written(clone, tmp_path):
    (tmp_path / 'file').write_text('')
    result = run('table1.py', '--results', clone / 'analysis' / 'results', '--out', tmp_path / 'file')
    assert result.returncode == 2
    one_clear_line(result, 'file')


def test_a_python_without_pandas_says_what_to_do(clone):
    result = run('plot.py', python=(PYTHON, '-S'), root=clone)  # -S: no site-packages
    if result.returncode == 0:
        result = run('plot.py', python=('python3', '-I', '-S'), root=clone)
    one_clear_line(result, 'pip install pandas matplotlib, or tools/setup.sh')


def test_what_is_committed_is_what_the_results_give(tmp_path):
    """Tables and the report's text; pictures depend on the build of matplotlib."""
    if not os.path.exists(os.path.join(ROOT, 'analysis', 'report.html')):
        pytest.skip('no report is committed yet')
    result = run('plot.py', '--out', tmp_path)
    assert result.returncode == 0, result.stderr
    made = files(tmp_path)
    for name in MADE:
        if not name.startswith('figures/'):
            with open(os.path.join(ROOT, 'analysis', name), 'rb') as file:
                assert words(file.read()) == words(made[name]), name


def words(data):
    """A file without the pictures inside it."""
    return re.sub(rb'base64,[^"]*"', b'"', data)
