"""Bayesian convolutional neural networks by MC dropout, on stock BVLC Caffe.

Reproduces Gal & Ghahramani, "Bayesian Convolutional Neural Networks with Bernoulli
Approximate Variational Inference". For nets of one's own: bcnn.load(...).predict(...).
Importing the package itself loads next to nothing, and no Caffe.
"""

from typing import TYPE_CHECKING, Any, Optional, Sequence

from .errors import UserError

if TYPE_CHECKING:
    from .library.client import Net

__version__ = '0.1.0'
__all__ = ['UserError', 'load']


def load(prototxt: Optional[str] = None, weights: Optional[str] = None, net: Optional[str] = None,
         dataset: Optional[str] = None, mean: Any = None, scale: Optional[float] = None, channels: Optional[str] = None,
         resize: Optional[Sequence[int]] = None, crop: Optional[int] = None, shape: Optional[Sequence[int]] = None,
         output: Optional[str] = None, classes: Optional[str] = None, standard_only: bool = False,
         digits: bool = False, training_seed: Optional[int] = None, gpu: Optional[int] = None) -> 'Net':
    """A net that predicts with MC dropout; its Caffe runs in a process of its own.

    Either `prototxt` and `weights`, any Caffe net with dropout (train_val or deploy, old format or new), or `net`, a
    net of the paper ('lenet_all'), with weights that are at hand unless `weights` names others. A bad file raises
    bcnn.UserError, which says what is wrong; it never ends your process.

    What is done to the images comes from the prototxt's data layer. A deploy file has none, so say what the net was
    trained on: mean (a .binaryproto, an .npy, an array, values a channel), then scale; channels, the order of colours
    that it takes ('bgr', or 'rgb'); resize=(H, W) and crop=N, the centre. shape=(C, H, W): of an image, where the
    prototxt does not tell. output: the blob of class scores, where there are several. classes: a file of class names,
    a line a class. standard_only: no stochastic passes. digits: pictures are photos of digits, to be made like MNIST's.

    >>> import bcnn
    >>> import numpy
    >>> net = bcnn.load('deploy.prototxt', 'my.caffemodel', scale=1/256)
    >>> net
    <bcnn net mine, images of 1x28x28, dropout dropC1, dropC2, drop1>
    >>> images = numpy.random.RandomState(0).randint(0, 256, (3, 1, 28, 28)).astype('uint8')
    >>> result = net.predict(images, T=20, keep_samples=True)
    >>> result.mean.shape, result.std.shape, result.standard.shape, result.samples.shape
    ((3, 10), (3, 10), (3, 10), (20, 3, 10))
    >>> numpy.allclose(result.samples.mean(axis=0), result.mean, atol=1e-6)
    True
    >>> bool((result.entropy >= result.mutual_information).all())
    True
    >>> bcnn.load('deploy.prototxt', 'no.caffemodel')
    Traceback (most recent call last):
        ...
    bcnn.errors.UserError: ...no.caffemodel: no such file
    >>> net.close()
    """
    from .inputs.preprocessing import Options
    from .library import client
    options = Options(scale=scale, mean=mean, channels=channels, resize=resize and tuple(resize), crop=crop)
    return client.load(prototxt, weights, net, options, dataset=dataset, training_seed=training_seed,
                       shape=shape and tuple(shape), output=output, classes=classes, standard_only=standard_only,
                       digits=digits, gpu=gpu)
