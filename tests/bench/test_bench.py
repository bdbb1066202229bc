"""The benchmark's arithmetic on known numbers, its order, its checks that all compute the same, and its peers."""

import os
import sys
import types

import numpy as np
import pytest

from bcnn import engine, nets
from bcnn.bench import benchmark, comparable, device_rates, growth, mc_ways, measuring, pass_work, peers, train_steps
from bcnn.data import sets
from bcnn.errors import UserError
from bcnn.results import csv_tables
from bcnn.system import places

pytestmark = pytest.mark.caffe

RATES = {'wall': measuring.Rates(sgemm=100e9, memory=10e9), 'cpu': measuring.Rates(sgemm=200e9, memory=10e9)}


def one(way, seconds, T=None, base=False, flops=None, size=None, subject='s', unit='us', calls=None):
    """A measurement that takes these seconds, a round each."""
    left = list(seconds)

    def run():
        if calls is not None:
            calls.append(way)
        value = left.pop(0)
        if isinstance(value, Exception):
            raise value
        return value if isinstance(value, measuring.Spent) else measuring.Spent(value, 1000.0)
    return measuring.Measurement(part='part', subject=subject, T=T, way=way, run=run, value=lambda s: 1e6 * s / 10, unit=unit,
                                 base=base, work=lambda: measuring.Work(flops, size), note='a note')


def measured(measures, rounds):
    return {row.way: row for row in measuring.measure(measures, rounds, rates=lambda: RATES)}


# --- the table's arithmetic -----------------------------------------------------------------------------

def test_medians_ratios_and_shares_of_known_numbers():
    rows = measured([one('ours', [1, 2, 4], base=True, flops=50e9, size=5e9), one('theirs', [3, 4, 40])], 3)
    ours, theirs = rows['ours'], rows['theirs']
    assert (ours.value, ours.low, ours.high, ours.times, ours.rounds) == (2e5, 1e5, 4e5, 1, 3)
    assert ours.sgemm == pytest.approx(0.25) and ours.memory == pytest.approx(0.25)  # 50 G in 2 s, of 100 G a second
    assert theirs.value == 4e5 and theirs.times == 3  # of 3, 2, 10: within a round, not of the medians
    assert theirs.sgemm is None and theirs.memory is None


def test_time_at_equal_accuracy_is_time_times_variance():
    measures = [one('ours', [1, 2, 4], base=True), one('groups', [0.5, 1, 1]), one('decides', [1, 1, 1])]
    measures[:2] = [measure._replace(variance=lambda value=value: value) for measure, value in zip(measures, (1.0, 0.4))]
    rows = measured(measures, 3)
    assert rows['ours'].equal == 1 and rows['groups'].equal == pytest.approx(0.5 * 0.4) and rows['decides'].equal is None
    assert [line.split()[-3:] for line in benchmark.lines([rows['groups']])][1] == ['0.20', 'a', 'note']


def test_shares_are_of_the_rates_of_the_same_moment():
    rates = iter([{'wall': measuring.Rates(rate, 1)} for rate in (100e9, 50e9, 25e9)])  # the machine gets busier
    rows = measuring.measure([one('ours', [1, 2, 4], flops=50e9)], 3, rates=lambda: next(rates))
    assert rows[0].sgemm == pytest.approx(0.5)  # in each round


def test_the_clock_of_the_processor_may_count():
    measure = one('ours', [measuring.Spent(9.0, 2.0)], flops=100e9)
    row, = measuring.measure([measure], 1, rates=lambda: RATES, by='cpu')
    assert row.value == 2e5 and row.sgemm == pytest.approx(0.25)  # 100 G in 2 s, of 200 G a second


def test_what_is_a_rate_takes_longer_when_it_is_less():
    def rate(way, base):
        return measuring.Measurement(part='limit', subject='sgemm', T=None, way=way, run=lambda: measuring.Spent(1, 1),
                                     value=lambda s: 50.0 if base else 100.0, unit='GFLOP/s', base=base)
    rows = measuring.measure([rate('ours', True), rate('theirs', False)], 1, rates=lambda: RATES)
    assert [row.times for row in rows] == [1, 0.5]


def test_only_the_same_part_subject_and_passes_are_compared():
    rows = measured([one('ours', [1], T=20, base=True), one('other', [2], T=100),
                     one('third', [2], T=20, subject='x')], 1)
    assert rows['other'].times is None and rows['third'].times is None


def test_rounds_are_interleaved_and_nobody_is_always_first():
    calls = []
    measures = [one(way, [1] * 4, subject='x' if way == 'c' else 's', calls=calls) for way in 'abc']
    measuring.measure(measures, 4, rates=lambda: RATES)
    assert calls == list('abc' 'bac' 'abc' 'bac')


def test_a_failure_is_a_row_of_its_own_and_the_others_go_on():
    calls = []
    rows = measured([one('ours', [1, 2], base=True, calls=calls),
                     one('bad', [1, UserError('no %s/data here' % places.ROOT)], calls=calls),
                     one('late', [UserError('')], calls=calls)], 2)
    assert rows['bad'].value is None and rows['bad'].note == 'no data here'  # nothing of this machine's paths
    assert rows['late'].note == 'UserError' and calls.count('late') == 1  # not tried again
    assert rows['ours'].value == 1.5e5 and rows['ours'].rounds == 2
    text = list(benchmark.lines(rows.values()))
    assert text[2].split()[:4] == ['part', 's', 'bad', '-'] and 'no data here' in text[2]


def test_what_fails_has_no_ratio_and_gives_none():
    rows = measured([one('ours', [UserError('x')], base=True), one('theirs', [1])], 1)
    assert rows['theirs'].value == 1e5 and rows['theirs'].times is None


def test_notes_of_a_run_are_shown():
    measure = one('ours', [measuring.Spent(2.0, 2.0, '7.5 passes an image')])
    assert measured([measure], 1)['ours'].note == 'a note, 7.5 passes an image'


def test_a_pattern_chooses_rows_and_what_they_are_compared_with():
    measures = [one('ours', [1], T=20, base=True), one('theirs', [1], T=20), one('ours', [1], T=100, base=True)]
    found = benchmark.choose(measures, '*t=20 THEIRS')
    assert [measuring.label(row) for row in found] == ['part s T=20 ours', 'part s T=20 theirs']
    with pytest.raises(UserError, match='nothing is called xyz'):
        benchmark.choose(measures, 'xyz')


def test_what_is_recorded_is_what_was_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, 'machine', lambda gpu: 'a machine')
    measures = [one('ours', [1, 2, 4], T=20, base=True), one('bad', [UserError('why')], T=20)]
    rows = measuring.measure(measures, 3, rates=lambda: RATES)
    benchmark.recorder(str(tmp_path))(rows)
    read = csv_tables.read(str(tmp_path), 'bench')
    assert [(row['way'], row['value'], row['low'], row['rounds'], row['note']) for row in read] == [
        ('bad', None, None, 0, 'why'), ('ours', 2e5, 1e5, 3, 'a note')]
    assert os.listdir(str(tmp_path)) == ['bench.csv']


def test_some_rows_are_recorded_in_the_table_of_the_same_machine_only(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, 'machine', lambda gpu: 'a machine')
    first = measuring.measure([one('ours', [1]), one('theirs', [2])], 1, rates=lambda: RATES)
    again = measuring.measure([one('ours', [3])], 1, rates=lambda: RATES)
    benchmark.recorder(str(tmp_path))(first)
    benchmark.recorder(str(tmp_path), only='*ours')(again)
    assert {row['way']: row['value'] for row in csv_tables.read(str(tmp_path), 'bench')} == {'ours': 3e5, 'theirs': 2e5}
    monkeypatch.setattr(benchmark, 'machine', lambda gpu: 'another')
    with pytest.raises(UserError, match='on another machine'):
        benchmark.recorder(str(tmp_path), only='*ours')
    benchmark.recorder(str(tmp_path))(again)
    assert [row['machine'] for row in csv_tables.read(str(tmp_path), 'bench')] == ['another']


def test_what_a_gpu_took_stands_in_a_table_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, 'machine', lambda gpu: 'a GPU' if gpu == 1 else 'a machine')
    rows = measuring.measure([one('ours', [1])], 1, rates=lambda: RATES)
    benchmark.recorder(str(tmp_path), gpu=1)(rows)
    assert os.listdir(str(tmp_path)) == ['bench_gpu.csv']
    assert [row['machine'] for row in csv_tables.read(str(tmp_path), 'bench_gpu')] == ['a GPU']


def test_the_rates_of_a_device_are_those_of_the_machine():
    """On the CPU, where numpy has measured the same: within what a busy machine makes of it."""
    here, numpys = device_rates.rates(None, size=1024, times=20)['wall'], measuring.rates()['wall']
    assert 0.3 < here.sgemm / numpys.sgemm < 3
    assert 0.1 < here.memory / numpys.memory < 10


def test_on_a_gpu_everything_is_on_the_gpu(tmp_path, monkeypatch):
    """What is started, in words, and what opens a device; the ways of MC go through the engine's own door."""
    try:
        sets.ensure('mnist', make=True)
    except UserError as error:
        pytest.skip('MNIST is out of reach: %s' % error)
    commands, opened = [], tmp_path / 'opened'

    def spent(command, env=None):
        commands.append(command)
        if 'train.py' in ' '.join(command):
            os.makedirs(command[command.index('--out') + 1])
            with open(os.path.join(command[command.index('--out') + 1], 'solver.prototxt'), 'w') as file:
                file.write('net: "x"')
        return measuring.Spent(len(commands), 1.0)

    monkeypatch.setattr(measuring, 'spent', spent)
    monkeypatch.setattr(engine, 'use_device', lambda gpu: opened.open('a').write('%s ' % gpu))
    monkeypatch.setattr(engine, 'gpus', lambda: {'gpus': [None, {'memory': 8e9, 'name': 'a GPU'}]})
    monkeypatch.setattr(device_rates, 'rates', lambda gpu, old=device_rates.rates: old(gpu, size=256, times=100))
    measures = benchmark.all_measurements(benchmark.QUICK, peers.Peer(gpu=1), str(tmp_path), gpu=1)
    parts = {one.part for one in measures}
    assert parts == {'limit', 'MC', 'training', 'start-up'}
    for one_ in measures:
        if one_.way in ('stream', 'replicate', 'driver', 'caffe train', 'mc_eval.py', 'cuBLAS'):
            one_.run()
    assert set(opened.read_text().split()) == {'1'}
    for command in commands:
        assert '--gpu=1' in command or command[-2:] == ['--gpu', '1'], command
    assert benchmark.machine(1).startswith('a GPU; ')


def test_the_time_of_the_processor_says_nothing_of_a_gpu():
    with pytest.raises(UserError, match='--clock cpu'):
        benchmark.run(1, by='cpu', gpu=0)


def test_growth_takes_the_median_time_and_the_most_memory():
    point = growth.Point(net='lenet_ip', vary='T', T=10, images=200, jobs=2)
    row = growth.summary(point, [(1.0, 2048), (9.0, 1024), (2.0, 1024)])
    assert (row.seconds, row.low, row.high, row.megabytes, row.rounds) == (2.0, 1.0, 9.0, 2.0, 3)
    for sizes in (growth.FULL, growth.QUICK):
        points = growth.points(sizes)
        assert len(set(points)) == len(points)
        assert set(point.jobs for point in points) == {1, 2}
    full = growth.points(growth.FULL)
    assert [min(p.T for p in full), max(p.T for p in full)] == [1, 1000]
    assert [min(p.images for p in full), max(p.images for p in full)] == [100, 10000]


def test_the_machine_has_rates():
    for found in measuring.rates(times=1).values():
        assert 1e8 < found.sgemm < 1e13 and 1e7 < found.memory < 1e13


# --- our ways -----------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def case(tmp_path_factory):
    """lenet_all with untrained weights on 12 images."""
    return mc_ways.case('lenet_all', 'mnist', 12, str(tmp_path_factory.mktemp('case')), trained=False)


def test_our_ways_make_all_passes_of_the_same_distribution(case):
    found = {way: mc_ways.passes(case, way, 40) for way in mc_ways.CHECKED}
    for way, scores in found.items():
        assert scores.shape == (40, 12, 10)
        assert np.abs(scores[0] - scores[1]).max() > 0.01  # dropout samples anew in each pass
        comparable.check_passes(found['stream'], scores)
    np.testing.assert_array_equal(found['stream'], found['naive'])  # the same seed, the same masks


def test_the_variance_of_a_way(case):
    """Masks of their own are the measure; antithetic ones have less, as the spread of their means says."""
    prepared = comparable.Prepared(case, peers.Peer(), 40)
    assert prepared.variance('stream', 40) == prepared.variance(mc_ways.TUNED, 40) == 1
    assert prepared.variance('adaptive', 40) is None and 0.1 < prepared.variance('antithetic', 40) < 1


def test_our_ways_take_time(case):
    assert all(min(mc_ways.ours(case, way, 2)[:2]) > 0 for way in mc_ways.OURS)


def test_a_wrong_net_is_not_comparable():
    random = np.random.RandomState(1)
    mine = random.randn(100, 20, 10)
    comparable.check_passes(mine, random.randn(100, 20, 10))
    for theirs, words in ((random.randn(100, 20, 10) * 0, 'vary 0.00 times'),     # dropout not active
                          (random.randn(100, 20, 10) * 2, r'vary [34]\.'),        # another dropout ratio
                          (random.randn(100, 20, 10) + 0.3, 'means differ'),      # other weights
                          (random.randn(99, 20, 10), 'passes x images')):         # fewer passes
        with pytest.raises(UserError, match='not comparable: .*' + words):
            comparable.check_passes(mine, theirs)
    with pytest.raises(UserError, match='not comparable'):
        comparable.check_passes(mine * 0, mine)
    with pytest.raises(UserError, match='differ by 0.001'):
        comparable.check_standard(mine, mine + 0.001)
    with pytest.raises(UserError, match='not comparable'):
        comparable.check_standard(mine, mine * float('nan'))


def test_the_work_of_a_pass_by_hand(case):
    conv1, conv2, ip = 20 * 25 * 24 * 24, 50 * 20 * 25 * 8 * 8, 800 * 500 + 500 * 10
    full = pass_work.plain(case.mc_net(), 3, prefix_once=False)
    assert full.flops == 3 * 12 * 2 * (conv1 + conv2 + ip)
    once = pass_work.plain(case.mc_net(), 3, prefix_once=True)  # the first dropout comes after conv1
    assert once.flops == full.flops - 2 * 12 * 2 * conv1
    # what is saved in bytes: twice the image in and conv1 with its weights and biases; the image as a layer's top, too
    image, conv1_out, weights = 28 * 28, 20 * 24 * 24, 20 * 25 + 20
    assert full.bytes - once.bytes == 2 * 4 * (12 * (2 * image + conv1_out) + weights)


def test_the_work_of_passes_in_groups_by_hand(tmp_path):
    """lenet_ip: ip2 behind the dropout once a group of four, and once without it; all before it once."""
    small = mc_ways.case('lenet_ip', 'mnist', 3, str(tmp_path), trained=False)
    before = 20 * 25 * 24 * 24 + 50 * 20 * 25 * 8 * 8 + 800 * 500
    assert pass_work.in_groups(small.mc_net(), 8, 2).flops == 3 * 2 * (before + (1 + 2) * 500 * 10)
    assert pass_work.plain(small.mc_net(), 8, True).flops == 3 * 2 * (before + 8 * 500 * 10)


def test_the_work_of_a_training_step_by_hand():
    training = train_steps.Training('mnist', 'lenet_none', 5, None, None)
    conv1, rest = 20 * 25 * 24 * 24, 50 * 20 * 25 * 8 * 8 + 800 * 500 + 500 * 10
    assert training.work().flops == 5 * 64 * 2 * (2 * conv1 + 3 * rest)
    assert training.milliseconds(1.0) == 200


def test_no_time_at_all_is_no_measurement():
    rows = measured([one('ours', [measuring.Spent(-0.1, 1.0)])], 1)
    assert rows['ours'].value is None and 'too little to measure' in rows['ours'].note
    row, = measuring.measure([one('ours', [measuring.Spent(-0.1, 1.0)])], 1, rates=lambda: RATES, by='cpu')
    assert row.value == 1e5


def test_the_start_of_a_process_does_not_count():
    training = train_steps.Training('mnist', 'lenet_none', 5, None, None)
    assert measuring.after_first(lambda n: measuring.Spent(1.0 + n, 3.0 * n), training.steps) == (5, 15, '')
    cold = iter([9.0, 6.0, 1.0])  # the first start of a round, which reads the files; then 1 + 5 iterations; then 1
    assert measuring.after_first(lambda n: measuring.Spent(next(cold), 1.0), training.steps).wall == 5


# --- the peers ----------------------------------------------------------------------------------------------

def test_peers_that_are_not_installed_say_so_in_their_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, 'folder', lambda: str(tmp_path / 'none'))
    sizes = benchmark.QUICK._replace(images=dict(lenet_ip=2, lenet_all=2, nin=1), training={('mnist', 'lenet_none'): 1})
    with peers.Peer() as peer:
        measures = [one for one in benchmark.all_measurements(sizes, peer, str(tmp_path))
                    if one.way in mc_ways.PEERS + ('baal',) and one.subject != 'cifar10/nin']
        rows = measuring.measure(measures, 1, rates=lambda: RATES)
    assert len(rows) == 1 + 2 * len(mc_ways.PEERS) + 1 + 2  # sgemm, two LeNets, training, start-up
    assert set((row.value, row.note) for row in rows) == {(None, peers.HOW)}
    assert peers.versions(peers.Peer()) == {}


def test_a_peer_that_dies_is_one_line_and_is_started_anew(tmp_path):
    script = tmp_path / 'peer.py'
    script.write_text('import json, sys\nfor line in sys.stdin:\n    q = json.loads(line)\n'
                      '    if q["do"] == "die": sys.exit(3)\n'
                      '    print(json.dumps({"error": "bad"} if q["do"] == "fail" else q), flush=True)\n')
    with peers.Peer([sys.executable, str(script)]) as peer:
        peer.load('n', 'path', [])
        assert peer.ask('echo', x=1) == {'do': 'echo', 'x': 1}
        with pytest.raises(UserError, match='^bad$'):
            peer.ask('fail')
        with pytest.raises(UserError, match='ended with code 3'):
            peer.ask('die')
        assert peer.ask('echo', x=2)['x'] == 2
        process = peer.process
    assert process.poll() is not None


def test_an_installation_that_was_interrupted_is_none(tmp_path, monkeypatch):
    (tmp_path / 'bin').mkdir()
    (tmp_path / 'bin' / 'python').write_text('')
    assert peers.python(str(tmp_path)) is None
    (tmp_path / 'complete').write_text('')
    assert peers.python(str(tmp_path)) == str(tmp_path / 'bin' / 'python')
    monkeypatch.setattr(peers.subprocess, 'run', lambda *args, **options: types.SimpleNamespace(
        returncode=1, stdout=b'WARNING: x\nERROR: No matching distribution\n\nnotice\n'))
    with pytest.raises(UserError, match='cannot be installed: ERROR: No matching distribution'):
        peers._step(['pip'])


def test_peers_get_the_layers_of_the_net():
    found = mc_ways.layers('nin', 'cifar10')
    assert [layer['name'] for layer in found if layer['type'] == 'Dropout'] == ['drop3', 'drop6']
    by_name = {layer['name']: layer for layer in found}
    assert by_name['conv3'] == dict(type='Convolution', name='conv3', kernel=3, stride=1, pad=1)
    assert by_name['pool2'] == dict(type='Pooling', name='pool2', pool='AVE', kernel=3, stride=2, pad=0)


needs_peers = pytest.mark.skipif(not peers.python(), reason='needs the peers: python tools/bench.py --peers')


@pytest.fixture(scope='module')
def peer():
    with peers.Peer() as running:
        yield running


@needs_peers
@pytest.mark.slow
@pytest.mark.parametrize('name, dataset, count', [('lenet_all', 'mnist', 12), ('nin', 'cifar10', 4)])
def test_peers_compute_what_caffe_computes(peer, tmp_path, name, dataset, count):
    """Standard outputs (pooling that rounds up, averages at the border), and T passes with dropout in all layers."""
    case = mc_ways.case(name, dataset, count, str(tmp_path), trained=False)
    mc_ways.tell(peer, case)
    comparable.check_standard(mc_ways.our_standard(case), mc_ways.their_standard(peer, case))
    mine = mc_ways.passes(case, 'stream', 40)
    for way in mc_ways.PEERS:
        scores = mc_ways.their_passes(peer, case, way, 40)
        comparable.check_passes(mine, scores)
        assert scores.shape == (40, count, 10)
        assert len(np.unique(scores[:, 0, 0])) > 30  # each pass with masks of its own
        assert min(mc_ways.theirs(peer, case, way, 2)[:2]) > 0


@needs_peers
@pytest.mark.slow
def test_a_peer_without_dropout_is_found_out(peer, tmp_path):
    case = mc_ways.case('lenet_all', 'mnist', 12, str(tmp_path), trained=False)
    chain = [layer for layer in mc_ways.layers('lenet_all', 'mnist') if layer['name'] not in ('dropC1', 'dropC2')]
    peer.load('mnist/lenet_all', case.arrays, chain)
    with pytest.raises(UserError, match='not comparable'):
        comparable.check_passes(mc_ways.passes(case, 'stream', 40), mc_ways.their_passes(peer, case, 'PyTorch', 40))


@needs_peers
@pytest.mark.slow
def test_pytorch_makes_the_same_training_step_as_caffe(peer, tmp_path):
    """The loss after a few steps of both, on the same batch from the same weights; lenet_none has no chance in it."""
    training = train_steps.Training('mnist', 'lenet_none', 3, peer, str(tmp_path))
    assert min(training.torch()[:2]) > 0
    path = mc_ways.case('lenet_none', 'mnist', 64, str(tmp_path), trained=False).arrays
    expected = pytest.approx(engine.call(caffe_losses, path), rel=2e-3)
    for channels_last in (False, True):
        answer = peer.ask('train', net=training.title, steps=3, batch=64, lr=0.01, momentum=0.9, decay=0.0005,
                          channels_last=channels_last)
        assert answer['losses'] == expected


def caffe_losses(path):
    """The losses of steps 2 to 4 of Caffe's own solver on the images and weights at path, at a constant rate."""
    solver = engine.caffe_pb2.SolverParameter(base_lr=0.01, lr_policy='fixed', momentum=0.9, weight_decay=0.0005,
                                              snapshot_prefix=path, solver_mode=engine.caffe_pb2.SolverParameter.CPU)
    solver.net_param.CopyFrom(nets.fed('lenet_none', 'mnist', 64))
    loaded = engine.load_solver(solver)
    with np.load(path) as arrays:
        for name, blobs in loaded.net.params.items():
            for k, blob in enumerate(blobs):
                blob.data[...] = arrays['%s/%d' % (name, k)]
        loaded.net.blobs['data'].data[...] = arrays['images']
    loaded.net.blobs['label'].data[...] = np.arange(64) % 10
    losses = []
    for _ in range(4):
        loaded.step(1)
        losses.append(float(loaded.net.blobs['loss'].data))
    return losses[1:]


@needs_peers
def test_peers_without_cuda_say_so_on_a_gpu(tmp_path):
    case = mc_ways.case('lenet_ip', 'mnist', 2, str(tmp_path), trained=False)
    with peers.Peer(gpu=0) as running:
        mc_ways.tell(running, case)
        try:
            mc_ways.their_standard(running, case)
        except UserError as error:
            assert 'this PyTorch has no CUDA' in str(error)
