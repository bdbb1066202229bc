"""A small net with weights and images of its own, and digits of noise, for the tests of evaluations."""

import numpy as np

from bcnn import engine
from bcnn.mc import targets
from bcnn.prototxt import reading, rewriting

NET = '''
name: "small"
layer { name: "data" type: "Data" top: "data" top: "label" transform_param { scale: 0.1 }
        data_param { source: "nowhere" batch_size: 4 backend: LMDB } }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
        inner_product_param { num_output: 8 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
        inner_product_param { num_output: 3 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
'''


def small_target(folder, count):
    """The Target of the small net with weights and `count` images, in a folder."""
    (folder / 'net.prototxt').write_text(NET)
    rng = np.random.RandomState(0)
    np.savez(str(folder / 'images.npz'), images=rng.randn(count, 1, 2, 3) * 10, labels=rng.randint(0, 3, count))
    engine.set_seed(7)
    net = engine.load_net(rewriting.to_deploy(reading.read(str(folder / 'net.prototxt')), (1, 2, 3), 1))
    net.save(str(folder / 'w.caffemodel'))
    return targets.of_prototxt(str(folder / 'net.prototxt'), str(folder / 'w.caffemodel'), str(folder / 'images.npz'))


def write_digits(path, count, rng):
    """Writes `count` images of the size of digits, all noise, with labels."""
    np.savez(str(path), images=rng.randint(0, 256, (count, 1, 28, 28)).astype(np.uint8), labels=rng.randint(0, 10, count))
