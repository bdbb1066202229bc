"""MC evaluation for the benchmark: the same weights and images our ways and the peers' ways, checked to agree.

Ours: `naive`, a loop over full passes as one would write it with Caffe; `replicate`, `stream`, `antithetic` and
`adaptive` as mc_eval.py has them. Theirs: bcnn/bench/torch_peer.py. Each way must give the same Standard probabilities,
and T passes of the same distribution, before its time is worth anything.
"""

import functools
import os
from collections import OrderedDict, namedtuple

import numpy as np

from .. import batches, engine, nets, weights
from ..data import sets
from ..inputs import preprocessing, sources
from ..mc import adaptive, antithetic, forward, running_sums
from ..prototxt import rewriting
from . import benchmark, comparable, pass_work

# What is evaluated: weights is a file, folder has the arrays for the peers; gpu: None for the CPU.
Case = namedtuple('Case', 'name dataset weights pixels labels folder about gpu')
TUNED = 'PyTorch, tuned'
PEERS = (TUNED, 'PyTorch', 'baal', 'baal, loop', 'torch-uncertainty', 'torch-uncertainty, loop')


# --- what is evaluated -------------------------------------------------------------------------------

def case(name, dataset, count, folder, trained=True, gpu=None):
    """The Case of a net: trained or published weights and test images where there are some, else made-up ones."""
    weights, whence = _weights(name, dataset, folder, trained)
    pixels, labels, which = _images(dataset, nets.find(dataset, name).data, count)
    made = Case(name, dataset, weights, pixels, labels, folder, '%s, %s' % (whence, which), gpu)
    engine.call(export, made)
    return made


def _weights(name, dataset, folder, trained):
    found = weights.at_hand(nets.find(dataset, name)) if trained else None
    if found:
        return found.path, 'published weights' if found.needs else 'trained weights'
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


def export(case):
    """Writes weights and images as one .npz file, for those who have no Caffe."""
    net = engine.load_net(nets.deploy(case.name, case.dataset, batch=1), case.weights)
    arrays = {'%s/%d' % (name, k): blob.data for name, blobs in net.params.items() for k, blob in enumerate(blobs)}
    np.savez(arrays_path(case), images=case.pixels, **arrays)


def arrays_path(case):
    return os.path.join(case.folder, '%s-%s.npz' % (case.dataset, case.name))


def layers(name, dataset):
    """The chain of layers from the image to the scores, as plain dictionaries."""
    found = []
    for layer in nets.deploy(name, dataset).layer:
        if layer.type in ('Input', 'Softmax'):
            continue
        one = dict(type=layer.type, name=layer.name)
        if layer.type == 'Convolution':
            form = layer.convolution_param
            one.update(kernel=form.kernel_size[0], stride=(list(form.stride) or [1])[0], pad=(list(form.pad) or [0])[0])
        elif layer.type == 'Pooling':
            form = layer.pooling_param
            one.update(pool=form.PoolMethod.Name(form.pool), kernel=form.kernel_size, stride=form.stride, pad=form.pad)
        elif layer.type == 'Dropout':
            one.update(ratio=layer.dropout_param.dropout_ratio)
        found.append(one)
    return found


# --- our ways ----------------------------------------------------------------------------------------
# Each loads its net and gives back a function that does the T passes over all images of the case once
# and calls keep(scores) after each pass; what it gives back, if anything, is for the note.

def naive(case, T, keep):
    """A loop over full passes."""
    net, wiring = _loaded(nets.mc(case.name, case.dataset, batch=len(case.pixels)), case)
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


def stream(case, T, keep):
    """mc_eval.py's: the part before the first dropout once; with all sums that it stores."""
    net, wiring = _loaded(nets.mc(case.name, case.dataset, batch=len(case.pixels)), case)
    net.forward()
    return lambda: running_sums.sample(_kept(forward.stream(net, wiring, case.pixels, T), keep), case.labels, 10)


def in_groups(case, T, keep):
    """mc_eval.py --sampler antithetic: as stream, with masks in groups."""
    groups, (net, wiring) = grouped(case, T)
    passes = antithetic.groups_of(net, wiring, np.random.RandomState(1))
    net.forward()

    def run():
        stream = _kept(forward.in_groups(passes, case.pixels, T), keep)
        running_sums.sample(stream, case.labels, 10, group=wiring.size)
        return 'groups of %d passes' % wiring.size
    return run


def grouped(case, T):
    """(groups of channels, (net, Wiring)) that mc_eval.py would take for T passes with antithetic masks."""
    message = nets.mc(case.name, case.dataset, batch=len(case.pixels))
    groups = engine.call(antithetic.settle, message, 0, T)[0]
    return groups, antithetic.load(message, case.weights, groups)


def replicate(case, T, keep):
    """The paper's appendix: each image T times in a minibatch, as many images as fit mc_eval.py's budget."""
    batch = replicated_batch(case, T)
    net, wiring = _loaded(rewriting.replicate(nets.mc(case.name, case.dataset, batch=batch), T), case)

    def run():
        for start in range(0, len(case.pixels), batch):
            part = slice(start, start + batch)
            passes = _kept(forward.replicate(net, wiring, case.pixels[part], T), keep)
            running_sums.sample(passes, case.labels[part], 10)
    return run


def replicated_batch(case, T):
    """How many images are evaluated at once where each is copied T times; the peers get the same."""
    def size():
        return batches.need_of(engine.load_net(nets.deploy(case.name, case.dataset, batch=1)))
    return min(batches.fitting(engine.call(size), T, batches.budget_of(case.gpu)), len(case.pixels))


def _loaded(message, case):
    net = engine.load_net(message, case.weights)
    return net, forward.wiring_of(message, net)


def _kept(passes, keep):
    for probs, scores in passes:
        keep(scores)
        yield probs, scores


def adaptively(case, T, keep, groups=0):
    """mc_eval.py --adaptive: T is the most an image gets; groups: for antithetic masks.

    Without the Standard predictions to begin with, which an evaluation has made anyway: they save about one pass an
    image, and would cost more than one.
    """
    message = nets.mc(case.name, case.dataset, batch=len(case.pixels))
    if groups:
        passes = antithetic.groups_of(*antithetic.load(message, case.weights, groups), np.random.RandomState(1))
    else:
        passes = forward.Passes(*_loaded(message, case))
    passes.net.forward()
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


def ours(case, way, T):
    """What one of our ways takes, in a process of its own: what Caffe aborts on ends that one only."""
    def child():
        engine.use_device(case.gpu)
        engine.set_seed(1)
        return benchmark.clock(OURS[way](case, T, lambda scores: None))
    return engine.call(child)


def passes(case, way, T):
    """The scores of all passes of one of our ways: T x images x classes."""
    def child():
        found = []
        engine.use_device(case.gpu)
        engine.set_seed(1)
        OURS[way](case, T, lambda scores: found.append(np.array(scores)))()
        whole = [found[start:start + T] for start in range(0, len(found), T)]  # batch by batch
        return np.concatenate([np.array(part) for part in whole], axis=1)
    return engine.call(child)


# --- theirs --------------------------------------------------------------------------------------------

def tell(peer, case):
    """Makes a case known to the peers."""
    peer.load(case.dataset + '/' + case.name, arrays_path(case), layers(case.name, case.dataset))


LOOP_BATCH = 200  # of PyTorch: smaller ones were no faster on lenet_ip when tried, 500 and 1000 were slower


def question(case, way, T):
    """What to ask of a peer: in loops a batch that suits it; where images are copied, what our replicate mode takes."""
    copied = way in ('baal', 'torch-uncertainty')
    return dict(net=case.dataset + '/' + case.name, way=way, T=T, count=len(case.pixels),
                batch=replicated_batch(case, T) if copied else min(LOOP_BATCH, len(case.pixels)))


def theirs(peer, case, way, T):
    """What one of their ways takes."""
    return benchmark.Spent(**peer.ask('evaluate', **question(case, way, T)))


def their_passes(peer, case, way, T):
    """The scores of all passes of one of their ways: T x images x classes."""
    path = os.path.join(case.folder, 'passes.npy')
    peer.ask('evaluate', out=path, **question(case, way, T))
    return np.load(path, allow_pickle=False)


def their_standard(peer, case):
    path = os.path.join(case.folder, 'standard.npy')
    peer.ask('standard', net=case.dataset + '/' + case.name, out=path)
    return np.load(path, allow_pickle=False)


def our_standard(case):
    def child():
        engine.use_device(case.gpu)
        net, wiring = _loaded(nets.deploy(case.name, case.dataset, batch=len(case.pixels)), case)
        return forward.standard(net, wiring, case.pixels)[0]
    return engine.call(child)


# --- checked, then timed ------------------------------------------------------------------------------------

def variance_in_groups(case, T, draws):
    """The variance of a mean of passes with antithetic masks beside masks of their own; draws: groups to measure."""
    engine.use_device(case.gpu)
    net, wiring = grouped(case, T)[1]
    passes = antithetic.stream(net, wiring, case.pixels, draws * wiring.size, np.random.RandomState(2))
    alone, together = running_sums.variances(passes, wiring.size)
    return float(together.sum() / alone.sum())


class Prepared:
    """A case that may be timed: each way is checked against ours when it is first asked for."""

    def __init__(self, case, peer, T):
        self.case, self.peer, self.T = case, peer, T
        self.draws = 2 * T  # groups of passes, for variances
        self.checked, self.works, self.reference = set(), {}, None

    def time(self, way, T):
        """What T passes over the images of the case take; refuses a way that computes something else."""
        if way not in self.checked:
            self._check(way)
            self.checked.add(way)
        spent = ours(self.case, way, T) if way in OURS else theirs(self.peer, self.case, way, T)
        return spent._replace(note=', '.join(filter(None, [self.case.about, spent.note])))

    def _check(self, way):
        if way in OURS and way not in CHECKED:
            return
        if way not in OURS:  # first, as it is the one that may not be there
            theirs_standard = their_standard(self.peer, self.case)
            comparable.check_standard(our_standard(self.case), theirs_standard)
        few = self.case._replace(pixels=self.case.pixels[:10], labels=self.case.labels[:10])
        if self.reference is None:
            self.reference = passes(few, 'stream', self.T)
        if way in OURS:
            comparable.check_passes(self.reference, passes(few, way, self.T) if way != 'stream' else self.reference)
        else:
            comparable.check_passes(self.reference, their_passes(self.peer, few, way, self.T))

    def work(self, way, T):
        """The Work of T passes, computed once; (None, None) where it is not known before."""
        if way not in CHECKED + PEERS:
            return None, None
        kind = way if way == 'antithetic' else way in ONCE
        if (T, kind) not in self.works:
            self.works[T, kind] = self._work(T, kind)
        return self.works[T, kind]

    def _work(self, T, kind):
        if kind == 'antithetic':
            return pass_work.in_groups(self.case, T, engine.call(lambda: grouped(self.case, T)[0]))
        return pass_work.plain(self.case, T, kind)

    def variance(self, way, T):
        """The variance of the mean of T passes of a way beside that of passes with masks of their own, at equal T."""
        if way not in CHECKED + PEERS:
            return None  # adaptive: an image has as many passes as its class takes, and no other accuracy
        if way != 'antithetic':
            return 1.0
        if ('variance', T) not in self.works:
            self.works['variance', T] = engine.call(variance_in_groups, self.case, T, self.draws)
        return self.works['variance', T]


def prepare(case, peer, T):
    """A Prepared case, which the peers know too; T: passes for the checks."""
    tell(peer, case)
    return Prepared(case, peer, T)
