"""The files of prototxt/: every net and solver of the paper as text, written, or compared with what a folder has; and
pictures of the nets."""

import os
from collections import OrderedDict
from typing import Dict, List, Optional

from . import beyond, nets, solvers
from .engine import TRAIN, NetParameter
from .errors import UserError
from .prototxt import draw, rewriting
from .prototxt.reading import to_text
from .system import files, locks

MADE_BY = 'Made by tools/gen_prototxt.py: change bcnn/nets.py or bcnn/solvers.py, not this file.'
# Said in each solver file, because plain `caffe train` is how it is used without us.
CPU = 'CPU, because Caffe\'s default is GPU, on which a CPU build aborts; `caffe train --gpu 0` overrides it.'
FIXED = ('The companions (ip_svm1..3) keep their learning rate here. In DSN it also decays as\n'
         '(1 + 0.0001 iter)^-0.75, which no stock prototxt can say: bcnn.solvers.decay_companions adds it.')


# --- which files there are ------------------------------------------------------------------

def select(name: Optional[str] = None) -> List[nets.Net]:
    """The Nets that a user means: all, those of a net's name ('nin'), or one ('mnist_4/lenet_ip')."""
    if name is None:
        return list(nets.REGISTRY.values())
    dataset, _, net = name.rpartition('/')
    if dataset:
        return [nets.find(dataset, net)]
    if net not in nets.NETS:
        raise UserError('no net %r; there are: %s' % (net, nets.nearest_first(net, nets.NETS)))
    return [entry for entry in nets.REGISTRY.values() if entry.net == net]


def texts(name: Optional[str] = None) -> Dict[str, str]:
    """{path below prototxt/: text} of the nets that `name` selects."""
    text_of = OrderedDict()
    for entry in select(name):
        makers = [_training, _solvers] + ([_deploy] if entry.dataset == entry.base else [])
        for make in makers:
            for file, message, purpose in make(entry):
                header = '%s on %s: %s\n%s' % (entry.net, entry.dataset, purpose, MADE_BY)
                text_of['%s/%s/%s.prototxt' % (entry.dataset, entry.net, file)] = to_text(message, header)
    return text_of


def _training(entry):
    run = list(solvers.stages(entry.net, entry.dataset))
    if len(run) == 1:
        yield ('train_test', nets.train_test(entry.net, entry.dataset),
               'the net to train.\n' + _command(entry, run[0]))
        return
    yield ('train_test_stage1', nets.train_test(entry.net, entry.dataset, companions=True),
           'the net of training stage 1, with three companion losses.\n%s\n%s' % (_command(entry, run[0]), FIXED))
    yield ('train_test', nets.train_test(entry.net, entry.dataset),
           'the net of training stages 2 and 3.\n' + _command(entry, run[1]))


def _solvers(entry):
    run = solvers.stages(entry.net, entry.dataset)
    before = None
    for file, message in run.items():
        purpose = 'how it is trained%s.\n' % (', stage %s of 3' % file[-1] if len(run) > 1 else '')
        weights = '' if before is None else ' \\\n    --weights=%s_iter_%d.caffemodel' % (
            before.snapshot_prefix, before.max_iter)
        yield file, message, '%s%s\nsolver_mode: %s' % (purpose, _command(entry, file) + weights, CPU)
        before = message


def _command(entry, solver):
    return 'From the project\'s folder: caffe train --solver=prototxt/%s/%s/%s.prototxt' % (
        entry.dataset, entry.net, solver)


def _deploy(entry):
    images = 'images with values 0 to 255 times 1/256' if entry.data.scale else 'images after GCN and ZCA whitening'
    margins = '' if entry.loss is not nets.squared_hinge else ' of the margins `pool3`'
    feed = 'Input `data`: %s; output `prob`: the softmax%s.' % (images, margins)
    key = entry.net, entry.dataset
    yield 'deploy', nets.deploy(*key), 'Standard dropout, for testing.\n' + feed
    if not entry.where:
        return  # no dropout: Standard and MC are the same
    yield ('mc', nets.mc(*key), 'MC dropout: each pass samples (phase: TRAIN on the dropout layers).\n'
           '%s\nAverage it over passes.' % feed)
    T = beyond.of_net(entry.dataset, entry.net).T
    yield ('mc_replicate', rewriting.replicate(nets.mc(*key, batch=1), T),
           'MC dropout as in the paper\'s appendix, T=%d samples in a minibatch:\n'
           'one image, copied before the first dropout.\n%s\nAverage it over the rows.' % (T, feed))


# --- writing and comparing --------------------------------------------------------------------

def write(folder: str, name: Optional[str] = None) -> List[str]:
    """The paths that were missing or different and are written now."""
    text_of = texts(name)
    with files.folder(folder), locks.lock(os.path.join(folder, '.lock')):
        changed = [(path, text) for path, text in text_of.items() if _read(os.path.join(folder, path)) != text]
        for place in sorted(set(os.path.dirname(path) for path in text_of)):
            files.sweep_folder(os.path.join(folder, place))
        for path, text in changed:
            file = os.path.join(folder, path)
            with files.explained(file):
                os.makedirs(os.path.dirname(file), exist_ok=True)
            files.write_text(file, text)
    return [path for path, _ in changed]


def check(folder: str, name: Optional[str] = None) -> int:
    """The number of files compared; refuses a folder that differs from the code, and says where."""
    right = texts(name)
    wrong = ['%s %s' % (path, 'differs' if os.path.exists(os.path.join(folder, path)) else 'is missing')
             for path, text in right.items() if _read(os.path.join(folder, path)) != text]
    if name is None:
        wrong += ['%s is not made by the code' % path for path in _present(folder) if path not in right]
    if wrong:
        more = ' and %d more' % (len(wrong) - 3) if len(wrong) > 3 else ''
        raise UserError('%s: %s%s; run tools/gen_prototxt.py' % (folder, ', '.join(wrong[:3]), more))
    return len(right)


def _read(path):
    try:
        with open(path, encoding='utf-8', newline='') as file:
            return file.read()
    except (FileNotFoundError, UnicodeDecodeError):
        return None


def _present(folder):
    return sorted(os.path.relpath(os.path.join(where, file), folder).replace(os.sep, '/')
                  for where, _, names in os.walk(folder) for file in names if file.endswith('.prototxt'))


# --- pictures -----------------------------------------------------------------------------------

def picture(name: Optional[str], path: str) -> None:
    """Write a picture of the net that `name` means ('cifar10/nin') to a file."""
    if name is None:
        raise UserError('which net to draw? for example --net cifar10/nin')
    entries = [entry for entry in select(name) if '/' in name or entry.dataset == entry.base]
    if len(entries) > 1:
        raise UserError('%s is a net of several data sets: name one, for example --net %s/%s'
                        % (name, entries[0].dataset, name))
    stage = ', training stage 1' if entries[0].body is nets.dsn else ''
    draw.save(_drawable(entries[0]), '%s on %s%s' % (entries[0].net, entries[0].dataset, stage), path)


def _drawable(entry: nets.Net) -> NetParameter:
    """The message to draw: the MC net, with DSN's companions, or the deploy net where nothing samples."""
    if entry.body is not nets.dsn:
        return (nets.mc if entry.where else nets.deploy)(entry.net, entry.dataset, batch=1)
    net = nets.fed(entry.net, entry.dataset, batch=1, companions=True)
    for layer in net.layer:
        if layer.type == 'Dropout':
            layer.phase = TRAIN
    return net
