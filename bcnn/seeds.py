"""Seeds for Caffe, made of what they are for: a stream and the numbers of its draw; the same on every machine.

Streams, with their numbers:

    solver       seed, stage, segment              initial weights, and the crops and mirrors of a segment
    step         seed, stage, iteration            the masks of a training step
    measurement  seed, stage, iteration, block     those of a test error on the way
    masks        seed, repetition, block           those of an evaluation
    antithetic   seed, repetition, start, batch    and of one with opposite pairs of them
    crops        seed, repetition, start, crops    the random views of an evaluation

Version 1 made seeds of the numbers alone, so that an evaluation's (seed, repetition, block) could be a
training's (seed, stage, iteration), and draw the same masks. Version 2 puts the name of the stream first: no
two meet. A config names its version, and one without it goes on with 1, so that recorded numbers stay as they are.
"""

import hashlib
from typing import Any, Dict, Optional, Tuple

from . import engine
from .errors import UserError

VERSIONS = 1, 2


def seed_for(*parts: Any) -> int:
    """A seed for Caffe from any parts, the same on every machine."""
    digest = hashlib.sha256('/'.join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], 'big') >> 1  # Caffe takes 31 bits


def use_seed(*parts: Any) -> None:
    """Seed Caffe from these parts."""
    engine.set_seed(seed_for(*parts))


def parts_of(version: int, stream: str, *numbers: int) -> Tuple[Any, ...]:
    """What the seed of a stream is made of."""
    return numbers if version == 1 else (stream,) + numbers


def version_for(config: Optional[Dict[str, Any]], asked: Optional[int] = None) -> int:
    """The version of the streams: the one asked for, that of a stored config, or the newest where there is none."""
    if asked is not None or config is None:
        return asked or VERSIONS[-1]
    version = config.get('streams', 1)
    if version not in VERSIONS:
        raise UserError('made with streams %s of random numbers, which this version does not know' % version)
    return version
