"""The rest of the benchmark: two processes against one, how mc_eval.py is set against other ways to set it, data
preparation, and how long a command takes to start."""

import functools
import os
import shutil
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from .. import engine, nets
from ..data import records, whiten
from ..errors import UserError
from ..mc import forward, running_sums
from . import mc_ways, measuring, peers
from .measuring import Measurement, Spent, Work

JOBS_IMAGES, JOBS_BLOCKS, JOBS_T = 100, 8, 50  # of the comparison of two processes with one


def measurements(nin_images: int, passes: Sequence[int], data_images: int, folder: str) -> List[Measurement]:
    """The measurements, in the table's order. passes: the values of T."""
    return (jobs(max(passes)) + settings(nin_images, passes[0], folder) + data(data_images, folder)
            + startup(folder))


# --- processes ---------------------------------------------------------------------------------------------

def jobs(most: int) -> List[Measurement]:
    """MC evaluation on one and on two processes; most: passes that may be made."""
    images, blocks, T = (JOBS_IMAGES, JOBS_BLOCKS, JOBS_T) if most >= JOBS_T else (5, 2, 2)

    def work(jobs):
        def make():
            net, wiring = forward.load(nets.mc('lenet_all', 'mnist', batch=images))
            pixels = np.random.RandomState(0).rand(images, 1, 28, 28).astype(np.float32)
            labels = np.zeros(images, int)
            return lambda _: running_sums.sample(forward.stream(net, wiring, pixels, T), labels, 10).arrays()

        def run():
            wall = measuring.clock(lambda: list(engine.work(make, range(blocks), jobs))).wall
            return Spent(wall, wall)  # what two processes spare is time by the clock
        return run

    return [Measurement(part='processes', subject='mnist/lenet_all', T=T, way='--jobs %d' % count, run=work(count),
                        value=lambda seconds: 1e6 * seconds / images / blocks / T, unit='us a pass', base=count == 1,
                        note='%d blocks of %d images' % (blocks, images)) for count in (1, 2)]


# --- settings ----------------------------------------------------------------------------------------------

AS_SET = 'as mc_eval.py is set'
SETTINGS = (  # name, environment, images a batch
    (AS_SET, {}, None), ("OpenBLAS's oldest kernels", {'OPENBLAS_CORETYPE': 'Prescott'}, None),
    ('AVX2 kernels', {'OPENBLAS_CORETYPE': 'Haswell'}, None), ('two threads', {'OPENBLAS_NUM_THREADS': '2'}, None),
    ('batch of 1', {}, 1), ('batch of 5', {}, 5))


def settings(count: int, T: int, folder: str) -> List[Measurement]:
    """NIN passes of mc_eval.py as it is set, and with each of some settings changed."""
    @functools.lru_cache(maxsize=None)  # once for all rounds and settings
    def inputs():
        case, images = mc_ways.case('nin', 'cifar10', count, folder), os.path.join(folder, 'settings.npz')
        np.savez(images, images=case.pixels, labels=case.labels)
        return case.weights, images

    def run(environment, batch):
        (weights, images), out = inputs(), os.path.join(folder, 'settings')

        def evaluate(passes):
            shutil.rmtree(out, ignore_errors=True)
            return measuring.spent(measuring.tool('mc_eval.py', net='nin', weights=weights, data=images, T=passes,
                                                  repeats=1, jobs=1, batch=batch, out=out),
                                   dict(os.environ, **environment))
        return measuring.after_first(evaluate, T)

    def with_setting(name, environment, batch):
        return Measurement(part='settings', subject='cifar10/nin', T=T, way=name, run=lambda: run(environment, batch),
                           value=lambda seconds: 1e6 * seconds / count / T, unit='us a pass', base=name == AS_SET,
                           note='%d images in batches of %d' % (count, batch))

    return [with_setting(name, environment, batch or count) for name, environment, batch in SETTINGS]


# --- data ----------------------------------------------------------------------------------------------------

def data(count: int, folder: str) -> List[Measurement]:
    """Writing, copying and reading an LMDB of float images, and whitening raw ones."""
    raw = np.random.RandomState(0).randint(0, 256, (count, 3, 32, 32)).astype(np.uint8)
    images, labels = (raw - 127.5).astype(np.float32), np.arange(count) % 10
    lmdb, copy = os.path.join(folder, 'lmdb'), os.path.join(folder, 'copy')
    whitener = whiten.Whitener(np.zeros(3072), np.identity(3072, np.float32))

    def write():
        shutil.rmtree(lmdb, ignore_errors=True)
        return synced(lambda: records.write(lmdb, [(images, labels)], 5), os.path.join(lmdb, 'data.mdb'))

    def written():
        if not os.path.exists(os.path.join(lmdb, 'data.mdb')):  # where writing is not measured
            write()
        return lmdb

    def plain():
        source = os.path.join(written(), 'data.mdb')
        return synced(lambda: shutil.copyfile(source, copy), copy)

    def read():
        written()
        return measuring.clock(lambda: records.load(lmdb))

    def measurement(subject, way, run, work, note=''):
        return Measurement(part='data', subject=subject, T=None, way=way, run=run,
                           value=lambda seconds: 1e6 * seconds / count, unit='us', base=run is plain,
                           work=lambda: work, note='%d images%s' % (count, note))

    floats, size = 'LMDB of floats', images.nbytes
    return [measurement(floats, 'write, hash and sync', write, Work(bytes=size)),
            measurement(floats, 'plain copy, synced', plain, Work(bytes=2 * size)),
            measurement(floats, 'read', read, Work(bytes=size)),
            measurement('whitening', 'GCN and ZCA', lambda: measuring.clock(lambda: whitener.apply(raw)),
                        Work(flops=2.0 * 3072 ** 2 * count), ", float64, whose rate is half of sgemm's")]


def synced(action: Callable[[], Any], path: str) -> Spent:
    """What it takes until what an action writes to a path is on the disk."""
    def both():
        action()
        with open(path) as file:
            os.fsync(file.fileno())
    return measuring.clock(both)


# --- starting --------------------------------------------------------------------------------------------------

def startup(folder: str, gpu: Optional[int] = None) -> List[Measurement]:
    """From the shell to the first result: mc_eval.py, beside what importing the peers takes."""
    def ours():
        weights, images, out = (os.path.join(folder, name) for name in ('start.caffemodel', 'start.npz', 'start'))
        if not os.path.exists(images):
            engine.call(lambda: engine.load_net(nets.deploy('lenet_ip', 'mnist')).save(weights))
            np.savez(images, images=np.zeros((10, 1, 28, 28), np.uint8), labels=np.zeros(10, int))
        shutil.rmtree(out, ignore_errors=True)
        return measuring.spent(measuring.tool('mc_eval.py', net='lenet_ip', weights=weights, data=images, T=1,
                                              repeats=1, out=out, gpu=gpu))

    def theirs(module):
        def run():
            if not peers.python():
                raise UserError(peers.HOW)
            return measuring.spent([peers.python(), '-I', '-c', 'import ' + module], peers.clean())
        return run

    ways = (('mc_eval.py', ours, 'a whole evaluation: lenet_ip, 10 images, T=1'),
            ('PyTorch', theirs('torch'), 'its import alone'),
            ('baal', theirs('baal.modelwrapper'), 'its import alone'))
    return [Measurement(part='start-up', subject='', T=None, way=way, run=run, value=lambda seconds: seconds, unit='s',
                        base=run is ours, note=note) for way, run, note in ways]
