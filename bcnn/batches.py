"""How many images a batch may have: on the CPU a constant, on a GPU what its memory holds."""

from typing import NamedTuple, Optional

from . import engine
from .errors import UserError
from .system import cuda

SIZES = (1000, 500, 200, 100, 50, 20, 10, 5, 2, 1)
# A constant, not this machine's free memory: the masks that a seed gives depend on the batch, and the same command
# should give the same numbers everywhere. The speed hardly depends on it (Caffe's convolutions work image by image).
CPU_BYTES = 400e6
# Of all the memory that a GPU has, so that it is the same on all of its kind. The rest is for the masks, the Standard
# net, the weights and CUDA itself.
GPU_SHARE = 0.4
MOST_VALUES = (1 << 31) - 1  # of a blob: Caffe counts them in 31 bits


class Need(NamedTuple):
    """What an image of a batch takes."""

    bytes: float    # of all blobs
    values: float   # of the largest blob


def need_of(net: engine.CaffeNet) -> Need:
    """The Need of an image, from a loaded net."""
    rows = net.blobs[net.inputs[0]].data.shape[0]
    counts = [blob.count for blob in net.blobs.values()]
    return Need(sum(counts) * 4 / rows, max(counts) / rows)


def fitting(need: Need, copies: int = 1, budget: float = CPU_BYTES) -> int:
    """The largest round number of images whose blobs fit the budget, with so many copies of each; at least 1."""
    return next((size for size in SIZES if fits(size, need, copies, budget)), 1)


def fits(size: int, need: Need, copies: int, budget: float) -> bool:
    return size * copies * need.bytes <= budget and size * copies * need.values <= MOST_VALUES


def budget_of(gpu: Optional[int]) -> float:
    """The bytes that the blobs of a batch may take on the CPU (None) or on a GPU."""
    return CPU_BYTES if gpu is None else GPU_SHARE * engine.gpus()['gpus'][gpu]['memory']


def free_on(gpu: int) -> int:
    """The bytes that are free on a GPU, less what any process needs to use it at all."""
    def child():
        engine.use_device(gpu)
        return cuda.free_memory()
    return engine.call(child)


def explained(error: Exception, gpu: Optional[int], batch: int, need: Need, copies: int = 1) -> Exception:
    """What to raise in the place of a CaffeError: where a GPU's memory ran out, with the batch that would fit."""
    if gpu is None or not cuda.is_lack_of_memory(str(error)):
        return error
    free = free_on(gpu)
    smaller = [size for size in SIZES if size < batch and fits(size, need, copies, 2 * GPU_SHARE * free)]
    advice = '--batch %d would fit' % smaller[0] if smaller else 'not even --batch 1 would fit'
    return UserError('GPU %d has not enough memory for batches of %d images, which take about %d MB; %d MB are free: %s'
                     % (gpu, batch, batch * copies * need.bytes / 1e6, free / 1e6, advice))
