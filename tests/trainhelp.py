"""Small data sets of real images, and training runs on them, for the tests of the driver."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import datahelp
from bcnn import engine
from bcnn.data import idx, records, sets
from bcnn.errors import UserError
from bcnn.mc import evaluation
from bcnn.training import driver, trainees

TRAIN, TEST = 640, 200  # images: at batch 64 the data layer is back at its first after 10 iterations


def mnist(split, count):
    """The first images and labels of real MNIST, of the prepared set or of its source files; or digits like them.

    Most tests ask how a net is trained and evaluated, not how well: where MNIST is out of reach they run all the same.
    """
    if sets.manifest('mnist'):
        return records.load(os.path.join(sets.DATA, 'mnist', split + '_lmdb'), 0, count)
    try:
        files, name = datahelp.fetched('mnist'), 'train' if split == 'train' else 't10k'
    except UserError:
        return drawn(count, seed=split == 'train')
    return (idx.images(files[name + '-images-idx3-ubyte'], name)[:count].reshape(-1, 1, 28, 28),
            idx.labels(files[name + '-labels-idx1-ubyte'], name)[:count].astype(np.int64))


def drawn(count, seed):
    """Images and labels of digits in a font, each moved, turned and sized at random."""
    random, images = np.random.RandomState(seed), np.zeros((count, 1, 28, 28), np.uint8)
    labels = random.randint(0, 10, count).astype(np.int64)
    path = os.path.join(matplotlib.get_data_path(), 'fonts', 'ttf', 'DejaVuSans.ttf')
    fonts = {size: ImageFont.truetype(path, size) for size in range(18, 25)}
    for image, label in zip(images, labels):
        canvas = Image.new('L', (28, 28))
        place = random.randint(4, 10), random.randint(-1, 5)
        ImageDraw.Draw(canvas).text(place, str(label), fill=255, font=fonts[random.randint(18, 25)])
        image[0] = np.array(canvas.rotate(random.uniform(-15, 15)))
    return images, labels


def solver_at(iteration, message, folder):
    """A new solver of a message that has this iteration and no momentum yet: Caffe takes both from a snapshot."""
    message.snapshot_prefix = str(folder / 'begun')
    solver = engine.load_solver(message)
    solver.snapshot()
    path = str(folder / 'begun_iter_0.solverstate')
    state = engine.caffe_pb2.SolverState()
    with open(path, 'rb') as file:
        state.ParseFromString(file.read())
    state.iter = iteration
    with open(path, 'wb') as file:
        file.write(state.SerializeToString())
    solver.restore(path)
    return solver


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


def make_data(data, tested=TEST, tested_in_colour=10):
    """A folder with small sets: mnist, and digits in the shapes of cifar10 and cifar10_pad4; so many test images each."""
    (images, labels), (test, test_labels) = mnist('train', TRAIN), mnist('test', tested)
    make_set(data, 'mnist', train=(images, labels), test=(test, test_labels))
    for name, size in (('cifar10', 32), ('cifar10_pad4', 40)):
        make_set(data, name, train=(padded(images[:20], size, 1 / 128.0), labels[:20]),
                 test=(padded(test[:tested_in_colour], size, 1 / 128.0), test_labels[:tested_in_colour]))
    raw = padded(test[:10], 32, 1).astype(np.uint8)
    make_set(data, 'cifar10_raw', train=(raw, test_labels[:10]), test=(raw, test_labels[:10]))
    return str(data)


def make_subset(data, divisor):
    """A small set in the place of a fraction of MNIST, whose test images are those of the whole."""
    images, labels = mnist('train', TRAIN)
    make_set(data, 'mnist_%d' % divisor, train=(images[::divisor], labels[::divisor]))


def trainee(data, net, batch=None, **options):
    """The Task of a net on small data, with its training batch made smaller."""
    made = trainees.of_paper(net, data=data, **options)
    for stage in made.stages if batch else ():
        for layer in stage.net.layer:
            if layer.type == 'Data':
                layer.data_param.batch_size = batch
    return made


def settings(seed=1, iterations=(60,), points='20,50', T=3, gpu=None, jobs=1, snapshot_every=7, streams=None,
             rule=None):
    return driver.Settings(seed=seed, iterations=iterations, points=points, T=T, gpu=gpu, jobs=jobs,
                           snapshot_every=snapshot_every, streams=streams, rule=rule)


def command(name, *words):
    """What a tool prints; it has to succeed."""
    done = subprocess.run([sys.executable, os.path.join(datahelp.ROOT, 'tools', name)] + [str(word) for word in words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def make_recorded(place, net='lenet_ip'):
    """Fills a folder with data, runs/mnist-<net>-seed1 with an evaluation in mc/, and results; gives the run."""
    data = make_data(place / 'data')
    folder = place / 'runs' / ('mnist-%s-seed1' % net)
    command('train.py', '--net', net, '--cpu', '--data', data, '--out', folder, '--iters', 20, '--T', 2, '--eval-points',
            '10,20', '--snapshot-every', 10, '--jobs', 1)
    command('mc_eval.py', '--net', net, '--weights', folder / 'final.caffemodel', '--data', place / 'data' / 'mnist' /
            'test_lmdb', *([] if net == 'lenet_none' else ['--T', 4, '--repeats', 2]) + [
                '--batch', 50, '--jobs', 1, '--out', folder / 'mc' / 'here'])
    command('record.py', place / 'runs', '--results', place / 'results', '--data', data)
    config = json.loads((folder / 'mc' / 'here' / 'config.json').read_text())
    os.rename(str(folder / 'mc' / 'here'), str(folder / 'mc' / evaluation.name_of(config)))
    return folder


def make_clone(folder, weights, results, data):
    """The project as somebody gets it who has trained nothing: code, weights, results; and prepared data."""
    for name in ('bcnn', 'tools', 'prototxt'):
        shutil.copytree(os.path.join(datahelp.ROOT, name), str(folder / name), ignore=shutil.ignore_patterns('__pycache__'))
    shutil.copytree(str(weights), str(folder / 'weights'))
    shutil.copytree(str(results), str(folder / 'analysis' / 'results'))
    os.symlink(str(data), str(folder / 'data'))
    (folder / 'runs').mkdir()
    return folder


def typed(clone, *words):
    """What comes of a command line in a clone: exit code, stdout, stderr."""
    prefix = os.environ.get('CAFFE_PREFIX') or os.path.join(datahelp.ROOT, '.caffe')
    return subprocess.run(['python3'] + [str(word) for word in words], cwd=str(clone), universal_newlines=True,
                          env=dict(os.environ, CAFFE_PREFIX=prefix), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def start(trainee, how, folder):
    """A process that trains; its output goes nowhere."""
    def target():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdout = sys.stderr = open(os.devnull, 'w')
        os._exit(driver.run(trainee, how, str(folder)))

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
