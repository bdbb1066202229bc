"""A net and its predictions, in a process that has Caffe: what the library's server and tools/predict.py use."""

import os
from typing import Any, Dict, List, Tuple

import numpy as np

from .. import engine, nets, seeds
from ..data import show
from ..errors import UserError
from ..inputs import digits, labels, pictures, sources
from ..mc import adaptive, evaluation, summary, targets
from ..prototxt import facts
from .messages import Prediction, Request, Spec


class Session:
    """A net that has been loaded once, to be sure. After predict() `said` has what was done to the images, and `seen`
    the pictures as they were before the net's own preparation."""

    def __init__(self, spec: Spec):
        self.spec, self.said, self.seen = spec, [], []
        self.classes = labels.read_classes(spec.classes) if spec.classes else None
        if spec.net is not None:
            self.net = targets.paper_net(spec.net, spec.dataset, spec.weights, spec.training_seed, spec.options,
                                         prepare=True)
            if spec.digits and self.net.shape != (1, digits.SIDE, digits.SIDE):
                raise UserError('%s takes no digits like those of MNIST' % self.net.name)
        else:
            if not spec.weights:
                raise UserError('%s: needs --weights too' % spec.prototxt)
            self.net = targets.own_net(spec.prototxt, spec.weights, spec.options, spec.shape, spec.output)
        engine.require_device(spec.gpu)
        if len(self.net.shape) == 3 and all(self.net.shape):  # else it can be tried with images only
            self._try()

    def _try(self):
        """Refuses weights and options that do not fit, before there are images."""
        shape, transform = self.net.shape, self.net.transform
        size = transform.resize or shape[1:]
        if transform.mean is not None and transform.mean.shape[1:] != (1, 1):
            size = transform.mean.shape[1:]
        size = tuple(max(side, transform.crop or 0) for side in size)
        target = self._target(sources.Arrays(np.zeros((1, shape[0]) + size, np.float32), transform))
        evaluation.prepare(target, evaluation.Settings(T=2, repeats=1, seed=1, mode='stream'))

    def about(self) -> Dict[str, Any]:
        """What a user may want to know of it."""
        message = self.net.message
        if message is None:
            message = nets.deploy(self.net.entry.net, self.net.entry.base)
        return dict(name=self.net.name, shape=self.net.shape, weights=os.path.abspath(self.net.weights),
                    order=self.net.transform.order, dropout=facts.dropouts(message), names=self._names())

    def _names(self):
        if self.classes is None and self.spec.net is not None:
            return list(show.NAMES[self.net.entry.base])
        return self.classes

    def _target(self, source):
        net = self.net if source.pictures else self.net._replace(options=self.net.options._replace(channels=None))
        return targets.on_images(net, source, standard_only=self.spec.standard_only)

    def predict(self, request: Request) -> Tuple[Prediction, List[str]]:
        """(Prediction, warnings) of a Request."""
        self.said = []
        target = self._target(self._source(request))
        settings = evaluation.prepare(target, _settings(request, self.spec.gpu))
        if request.keep_samples and settings.mode == 'adaptive':
            raise UserError('samples cannot be kept with adaptive T, where each image has its own number of passes')
        jobs = 1 if self.spec.gpu is not None else request.jobs
        plain, sampled = evaluation.in_memory(target, settings, jobs, request.keep_samples)
        self.said[:0] = target.notes
        return _prediction(plain, sampled, self._names()), list(target.warnings)

    def _source(self, request):
        if isinstance(request.images, np.ndarray):
            return sources.Arrays(request.images, self.net.transform, classes=self.classes)
        items, names = list(request.images), request.names
        if self.spec.digits:
            for i, item in enumerate(items):
                picture = item if isinstance(item, np.ndarray) else pictures.read(item, grey=True)
                items[i], what = digits.from_photo(picture, names[i])
                self.said.append('%s: %s' % (names[i], what))
        self.seen = items
        return sources.Pictures(items, self.net.transform, names=names, classes=self.classes)


def _settings(request, gpu):
    mode = 'antithetic' if request.antithetic else 'stream'
    return evaluation.Settings(T=request.T, repeats=1, seed=request.seed, batch=request.batch, gpu=gpu,
                               mode=mode if request.adaptive is None else 'adaptive',
                               groups=0 if request.antithetic else None, streams=seeds.VERSIONS[-1],
                               rule=None if request.adaptive is None else adaptive.Rule(request.adaptive))


def _prediction(plain, sampled, names):
    if sampled is None:
        return Prediction(standard=plain['probs'], names=names)
    columns = {name: values[0] for name, values in summary.per_image([sampled]).items()}
    return Prediction(standard=plain['probs'], mean=columns['mc_probs'], std=summary.spread(sampled).astype(np.float32),
                      names=names, samples=sampled.get('samples'),
                      **{name: columns[name] for name in summary.UNCERTAINTY + ('passes',)})
