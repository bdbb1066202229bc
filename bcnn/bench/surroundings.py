"""The rest of the benchmark: two processes against one, how mc_eval.py is set against other ways to set it, data
preparation, and how long a command takes to start."""

import functools
import os
import shutil
import sys

import numpy as np

from .. import engine, nets
from ..data import records, whiten
from ..errors import UserError
from ..mc import forward, running_sums
from ..system import places
from . import benchmark, mc_ways, peers

JOBS_IMAGES, JOBS_BLOCKS, JOBS_T = 100, 8, 50  # of the comparison of two processes with one


def measures(sizes, peer, folder):
    """The measurements, in the table's order."""
    return jobs(sizes) + settings(sizes, folder) + data(sizes.data, folder) + startup(folder)


# --- processes ---------------------------------------------------------------------------------------------

def jobs(sizes):
    """MC evaluation on one and on two processes."""
    images, blocks, T = (JOBS_IMAGES, JOBS_BLOCKS, JOBS_T) if max(sizes.passes) >= JOBS_T else (5, 2, 2)

    def work(jobs):
        def make():
            message = nets.mc('lenet_all', 'mnist', batch=images)
            net = engine.load_net(message)
            pixels = np.random.RandomState(0).rand(images, 1, 28, 28).astype(np.float32)
            wiring, labels = forward.wiring_of(message, net), np.zeros(images, int)
            return lambda _: running_sums.sample(forward.stream(net, wiring, pixels, T), labels, 10).arrays()

        def run():
            wall = benchmark.clock(lambda: list(engine.work(make, range(blocks), jobs))).wall
            return benchmark.Spent(wall, wall)  # what two processes spare is time by the clock
        return run

    return [benchmark.Measure('processes', 'mnist/lenet_all', T, '--jobs %d' % count, work(count),
                              lambda seconds: 1e6 * seconds / images / blocks / T, 'us a pass', count == 1,
                              note='%d blocks of %d images' % (blocks, images)) for count in (1, 2)]


# --- settings ----------------------------------------------------------------------------------------------

AS_SET = 'as mc_eval.py is set'
SETTINGS = (  # name, environment, images a batch
    (AS_SET, {}, None), ("OpenBLAS's oldest kernels", {'OPENBLAS_CORETYPE': 'Prescott'}, None),
    ('AVX2 kernels', {'OPENBLAS_CORETYPE': 'Haswell'}, None), ('two threads', {'OPENBLAS_NUM_THREADS': '2'}, None),
    ('batch of 1', {}, 1), ('batch of 5', {}, 5))


def settings(sizes, folder):
    """NIN passes of mc_eval.py as it is set, and with each of some settings changed."""
    count, T = sizes.images['nin'], sizes.passes[0]

    @functools.lru_cache(maxsize=None)  # once for all rounds and settings
    def inputs():
        case, images = mc_ways.case('nin', 'cifar10', count, folder), os.path.join(folder, 'settings.npz')
        np.savez(images, images=case.pixels, labels=case.labels)
        return case.weights, images

    def run(environment, batch):
        (weights, images), out = inputs(), os.path.join(folder, 'settings')

        def evaluate(passes):
            shutil.rmtree(out, ignore_errors=True)
            return benchmark.spent([
                sys.executable, os.path.join(places.ROOT, 'tools', 'mc_eval.py'), '--net', 'nin', '--weights', weights,
                '--data', images, '--T', str(passes), '--repeats', '1', '--jobs', '1', '--batch', str(batch or count),
                '--out', out], dict(os.environ, **environment))
        return benchmark.after_first(evaluate, T)

    return [benchmark.Measure('settings', 'cifar10/nin', T, name, lambda environment=environment, batch=batch: run(
        environment, batch), lambda seconds: 1e6 * seconds / count / T, 'us a pass', name == AS_SET,
        note='%d images in batches of %d' % (count, batch or count)) for name, environment, batch in SETTINGS]


# --- data ----------------------------------------------------------------------------------------------------

def data(count, folder):
    """Writing, copying and reading an LMDB of float images, and whitening raw ones."""
    raw = np.random.RandomState(0).randint(0, 256, (count, 3, 32, 32)).astype(np.uint8)
    images, labels = (raw - 127.5).astype(np.float32), np.arange(count) % 10
    made, copy = os.path.join(folder, 'lmdb'), os.path.join(folder, 'copy')
    whitener = whiten.Whitener(np.zeros(3072), np.identity(3072, np.float32))

    def write():
        shutil.rmtree(made, ignore_errors=True)
        return synced(lambda: records.write(made, [(images, labels)], 5), os.path.join(made, 'data.mdb'))

    def written():
        if not os.path.exists(os.path.join(made, 'data.mdb')):  # where writing is not measured
            write()
        return made

    def plain():
        source = os.path.join(written(), 'data.mdb')
        return synced(lambda: shutil.copyfile(source, copy), copy)

    def read():
        written()
        return benchmark.clock(lambda: records.load(made))

    size = images.nbytes
    table = (
        ('LMDB of floats', 'write, hash and sync', write, False, (None, size), ''),
        ('LMDB of floats', 'plain copy, synced', plain, True, (None, 2 * size), ''),
        ('LMDB of floats', 'read', read, False, (None, size), ''),
        ('whitening', 'GCN and ZCA', lambda: benchmark.clock(lambda: whitener.apply(raw)), False,
         (2.0 * 3072 ** 2 * count, None), 'float64, whose rate is half of sgemm\'s'))
    return [benchmark.Measure('data', subject, None, way, run, lambda seconds: 1e6 * seconds / count, 'us', base,
                              lambda work=work: work, '%d images%s' % (count, ', ' + note if note else ''))
            for subject, way, run, base, work, note in table]


def synced(action, path):
    """What it takes until what an action writes to a path is on the disk."""
    def both():
        action()
        with open(path) as file:
            os.fsync(file.fileno())
    return benchmark.clock(both)


# --- starting --------------------------------------------------------------------------------------------------

def startup(folder, gpu=None):
    """From the shell to the first result: mc_eval.py, beside what importing the peers takes."""
    def ours():
        weights, images, out = (os.path.join(folder, name) for name in ('start.caffemodel', 'start.npz', 'start'))
        if not os.path.exists(images):
            engine.call(lambda: engine.load_net(nets.deploy('lenet_ip', 'mnist')).save(weights))
            np.savez(images, images=np.zeros((10, 1, 28, 28), np.uint8), labels=np.zeros(10, int))
        shutil.rmtree(out, ignore_errors=True)
        return benchmark.spent([
            sys.executable, os.path.join(places.ROOT, 'tools', 'mc_eval.py'), '--net', 'lenet_ip', '--weights', weights,
            '--data', images, '--T', '1', '--repeats', '1', '--out', out]
            + ([] if gpu is None else ['--gpu', str(gpu)]))

    def theirs(module):
        def run():
            if not peers.python():
                raise UserError(peers.HOW)
            return benchmark.spent([peers.python(), '-I', '-c', 'import ' + module], peers.clean())
        return run

    ways = (('mc_eval.py', ours, 'a whole evaluation: lenet_ip, 10 images, T=1'),
            ('PyTorch', theirs('torch'), 'its import alone'),
            ('baal', theirs('baal.modelwrapper'), 'its import alone'))
    return [benchmark.Measure('start-up', '', None, way, run, lambda seconds: seconds, 's', way == 'mc_eval.py',
                              note=note)
            for way, run, note in ways]
