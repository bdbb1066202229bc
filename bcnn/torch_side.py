"""The other side of the benchmark: PyTorch, baal and torch-uncertainty, run by bcnn.peers in their own Python.

Not for importing: it is started with the Python of the private venv, and knows nothing of this
package. One JSON object a line comes in on stdin, one goes out on stdout. A net comes as a chain of
Caffe layers with the weights in an .npz file, and is built here of torch's modules; one thread.
"""

import glob
import importlib.util
import json
import os
import sys
import time
from statistics import median

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)
torch.set_num_interop_threads(1)


# --- nets --------------------------------------------------------------------------------------

def build(layers, arrays):
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


def module(layer, arrays):
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


# --- MC dropout, five ways ------------------------------------------------------------------------
# Each is a function from a batch of images to T rows of scores for each: T x images x classes.

def with_torch(net, T, batch):
    """A loop over full passes, with the dropout modules in training mode."""
    net.eval()
    for one in net.modules():
        if isinstance(one, nn.Dropout):
            one.train()
    return lambda images: torch.stack([net(images) for _ in range(T)])


def with_baal(net, T, batch, in_memory):
    from baal.bayesian.dropout import MCDropoutModule
    from baal.modelwrapper import ModelWrapper, TrainingArgs
    arguments = TrainingArgs(use_cuda=False, workers=0, batch_size=batch, replicate_in_memory=in_memory)
    wrapper = ModelWrapper(MCDropoutModule(net), arguments)
    wrapper.eval()
    return lambda images: wrapper.predict_on_batch(images, iterations=T).permute(2, 0, 1)


def with_torch_uncertainty(net, T, batch, in_memory):
    wrapper = torch_uncertainty().mc_dropout(net, num_estimators=T, on_batch=in_memory)
    wrapper.eval()
    return lambda images: wrapper(images).reshape(T, len(images), -1)


def torch_uncertainty():
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
    'baal': lambda net, T, batch: with_baal(net, T, batch, True),
    'baal, loop': lambda net, T, batch: with_baal(net, T, batch, False),
    'torch-uncertainty': lambda net, T, batch: with_torch_uncertainty(net, T, batch, True),
    'torch-uncertainty, loop': lambda net, T, batch: with_torch_uncertainty(net, T, batch, False),
}


def now():
    return {'wall': time.time(), 'cpu': time.process_time()}


def since(start):
    """Seconds that have passed: by the clock, and of this process."""
    return {clock: value - start[clock] for clock, value in now().items()}


# --- what can be asked -----------------------------------------------------------------------------

class Side:
    """The nets that are loaded, by name, and the answers."""

    def __init__(self):
        self.files = {}

    def load(self, net, path, layers):
        """Remember where a net is; it is built anew for each question, as a wrapper changes it."""
        self.files[net] = path, layers
        return {}

    def _net(self, name):
        path, layers = self.files[name]
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        return build(layers, arrays), torch.from_numpy(arrays['images'])

    def standard(self, net, out):
        """Writes the probabilities of Standard dropout."""
        made, images = self._net(net)
        made.eval()
        with torch.inference_mode():
            np.save(out, torch.softmax(made(images), 1).numpy())
        return {}

    def evaluate(self, net, way, T, batch, count, out=None):
        """What the mean softmax of T passes over the first `count` images takes; `out`: all scores, for a check."""
        made, images = self._net(net)
        passes = WAYS[way](made, T, batch)
        torch.manual_seed(1)
        with torch.inference_mode():
            made(images[:batch])  # what happens once only
            start = now()
            means, kept = [], []
            for first in range(0, count, batch):
                scores = passes(images[first:min(first + batch, count)])
                means.append(torch.softmax(scores, 2).mean(0))
                if out:
                    kept.append(scores.numpy())
            torch.cat(means).numpy()
            spent = since(start)
        if out:
            np.save(out, np.concatenate(kept, axis=1))
        return spent

    def train(self, net, steps, batch, lr, momentum, decay):
        """What so many steps of SGD with momentum take, on one batch that is in memory; and their losses."""
        made, images = self._net(net)
        made.train()
        images = images[torch.arange(batch) % len(images)].clone()
        labels = torch.arange(batch) % 10
        # Caffe's lr_mult: biases learn twice as fast
        groups = [{'params': [one for name, one in made.named_parameters() if name.endswith(end)], 'lr': rate}
                  for end, rate in (('weight', lr), ('bias', 2 * lr))]
        optimiser = torch.optim.SGD(groups, lr=lr, momentum=momentum, weight_decay=decay)

        def step():
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(made(images), labels)
            loss.backward()
            optimiser.step()
            return float(loss)

        step()
        start = now()
        losses = [step() for _ in range(steps)]
        return dict(since(start), losses=losses)

    def sgemm(self, size):
        """What a product of two square matrices takes: the median of five."""
        a = torch.rand(size, size)
        times = []
        for _ in range(5):
            start = now()
            a @ a
            times.append(since(start))
        return {clock: median(one[clock] for one in times) for clock in times[0]}

    def versions(self):
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


def main():
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
