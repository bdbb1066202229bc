"""weights/: an entry made of a real small run, evaluated in a fresh clone as typed, verified; and every refusal."""

import json
import os
import shutil
import sys

import pytest

import trainhelp
from bcnn import engine, weights
from bcnn.errors import UserError
from bcnn.results import csv_tables, findings, shipped, verify
from bcnn.system import store
from conftest import ROOT, one_clear_line
from datahelp import snapshot

FILE = 'mnist-lenet_ip-seed1.caffemodel'


@pytest.fixture(scope='module')
def whole(tmp_path_factory):
    """data, a run with an evaluation, results, and weights/ made of them by the command."""
    place = tmp_path_factory.mktemp('whole')
    run = trainhelp.make_recorded(place)
    said = trainhelp.command('publish.py', run, '--results', place / 'results', '--data', place / 'data', '--to',
                             place / 'weights')
    assert FILE + ": this project's own, 20 iterations (the first 0.0002% of the paper's schedule), seed 1" in said
    return place


@pytest.fixture
def place(whole, tmp_path):
    """A copy to do harm to."""
    for name in ('runs', 'results', 'data', 'weights'):
        shutil.copytree(str(whole / name), str(tmp_path / name))
    return tmp_path


def run_of(place):
    return place / 'runs' / 'mnist-lenet_ip-seed1'


def wrong(place):
    """{name of the file: text} of what is wrong with weights/."""
    return {os.path.basename(finding.path): finding.text
            for finding in verify.check(str(place / 'weights'), results=str(place / 'results'))
            if finding.state == findings.WRONG}


def publish(place, **options):
    return shipped.publish(str(run_of(place)), str(place / 'results'), str(place / 'data'), str(place / 'weights'), **options)


# --- what is made

def test_an_entry_says_what_is_recorded(whole):
    entry, = weights.index(str(whole / 'weights'))
    final = run_of(whole) / 'final.caffemodel'
    assert (whole / 'weights' / FILE).read_bytes() == final.read_bytes()
    assert entry.sha256 == store.sha256(str(final)) and (entry.net, entry.dataset, entry.seed) == ('lenet_ip', 'mnist', 1)
    rows = [row for row in csv_tables.read(str(whole / 'results'), 'evaluations') if row['average'] != 'scores']
    assert entry.standard_errors == [row['errors'] for row in rows if row['method'] == 'standard'][0]
    assert entry.mc_errors == [row['errors'] for row in rows if row['method'] == 'mc'] and len(entry.mc_errors) == 2
    assert (entry.images, entry.T, entry.iterations, entry.schedule, entry.init) == (200, 4, [20], None, None)
    page = (whole / 'weights' / 'README.md').read_text()
    row = next(line for line in page.splitlines() if FILE in line)
    for part in ('lenet-ip', 'MNIST', '%.2f' % (entry.standard_errors / 2.0), entry.sha256[:16], '2 repetitions',
                 entry.commit or ''):  # none where there is no .git, in a container
        assert part in row, part


def test_it_is_verified(whole, tool):
    said = tool('verify.py', whole / 'weights', '--results', whole / 'results', '--all', python=sys.executable)
    assert said.returncode == 0, said.stdout
    assert 'the file that index.json names, weights of its net' in said.stdout and 'evaluated as recorded' in said.stdout


def test_again_it_is_the_same(place):
    before = snapshot(place / 'weights')
    publish(place)
    assert snapshot(place / 'weights') == before
    os.remove(str(place / 'weights' / 'index.json'))  # as if killed after the file and before the index
    publish(place)
    assert snapshot(place / 'weights') == before


def test_a_net_without_dropout(tmp_path):
    run = trainhelp.make_recorded(tmp_path, 'lenet_none')
    entry = shipped.publish(str(run), str(tmp_path / 'results'), str(tmp_path / 'data'), str(tmp_path / 'weights'))
    assert entry.mc_errors == [] and entry.T == 0 and wrong(tmp_path) == {}
    assert '| no dropout |' in (tmp_path / 'weights' / 'README.md').read_text()


# --- in a fresh clone

@pytest.fixture(scope='module')
def clone(whole, tmp_path_factory):
    """The project as somebody gets it who has neither runs nor trained anything: code, weights, results, data."""
    return trainhelp.make_clone(tmp_path_factory.mktemp('clone'), whole / 'weights', whole / 'results', whole / 'data')


def test_a_net_is_evaluated_as_typed_and_agrees_with_the_page(clone):
    said = trainhelp.typed(clone, 'tools/mc_eval.py', '--net', 'lenet_ip', '--T', 4, '--repeats', 1)
    assert said.returncode == 0, said.stderr
    entry, = weights.index(str(clone / 'weights'))
    assert said.stdout.splitlines()[0] == (
        "weights: weights/%s: this project's own, 20 iterations (the first 0.0002%% of the paper's schedule), seed 1" % FILE)
    standard = next(line for line in said.stdout.splitlines() if line.startswith('Standard dropout'))
    assert standard.split()[2] == '%.2f' % (100.0 * entry.standard_errors / entry.images)
    assert list((clone / 'runs').iterdir()) == [clone / 'runs' / 'weights-mnist-lenet_ip-seed1']
    said = trainhelp.typed(clone, 'tools/record.py', '--results', 'new')
    assert said.returncode == 0, said.stderr
    row = csv_tables.read(str(clone / 'new'), 'evaluations')[0]
    assert (row['weights'], row['seed'], row['iterations']) == ('trained', 1, 20)
    said = trainhelp.typed(clone, 'tools/verify.py', '--all')
    assert said.returncode == 0 and 'weights of weights/' in said.stdout


@pytest.mark.parametrize('words', [('sampler.py', '--limit', 4, '--draws', 2), ('placement.py', '--limit', 4, '--T', 5),
                                   ('profile_net.py', '--batch', 2, '--rounds', 1)])
def test_other_tools_take_the_same(clone, words):
    said = trainhelp.typed(clone, 'tools/' + words[0], '--net', 'lenet_ip', *words[1:])
    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("weights: weights/%s: this project's own, 20 iterations" % FILE)


@pytest.mark.parametrize('harm', ['damaged', 'exchanged', 'missing'])
def test_harmed_weights_are_refused_before_anything_is_written(clone, tmp_path, harm):
    harmed = tmp_path / 'clone'
    shutil.copytree(str(clone), str(harmed))
    shutil.rmtree(str(harmed / 'runs'))
    path = harmed / 'weights' / FILE
    if harm == 'damaged':
        path.write_bytes(path.read_bytes()[:-1])
    elif harm == 'exchanged':
        engine.load_net(os.path.join(ROOT, 'prototxt', 'mnist', 'lenet_all', 'deploy.prototxt')).save(str(path))
    else:
        path.unlink()
    one_clear_line(trainhelp.typed(harmed, 'tools/mc_eval.py', '--net', 'lenet_ip', '--T', 4), FILE, 'git checkout weights')
    assert not (harmed / 'runs').exists()
    said = trainhelp.typed(harmed, 'tools/verify.py', 'weights')
    assert said.returncode == 1 and 'WRONG: weights/%s' % FILE in said.stdout


# --- a better evaluation of what is there

def test_a_better_evaluation_is_entered_without_the_run(clone, tmp_path):
    """As somebody does it who has the clone and no run: evaluate more, record, publish the file."""
    better = tmp_path / 'clone'
    shutil.copytree(str(clone), str(better), symlinks=True)
    before, = weights.index(str(better / 'weights'))
    for words in (('mc_eval.py', '--net', 'lenet_ip', '--T', 4, '--repeats', 3), ('record.py',)):
        said = trainhelp.typed(better, 'tools/' + words[0], *words[1:])
        assert said.returncode == 0, said.stderr
    advice = 'python tools/publish.py weights/%s' % FILE
    assert advice in trainhelp.typed(better, 'tools/verify.py', 'weights').stdout
    said = trainhelp.typed(better, *advice.split()[1:])
    assert said.returncode == 0 and FILE in said.stdout, said.stderr
    after, = weights.index(str(better / 'weights'))
    assert len(after.mc_errors) == 3 and after.standard_errors == before.standard_errors
    assert after == before._replace(evaluation=after.evaluation, mc_errors=after.mc_errors)
    assert '3 repetitions' in (better / 'weights' / 'README.md').read_text()
    assert trainhelp.typed(better, 'tools/verify.py', 'weights').returncode == 0


@pytest.mark.parametrize('harm, words', [('moved', 'neither the folder of a training run nor a file that'), ('damaged', 'damaged or exchanged'),
                                         ('forgotten', 'no evaluation of these weights')])
def test_a_file_whose_entry_cannot_be_renewed(place, harm, words):
    path = place / 'weights' / FILE
    if harm == 'moved':
        path = place / FILE
        shutil.copy(str(place / 'weights' / FILE), str(path))
    elif harm == 'damaged':
        path.write_bytes(path.read_bytes()[:-1])
    else:
        os.remove(csv_tables.path(str(place / 'results'), 'evaluations'))
    before = snapshot(place / 'weights')
    with pytest.raises(UserError, match=words):
        shipped.renew(str(path), str(place / 'results'), str(place / 'weights'))
    assert snapshot(place / 'weights') == before


# --- what is refused

def refused(place, match):
    before = snapshot(place / 'weights')
    with pytest.raises(UserError, match=match):
        publish(place)
    assert snapshot(place / 'weights') == before


def test_a_run_that_is_not_finished(place, tool):
    (run_of(place) / 'done.json').unlink()
    refused(place, 'not finished: tools/train.py goes on with it')
    one_clear_line(tool('publish.py', run_of(place), '--to', place / 'new', python=sys.executable), 'not finished')
    one_clear_line(tool('publish.py', place / 'data', '--to', place / 'new', python=sys.executable), 'not the folder of a training run')
    assert not (place / 'new').exists()


@pytest.mark.parametrize('table', ['curves', 'evaluations', 'wrong', 'provenance'])
def test_a_run_that_is_not_recorded(place, table):
    os.remove(csv_tables.path(str(place / 'results'), table))
    refused(place, r'not recorded in .*%s.csv: python tools/record.py' % table)


def test_a_run_without_an_evaluation(place):
    shutil.rmtree(str(run_of(place) / 'mc'))
    for table in ('evaluations', 'wrong'):
        os.remove(csv_tables.path(str(place / 'results'), table))
    refused(place, 'no evaluation of these weights .* is recorded')


def test_a_run_that_contradicts_what_is_recorded(place):
    path = place / 'results' / 'curves.csv'
    lines = path.read_text().splitlines()
    cells = lines[1].split(',')
    cells[lines[0].split(',').index('errors')] = '7'
    path.write_text('\n'.join([lines[0], ','.join(cells)] + lines[2:]) + '\n')
    refused(place, 'not what is recorded of it: curves.csv .*errors is')


def test_weights_that_are_not_the_runs(place):
    final = run_of(place) / 'final.caffemodel'
    final.write_bytes(final.read_bytes()[:-1])
    refused(place, 'not the weights that done.json names')


@pytest.mark.parametrize('harm, words', [('path', 'a path of a machine in it: /somewhere/train_lmdb'), ('large', 'MB, but weights/ takes'),
                                         ('gradients', 'gradients in it')])
def test_files_that_may_not_be_published(place, harm, words):
    final = run_of(place) / 'final.caffemodel'
    model = engine.caffe_pb2.NetParameter()
    model.ParseFromString(final.read_bytes())
    assert shipped.unfit(str(final)) is None
    if harm == 'path':
        next(layer for layer in model.layer if layer.type == 'Data').data_param.source = '/somewhere/train_lmdb'
    elif harm == 'large':
        model.layer.add(name='more').blobs.add(data=[1.0] * 600000)
    else:
        model.layer[-2].blobs.add(data=[1.0], diff=[1.0])
    final.write_bytes(model.SerializeToString())
    assert words in shipped.unfit(str(final))


# --- what is verified

def test_a_stray_file_and_a_page_by_hand(place):
    shutil.copy(str(place / 'weights' / FILE), str(place / 'weights' / 'mine.caffemodel'))
    (place / 'weights' / 'README.md').write_text('weights')
    assert wrong(place) == {'mine.caffemodel': 'not in index.json: made by nobody',
                            'README.md': 'not what index.json says: python tools/publish.py makes it'}


@pytest.mark.parametrize('name, value, words', [
    ('standard_errors', 1, 'standard_errors'), ('mc_errors', [1, 2], 'mc_errors'), ('T', 100, 'T '), ('images', 10000, 'images'),
    ('evaluation', 'ffffffff', 'evaluation'), ('config', 'f' * 64, 'no training of config ffffffff recorded'),
    ('sha256', 'f' * 64, 'no evaluation of these weights')])
def test_an_entry_that_is_not_what_is_recorded(place, name, value, words):
    path = place / 'weights' / 'index.json'
    index = json.loads(path.read_text())
    index[FILE][name] = value
    path.write_text(json.dumps(index))
    assert words in wrong(place)[FILE]


@pytest.mark.parametrize('harm', [
    lambda index: index[FILE].pop('seed'), lambda index: index[FILE].update(seed='1'), lambda index: index[FILE].update(net='lenet'),
    lambda index: index[FILE].update(mc_errors=3), lambda index: index.update({'../x': index.pop(FILE)}),
    lambda index: index.update({FILE: []}), lambda index: index[FILE].update(images=0)])
def test_a_damaged_index_is_one_line(place, harm):
    path = place / 'weights' / 'index.json'
    index = json.loads(path.read_text())
    harm(index)
    path.write_text(json.dumps(index))
    with pytest.raises(UserError, match='index.json: .*of this version'):
        weights.index(str(place / 'weights'))


def test_help_has_an_example(tool):
    assert 'python tools/publish.py runs/' in tool('publish.py', '--help').stdout
