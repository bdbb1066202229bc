"""MC evaluation for the benchmark: the same weights and images our ways and the peers' ways, checked to agree.

Ours: `naive`, a loop over full passes as one would write it with Caffe; `replicate` and `stream` as
mc_eval.py has them. Theirs: bcnn/torch_side.py. Each way must give the same Standard probabilities,
and T passes of the same distribution, before its time is worth anything.
"""

import os
from collections import OrderedDict, namedtuple

import numpy as np

from . import adaptive as rule
from . import bench, engine, images, mc, nets, prototxt, runs
from .data import sets
from .errors import UserError

# What is evaluated: weights is a file, folder has the arrays for the peers.
Case = namedtuple('Case', 'name dataset weights pixels labels folder about')
PEERS = ('PyTorch', 'baal', 'baal, loop', 'torch-uncertainty', 'torch-uncertainty, loop')
STANDARD_TOLERANCE = 1e-4   # between the probabilities of two libraries
SPREAD = (0.6, 1 / 0.6)     # between the variances of the passes of two ways
DISTANCE = 3.0              # between their means, squared, in units of what chance makes of it


# --- what is evaluated -------------------------------------------------------------------------------

def case(name, dataset, count, folder, trained=True):
    """The Case of a net: trained or published weights and test images where there are some, else made-up ones."""
    weights, whence = _weights(name, dataset, folder, trained)
    pixels, labels, which = _images(dataset, nets.find(dataset, name).data, count)
    made = Case(name, dataset, weights, pixels, labels, folder, '%s, %s' % (whence, which))
    export(made)
    return made


def _weights(name, dataset, folder, trained):
    run = runs.furthest(dataset, name, 1)
    if trained and run:
        return os.path.join(run, runs.FINAL), 'trained weights'
    if trained and name == 'nin' and sets.manifest('nin_weights'):
        return os.path.join(sets.require('nin_weights'), 'cifar10_nin.caffemodel'), 'published weights'
    path = os.path.join(folder, name + '.caffemodel')

    def make():
        engine.set_seed(1)
        engine.load_net(nets.deploy(name, dataset, batch=1)).save(path)

    engine.call(make)
    return path, 'untrained weights'


def _images(dataset, data, count):
    """(images, labels, what they are): speed hardly depends on them."""
    if sets.manifest(dataset):
        source = images.open_images(os.path.join(sets.require(dataset), os.path.basename(data.test)),
                                    images.Transform(data.scale or 1.0, None, data.crop))
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
    net, how = _loaded(nets.mc(case.name, case.dataset, batch=len(case.pixels)), case)
    net.forward()

    def run():
        mc.fill(net, how, case.pixels)
        total = 0
        for _ in range(T):
            net.forward()
            probs, scores = mc.outputs(net, how, len(case.pixels))
            total = total + probs
            keep(scores)
    return run


def stream(case, T, keep):
    """mc_eval.py's: the part before the first dropout once; with all sums that it stores."""
    net, how = _loaded(nets.mc(case.name, case.dataset, batch=len(case.pixels)), case)
    net.forward()
    return lambda: mc.sample(_kept(mc.stream(net, how, case.pixels, T), keep), case.labels, 10)


def replicate(case, T, keep):
    """The paper's appendix: each image T times in a minibatch, as many images as fit mc_eval.py's budget."""
    batch = replicated_batch(case, T)
    net, how = _loaded(prototxt.replicate(nets.mc(case.name, case.dataset, batch=batch), T), case)

    def run():
        for start in range(0, len(case.pixels), batch):
            part = slice(start, start + batch)
            mc.sample(_kept(mc.replicate(net, how, case.pixels[part], T), keep), case.labels[part], 10)
    return run


def replicated_batch(case, T):
    """How many images are evaluated at once where each is copied T times; the peers get the same."""
    def size():
        return mc.bytes_an_image(engine.load_net(nets.deploy(case.name, case.dataset, batch=1)))
    return min(mc.fitting_batch(engine.call(size), T), len(case.pixels))


def _loaded(message, case):
    net = engine.load_net(message, case.weights)
    return net, mc.plan(message, net)


def _kept(passes, keep):
    for probs, scores in passes:
        keep(scores)
        yield probs, scores


def adaptive(case, T, keep):
    """mc_eval.py --adaptive: T is the most an image gets. Without the Standard predictions to begin with, which
    an evaluation has made anyway: they save about one pass an image, and would cost more than one."""
    net, how = _loaded(nets.mc(case.name, case.dataset, batch=len(case.pixels)), case)
    net.forward()
    batch = min(rule.LARGEST, max(1, len(case.pixels) // rule.BLOCK))

    def run():
        seats = rule.Seats(net, how, lambda start, stop: case.pixels[start:stop], len(case.pixels), batch)
        arrays = rule.sample(seats, case.labels, T, rule.Rule())
        return '%.1f passes an image' % arrays['passes'].mean()
    return run


OURS = OrderedDict([('stream', stream), ('replicate', replicate), ('naive', naive), ('adaptive', adaptive)])
CHECKED = ('stream', 'replicate', 'naive')  # those that make T passes of every image


def ours(case, way, T):
    """What one of our ways takes, in a process of its own: what Caffe aborts on ends that one only."""
    def child():
        engine.set_seed(1)
        return bench.clock(OURS[way](case, T, lambda scores: None))
    return engine.call(child)


def passes(case, way, T):
    """The scores of all passes of one of our ways: T x images x classes."""
    def child():
        found = []
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
    return bench.Spent(**peer.ask('evaluate', **question(case, way, T)))


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
        net, how = _loaded(nets.deploy(case.name, case.dataset, batch=len(case.pixels)), case)
        return mc.standard(net, how, case.pixels)[0]
    return engine.call(child)


# --- do they agree? ---------------------------------------------------------------------------------------

def check_standard(mine, theirs):
    """Refuses Standard probabilities that are not the same numbers."""
    if mine.shape != theirs.shape:
        raise UserError('not comparable: Standard probabilities of shape %s, ours %s' % (theirs.shape, mine.shape))
    worst = float(np.abs(mine - theirs).max())
    if not worst <= STANDARD_TOLERANCE:
        raise UserError('not comparable: Standard probabilities differ by %.2g' % worst)


def check_passes(mine, theirs):
    """Refuses T passes that are not of the same distribution: other means or another spread."""
    if mine.shape != theirs.shape:
        raise UserError('not comparable: passes x images x classes are %s, ours %s' % (theirs.shape, mine.shape))
    spread, distance = compare(mine, theirs)
    if not SPREAD[0] <= spread <= SPREAD[1]:
        raise UserError('not comparable: the passes vary %.2f times as much as ours' % spread)
    if not distance <= DISTANCE:
        raise UserError('not comparable: the means differ %.1f times as much as chance allows' % distance)


def compare(mine, theirs):
    """(spread, distance) of two sets of passes: their variance over ours; their means' squared distance over what
    the variance of two such means makes it on average, 1 where both sample the same distribution."""
    variances = [rows.var(axis=0, ddof=1, dtype=np.float64).sum() for rows in (mine, theirs)]
    gap = np.square(mine.mean(axis=0, dtype=np.float64) - theirs.mean(axis=0, dtype=np.float64)).sum()
    expected = variances[0] / len(mine) + variances[1] / len(theirs)
    if not variances[0] or not expected:
        return float('nan'), float('nan')
    return variances[1] / variances[0], gap / expected


class Prepared:
    """A case that may be timed: each way is checked against ours when it is first asked for."""

    def __init__(self, case, peer, T):
        self.case, self.peer, self.T = case, peer, T
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
            check_standard(our_standard(self.case), theirs_standard)
        few = self.case._replace(pixels=self.case.pixels[:10], labels=self.case.labels[:10])
        if self.reference is None:
            self.reference = passes(few, 'stream', self.T)
        if way in OURS:
            check_passes(self.reference, passes(few, way, self.T) if way != 'stream' else self.reference)
        else:
            check_passes(self.reference, their_passes(self.peer, few, way, self.T))

    def work(self, T, prefix_once):
        """Work of T passes, computed once."""
        if (T, prefix_once) not in self.works:
            self.works[T, prefix_once] = work(self.case, T, prefix_once)
        return self.works[T, prefix_once]


def prepare(case, peer, T):
    """A Prepared case, which the peers know too; T: passes for the checks."""
    tell(peer, case)
    return Prepared(case, peer, T)


# --- the work that a pass is -------------------------------------------------------------------------------

Work = namedtuple('Work', 'flops bytes')


def work(case, T, prefix_once):
    """The Work of T passes over the images: multiplications and additions, and bytes that layers read and write."""
    def child():
        message = nets.mc(case.name, case.dataset, batch=len(case.pixels))
        net = engine.load_net(message)
        first = mc.plan(message, net).first
        return work_of(net, 0, first), work_of(net, first, len(net.layers))

    before, after = engine.call(child)
    times = 1 if prefix_once else T
    return Work(*(times * a + T * b for a, b in zip(before, after)))


def work_of(net, first, last):
    """The Work of the layers first to last of a loaded net, as if no cache kept anything between two layers."""
    flops = size = 0
    for name, layer in list(zip(net._layer_names, net.layers))[first:last]:
        tops, bottoms = net.top_names[name], net.bottom_names[name]
        blobs = [net.blobs[blob].count for blob in list(tops) + list(bottoms)]
        weights = [blob.count for blob in layer.blobs]
        size += 4 * (sum(blobs) + sum(weights))
        if layer.type in ('Convolution', 'InnerProduct'):
            top = net.blobs[tops[0]].data
            places = int(np.prod(top.shape[2:])) if top.ndim > 2 else 1
            flops += 2 * len(top) * weights[0] * places
    return Work(flops, size)
