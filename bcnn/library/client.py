"""A net as a user of the library holds it. Caffe is in a process of its own, bcnn.library.server."""

import contextlib
import importlib.util
import multiprocessing
import os
import subprocess
import sys
import warnings
from typing import Any, List, Optional, Sequence

import numpy as np

from ..errors import CaffeError, UserError
from ..inputs import pictures
from ..inputs.preprocessing import Options
from ..system import blas, places
from .messages import Prediction, Request, Spec

START = 'import sys; sys.path[0:0] = sys.argv[3:4]; sys.path += sys.argv[4:]; ' \
        'from bcnn.library import server; server.serve(int(sys.argv[1]), int(sys.argv[2]))'


def load(prototxt: Optional[str], weights: Optional[str], net: Optional[str], options: Options, **more: Any) -> 'Net':
    """The Net of what a user says; paths are made absolute, for a process that is started again later."""
    if (net is None) == (prototxt is None) or net is None and weights is None:
        raise UserError('load takes a prototxt and its weights, or net=NAME for a net of the paper')
    paths = {name: path and os.path.abspath(os.fspath(path)) for name, path in
             (('prototxt', prototxt), ('weights', weights), ('classes', more.pop('classes')))}
    if isinstance(options.mean, (str, os.PathLike)) and os.path.exists(options.mean):
        options = options._replace(mean=os.path.abspath(os.fspath(options.mean)))
    return Net(Spec(net=net, options=options, **dict(paths, **more)))


class Net:
    """A net with its weights, ready for predict(). Its Caffe process ends with it, or at close()."""

    name: str            # of the net
    shape: tuple         # of an image as the net takes it: channels, height, width; 0 for what it does not tell
    dropout: List[str]   # its dropout layers
    names: Optional[List[str]]  # of the classes, where they are known

    def __init__(self, spec: Spec) -> None:
        self._spec, self._process, self._pipe = spec, None, None
        about = self._ask('load', None)
        self.name, self.shape, self.dropout = about['name'], about['shape'], about['dropout']
        self.names, self.weights, self._order = about['names'], about['weights'], about['order']

    def predict(self, images: Any, T: int = 50, seed: int = 1, adaptive: Any = False, antithetic: bool = False,
                keep_samples: bool = False, channels: Optional[str] = None, batch: Optional[int] = None,
                jobs: Optional[int] = None) -> Prediction:
        """The Prediction for some images, each with T stochastic passes.

        images: an array N,C,H,W or N,H,W,C (N,H,W for a grey net), the name of a file or a list of names, a PIL
        picture or a list of them. channels: the order of an array's colours, 'rgb' or 'bgr'; by default that which the
        net takes. adaptive: True, or the probability of settling on another class, samples each image only until its
        class after T passes is settled. antithetic: opposite masks. keep_samples: every pass too. batch, jobs
        (processes): speed; only `batch` changes the random numbers. The same seed gives the same numbers as
        tools/mc_eval.py does for the same images.
        """
        items, names = self._images(images, channels)
        answer, said = self._ask('predict', Request(
            images=items, names=names, T=int(T), seed=int(seed), antithetic=bool(antithetic), batch=batch,
            adaptive=0.01 if adaptive is True else None if adaptive is False else adaptive,
            keep_samples=bool(keep_samples), jobs=int(jobs or os.cpu_count() or 1)))
        for text in said:
            warnings.warn(text, stacklevel=2)
        return answer

    # --- images ------------------------------------------------------------------------------

    def _images(self, images, channels):
        """(array N,C,H,W or list of paths and pictures, names) of what a user gives."""
        if channels not in (None, 'rgb', 'bgr'):
            raise UserError('channels %r: it is rgb or bgr' % (channels,))
        if isinstance(images, (str, os.PathLike)) or _is_pil(images):
            images = [images]
        if isinstance(images, np.ndarray):
            return self._array(images, channels), None
        if not isinstance(images, Sequence) or not images:
            raise UserError('images are an array, names of files, or PIL pictures; not %s' % type(images).__name__)
        items, names = [], []
        for i, item in enumerate(images):
            if _is_pil(item):
                items.append(pictures.of_pil(item))
                names.append('picture %d' % i)
            elif isinstance(item, (str, os.PathLike)):
                items.append(os.path.abspath(os.fspath(item)))
                names.append(os.fspath(item))
            else:
                raise UserError('image %d is %s; a list holds names of files or PIL pictures, and arrays are one array '
                                'N,C,H,W or N,H,W,C' % (i, type(item).__name__))
        return items, names

    def _array(self, images, channels):
        wanted = self.shape[0] if len(self.shape) == 3 else 0
        if images.dtype.kind not in 'uif' or not images.size:
            raise UserError('an array of images has numbers in it; this is of %s, shape %s'
                            % (images.dtype, images.shape))
        if images.ndim == 3 and wanted == 1:
            images = images[:, None]
        if images.ndim != 4:
            raise UserError('an array of images is N,C,H,W or N,H,W,C; this has shape %s' % (images.shape,))
        first, last = (images.shape[axis] in ((wanted,) if wanted else (1, 3)) for axis in (1, 3))
        if first and last and images.shape[1:] != tuple(self.shape):
            raise UserError('an array of shape %s may be N,C,H,W or N,H,W,C: give it as N,C,H,W of %s'
                            % (images.shape, 'x'.join(map(str, self.shape)) or 'the net'))
        if not first and not last:
            raise UserError('an array of shape %s is no images for a net of %s channels'
                            % (images.shape, wanted or 'that many'))
        images = images if first else images.transpose(0, 3, 1, 2)
        if channels not in (None, self._order) and images.shape[1] == 3:
            images = images[:, ::-1]
        if images.dtype.kind != 'f' and images.dtype != np.uint8:
            images = images.astype(np.uint8 if images.min() >= 0 and images.max() <= 255 else np.float32)
        return np.ascontiguousarray(images)

    # --- the process with Caffe ----------------------------------------------------------------

    def _ask(self, method, argument):
        """The answer of the server; started, or started again, if it is not there."""
        try:
            if self._process is None or self._process.poll() is not None:
                self._start()
                if method != 'load':
                    self._call('load', self._spec)
            return self._call(method, self._spec if method == 'load' else argument)
        except BaseException as error:
            if not isinstance(error, UserError) or isinstance(error, _Gone):
                self.close()  # interrupted, or out of step: the next call begins with a new process
            raise

    def _start(self):
        if importlib.util.find_spec('caffe') is None:
            raise UserError('no Caffe for %s: tools/setup.sh of the project makes a Python that has it%s' % (
                sys.executable, ', ' + os.path.join(places.ROOT, '.caffe', 'bin', 'python') if places.IS_CLONE else ''))
        environment = dict(os.environ)
        blas.prepare(environment=environment)
        # last, so that they hide nothing: the user's modules, for Python layers
        more = [path or os.getcwd() for path in sys.path]
        more += [path for path in os.environ.get('BCNN_PYTHONPATH', '').split(os.pathsep) if path]
        self._pipe, other = multiprocessing.Pipe()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, '-I', '-c', START, str(other.fileno()), str(os.getpid()), places.IMPORTED_FROM] + more,
                env=environment, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, start_new_session=True)

    def _call(self, method, argument):
        try:
            self._pipe.send((method, argument))
            answer, error = self._pipe.recv()
        except (EOFError, OSError):
            raise _Gone('the Caffe process has died, most often because memory ran out')
        if error is not None:
            kind, text = error
            raise kind(text)
        return answer

    def close(self) -> None:
        """Ends the Caffe process; predict() would start another."""
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(OSError):
                self._pipe.close()
            process.kill()
            process.wait()

    def __enter__(self) -> 'Net':
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, '_process', None) is not None:
            self.close()

    def __repr__(self) -> str:
        return '<bcnn net %s, images of %s, dropout %s>' % (
            self.name, 'x'.join(map(str, self.shape)) or 'any size', ', '.join(self.dropout) or 'none')


class _Gone(CaffeError):
    """The server is there no more."""


def _is_pil(thing):
    return hasattr(thing, 'convert') and hasattr(thing, 'getbands')
