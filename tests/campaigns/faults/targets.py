"""The commands that the fault campaign disturbs: how each is run, what it reads, what it must leave behind.

A target is one command that writes below one folder, `out`. Add another by a class with the same
four methods and an entry in TARGETS.
"""

import hashlib
import json
import os
import shutil
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
HERE = os.path.dirname(os.path.abspath(__file__))
for folder in (ROOT, os.path.join(ROOT, 'tests')):
    if folder not in sys.path:
        sys.path.insert(0, folder)

import trainhelp  # noqa: E402  (after the path is set)
from bcnn import engine, nets  # noqa: E402
from bcnn.data import catalogue, obtain  # noqa: E402


def tool(name):
    return os.path.join(ROOT, 'tools', name)


class Target:
    """A Python command; place: a folder of its own, in which `inputs` may vanish and `out` is written."""

    workers = True   # whether it has child processes
    chatty = False   # whether it says more on stderr than one line when it fails
    env = {}

    def __init__(self, place):
        self.place, self.inputs, self.out = place, os.path.join(place, 'inputs'), os.path.join(place, 'disk', 'out')
        os.makedirs(self.inputs)
        os.makedirs(os.path.dirname(self.out))
        self.prepare()

    def prepare(self):
        """Makes what the command reads, in self.inputs."""

    def command(self):
        """The words of the command."""

    def ignored(self, path):
        """Whether a file below `out` may differ between two runs."""
        return False

    def result(self):
        """{relative path: sha256} of all that the command left."""
        found = {}
        for folder, _, names in os.walk(self.out):
            for name in names:
                path = os.path.join(folder, name)
                if not self.ignored(os.path.relpath(path, self.out)):
                    found[os.path.relpath(path, self.out)] = digest(path)
        return found


def digest(path):
    if os.path.islink(path):
        return 'link to ' + os.readlink(path)
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


# Written by who runs, not by what is computed; locks are empty or hold a process id.
PROGRESS = ('status.json', 'lock')


class Train(Target):
    """tools/train.py: lenet_ip on 640 digits, with test errors on the way, measured by two processes."""

    def prepare(self):
        trainhelp.make_data(self.inputs)

    def command(self):
        return [tool('train.py'), '--net', 'lenet_ip', '--cpu', '--data', self.inputs, '--out', self.out, '--iters', '60',
                '--T', '3', '--eval-points', '20,60', '--snapshot-every', '7', '--jobs', '2']

    def ignored(self, path):
        # Snapshots are means to an end: which ones are left depends on where it was interrupted.
        return path in PROGRESS or path.startswith('snapshots')


class Stages(Train):
    """DSN with its three stages and random crops, on 20 images: what bcnn.training.driver does, with small batches."""

    def command(self):
        return [os.path.join(HERE, 'train_stages.py'), self.inputs, self.out]


class McEval(Target):
    """tools/mc_eval.py with two processes, three repetitions of ten blocks."""

    def prepare(self):
        rng = np.random.RandomState(0)
        np.savez(os.path.join(self.inputs, 'digits.npz'), labels=rng.randint(0, 10, 40),
                 images=rng.randint(0, 256, (40, 1, 28, 28)).astype(np.uint8))
        engine.load_net(nets.deploy('lenet_ip', 'mnist')).save(os.path.join(self.inputs, 'w.caffemodel'))

    def command(self):
        return [tool('mc_eval.py'), '--net', 'lenet_ip', '--weights', os.path.join(self.inputs, 'w.caffemodel'), '--data',
                os.path.join(self.inputs, 'digits.npz'), '--T', '300', '--repeats', '3', '--batch', '4', '--jobs', '2',
                '--out', self.out]

    def ignored(self, path):
        return path in PROGRESS


class PrepareData(Target):
    """tools/prepare_data.py mnist, from verified downloads."""

    workers = False

    def prepare(self):
        found, _ = obtain.obtain('mnist', catalogue.SOURCES['mnist'])
        for name, data in found.items():
            with open(os.path.join(self.inputs, name), 'wb') as file:
                file.write(data)
        self.env = {'BCNN_DOWNLOADS': os.path.join(self.place, 'downloads'),  # empty, and no way to fill it
                    'http_proxy': 'http://127.0.0.1:1', 'https_proxy': 'http://127.0.0.1:1',
                    'npm_config_registry': 'http://127.0.0.1:1/', 'npm_config_fetch_retries': '0'}

    def command(self):
        return [tool('prepare_data.py'), 'mnist', '--from', self.inputs, '--data', self.out]

    def ignored(self, path):
        return path.endswith('lock.mdb')


class Record(Target):
    """tools/record.py, of a training run and of an evaluation."""

    workers = False

    def prepare(self):
        runs = os.path.join(self.inputs, 'runs')
        data = trainhelp.make_data(os.path.join(self.place, 'data'))
        run = os.path.join(runs, 'mnist-lenet_ip-seed1')
        checked([tool('train.py'), '--net', 'lenet_ip', '--cpu', '--data', data, '--out', run, '--iters', '20', '--T', '3',
                 '--eval-points', '10,20'])
        checked([tool('mc_eval.py'), '--net', 'lenet_ip', '--weights', run + '/final.caffemodel', '--data',
                 data + '/mnist/test_lmdb', '--T', '5', '--repeats', '2', '--out', run + '/mc/T5'])

    def command(self):
        return [tool('record.py'), os.path.join(self.inputs, 'runs'), '--results', self.out,
                '--data', os.path.join(self.place, 'data')]

    def ignored(self, path):
        return path == '.lock'


class Plot(Target):
    """analysis/plot.py, from the committed results."""

    workers = False

    def prepare(self):
        shutil.copytree(os.path.join(ROOT, 'analysis', 'results'), os.path.join(self.inputs, 'results'))

    def command(self):
        return [os.path.join(ROOT, 'analysis', 'plot.py'), '--results', os.path.join(self.inputs, 'results'),
                '--out', self.out]


class ConvertNet(Target):
    """tools/convert_net.py of a training net."""

    def ignored(self, path):
        return path == '.lock'

    def prepare(self):
        shutil.copy(os.path.join(ROOT, 'prototxt', 'cifar10', 'nin', 'train_test.prototxt'), self.inputs)

    def command(self):
        return [tool('convert_net.py'), os.path.join(self.inputs, 'train_test.prototxt'), '--shape', '3,32,32', '--to',
                self.out]


class GenPrototxt(Target):
    """tools/gen_prototxt.py into a new folder."""

    workers = False

    def command(self):
        return [tool('gen_prototxt.py'), '--to', self.out]

    def ignored(self, path):
        return path == '.lock'


class RunAll(Target):
    """tools/run_all.sh with a small profile, in a project of its own whose runs/ is `out`."""

    chatty = True  # Snakemake tells what it does

    def prepare(self):
        project = os.path.join(self.place, 'project')
        for name in ('bcnn', 'tools', 'workflow', 'analysis', 'prototxt'):
            shutil.copytree(os.path.join(ROOT, name), os.path.join(project, name),
                            ignore=shutil.ignore_patterns('__pycache__', 'results'))
        trainhelp.make_data(self.inputs)
        os.symlink(self.inputs, os.path.join(project, 'data'))
        os.symlink(self.out, os.path.join(project, 'runs'))
        runs = {'mnist-lenet_all': {'iterations': [20], 'eval_points': '10,20', 'T': 3, 'evaluate': {'T': 3, 'repeats': 2}},
                'mnist-lenet_none': {'iterations': [20], 'eval_points': '20'}}
        with open(os.path.join(self.place, 'small.json'), 'w') as file:
            json.dump({'about': 'small', 'disk': 'little', 'runs': runs}, file)
        self.env = {'CAFFE_PREFIX': os.environ.get('CAFFE_PREFIX') or os.path.join(ROOT, '.caffe')}

    def command(self):
        # The stamp says that the data is prepared; prepare_data.py would make all sets of MNIST.
        script = 'mkdir -p "$1/small/stamps" && : > "$1/small/stamps/data-mnist.done"; exec "$2" --profile small.json --jobs 2'
        return ['/bin/sh', '-c', script, 'run_all', self.out, os.path.join(self.place, 'project', 'tools', 'run_all.sh')]

    def ignored(self, path):
        parts = path.split(os.sep)
        return (parts[-1] in PROGRESS or 'snapshots' in parts or '.snakemake' in parts or 'logs' in parts
                or 'stamps' in parts)


class Setup(Target):
    """tools/setup.sh from the downloads that an earlier set-up kept, without a network."""

    slow = True

    def prepare(self):
        cache = os.environ.get('CAFFE_DEB_CACHE') or os.path.join(
            os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'bcnn', 'debs')
        debs = os.path.join(self.inputs, 'debs')
        os.mkdir(debs)
        for name in os.listdir(cache):
            if name != 'lock':
                shutil.copy(os.path.join(cache, name), debs)
        bare = os.path.join(self.place, 'bin')  # pythons without Caffe, so that there is work to do
        os.mkdir(bare)
        for name in ('python3', 'python'):
            with open(os.path.join(bare, name), 'w') as file:
                file.write('#!/bin/sh\nexec /usr/bin/python3 -S "$@"\n')
            os.chmod(os.path.join(bare, name), 0o755)
        self.env = {'CAFFE_PREFIX': os.path.join(self.out, '.caffe'), 'CAFFE_DEB_CACHE': debs,
                    'CAFFE_DEBIAN_MIRROR': 'http://127.0.0.1:1/debian', 'PATH': bare + ':' + os.environ['PATH']}

    def command(self):
        return [tool('setup.sh')]

    def ignored(self, path):
        # .pyc files hold the time of their source; the lock is empty
        return '__pycache__' in path or path == '.caffe.lock'


def checked(command):
    import subprocess
    done = subprocess.run([sys.executable] + command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise RuntimeError(done.stdout.decode('utf-8', 'replace'))


TARGETS = {'train': Train, 'train, stages': Stages, 'mc_eval': McEval, 'prepare_data': PrepareData, 'record': Record,
           'plot': Plot, 'convert_net': ConvertNet, 'gen_prototxt': GenPrototxt, 'run_all': RunAll,
           'setup': Setup}
