"""Antithetic masks: pairs of passes, the second with what the first dropped, for means of less variance.

At p = 0.5 a mask and its complement are equally likely, so the mean over a pair of passes, one
with each, is as unbiased as that of two passes with masks of their own (Hammersley and Morton,
1956). Its variance is (1 + r) times theirs, r the correlation of the two outputs; `measure`
gives it for a net. Stock Caffe's dropout draws its own masks, so here each dropout layer is
replaced by a product with an input blob, which is given 2 for what is kept and 0 for what is
dropped, as Caffe scales them, or the reverse.
"""

import time
from collections import OrderedDict

import numpy as np

from . import engine, mc, runs
from .errors import UserError

MASK = '_mask'


def dropouts(message):
    """The dropout layers of an MC net; refuses one that does not drop half."""
    found = [layer for layer in message.layer if layer.type == 'Dropout']
    for layer in found:
        if layer.dropout_param.dropout_ratio != 0.5:
            raise UserError('layer %r drops a share of %g: only at 0.5 is a mask as likely as its complement'
                            % (layer.name, layer.dropout_param.dropout_ratio))
    return found


def load(message, weights, extra_weights=False):
    """(net, Plan) of an MC net whose masks are inputs, named after the dropout layers."""
    drops, new = dropouts(message), engine.caffe_pb2.NetParameter(name=message.name)
    stock = engine.load_net(message, weights, extra_weights=extra_weights)
    for layer in drops:
        mask = new.layer.add(name=layer.name + MASK, type='Input', top=[layer.name + MASK])
        mask.input_param.shape.add(dim=stock.blobs[layer.bottom[0]].data.shape)
    for layer in message.layer:
        new.layer.add().CopyFrom(layer if layer.type != 'Dropout' else engine.caffe_pb2.LayerParameter(
            name=layer.name, type='Eltwise', bottom=[layer.bottom[0], layer.name + MASK], top=layer.top,
            eltwise_param=dict(operation=engine.params.Eltwise.PROD)))
    net = engine.load_net(new, weights, extra_weights=extra_weights)
    return net, mc.plan(message, stock)._replace(first=list(net._layer_names).index(drops[0].name))


def stream(net, how, images, T, rng):
    """Yield (probabilities, scores) of T passes over a batch, two by two with complementary masks; views."""
    blobs = {name: blob for name, blob in net.blobs.items() if name.endswith(MASK) and name in net.inputs}
    for blob in blobs.values():
        blob.reshape(len(images), *blob.data.shape[1:])
    mc.fill(net, how, images)
    net.reshape()
    net._forward(0, how.first - 1)
    for t in range(T):
        for name in sorted(blobs):
            mask = blobs[name].data
            mask[...] = 2 - mask if t % 2 else draw(mask.shape, rng)
        net._forward(how.first, len(net.layers) - 1)
        yield mc.outputs(net, how, len(images))


def draw(shape, rng):
    """A mask of 2 and 0, equally likely."""
    size = int(np.prod(shape))
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-size // 8)), np.uint8))[:size]
    return (2 * bits).reshape(shape)


# --- what it gains ------------------------------------------------------------------------------

class Moments:
    """Means, variances and covariances of pairs of outputs, for each image and class."""

    def __init__(self):
        self.n, self.first, self.second = 0, 0, 0
        self.squares, self.products = 0, 0

    def add(self, first, second):
        self.n += 1
        self.first, self.second = self.first + first, self.second + second
        self.squares = self.squares + (first ** 2 + second ** 2) / 2
        self.products = self.products + first * second

    def variances(self):
        """(variance of a pass, covariance within a pair), each an image: summed over its classes."""
        both = self.first * self.second / self.n
        half = (self.first ** 2 + self.second ** 2) / 2 / self.n
        return (((self.squares - half) / (self.n - 1)).sum(axis=1), ((self.products - both) / (self.n - 1)).sum(axis=1))


def measure(job, count, seed=1, batch=100):
    """The row of one net: how pairs of complementary masks compare with masks drawn one by one, at equal passes."""
    net, how = load(job.sampling, job.weights, job.extra_weights)
    rng, parts = np.random.RandomState(seed), []
    for start in range(0, job.count, batch):
        moments, first = Moments(), None
        pixels = job.source.read(start, min(start + batch, job.count))[0]
        for t, (probs, _) in enumerate(stream(net, how, pixels, 2 * count, rng)):
            if t % 2:
                moments.add(first, probs.astype(np.float64))
            first = probs.astype(np.float64)
        parts.append(moments.variances())
    variance, covariance = (np.concatenate(part) for part in zip(*parts))
    correlation, error = ratio(covariance, variance)
    gain, cost = 1 / (1 + correlation), _cost(job, net, how, batch)
    return OrderedDict([
        ('net', job.name), ('images', job.count), ('pairs', count), ('variance', float(variance.mean())),
        ('correlation', correlation), ('correlation_se', error), ('gain', gain), ('time', cost),
        ('worth', gain / cost), ('weights', runs.sha256(job.weights)[:8])])


def line(row):
    """A row for people."""
    return ('%s, %d images, %d pairs: correlation within a pair %.3f +- %.3f, variance of the mean %.2f times lower at '
            'equal passes, a pass takes %.2f times as long' % (
                row['net'], row['images'], row['pairs'], row['correlation'], row['correlation_se'], row['gain'],
                row['time']))


def ratio(above, below):
    """(sum of above / sum of below, its standard error by leaving out each image in turn)."""
    whole, n = float(above.sum() / below.sum()), len(above)
    without = (above.sum() - above) / (below.sum() - below)
    return whole, float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))


def _cost(job, net, how, batch, rounds=5):
    """How many times longer a pass takes with masks from numpy than with Caffe's own: median of interleaved rounds."""
    stock = engine.load_net(job.sampling, job.weights, extra_weights=job.extra_weights)
    own, rng = mc.plan(job.sampling, stock), np.random.RandomState(0)
    pixels = job.source.read(0, min(batch, job.count))[0]

    def clock(passes):
        start = time.process_time()  # of this process: others on the machine hardly count
        for _ in passes:
            pass
        return time.process_time() - start

    return float(np.median([clock(stream(net, how, pixels, 4, rng)) / clock(mc.stream(stock, own, pixels, 4))
                            for _ in range(rounds)]))
