"""How fast things are here: what is compared runs side by side, interleaved, and medians are taken.

Absolute times are this machine's; the ratios and the shares of its sgemm rate are what to look at.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from statistics import median

import numpy as np

from . import engine, files, mc, nets, results, solvers
from .data import records

Row = namedtuple('Row', 'what value unit note')

# net, data set, images, passes of the naive way that are timed (each costs the same)
EVALUATIONS = (('lenet_ip', 'mnist', 500, 30), ('lenet_all', 'mnist', 200, 30), ('nin', 'cifar10', 20, 20))
# the nets that the paper trains; dsn: its first stage, with the companions
TRAINING = (('lenet_all', 'mnist', 20), ('lenet_ip', 'mnist', 20), ('lenet_none', 'mnist', 20),
            ('lenet_all', 'cifar10', 1), ('lenet_ip', 'cifar10', 1), ('lenet_none', 'cifar10', 1), ('nin', 'cifar10', 1), ('dsn', 'cifar10', 1),
            ('dsn_aug', 'cifar10', 1))
T = 100


def rows(rounds=5):
    """Yield the rows of the table as they are measured."""
    yield Row('sgemm, one thread', median(sgemm() for _ in range(rounds)), 'GFLOP/s',
              '1536 x 1536 matrices, the limit for what follows')
    for name, dataset, count, few in EVALUATIONS:
        for row in evaluation(name, dataset, count, few, rounds):
            yield row
    yield Row('two jobs against one', two_jobs(rounds), 'times', 'lenet_all, blocks of 100 images on engine.work')
    for name, dataset, steps in TRAINING:
        yield Row('training step, %s/%s' % (dataset, name), 1e3 * training_step(name, dataset, steps, rounds), 'ms',
                  'forward, backward and update of a whole batch, one thread')
    yield Row('float LMDB against a copy', lmdb_writing(rounds), 'times',
              'written, hashed and synced; a plain copy synced')
    yield Row('start-up', startup(rounds), 's', 'mc_eval.py from the shell to its first result, lenet_ip, 10 images')


def clock(function):
    start = time.time()
    function()
    return time.time() - start


def sgemm(size=1536, times=5):
    """The rate of single-precision matrix multiplication just now."""
    a = np.random.RandomState(0).rand(size, size).astype(np.float32)
    return 2 * size ** 3 / median(clock(lambda: a @ a) for _ in range(times)) / 1e9


def evaluation(name, dataset, count, few, rounds):
    """Rows for one net: T passes over `count` images, all layers each time and with the prefix kept."""
    message = nets.mc(name, dataset, batch=count)
    net = engine.load_net(message)
    how = mc.plan(message, net)
    images = np.random.RandomState(0).rand(*net.blobs[how.input].data.shape).astype(np.float32)
    labels = np.zeros(count, int)

    def naive():
        mc.fill(net, how, images)
        for _ in range(few):
            net.forward()

    def stream():
        mc.sample(mc.stream(net, how, images, T), labels, 10)

    net.forward()
    times = [(clock(naive) * T / few, clock(stream), sgemm()) for _ in range(rounds)]
    slow, fast, _ = (median(column) for column in zip(*times))
    yield Row('%s, naive' % name, 1e6 * slow / count / T, 'us a pass', 'all layers in each of T=%d passes' % T)
    yield Row('%s, stream' % name, 1e6 * fast / count / T, 'us a pass', 'with sums, errors and entropies')
    yield Row('%s, stream against naive' % name, median(a / b for a, b, _ in times), 'times', '')
    work = flops(net, how.first) * count * T / 1e9
    share = median(work / seconds / peak for _, seconds, peak in times)  # with the peak of the same moment
    yield Row('%s, stochastic part' % name, work / fast, 'GFLOP/s', '%.0f%% of sgemm' % (100 * share))


def flops(net, first):
    """Floating-point operations an image of the layers from index `first` on: convolutions and inner products."""
    total = 0
    for name, layer in list(zip(net._layer_names, net.layers))[first:]:
        if layer.type in ('Convolution', 'InnerProduct'):
            top = net.blobs[net.top_names[name][0]].data
            places = int(np.prod(top.shape[2:])) if top.ndim > 2 else 1
            total += 2 * net.params[name][0].data.size * places
    return total


def two_jobs(rounds):
    """How many times faster two processes are than one."""
    def work(jobs):
        def make():
            message = nets.mc('lenet_all', 'mnist', batch=100)
            net = engine.load_net(message)
            how, images = mc.plan(message, net), np.random.RandomState(0).rand(100, 1, 28, 28).astype(np.float32)
            return lambda _: mc.sample(mc.stream(net, how, images, 50), np.zeros(100, int), 10).arrays()
        return clock(lambda: list(engine.work(make, range(8), jobs)))

    return median(work(1) / work(2) for _ in range(rounds))


def training_step(name, dataset, steps, rounds):
    """Seconds for one iteration of the published solver, on constant images: no time for reading data."""
    solver = next(iter(solvers.stages(name, dataset).values()))
    net = nets.train_test(name, dataset, companions=name.startswith('dsn'))
    entry = nets.find(dataset, name)
    layers = [layer for layer in net.layer if layer.type not in ('Data', 'Accuracy')]
    net.ClearField('layer')
    data = net.layer.add(name='data', type='DummyData', top=['data', 'label'])
    for shape in ((entry.batch,) + entry.data.shape, (entry.batch,)):
        data.dummy_data_param.shape.add(dim=shape)
    net.layer.extend(layers)
    for field in ('net', 'test_iter', 'test_interval', 'display', 'snapshot'):
        solver.ClearField(field)
    solver.net_param.CopyFrom(net)
    with tempfile.TemporaryDirectory() as folder:
        solver.snapshot_prefix = os.path.join(folder, 'unused')
        loaded = engine.load_solver(solver)
        loaded.step(1)
        return median(clock(lambda: loaded.step(steps)) for _ in range(rounds)) / steps


def machine():
    """What computes here, in a line: processor, cores, BLAS."""
    with open('/proc/cpuinfo') as file:
        model = next((line.split(':')[1].strip() for line in file if line.startswith('model name')), 'unknown')
    about = engine.describe()
    return '%s, %d cores, %s %s' % (model, os.cpu_count(), about['blas'], about['blas_kernel'])


def record(found, folder):
    """Write the rows as the table `bench` of the recorded results."""
    here = machine()
    rows = [dict(row._asdict(), machine=here) for row in found]
    with files.folder(folder), files.atomic(results.path(folder, 'bench')) as temporary, open(temporary, 'w') as file:
        file.write(results.text('bench', rows))


def lmdb_writing(rounds, count=5000):
    """How many times longer writing images as a float LMDB takes than copying the file it makes, both synced."""
    images = np.random.RandomState(0).randn(count, 3, 32, 32).astype(np.float32)
    labels = np.arange(count) % 10

    def synced(action, path):
        start = time.time()
        action()
        with open(path) as file:
            os.fsync(file.fileno())
        return time.time() - start

    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(rounds):
            made, copy = os.path.join(folder, str(k), 'data.mdb'), os.path.join(folder, 'copy%d' % k)
            ours = synced(lambda: records.write(os.path.dirname(made), [(images, labels)], 5), made)
            ratios.append(ours / synced(lambda: shutil.copyfile(made, copy), copy))
    return median(ratios)


def startup(rounds):
    """Seconds for a whole mc_eval.py on next to nothing."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory() as folder:
        weights, images = os.path.join(folder, 'w.caffemodel'), os.path.join(folder, 'x.npz')
        engine.load_net(nets.deploy('lenet_ip', 'mnist')).save(weights)
        np.savez(images, images=np.zeros((10, 1, 28, 28), np.uint8), labels=np.zeros(10, int))
        command = [sys.executable, os.path.join(root, 'tools', 'mc_eval.py'), '--net', 'lenet_ip', '--weights', weights,
                   '--data', images, '--T', '1', '--repeats', '1']
        return median(clock(lambda: subprocess.run(command + ['--out', os.path.join(folder, str(k))], check=True,
                                                   stdout=subprocess.DEVNULL)) for k in range(rounds))
