"""The commands as they go on a GPU, walked on the CPU: a GPU is opened once a process, in one that nothing has opened.

A process that has opened a GPU cannot be forked, and a Caffe with CUDA opens one at its first call, whatever the
mode. So whoever starts the processes that compute must not have called Caffe before. Here opening a GPU is only
noted, with what the process had done before; everything after it is computed on the CPU.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import evalhelp
import trainhelp
from bcnn import engine, nets
from conftest import ROOT

# What a tool does, with a door to the GPU that only notes who comes through.
SCRIPT = '''
import importlib, os, sys
sys.path.insert(0, os.path.join(%r, 'tools'))
tool = importlib.import_module(sys.argv[1])
from bcnn import engine
from bcnn.devices import side

def open_gpu(gpu):
    if gpu is not None:
        with open(os.environ['OPENED'], 'a') as file:
            file.write('GPU %%d opened, before that: %%s\\n' %% (gpu, engine._device))

engine.use_device = open_gpu
engine.require_device = lambda gpu: None
gpu = {'name': 'none', 'capability': '8.6', 'memory': 8e9}
engine.gpus = lambda: {'driver': '1', 'cuda': '11.2', 'gpus': [gpu, gpu]}
side.cases = lambda: [('mnist', 'lenet_ip')]
sys.exit(tool.run(tool.make_parser().parse_args(sys.argv[2:])))
'''


@pytest.fixture(scope='module')
def place(tmp_path_factory):
    """A folder with small data, weights and images."""
    folder = tmp_path_factory.mktemp('gpu')
    (folder / 'data').mkdir()
    trainhelp.make_data(folder / 'data')
    engine.call(lambda: engine.load_net(nets.deploy('lenet_ip', 'mnist')).save(str(folder / 'w.caffemodel')))
    evalhelp.write_digits(folder / 'digits.npz', 8, np.random.RandomState(0))
    return folder


EVALUATE = ('mc_eval', '--net', 'lenet_ip', '--weights', 'w.caffemodel', '--data', 'digits.npz', '--T', '4', '--repeats', '2')
OWN = ('mc_eval', '--prototxt', os.path.join(ROOT, 'prototxt', 'mnist', 'lenet_ip', 'train_test.prototxt')) + EVALUATE[3:]
TRAIN = ('train', '--net', 'lenet_ip', '--data', 'data', '--iters', '30', '--eval-points', '10,20')


@pytest.mark.parametrize('words, opened', [
    (EVALUATE, 1), (OWN, 1), (EVALUATE + ('--mode', 'replicate'), 1), (EVALUATE + ('--sampler', 'antithetic'), 1),
    (EVALUATE + ('--adaptive',), 2),  # the Standard predictions first
    (TRAIN, 1), (('check_caffe',), 3)])  # the net, and two processes at once
def test_a_gpu_is_opened_in_processes_that_nothing_has_opened(place, tmp_path, words, opened):
    out = () if words[0] == 'check_caffe' else ('--out', str(tmp_path / 'out'))
    env = {name: value for name, value in os.environ.items() if name != 'CUDA_VISIBLE_DEVICES'}
    env['OPENED'] = str(tmp_path / 'opened')
    done = subprocess.run([sys.executable, '-c', SCRIPT % ROOT] + list(words) + ['--gpu', '0'] + list(out), cwd=str(place),
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    assert done.returncode == 0, done.stdout
    lines = (tmp_path / 'opened').read_text().splitlines()
    assert len(lines) == opened and all(line.endswith('before that: []') for line in lines), lines
