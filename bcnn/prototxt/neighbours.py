"""Other prototxts beside a net's: the training net that a deploy file was made of knows what that does not say."""

import glob
import os
from typing import Iterator, Tuple

from ..engine import caffe_pb2
from ..errors import UserError
from . import facts, reading


def training_nets(path: str, net: caffe_pb2.NetParameter) -> Iterator[Tuple[str, caffe_pb2.NetParameter]]:
    """(name, NetParameter) of each prototxt beside this one that has its layers with weights, and a data layer."""
    wanted = facts.learned(net)
    for other in sorted(glob.glob(os.path.join(glob.escape(os.path.dirname(os.path.abspath(path))), '*.prototxt'))):
        try:
            message = reading.read(other)
        except (UserError, OSError):
            continue
        if os.path.basename(other) != os.path.basename(path) and wanted and wanted <= facts.learned(message) \
                and facts.data_layer(message) is not None:
            yield os.path.basename(other), message
