"""A training step for the benchmark: our driver, `caffe train` and PyTorch; same net, batch and solver, one thread.

The two that are commands are measured for 1 and for 1 + n iterations, and the difference is what
counts: the start of a process does not. They read the prepared data; PyTorch has one batch in
memory, which spares it that.
"""

import os
import shutil
from typing import Dict, List, Optional, Sequence, Tuple

from .. import engine, nets, solvers
from ..data import sets
from ..errors import UserError
from ..prototxt import reading
from ..system import places
from . import mc_ways, measuring, pass_work
from .measuring import Measurement, Spent, Work
from .peers import Peer

# The nets that all three are measured on; the driver alone on the others.
COMPARED = (('mnist', 'lenet_all'), ('mnist', 'lenet_ip'), ('mnist', 'lenet_none'), ('cifar10', 'lenet_all'),
            ('cifar10', 'nin'))


def measurements(iterations: Dict[Tuple[str, str], int], peer: Peer, folder: str,
                 gpu: Optional[int] = None) -> List[Measurement]:
    """The measurements; iterations: {(data set, net): how many}."""
    return [measurement for (dataset, name), steps in iterations.items() for measurement in Training(
        dataset, name, steps, peer, os.path.join(folder, 'train-%s-%s' % (dataset, name)), gpu).measurements()]


class Training:
    """A net to train for `steps` iterations, three ways; each gives what it took."""

    def __init__(self, dataset: str, name: str, steps: int, peer: Optional[Peer], folder: str,
                 gpu: Optional[int] = None):
        self.dataset, self.name, self.steps, self.peer, self.folder = dataset, name, steps, peer, folder
        self.gpu = gpu
        self.entry = nets.find(dataset, name)

    def measurements(self) -> List[Measurement]:
        """Each way that this net is trained."""
        ways = [('driver', self.driver)]
        if (self.dataset, self.name) in COMPARED:
            ways += [('caffe train', self.caffe), ('PyTorch', self.torch),
                     ('PyTorch, channels_last', lambda: self.torch(channels_last=True))]
        return [Measurement(part='training', subject='%s/%s' % (self.dataset, self.name), T=None, way=way, run=run,
                            value=self.milliseconds, unit='ms', base=way == 'driver', work=self.work,
                            note=self.note(way)) for way, run in ways]

    def milliseconds(self, seconds: float) -> float:
        """Of one iteration."""
        return 1e3 * seconds / self.steps

    def note(self, way: str) -> str:
        """What is measured, for the table."""
        stage = ', stage 1 with companions' if self.name.startswith('dsn') else ''
        data = ', one batch in memory' if way.startswith('PyTorch') else ''
        return 'batch %d, %d iterations%s%s' % (self.entry.batch, self.steps, stage, data)

    def driver(self) -> Spent:
        """What tools/train.py takes for the iterations."""
        sets.require(self.entry.data.train.split('/')[1])
        out = os.path.join(self.folder, 'run')
        return measuring.after_first(lambda n: self._driver(n, out), self.steps)

    def caffe(self) -> Spent:
        """What `caffe train` takes for them, with the solver that the driver wrote."""
        sets.require(self.entry.data.train.split('/')[1])
        out = os.path.join(self.folder, 'solver')
        if not os.path.exists(out):
            self._driver(1, out)
        options = [] if self.gpu is None else ['--gpu=%d' % self.gpu]
        return measuring.after_first(lambda n: _caffe(os.path.join(out, 'solver.prototxt'), n, self.folder, options),
                                     self.steps)

    def torch(self, channels_last: bool = False) -> Spent:
        """What PyTorch takes for them; it must learn, that is its loss be a number and change."""
        solver = next(iter(solvers.stages(self.name, self.dataset).values()))
        self._tell()
        answer = self.peer.ask('train', net=self.title, steps=self.steps, batch=self.entry.batch, lr=solver.base_lr,
                               momentum=solver.momentum, decay=solver.weight_decay, channels_last=channels_last)
        losses = answer.pop('losses')
        if not all(0 <= loss < 100 for loss in losses) or len(set(losses)) < min(2, len(losses)):
            raise UserError('not comparable: the loss went %s' % ', '.join('%g' % loss for loss in losses[:5]))
        return Spent(**answer)

    @property
    def title(self) -> str:
        """What the peers know it by."""
        return 'train/%s/%s' % (self.dataset, self.name)

    def _tell(self):
        if self.title in self.peer.loaded:
            return
        os.makedirs(self.folder, exist_ok=True)
        case = mc_ways.case(self.name, self.dataset, self.entry.batch, self.folder, trained=False)
        self.peer.load(self.title, case.arrays, mc_ways.layers(self.name, self.dataset))

    def _driver(self, iterations, out):
        shutil.rmtree(out, ignore_errors=True)
        staged = '%d,1,1' % iterations if self.name.startswith('dsn') else iterations
        command = measuring.tool('train.py', net=self.name, dataset=self.dataset, iters=staged, eval_points='none',
                                 threads=1, out=out, gpu=self.gpu)
        return measuring.spent(command + (['--cpu'] if self.gpu is None else []))

    def work(self) -> Work:
        """The operations of the iterations: each product of a forward pass has two more going back, but for the
        gradient of the images, which nobody wants."""
        def child():
            net = engine.load_net(nets.deploy(self.name, self.dataset, batch=self.entry.batch))
            layers = [k for k, layer in enumerate(net.layers) if layer.type in ('Convolution', 'InnerProduct')]
            first = pass_work.of_layers(net, 0, layers[0] + 1).flops
            return 3 * pass_work.of_layers(net, 0, len(net.layers)).flops - first
        return Work(flops=self.steps * engine.call(child))


def _caffe(path: str, iterations: int, folder: str, options: Sequence[str]) -> Spent:
    with open(path) as file:
        solver = reading.parse(file.read(), engine.caffe_pb2.SolverParameter())
    solver.max_iter, solver.snapshot_after_train = iterations, True  # the driver stores its weights too
    solver.snapshot_prefix = os.path.join(folder, 'caffe')
    copy = os.path.join(folder, 'caffe.prototxt')
    with open(copy, 'w') as file:
        file.write(reading.to_text(solver))
    return measuring.spent([caffe_command(), 'train', '--solver=' + copy] + list(options))


def caffe_command() -> str:
    """The `caffe` command that belongs to this Python: the prefix's, or the one on PATH."""
    for place in (os.path.join(os.environ.get('CAFFE_PREFIX', os.path.join(places.ROOT, '.caffe')), 'bin'), None):
        found = shutil.which('caffe', path=place)
        if found:
            return found
    raise UserError('no caffe command: run tools/setup.sh')
