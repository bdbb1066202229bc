"""What one device has to show: for a net of the paper, with given weights, everything that is compared, as numbers.

A side runs in a process of its own, because a process has one device. Nothing here knows the other side,
and nothing is judged (that is bcnn.devices.verdicts).
"""

import os
from collections import OrderedDict
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from .. import beyond, engine, nets, seeds, solvers
from ..mc import forward
from ..prototxt import facts, rewriting
from ..training import snapshots

BATCH = 4    # images of a training step
STEPS = 10   # of the solver
IMAGES = 2   # of those that are sampled
PASSES = 100
SEED = 1
LABELS = 10
Case = Tuple[str, str]  # data set, net
SPREAD = {'mnist': 0.3, 'cifar10': 0.2}  # standard deviation of the pixels, about


def cases() -> List[Case]:
    """(data set, net) of every net of the paper, one of each architecture and loss."""
    return [(entry.dataset, entry.net) for entry in nets.REGISTRY.values()
            if entry.dataset in ('mnist', 'cifar10') and entry.net not in beyond.VARIATIONS]


def make_weights(case: Case, path: str) -> None:
    """Writes weights for a net, the same on every machine, and such that the signal keeps its size from layer to layer.

    With the nets' own fillers some begin nearly silent (NIN), so that rounding is a large part of their gradients.
    """
    engine.use_device(None)
    net = engine.load_net(training_net(case), phase=engine.TRAIN)
    rng = np.random.RandomState(SEED)
    for weights, biases in net.params.values():
        inputs = weights.count / weights.shape[0]
        weights.data[...] = rng.standard_normal(weights.data.shape) * np.sqrt(2 / inputs)
        biases.data[...] = rng.standard_normal(biases.data.shape) * 0.01
    net.save(path)


def training_net(case: Case) -> engine.NetParameter:
    """The net that is trained, fed by hand; its dropout does nothing, so that devices can agree."""
    dataset, net = case
    message = nets.fed(net, dataset, BATCH, companions=net.startswith('dsn'))
    for layer in message.layer:
        if layer.type == 'Dropout':
            layer.phase = engine.TEST
    return message


def training_images(case: Case, step: int) -> Tuple[np.ndarray, np.ndarray]:
    """(images, labels) of a step, the same on every machine."""
    return noise(case, BATCH, step), np.random.RandomState(step).randint(LABELS, size=BATCH)


def noise(case: Case, count: int, seed: int) -> np.ndarray:
    """Images about as bright as those that the net is made for: with brighter ones training runs away."""
    shape = [count] + list(nets.find(*case).data.shape)
    return (SPREAD[case[0]] * np.random.RandomState(seed).standard_normal(shape)).astype(np.float32)


class Side:
    """A device at work on one net. The methods are what a wrong device would do otherwise (see the tests)."""

    def __init__(self, gpu: Optional[int] = None):
        self.gpu = gpu

    def __call__(self, case, weights, folder):
        """All that a device which is checked has to show for a net; `folder` is for its snapshots."""
        shown = self.compared(case, weights, folder)
        shown['resumed'] = self.resumed(case, weights, folder)
        if nets.find(*case).where:
            shown['masks'] = self.masks(case, weights)
            shown.update(self.other_ways(case, weights))
        return shown

    def compared(self, case: Case, weights: str, folder: str) -> Dict[str, Any]:
        """What is compared with another device: all that the CPU beside it has to show."""
        engine.use_device(self.gpu)
        shown = OrderedDict(self.one_pass(case, weights))
        shown['steps'] = self.steps(case, weights, folder)
        if nets.find(*case).where:
            shown['stream'] = self.passes(case, weights)
        return shown

    def load(self, message: engine.NetParameter, weights: str, phase: int = engine.TEST) -> engine.CaffeNet:
        return engine.load_net(message, weights, phase, extra_weights=True)

    def seed(self, number: int) -> None:
        seeds.use_seed(SEED, number)

    # --- training

    def one_pass(self, case: Case, weights: str) -> List[Tuple[str, Dict[str, np.ndarray]]]:
        """Scores, losses and the gradients of one pass forward and backward."""
        net = self.load(training_net(case), weights, engine.TRAIN)
        feed(net, case, 0)
        net.forward()
        net.backward()
        outputs = [np.array(net.blobs[name].data).ravel() for name in net.outputs + [scores_of(case)]]
        return [('forward', {'outputs': np.concatenate(outputs)}), ('gradients', parameters(net, 'diff'))]

    def steps(self, case: Case, weights: str, folder: str) -> Dict[str, np.ndarray]:
        """What ten steps of the paper's solver change, with a snapshot half way."""
        solver = self.solver(case, weights, folder)
        before = parameters(solver.net)
        self.train(solver, case, 0, STEPS // 2)
        snapshots.write(folder, 1, solver, [])
        self.train(solver, case, STEPS // 2, STEPS)
        return changes(solver, before)

    def resumed(self, case: Case, weights: str, folder: str) -> Dict[str, np.ndarray]:
        """The same, gone on from that snapshot."""
        solver = self.solver(case, weights, folder)
        before = parameters(solver.net)
        snapshots.restore(solver, snapshots.newest(folder))
        self.train(solver, case, STEPS // 2, STEPS)
        return changes(solver, before)

    def solver(self, case: Case, weights: str, folder: str) -> engine.CaffeSolver:
        dataset, net = case
        message = next(iter(solvers.stages(net, dataset).values()))
        for field in ('net', 'test_iter', 'test_interval', 'display', 'snapshot'):
            message.ClearField(field)
        message.net_param.CopyFrom(training_net(case))
        message.snapshot_prefix = os.path.join(folder, snapshots.PREFIX)
        message.random_seed = SEED
        solver = engine.load_solver(message)
        solver.net.copy_from(weights)
        if net.startswith('dsn'):
            solvers.decay_companions(solver, message)
        return solver

    def train(self, solver: engine.CaffeSolver, case: Case, start: int, stop: int) -> None:
        for step in range(start, stop):
            feed(solver.net, case, step)
            solver.step(1)

    # --- sampling

    def masks(self, case: Case, weights: str) -> Dict[str, np.ndarray]:
        """What each dropout layer kept, of one image in all rows: {layer: passes x rows x values}.

        Two passes of a seed, the first of them again, one of another seed. 1: kept, 0: dropped, -1: nothing to be
        seen, as the input was 0; 2: neither 0 nor the input times 1 / (1 - p).
        """
        message = nets.mc(case[1], case[0], batch=2)
        net = self.load(message, weights)
        image = noise(case, 1, 99)
        seen = {name: [] for name in facts.dropouts(message)}
        for seed, passes in ((1, 2), (1, 1), (2, 1)):
            self.seed(seed)
            for _ in self.stream(net, forward.wiring_of(message, net), np.repeat(image, 2, axis=0), passes):
                for layer in message.layer:
                    if layer.name in seen:
                        seen[layer.name].append(kept(net, layer))
        return {name: np.array(states) for name, states in seen.items()}

    def passes(self, case: Case, weights: str) -> np.ndarray:
        """Class probabilities of T passes: passes x images x classes."""
        message, net, images = self.sampling(case, weights)
        self.seed(3)
        passes = self.stream(net, forward.wiring_of(message, net), images, PASSES)
        return np.array([np.array(probs) for probs, _ in passes])

    def other_ways(self, case: Case, weights: str) -> List[Tuple[str, np.ndarray]]:
        """The same with copies of each image; and one pass from the input and from the first dropout on."""
        message, net, images = self.sampling(case, weights)
        copying = rewriting.replicate(message, PASSES)
        self.seed(4)
        copied = self.load(copying, weights)
        passes = forward.replicate(copied, forward.wiring_of(copying, copied), images, PASSES)
        replicated = np.array([probs for probs, _ in passes])
        wiring = forward.wiring_of(message, net)
        self.seed(5)
        whole = forward.standard(net, wiring, images)[0]
        self.seed(5)
        (later, _), = self.stream(net, wiring, images, 1)
        return [('replicate', replicated), ('whole', whole), ('later', np.array(later))]

    def sampling(self, case: Case, weights: str) -> Tuple[engine.NetParameter, engine.CaffeNet, np.ndarray]:
        """(net, the same in Caffe, images) of what is sampled."""
        message = nets.mc(case[1], case[0], batch=IMAGES)
        return message, self.load(message, weights), noise(case, IMAGES, 99)

    def stream(self, net: engine.CaffeNet, wiring: forward.Wiring, images: np.ndarray,
               T: int) -> Iterator[forward.Pass]:
        return forward.stream(net, wiring, images, T)


def feed(net: engine.CaffeNet, case: Case, step: int) -> None:
    for name, values in zip(('data', 'label'), training_images(case, step)):
        net.blobs[name].data[...] = values


def scores_of(case: Case) -> str:
    return facts.score_blob(nets.deploy(case[1], case[0]))


def parameters(net: engine.CaffeNet, what: str = 'data') -> Dict[str, np.ndarray]:
    """Copies of all weights, or of their gradients: {'conv1 weights': array}."""
    return {'%s %s' % (name, kind): np.array(getattr(blob, what))
            for name, blobs in net.params.items() for kind, blob in zip(('weights', 'biases'), blobs)}


def changes(solver: engine.CaffeSolver, before: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
    """What a solver has changed of the weights."""
    return {key: value - before[key] for key, value in parameters(solver.net).items()}


def kept(net: engine.CaffeNet, layer: engine.LayerParameter) -> np.ndarray:
    """What a dropout layer did to each value; see Side.masks."""
    bottom, top = (np.array(net.blobs[name].data) for name in (layer.bottom[0], layer.top[0]))
    scale = np.float32(1 / (1 - layer.dropout_param.dropout_ratio))
    states = np.where(top == 0, 0, np.where(top == bottom * scale, 1, 2))
    return np.where((bottom == 0) & (top == 0), -1, states).astype(np.int8).reshape(len(top), -1)
