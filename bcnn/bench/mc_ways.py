"""MC evaluation for the benchmark: the same weights and images our ways and the peers' ways.

Ours: `naive`, a loop over full passes as one would write it with Caffe; `replicate`, `stream`, `antithetic` and
`adaptive` as mc_eval.py has them. Theirs: bcnn/bench/torch_peer.py.
"""

import functools
import os
from collections import OrderedDict
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import numpy as np

from .. import batches, engine, nets, weights
from ..data import sets
from ..inputs import preprocessing, sources
from ..mc import adaptive, antithetic, forward, running_sums
from ..prototxt import rewriting
from . import measuring
from .measuring import Spent
from .peers import Peer

TUNED = 'PyTorch, tuned'
PEERS = (TUNED, 'PyTorch', 'baal', 'baal, loop', 'torch-uncertainty', 'torch-uncertainty, loop')


# --- what is evaluated -------------------------------------------------------------------------------

class Case(NamedTuple):
    """What is evaluated."""

    name: str             # of the net
    dataset: str
    weights: str          # the file
    pixels: np.ndarray    # the images, as the net gets them
    labels: np.ndarray
    folder: str           # of the arrays for the peers
    note: str             # which weights and images these are
    gpu: Optional[int]    # None for the CPU

    @property
    def title(self) -> str:
        """What the peers know it by."""
        return '%s/%s' % (self.dataset, self.name)

    @property
    def arrays(self) -> str:
        """The file of weights and images for the peers."""
        return os.path.join(self.folder, '%s-%s.npz' % (self.dataset, self.name))

    def mc_net(self, batch: Optional[int] = None) -> engine.NetParameter:
        """The net for MC dropout, for so many images at once: all of them for None."""
        return nets.mc(self.name, self.dataset, batch=batch or len(self.pixels))


def case(name: str, dataset: str, count: int, folder: str, trained: bool = True, gpu: Optional[int] = None) -> Case:
    """The Case of a net: trained or published weights and test images where there are some, else made-up ones."""
    path, which_weights = _weights(name, dataset, folder, trained)
    pixels, labels, which_images = _images(dataset, nets.find(dataset, name).data, count)
    made = Case(name=name, dataset=dataset, weights=path, pixels=pixels, labels=labels, folder=folder,
                note='%s, %s' % (which_weights, which_images), gpu=gpu)
    engine.call(_export, made)
    return made


def _weights(name, dataset, folder, trained):
    chosen = weights.at_hand(nets.find(dataset, name)) if trained else None
    if chosen:
        return chosen.path, 'published weights' if chosen.needs else 'trained weights'
    path = os.path.join(folder, name + '.caffemodel')

    def make():
        engine.set_seed(1)
        engine.load_net(nets.deploy(name, dataset, batch=1)).save(path)

    engine.call(make)
    return path, 'untrained weights'


def _images(dataset, data, count):
    """(images, labels, what they are): speed hardly depends on them."""
    if sets.manifest(dataset):
        source = sources.open_images(os.path.join(sets.require(dataset), os.path.basename(data.test)),
                                     preprocessing.of_paper(data))
        return source.read(0, count) + ('test images',)
    random = np.random.RandomState(0)
    return random.rand(count, *data.shape).astype(np.float32), np.arange(count) % 10, 'random images'


def _export(case):
    """Writes weights and images as one .npz file, for those who have no Caffe."""
    net = engine.load_net(nets.deploy(case.name, case.dataset, batch=1), case.weights)
    arrays = {'%s/%d' % (name, k): blob.data for name, blobs in net.params.items() for k, blob in enumerate(blobs)}
    np.savez(case.arrays, images=case.pixels, **arrays)


def layers(name: str, dataset: str) -> List[Dict[str, Any]]:
    """The chain of layers from the image to the scores, as plain dictionaries."""
    return [dict(type=layer.type, name=layer.name, **_form(layer)) for layer in nets.deploy(name, dataset).layer
            if layer.type not in ('Input', 'Softmax')]


def _form(layer):
    """What the peers have to know of a layer beside its type."""
    if layer.type == 'Convolution':
        form = layer.convolution_param
        return dict(kernel=form.kernel_size[0], stride=(list(form.stride) or [1])[0], pad=(list(form.pad) or [0])[0])
    if layer.type == 'Pooling':
        form = layer.pooling_param
        return dict(pool=form.PoolMethod.Name(form.pool), kernel=form.kernel_size, stride=form.stride, pad=form.pad)
    return dict(ratio=layer.dropout_param.dropout_ratio) if layer.type == 'Dropout' else {}


# --- our ways ----------------------------------------------------------------------------------------
# Each loads its net and gives back a function that does the T passes over all images of the case once
# and calls keep(scores) after each pass; what it gives back, if anything, is for the note.

Keep = Callable[[np.ndarray], None]
Way = Callable[[], Optional[str]]


def naive(case: Case, T: int, keep: Keep) -> Way:
    """A loop over full passes."""
    net, wiring = forward.load(case.mc_net(), case.weights)
    net.forward()

    def run():
        forward.fill(net, wiring, case.pixels)
        total = 0
        for _ in range(T):
            net.forward()
            probs, scores = forward.outputs(net, wiring, len(case.pixels))
            total = total + probs
            keep(scores)
    return run


def stream(case: Case, T: int, keep: Keep, groups: int = 0) -> Way:
    """mc_eval.py's: the part before the first dropout once, with running sums; groups: for antithetic masks."""
    passes = sampler(case, groups)

    def run():
        in_order = _kept(forward.in_groups(passes, case.pixels, T), keep)
        running_sums.sample(in_order, case.labels, 10, group=passes.size)
        return 'groups of %d passes' % passes.size if groups else None
    return run


def in_groups(case: Case, T: int, keep: Keep) -> Way:
    """mc_eval.py --sampler antithetic: as stream, with masks in groups."""
    return stream(case, T, keep, groups_for(case, T))


def sampler(case: Case, groups: int = 0, seed: int = 1) -> forward.Passes:
    """Passes over the case's images with Caffe's own masks, or with antithetic ones in groups of channels."""
    if groups:
        passes = antithetic.groups_of(*antithetic.load(case.mc_net(), case.weights, groups),
                                      np.random.RandomState(seed))
    else:
        passes = forward.Passes(*forward.load(case.mc_net(), case.weights))
    passes.net.forward()
    return passes


def groups_for(case: Case, T: int) -> int:
    """The groups of channels that mc_eval.py would take for T passes with antithetic masks."""
    return engine.call(antithetic.settle, case.mc_net(), 0, T)[0]


def variance_in_groups(case: Case, T: int, draws: int) -> float:
    """The variance of a mean of passes with antithetic masks beside masks of their own; draws: groups to measure."""
    engine.use_device(case.gpu)
    passes = sampler(case, groups_for(case, T), seed=2)
    alone, together = running_sums.variances(forward.in_groups(passes, case.pixels, draws * passes.size), passes.size)
    return float(together.sum() / alone.sum())


def replicate(case: Case, T: int, keep: Keep) -> Way:
    """The paper's appendix: each image T times in a minibatch, as many images as fit mc_eval.py's budget."""
    batch = replicated_batch(case, T)
    net, wiring = forward.load(rewriting.replicate(case.mc_net(batch), T), case.weights)

    def run():
        for start in range(0, len(case.pixels), batch):
            part = slice(start, start + batch)
            passes = _kept(forward.replicate(net, wiring, case.pixels[part], T), keep)
            running_sums.sample(passes, case.labels[part], 10)
    return run


def replicated_batch(case: Case, T: int) -> int:
    """How many images are evaluated at once where each is copied T times; the peers get the same."""
    def size():
        return batches.need_of(engine.load_net(nets.deploy(case.name, case.dataset, batch=1)))
    return min(batches.fitting(engine.call(size), T, batches.budget_of(case.gpu)), len(case.pixels))


def _kept(passes, keep):
    for probs, scores in passes:
        keep(scores)
        yield probs, scores


def adaptively(case: Case, T: int, keep: Keep, groups: int = 0) -> Way:
    """mc_eval.py --adaptive: T is the most an image gets; groups: for antithetic masks.

    Without the Standard predictions to begin with, which an evaluation has made anyway: they save about one pass an
    image, and would cost more than one.
    """
    passes = sampler(case, groups)
    batch = min(adaptive.LARGEST, max(1, len(case.pixels) // adaptive.BLOCK))

    def run():
        seats = adaptive.Seats(passes, lambda start, stop: case.pixels[start:stop], len(case.pixels), batch)
        arrays = adaptive.sample(seats, case.labels, T, adaptive.Rule())
        return '%.1f passes an image' % arrays['passes'].mean()
    return run


OURS = OrderedDict([('stream', stream), ('antithetic', in_groups), ('replicate', replicate), ('naive', naive),
                    ('adaptive', adaptively), ('adaptive, pairs', functools.partial(adaptively, groups=1))])
CHECKED = ('stream', 'antithetic', 'replicate', 'naive')  # those that make T passes of every image
ONCE = ('stream', 'replicate', TUNED)  # those that compute what lies before the first dropout once


def ours(case: Case, way: str, T: int) -> Spent:
    """What one of our ways takes, in a process of its own: what Caffe aborts on ends that one only."""
    def child():
        engine.use_device(case.gpu)
        engine.set_seed(1)
        return measuring.clock(OURS[way](case, T, lambda scores: None))
    return engine.call(child)


def passes(case: Case, way: str, T: int) -> np.ndarray:
    """The scores of all passes of one of our ways: T x images x classes."""
    def child():
        kept = []
        engine.use_device(case.gpu)
        engine.set_seed(1)
        OURS[way](case, T, lambda scores: kept.append(np.array(scores)))()
        of_batches = [kept[start:start + T] for start in range(0, len(kept), T)]
        return np.concatenate([np.array(of_batch) for of_batch in of_batches], axis=1)
    return engine.call(child)


# --- theirs --------------------------------------------------------------------------------------------

def tell(peer: Peer, case: Case) -> None:
    """Makes a case known to the peers."""
    peer.load(case.title, case.arrays, layers(case.name, case.dataset))


LOOP_BATCH = 200  # of PyTorch: smaller ones were no faster on lenet_ip when tried, 500 and 1000 were slower


def _question(case, way, T):
    """What to ask of a peer: in loops a batch that suits it; where images are copied, what our replicate mode takes."""
    copied = way in ('baal', 'torch-uncertainty')
    return dict(net=case.title, way=way, T=T, count=len(case.pixels),
                batch=replicated_batch(case, T) if copied else min(LOOP_BATCH, len(case.pixels)))


def theirs(peer: Peer, case: Case, way: str, T: int) -> Spent:
    """What one of their ways takes."""
    return Spent(**peer.ask('evaluate', **_question(case, way, T)))


def their_passes(peer: Peer, case: Case, way: str, T: int) -> np.ndarray:
    """The scores of all passes of one of their ways: T x images x classes."""
    path = os.path.join(case.folder, 'passes.npy')
    peer.ask('evaluate', out=path, **_question(case, way, T))
    return np.load(path, allow_pickle=False)


def their_standard(peer: Peer, case: Case) -> np.ndarray:
    path = os.path.join(case.folder, 'standard.npy')
    peer.ask('standard', net=case.title, out=path)
    return np.load(path, allow_pickle=False)


def our_standard(case: Case) -> np.ndarray:
    def child():
        engine.use_device(case.gpu)
        net, wiring = forward.load(nets.deploy(case.name, case.dataset, batch=len(case.pixels)), case.weights)
        return forward.standard(net, wiring, case.pixels)[0]
    return engine.call(child)
