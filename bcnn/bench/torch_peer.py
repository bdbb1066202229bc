"""The other side of the benchmark: PyTorch, baal and torch-uncertainty, run by bcnn.bench.peers in their own Python.

Not for importing: it is started with the Python of the private venv, and knows nothing of this
package. One JSON object a line comes in on stdin, one goes out on stdout. A net comes as a chain of
Caffe layers with the weights in an .npz file, and is built here of torch's modules; one thread.
"""

import copy
import glob
import importlib.util
import json
import os
import sys
import time
from statistics import median
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
torch.set_num_interop_threads(1)
DEVICE = torch.device(os.environ.get('BCNN_PEER_DEVICE', 'cpu'))
Arrays = Dict[str, np.ndarray]
Way = Callable[[torch.Tensor], torch.Tensor]


# --- nets --------------------------------------------------------------------------------------

def build(layers: List[Dict[str, Any]], arrays: Arrays) -> nn.Sequential:
    """The chain of Caffe layers up to the scores, as torch's modules with these weights."""
    modules, flat = [], False
    for layer in layers:
        if layer['type'] == 'InnerProduct' and not flat:
            modules.append(nn.Flatten())  # Caffe's order: channel, row, column, the same as torch's
            flat = True
        modules.append(module(layer, arrays))
    if not flat:
        modules.append(nn.Flatten())
    return nn.Sequential(*modules)


def module(layer: Dict[str, Any], arrays: Arrays) -> nn.Module:
    """One Caffe layer in torch. Caffe's pooling rounds up, and its averages divide by the part inside the image."""
    kind, name = layer['type'], layer['name']
    if kind == 'Convolution':
        weights = arrays[name + '/0']
        made = nn.Conv2d(weights.shape[1], weights.shape[0], layer['kernel'], layer['stride'], layer['pad'])
    elif kind == 'InnerProduct':
        weights = arrays[name + '/0']
        made = nn.Linear(weights.shape[1], weights.shape[0])
    elif kind == 'Pooling' and layer['pool'] == 'MAX':
        return nn.MaxPool2d(layer['kernel'], layer['stride'], layer['pad'], ceil_mode=True)
    elif kind == 'Pooling':
        return nn.AvgPool2d(layer['kernel'], layer['stride'], layer['pad'], ceil_mode=True)
    elif kind in ('ReLU', 'Dropout'):
        return nn.ReLU() if kind == 'ReLU' else nn.Dropout(layer['ratio'])
    else:
        raise ValueError('no %s in torch here' % kind)
    with torch.no_grad():
        made.weight.copy_(torch.from_numpy(arrays[name + '/0']))
        made.bias.copy_(torch.from_numpy(arrays[name + '/1']))
    return made


# --- MC dropout, six ways ------------------------------------------------------------------------
# Each is a function from a batch of images to T rows of scores for each: T x images x classes.

def with_torch(net: nn.Sequential, T: int, batch: int) -> Way:
    """A loop over full passes, with the dropout modules in training mode."""
    sampling(net)
    return lambda images: torch.stack([net(images) for _ in range(T)])


def sampling(net: nn.Sequential) -> nn.Sequential:
    """The net, of which only the dropout modules are in training mode."""
    net.eval()
    for part in net.modules():
        if isinstance(part, nn.Dropout):
            part.train()
    return net


class Tuned:
    """What a careful user does: all before the first dropout once, and the fastest settings for the rest."""

    SETTINGS = ((), ('channels_last',), ('compile',), ('channels_last', 'compile'))
    TRIES, PASSES = 3, 5

    def __init__(self, net: nn.Sequential, T: int, _batch: int):
        self.T, self.net, self.note = T, sampling(net), ''

    def begin(self, images: torch.Tensor) -> None:
        """Finds the fastest settings, on these images."""
        tried = []
        for settings in self.SETTINGS:
            try:
                parts = self._parts(settings)
                tried.append((self._seconds(parts, settings, images), settings, parts))
            except Exception as error:  # no compiler, for one: the others are left
                print('%s: %s' % (settings, error), file=sys.stderr)
        _, self.settings, self.parts = min(tried, key=lambda trial: trial[0])
        self.note = ', '.join(('prefix once',) + self.settings)

    def _parts(self, settings):
        """(what lies before the first dropout, the rest) with these settings."""
        modules = list(self.net)
        first = next(k for k, part in enumerate(modules) if isinstance(part, nn.Dropout))
        layout = torch.channels_last if 'channels_last' in settings else torch.contiguous_format
        parts = [sampling(nn.Sequential(*copy.deepcopy(some))).to(memory_format=layout)
                 for some in (modules[:first], modules[first:])]
        return [torch.compile(part) for part in parts] if 'compile' in settings else parts

    def _seconds(self, parts, settings, images):
        times = []
        for _ in range(self.TRIES + 1):  # the first of them compiles
            start = time.time()
            float(self._passes(parts, settings, images, self.PASSES)[-1, -1, -1])  # which waits for all of it
            times.append(time.time() - start)
        return min(times[1:])

    @staticmethod
    def _passes(parts, settings, images, T):
        if 'channels_last' in settings:
            images = images.to(memory_format=torch.channels_last)
        once = parts[0](images)
        return torch.stack([parts[1](once) for _ in range(T)])

    def __call__(self, images):
        return self._passes(self.parts, self.settings, images, self.T)


def with_baal(net: nn.Sequential, T: int, batch: int, in_memory: bool) -> Way:
    from baal.bayesian.dropout import MCDropoutModule
    from baal.modelwrapper import ModelWrapper, TrainingArgs
    arguments = TrainingArgs(use_cuda=DEVICE.type == 'cuda', workers=0, batch_size=batch, replicate_in_memory=in_memory)
    wrapper = ModelWrapper(MCDropoutModule(net), arguments)
    wrapper.eval()
    return lambda images: wrapper.predict_on_batch(images, iterations=T).permute(2, 0, 1)


def with_torch_uncertainty(net: nn.Sequential, T: int, batch: int, in_memory: bool) -> Way:
    wrapper = torch_uncertainty().mc_dropout(net, num_estimators=T, on_batch=in_memory)
    wrapper.eval()
    return lambda images: wrapper(images).reshape(T, len(images), -1)


def torch_uncertainty() -> ModuleType:
    """torch-uncertainty's module of MC dropout, loaded alone: the package wants torchvision, lightning and timm."""
    found = importlib.util.find_spec('torch_uncertainty')
    if found is None:
        raise ImportError('torch-uncertainty is not installed')
    path = os.path.join(os.path.dirname(found.origin), 'methods', 'mc_dropout.py')
    spec = importlib.util.spec_from_file_location('torch_uncertainty_mc_dropout', path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


WAYS = {
    'PyTorch': with_torch,
    'PyTorch, tuned': Tuned,
    'baal': lambda net, T, batch: with_baal(net, T, batch, True),
    'baal, loop': lambda net, T, batch: with_baal(net, T, batch, False),
    'torch-uncertainty': lambda net, T, batch: with_torch_uncertainty(net, T, batch, True),
    'torch-uncertainty, loop': lambda net, T, batch: with_torch_uncertainty(net, T, batch, False),
}


def now() -> Dict[str, float]:
    return {'wall': time.time(), 'cpu': time.process_time()}


def since(start: Dict[str, float]) -> Dict[str, float]:
    """Seconds that have passed: by the clock, and of this process."""
    return {clock: value - start[clock] for clock, value in now().items()}


# --- what can be asked -----------------------------------------------------------------------------

class Side:
    """The nets that are loaded, by name, and the answers."""

    def __init__(self):
        self.files, self.tuned = {}, {}

    def load(self, net: str, path: str, layers: List[Dict[str, Any]]) -> Dict[str, Any]:
        """Remember where a net is; it is built anew for each question, as a wrapper changes it."""
        self.files[net] = path, layers
        self.tuned = {key: tuned for key, tuned in self.tuned.items() if key[0] != net}
        return {}

    def _net(self, name):
        path, layers = self.files[name]
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        if DEVICE.type == 'cuda' and not torch.cuda.is_available():
            raise RuntimeError('this PyTorch has no CUDA: install one that has into the venv of the peers')
        return build(layers, arrays).to(DEVICE), torch.from_numpy(arrays['images']).to(DEVICE)

    def standard(self, net: str, out: str) -> Dict[str, Any]:
        """Writes the probabilities of Standard dropout."""
        model, images = self._net(net)
        model.eval()
        with torch.inference_mode():
            np.save(out, torch.softmax(model(images), 1).cpu().numpy())
        return {}

    def evaluate(self, net: str, way: str, T: int, batch: int, count: int, out: Optional[str] = None) -> Dict[str, Any]:
        """What the mean softmax of T passes over the first `count` images takes; `out`: all scores, for a check."""
        model, images = self._net(net)
        passes = WAYS[way](model, T, batch)
        torch.manual_seed(1)
        with torch.inference_mode():
            if way == 'PyTorch, tuned':
                passes = self._tuned(net, passes, images[:batch])
            model(images[:batch])  # what happens once only
            start = now()
            means, kept = [], []
            for first in range(0, count, batch):
                scores = passes(images[first:min(first + batch, count)])
                means.append(torch.softmax(scores, 2).mean(0))
                if out:
                    kept.append(scores.cpu().numpy())
            torch.cat(means).cpu().numpy()  # which waits for all of it
            spent = since(start)
        if out:
            np.save(out, np.concatenate(kept, axis=1))
        return dict(spent, note=getattr(passes, 'note', ''))

    def _tuned(self, net, passes, images):
        """The fastest settings for a net and batch, which are found (and compiled) once."""
        tuned = self.tuned.setdefault((net, len(images)), passes)
        if not tuned.note:
            tuned.begin(images)
        tuned.T = passes.T
        return tuned

    def train(self, net: str, steps: int, batch: int, lr: float, momentum: float, decay: float,
              channels_last: bool = False) -> Dict[str, Any]:
        """What so many steps of SGD with momentum take, on one batch that is in memory; and their losses."""
        model, images = self._net(net)
        model.train()
        images = images[torch.arange(batch, device=DEVICE) % len(images)].clone()
        if channels_last:
            model, images = (x.to(memory_format=torch.channels_last) for x in (model, images))
        labels = (torch.arange(batch) % 10).to(DEVICE)
        # Caffe's lr_mult: biases learn twice as fast
        groups = [{'params': [weights for name, weights in model.named_parameters() if name.endswith(end)], 'lr': rate}
                  for end, rate in (('weight', lr), ('bias', 2 * lr))]
        optimiser = torch.optim.SGD(groups, lr=lr, momentum=momentum, weight_decay=decay)

        def step():
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimiser.step()
            return float(loss)

        step()
        start = now()
        losses = [step() for _ in range(steps)]
        return dict(since(start), losses=losses)

    def sgemm(self, size: int) -> Dict[str, float]:
        """What a product of two square matrices takes: the median of five."""
        a = torch.rand(size, size, device=DEVICE)
        times = []
        for _ in range(5):
            start = now()
            float((a @ a)[0, 0])  # which waits for it on a GPU
            times.append(since(start))
        return {clock: median(taken[clock] for taken in times) for clock in times[0]}

    def versions(self) -> Dict[str, str]:
        """{name: version} of what can be used here; a text that begins with 'no ' where it cannot."""
        return {name: _version(name) for name in ('torch', 'baal', 'torch-uncertainty')}


def _version(name):
    try:
        if name == 'baal':
            import baal.modelwrapper  # noqa: F401
        if name == 'torch-uncertainty':
            torch_uncertainty()
    except Exception as error:  # of whatever kind: it cannot be used
        return 'no %s: %s' % (name, ' '.join(str(error).split()))
    place = os.path.dirname(os.path.dirname(torch.__file__))
    found = glob.glob(os.path.join(place, '%s-*.dist-info' % name.replace('-', '_')))
    return os.path.basename(found[0])[len(name) + 1:-len('.dist-info')] if found else 'of unknown version'


def main() -> None:
    answers = os.fdopen(os.dup(1), 'w')  # stdout is for the answers alone: what libraries print goes to stderr
    os.dup2(2, 1)
    side = Side()
    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = getattr(side, question.pop('do'))(**question)
        except Exception as error:  # goes back as a line, and the next question is answered
            answer = {'error': ' '.join(('%s: %s' % (type(error).__name__, error)).split())}
        answers.write(json.dumps(answer) + '\n')
        answers.flush()


if __name__ == '__main__':
    main()
