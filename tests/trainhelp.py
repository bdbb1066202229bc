"""Small data sets of real images, and training runs on them, for the tests of the driver."""

import json
import multiprocessing
import os
import signal
import sys
import time

import numpy as np

import datahelp
from bcnn import train
from bcnn.data import idx, records, sets

TRAIN, TEST = 640, 200  # images: at batch 64 the data layer is back at its first after 10 iterations


def mnist(split, count):
    """The first images and labels of real MNIST: of the prepared set, or of its source files."""
    if sets.manifest('mnist'):
        return records.load(os.path.join(sets.DATA, 'mnist', split + '_lmdb'), 0, count)
    files, name = datahelp.real('mnist'), 'train' if split == 'train' else 't10k'
    return (idx.images(files[name + '-images-idx3-ubyte'], name)[:count].reshape(-1, 1, 28, 28),
            idx.labels(files[name + '-labels-idx1-ubyte'], name)[:count].astype(np.int64))


def padded(images, size, scale):
    """Bytes of digits as float images of three channels with zeros around them."""
    wide = np.zeros((len(images), 3, size, size), np.float32)
    start = (size - 28) // 2
    wide[:, :, start:start + 28, start:start + 28] = images * np.float32(scale)
    return wide


def make_set(data, name, **splits):
    """A prepared set in the folder `data`, of split=(images, labels)."""
    folder, facts = os.path.join(str(data), name), {}
    for split, (images, labels) in splits.items():
        os.makedirs(os.path.join(folder, split + '_lmdb'))
        facts[split] = records.write(os.path.join(folder, split + '_lmdb'), [(images, labels)], 8)
    paths = [split + '_lmdb/data.mdb' for split in splits]
    sizes = {path: os.path.getsize(os.path.join(folder, path)) for path in paths}
    with open(os.path.join(folder, sets.MANIFEST), 'w') as file:
        json.dump({'format': sets.FORMAT, 'set': name, 'settings': sets.SETS[name].settings, 'files': sizes,
                   'splits': facts, 'sha256': '', 'source': 'a test'}, file)


def make_data(data):
    """A folder with small sets: mnist, and digits in the shapes of cifar10 and cifar10_pad4."""
    (images, labels), (test, test_labels) = mnist('train', TRAIN), mnist('test', TEST)
    make_set(data, 'mnist', train=(images, labels), test=(test, test_labels))
    for name, size in (('cifar10', 32), ('cifar10_pad4', 40)):
        make_set(data, name, train=(padded(images[:20], size, 1 / 128.0), labels[:20]),
                 test=(padded(test[:10], size, 1 / 128.0), test_labels[:10]))
    raw = padded(test[:10], 32, 1).astype(np.uint8)
    make_set(data, 'cifar10_raw', train=(raw, test_labels[:10]), test=(raw, test_labels[:10]))
    return str(data)


def make_subset(data, divisor):
    """A small set in the place of a fraction of MNIST, whose test images are those of the whole."""
    images, labels = mnist('train', TRAIN)
    make_set(data, 'mnist_%d' % divisor, train=(images[::divisor], labels[::divisor]))


def task(data, net, batch=None, **options):
    """The Task of a net on small data, with its training batch made smaller."""
    made = train.of_paper(net, data=data, **options)
    for stage in made.stages if batch else ():
        for layer in stage.net.layer:
            if layer.type == 'Data':
                layer.data_param.batch_size = batch
    return made


def settings(seed=1, iterations=(60,), points='20,50', T=3, gpu=None, jobs=1, snapshot_every=7):
    return train.Settings(seed, iterations, points, T, gpu, jobs, snapshot_every)


def start(task, how, folder):
    """A process that trains; its output goes nowhere."""
    def target():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdout = sys.stderr = open(os.devnull, 'w')
        os._exit(train.run(task, how, str(folder)))

    process = multiprocessing.get_context('fork').Process(target=target)
    process.start()
    return process


def kill_until(kills, begin, folders, random, most):
    """Kills runs at random moments until there were so many kills, then lets them end; gives the folders used.

    begin(folder) starts a process. A run that ends before enough kills is followed by one in the next folder.
    """
    used = [next(folders)]
    while kills:
        process = begin(used[-1])
        process.join(random.uniform(0, most))
        if process.exitcode is None:
            os.kill(process.pid, signal.SIGKILL)
            kills -= 1
        elif process.exitcode == 0:
            used.append(next(folders))
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
    for folder in used:
        process = begin(folder)
        process.join()
        assert process.exitcode == 0
    return used


def result(folder):
    """What must not depend on interruptions: the bytes of the final weights and of the curve."""
    found = {}
    for name in ('final.caffemodel', 'curve.csv'):
        with open(os.path.join(str(folder), name), 'rb') as file:
            found[name] = file.read()
    return found


def wait_for(condition, seconds=60):
    deadline = time.time() + seconds
    while not condition():
        assert time.time() < deadline, 'waited %s s in vain' % seconds
        time.sleep(0.01)
