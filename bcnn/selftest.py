"""Known answers that a working Caffe must give, before anything is built on it."""

import importlib
from typing import Optional

import numpy as np
from google.protobuf import text_format

from . import engine
from .errors import UserError

# What the tools import; importing it here shows that it is there.
PACKAGES = ('hypothesis', 'lmdb', 'matplotlib.pyplot', 'pandas', 'PIL.Image', 'pyflakes.api', 'pytest', 'scipy.linalg',
            'snakemake', 'tqdm')

# A TEST net: 3 ones times weights of 2 is 6; the dropout layer keeps sampling by its phase.
NET = '''
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 400 dim: 3 } } }
layer { name: "y" type: "InnerProduct" bottom: "x" top: "y"
        inner_product_param { num_output: 4 weight_filler { type: "constant" value: 2 } } }
layer { name: "sampled" type: "Dropout" bottom: "y" top: "sampled" phase: TRAIN }
layer { name: "identity" type: "Dropout" bottom: "y" top: "identity" }
'''


def check(blas: Optional[str] = None) -> str:
    """One line that describes this Caffe; raises UserError where an answer is wrong."""
    for package in PACKAGES:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise UserError('the Python package %s does not load: %s' % (package, error))
    net = engine.load_net(text_format.Parse(NET, engine.caffe_pb2.NetParameter()))
    engine.set_seed(1)
    net.blobs['x'].data[...] = 1
    net.forward()
    _expect('InnerProduct', net.blobs['y'].data, np.full((400, 4), 6))
    _expect('Dropout in a TEST net', net.blobs['identity'].data, np.full((400, 4), 6))
    sampled = net.blobs['sampled'].data
    _expect('Dropout with phase TRAIN', np.unique(sampled), [0, 12])
    if not 0.4 < np.mean(sampled == 0) < 0.6:  # 1600 fair coins: 0.4 is 8 standard deviations off
        raise UserError('Dropout with phase TRAIN zeroes %.3f of its inputs, not 0.5' % np.mean(sampled == 0))
    software = engine.describe()
    if blas and software['blas'] != blas:
        raise UserError('Caffe computes with the BLAS %r, not %r' % (software['blas'], blas))
    return ('Caffe %(caffe)s works: Python %(python)s, numpy %(numpy)s, protobuf %(protobuf)s, '
            'BLAS %(blas)s (%(blas_kernel)s)' % software)


def _expect(what, answer, right):
    if np.shape(answer) != np.shape(right) or not np.array_equal(answer, right):
        raise UserError('%s gives a wrong answer here: this Caffe is broken' % what)
