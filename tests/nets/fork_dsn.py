"""DSN in numpy, with the arithmetic of its own fork of Caffe, from s9xie/DSN (not ours, not stock Caffe's).

What differs from stock Caffe: dropout multiplies by a mask in training and by 0.5 at test;
squared hinge; the companions read the convolutions before the ReLU, and their learning rate may decay.
"""

import numpy as np

LAYERS = (  # name, size, pad, lr multipliers
    ('conv1', 5, 2, (1, 2)), ('cccp1', 1, 0, (1, 2)), ('cccp2', 1, 0, (1, 2)),
    ('conv2', 5, 2, (1, 2)), ('cccp3', 1, 0, (1, 2)), ('cccp4', 1, 0, (1, 2)),
    ('conv3', 3, 1, (1, 2)), ('cccp5', 1, 0, (1, 2)), ('cccp6', 1, 0, (0.1, 0.2)))
COMPANION_LR = (0.001, 0.002)
MOMENTUM = 0.9


class Fork:
    """A net with its momentum; `weights` is {layer: [w, b]}, copied."""

    def __init__(self, weights, decay=0.0005):
        self.decay = decay
        self.weights = {name: [np.array(blob, np.float64) for blob in blobs] for name, blobs in weights.items()}
        self.history = {name: [np.zeros_like(blob) for blob in blobs] for name, blobs in self.weights.items()}

    def scores(self, x, masks=None):
        """pool3; with masks (of drop3, drop6) as in training, without as at test. Keeps what backward needs."""
        self.kept, self.companions = [], []
        for name, size, pad, _ in LAYERS:
            x = self._conv(name, x, size, pad)
            if name.startswith('conv'):
                self.companions.append((len(self.kept), x))
            if name != 'cccp6':
                x = self._keep(lambda d, on=x > 0: d * on, np.maximum(x, 0))
            if name in ('cccp2', 'cccp4'):
                x = self._max_pool(x)
                factor = 0.5 if masks is None else masks[name == 'cccp4']
                x = self._keep(lambda d, factor=factor: d * factor, x * factor)
        return self._keep(lambda d: np.broadcast_to(d[:, :, None, None] / 64, d.shape + (8, 8)), x.mean((2, 3)))

    def step(self, x, label, masks, lr, companions=True, companion_decay=1.0):
        """One update by SGD with momentum; gives back the losses: main, companions 1 to 3."""
        self.gradients = {}
        loss, d = squared_hinge(self.scores(x, masks), label)
        losses, at = [loss], {}
        for k, (position, maps) in enumerate(self.companions if companions else [], 1):
            loss, at[position] = self._companion(k, maps, label)
            losses.append(loss)
        for i in range(len(self.kept), 0, -1):
            d = d + at.get(i, 0)
            d = self.kept[i - 1](d)
        rates = {name: mults for name, _, _, mults in LAYERS}
        for name in self.gradients:
            mults = rates.get(name) or [mult * companion_decay for mult in COMPANION_LR]
            self._update(name, [lr * mult for mult in mults])
        return losses

    def _update(self, name, rates):
        for i, decay in enumerate((self.decay, 0)):  # none for biases
            w, v, g = self.weights[name][i], self.history[name][i], self.gradients[name][i]
            v[...] = MOMENTUM * v + rates[i] * (g + decay * w)
            w -= v

    def _keep(self, backward, x):
        self.kept.append(backward)
        return x

    def _conv(self, name, x, size, pad):
        w, b = self.weights[name]
        padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), 'constant')
        height, width = x.shape[2:]
        windows = [(i, j) for i in range(size) for j in range(size)]
        cols = np.stack([padded[:, :, i:i + height, j:j + width] for i, j in windows])
        flat = w.reshape(w.shape[:2] + (-1,))
        y = np.einsum('knchw,ock->nohw', cols, flat, optimize=True) + b.reshape(1, -1, 1, 1)

        def backward(d):
            self.gradients[name] = [np.einsum('knchw,nohw->ock', cols, d, optimize=True).reshape(w.shape),
                                    d.sum((0, 2, 3)).reshape(b.shape)]
            spread = np.einsum('nohw,ock->knchw', d, flat, optimize=True)
            back = np.zeros_like(padded)
            for k, (i, j) in enumerate(windows):
                back[:, :, i:i + height, j:j + width] += spread[k]
            return back[:, :, pad:pad + height, pad:pad + width]

        return self._keep(backward, y)

    def _max_pool(self, x):
        """Windows of 3, stride 2, clipped at the far border."""
        n, c, height, width = x.shape
        padded = np.full((n, c, height + 1, width + 1), -np.inf)
        padded[:, :, :height, :width] = x
        windows = [(i, j) for i in range(3) for j in range(3)]
        views = np.stack([padded[:, :, i:i + height - 1:2, j:j + width - 1:2] for i, j in windows])
        winner = views.argmax(0)

        def backward(d):
            back = np.zeros_like(padded)
            for k, (i, j) in enumerate(windows):
                back[:, :, i:i + height - 1:2, j:j + width - 1:2] += d * (winner == k)
            return back[:, :, :height, :width]

        return self._keep(backward, views.max(0))

    def _companion(self, k, maps, label):
        name = 'ip_svm%d' % k
        w, b = self.weights[name]
        flat = maps.reshape(len(maps), -1)
        loss, d = squared_hinge(flat @ w.T + b, label)
        self.gradients[name] = [d.T @ flat, d.sum(0)]
        return loss, (d @ w).reshape(maps.shape)


def squared_hinge(scores, label):
    """(loss, gradient): max(0, 1 - s * score)^2 over classes, divided by the batch; s = 1 for the label, else -1."""
    sign = -np.ones_like(scores)
    sign[np.arange(len(scores)), label] = 1
    margin = np.maximum(0, 1 - sign * scores)
    return (margin ** 2).sum() / len(scores), -2 * sign * margin / len(scores)
