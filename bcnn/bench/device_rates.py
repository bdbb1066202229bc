"""What a device can do at all, asked of Caffe on it: products of large matrices, and copies of its memory.

For a GPU, whose rates nothing but Caffe can measure here. A layer is run many times, then its output is summed
up and the sum read, which waits for all of it.
"""

import time
from typing import Dict, Optional

from google.protobuf import text_format

from .. import engine
from ..errors import UserError
from .measuring import CLOCKS, Rates

SIZE = 4096  # of square matrices
NOTES = '%d x %d matrices' % (SIZE, SIZE), '%d MB read, as many written' % (4 * SIZE ** 2 >> 20)
NET = '''
layer {{ name: "x" type: "Input" top: "x" input_param {{ shape {{ dim: {n} dim: {n} }} }} }}
layer {{ name: "product" type: "InnerProduct" bottom: "x" top: "y"
         inner_product_param {{ num_output: {n} bias_term: false weight_filler {{ type: "constant" value: 1e-4 }} }} }}
layer {{ name: "copy" type: "Dropout" bottom: "y" top: "z" }}
layer {{ name: "sum" type: "Reduction" bottom: "z" top: "sum" }}
'''
PRODUCT, COPY, SUM = 1, 2, 3


def rates(gpu: Optional[int], size: int = SIZE, times: int = 20) -> Dict[str, Rates]:
    """{clock: Rates} of a device just now, the CPU for None; both by the clock on the wall."""
    def child():
        engine.use_device(gpu)
        net = engine.load_net(text_format.Parse(NET.format(n=size), engine.caffe_pb2.NetParameter()))
        net.blobs['x'].data[...] = 1
        net.forward()
        return [_seconds(net, layer, times) for layer in (PRODUCT, COPY)]

    product, copy = engine.call(child)
    return dict.fromkeys(CLOCKS, Rates(sgemm=2.0 * size ** 3 / product, memory=2.0 * 4 * size ** 2 / copy))


def _seconds(net, layer, times):
    """What a layer takes once: what so many take longer than one, each the shortest of three."""
    def run(count):
        start = time.time()
        for _ in range(count):
            net._forward(layer, layer)
        net._forward(SUM, SUM)
        float(net.blobs['sum'].data)
        return time.time() - start

    run(1)
    few, many = (min(run(count) for _ in range(3)) for count in (1, 1 + times))
    if many <= few:
        raise UserError('no rate: the machine is too busy to measure it')
    return (many - few) / times
