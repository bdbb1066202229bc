"""A device beside the CPU: the same is found the same, and each way of being wrong is found.

There is no GPU here. So both sides are CPUs, one of which is made wrong on purpose; and two CPUs that add in
another order (two kernels of OpenBLAS) show how much of a difference rounding makes.
"""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from bcnn import beyond, engine
from bcnn.devices import check, side, verdicts
from bcnn.prototxt import facts
from conftest import ROOT, one_clear_line

pytestmark = pytest.mark.caffe
CASE = ('mnist', 'lenet_all')


def wrong(here):
    """The checks that a side fails, on a net with three dropout layers."""
    report = check.run(None, [CASE], here)
    assert report['ok'] == (not any(not row['ok'] for row in report['rows']) and not report['problems'])
    return {row['check'] for row in report['rows'] if not row['ok']}


# --- sides that are wrong

class Disturbed(side.Side):
    """Its weights are a thousandth off."""
    def load(self, *args):
        net = super().load(*args)
        net.params['conv1'][0].data[...] *= 1.001
        return net


class WrongGradients(side.Side):
    """Its gradients add up over two passes."""
    def load(self, message, weights, phase=engine.TEST):
        net = super().load(message, weights, phase)
        if phase == engine.TRAIN:
            side.feed(net, CASE, 0)
            net.forward()
            net.backward()
        return net


class WrongRate(side.Side):
    """Its learning rate is 2% off."""
    def solver(self, *args):
        solver = super().solver(*args)
        solver.add_callback(lambda: None, lambda: [self.stretch(blob) for blobs in solver.net.params.values() for blob in blobs])
        return solver

    @staticmethod
    def stretch(blob):
        blob.diff[...] *= 1.02


class NoMomentum(side.Side):
    """It forgets the momentum when it goes on from a snapshot."""
    def solver(self, *args):
        solver = super().solver(*args)
        solver.restore = lambda path: None
        return solver


class NoMasks(side.Side):
    """Its dropout does not sample in a TEST net."""
    def load(self, message, *args):
        other = engine.caffe_pb2.NetParameter()
        other.CopyFrom(message)
        for layer in other.layer:
            layer.ClearField('phase')
        return super().load(other, *args)


class NoSeed(side.Side):
    """It takes no notice of seeds."""
    def seed(self, number):
        pass


class OneSeed(side.Side):
    """Every pass has the same masks."""
    def stream(self, net, wiring, images, T):
        for k in range(T):
            self.seed(1)
            yield from super().stream(net, wiring, images, 1)


class StaleStart(side.Side):
    """Its passes begin a layer late, with what the first dropout layer left there before."""
    def stream(self, net, wiring, images, T):
        net.forward()
        return super().stream(net, wiring._replace(first=wiring.first + 1), images, T)


class OtherImages(side.Side):
    """Its stream sees other images than its replicate."""
    def stream(self, net, wiring, images, T):
        return super().stream(net, wiring, images * 8, T)


@pytest.mark.parametrize('here, expected', [
    (side.Side(), set()), (Disturbed(), {'forward'}), (WrongGradients(), {'gradients'}), (WrongRate(), {'steps'}),
    (NoMomentum(), {'resumed'}), (NoMasks(), {'rate', 'rows', 'passes', 'seeds'}), (NoSeed(), {'repeated'}),
    (OneSeed(), {'passes', 'seeds', 'ways'}), (StaleStart(), {'middle'}), (OtherImages(), {'ways', 'devices', 'middle'})],
    ids=lambda value: type(value).__name__ if isinstance(value, side.Side) else '')
def test_a_side_that_is_wrong_is_found(here, expected):
    found = wrong(here)
    assert expected <= found and (expected or not found)


def test_a_side_that_dies_is_told_with_its_net():
    class Dies(side.Side):
        def one_pass(self, *args):
            os.abort()

    report = check.run(None, [CASE], Dies())
    assert not report['ok'] and 'mnist/lenet_all: the Caffe process ended by signal 6' in report['problems'][0]
    assert any(line.startswith('FAILED mnist/lenet_all') for line in check.table(report))


# --- masks by hand

def masks(rows=2, values=4000, seed=0):
    """What a dropout layer shows that is as it should be: passes x rows x values."""
    first, second, other = np.random.RandomState(seed).randint(0, 2, (3, rows, values)).astype(np.int8)
    return np.array([first, second, first, other])


def change(spoil):
    states = masks()
    spoil(states)
    return {check for check, measured, _ in verdicts.masks({'drop': states}) if measured > verdicts.CHECKS[check][1]}


def test_good_masks():
    assert change(lambda states: None) == set()


@pytest.mark.parametrize('spoil, expected', [
    (lambda states: states.__setitem__((slice(None), slice(None), slice(0, 500)), 0), 'rate'),
    (lambda states: states.__setitem__((slice(None), 1), states[:, 0]), 'rows'),
    (lambda states: states.__setitem__(1, states[0]), 'passes'),
    (lambda states: states.__setitem__(3, states[0]), 'seeds'),
    (lambda states: states.__setitem__((2, 1, 7), 1 - states[2, 1, 7]), 'repeated'),
    (lambda states: states.__setitem__((0, 0, 0), 2), 'values'),
    (lambda states: states.fill(-1), 'rate'),
])
def test_masks_that_are_wrong_are_found(spoil, expected):
    assert expected in change(spoil)


def test_only_what_was_let_through_counts():
    """Where the input was 0 nobody sees whether it was dropped: half of the values unseen changes no rate."""
    states = masks()
    states[:, :, ::2] = -1
    for name, measured, _ in verdicts.masks({'drop': states}):
        assert measured <= verdicts.CHECKS[name][1], name


def test_what_a_layer_kept():
    net = engine.load_net(side.nets.mc('lenet_all', 'mnist', batch=1))
    message = side.nets.mc('lenet_all', 'mnist', batch=1)
    layer = next(layer for layer in message.layer if layer.name == facts.dropouts(message)[-1])
    bottom, top = net.blobs[layer.bottom[0]], net.blobs[layer.top[0]]
    bottom.data[0, :5], top.data[0, :5] = [1, 1, 0, 3, 1], [2, 0, 0, 6, 1.9]
    assert side.kept(net, layer)[0, :5].tolist() == [1, 0, -1, 1, 2]


# --- how far apart

def test_apart_is_a_share_of_the_whole():
    assert verdicts.apart([3.0, 4.0], [3.0, 4.0]) == 0
    assert verdicts.apart([3.0, 4.5], [3.0, 4.0]) == pytest.approx(0.1)
    assert verdicts.apart([0.0], [0.0]) == 0 and verdicts.apart([1.0], [0.0]) == np.inf
    assert verdicts.apart([np.nan], [1.0]) == np.inf and verdicts.apart([1.0, 1.0], [1.0]) == np.inf


def test_what_is_no_number_is_wrong():
    assert not verdicts.Row('net', 'forward', float('nan'), 1.0).ok


def test_distributions_of_one_kind_pass_and_shifted_ones_do_not():
    rng = np.random.RandomState(0)
    one, two = rng.dirichlet([5, 2, 2], (2, 100, 4))
    measured, _, allowed = verdicts.distributions(one, two)
    assert measured < allowed
    two[:, 2] = rng.dirichlet([15, 2, 2], 100)
    measured, where, allowed = verdicts.distributions(one, two)
    assert measured > allowed and where == 'image 2'


def test_the_chance_of_bad_luck_is_as_stated():
    """The distance allowed at a chance of 1% is passed by about 1% of pairs of samples (by fewer, in small samples)."""
    rng = np.random.RandomState(0)
    n = 100 * 100 / 200.0
    allowed = np.sqrt(-np.log(0.01 / 2) / (2 * n))
    over = [verdicts.stats.ks_2samp(*rng.standard_normal((2, 100))).statistic > allowed for _ in range(2000)]
    assert np.mean(over) <= 0.013


KERNEL = '''
import pickle, sys
sys.path.insert(0, %r)
from bcnn.devices import side
case, weights, folder, out = %r
with open(out, 'wb') as file:
    pickle.dump(side.Side()(case, weights, folder), file)
'''


@pytest.mark.slow
def test_two_kernels_of_a_blas_agree_with_room_to_spare(tmp_path):
    """Rounding alone takes at most a tenth of what is allowed, in the net with the longest sums."""
    case, weights = ('cifar10', 'lenet_ip'), str(tmp_path / 'weights.caffemodel')
    engine.call(side.make_weights, case, weights)
    shown = []
    for kernel in ('Nehalem', 'Haswell'):
        (tmp_path / kernel).mkdir()
        out = str(tmp_path / (kernel + '.pickle'))
        code = KERNEL % (ROOT, (case, weights, str(tmp_path / kernel), out))
        subprocess.run([sys.executable, '-c', code], env=dict(os.environ, OPENBLAS_CORETYPE=kernel), check=True)
        with open(out, 'rb') as file:
            shown.append(pickle.load(file))
    if all(np.array_equal(shown[0]['gradients'][key], shown[1]['gradients'][key]) for key in shown[0]['gradients']):
        pytest.skip('this BLAS has one kernel here')
    for row in verdicts.compare('/'.join(case), *shown):
        if row.check in ('forward', 'gradients', 'steps'):
            assert row.measured <= row.allowed / 10, (row.check, row.measured)
        assert row.ok, row.check


# --- the command

def test_every_net_of_the_paper_is_checked():
    assert {net for _, net in side.cases()} == set(side.nets.NETS) - set(beyond.VARIATIONS) and len(side.cases()) == 9


@pytest.mark.slow
def test_the_command_with_the_cpu_on_both_sides(tool, tmp_path):
    result = tool('check_caffe.py', '--gpu', 'none', '--json', tmp_path / 'report.json')
    assert result.returncode == 0, result.stdout + result.stderr
    assert 'all as it should be' in result.stdout
    for what, _ in verdicts.CHECKS.values():
        assert what in result.stdout
    report = json.loads((tmp_path / 'report.json').read_text())
    assert report['ok'] and {row['net'] for row in report['rows']} == {'/'.join(case) for case in side.cases()} | {check.TWO}
    assert report['about']['device'] == 'cpu' and report['about']['blas']


@pytest.mark.parametrize('gpu, part', [('zero', '--gpu zero'), ('-1', '--gpu -1')])
def test_what_is_no_gpu_is_refused(tool, gpu, part):
    one_clear_line(tool('check_caffe.py', '--gpu=' + gpu), part)


def test_a_gpu_that_is_not_there_is_refused(tool):
    one_clear_line(tool('check_caffe.py', '--gpu', '77'), 'GPU 77 asked for')


def test_a_wrong_device_is_an_exit_code(monkeypatch, capsys):
    monkeypatch.setattr(check, 'run', lambda gpu: {'about': {'caffe': '1', 'device': 'cpu'}, 'rows': [], 'problems': ['x'], 'ok': False})
    assert check.command('none') == 1
    assert 'NOT as it should be' in capsys.readouterr().out
