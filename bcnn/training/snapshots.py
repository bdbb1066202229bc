"""Snapshots of a solver: complete or absent, and movable.

One folder each, snapshots/stage1-00000500/, which appears by a rename:

    weights.caffemodel     as Caffe writes it
    solver.solverstate     iteration and momentum; without the path of the weights that Caffe puts in
    state.json             the rest of the driver's state, and the checksums of the other two
"""

import hashlib
import json
import os
from typing import Callable, Iterable, List, NamedTuple, Optional, Tuple

from ..engine import CaffeSolver, caffe_pb2, parse_bytes
from ..errors import UserError
from ..system import files, progress
from ..system.places import SNAPSHOTS, STATE, stored

WEIGHTS, SOLVER = 'weights.caffemodel', 'solver.solverstate'
PREFIX = os.path.join(SNAPSHOTS, '.caffe', 'new')  # where Caffe itself writes, in a run's folder


class Snapshot(NamedTuple):
    """A snapshot that is there."""

    path: str
    stage: int
    iteration: int
    losses: List[float]   # of the last iterations, for the curve


# --- writing ---------------------------------------------------------------------------------

def write(run: str, stage: int, solver: CaffeSolver, losses: Iterable[float]) -> Snapshot:
    """The Snapshot of a solver now; the solver's snapshot_prefix is PREFIX in the run's folder."""
    path = os.path.join(run, SNAPSHOTS, 'stage%d-%08d' % (stage, solver.iter))
    with files.explained(path):
        weights, state = _ask_caffe(run, solver)
        record = {'stage': stage, 'iteration': solver.iter, 'losses': list(losses),
                  'sha256': {WEIGHTS: _sha256(weights), SOLVER: _sha256(state)}}
        with files.atomic(path, folder=True) as temporary:
            for name, data in ((WEIGHTS, weights), (SOLVER, state), (STATE, json.dumps(record).encode())):
                with open(os.path.join(temporary, name), 'wb') as file:
                    file.write(data)
    return Snapshot(path, stage, solver.iter, list(losses))


def _ask_caffe(run, solver):
    """The bytes of the weights and of the solver's state, checked: Caffe does not notice a full disk."""
    raw = os.path.join(run, PREFIX + '_iter_%d' % solver.iter)
    os.makedirs(os.path.dirname(raw), exist_ok=True)
    try:
        solver.snapshot()
        with open(raw + '.caffemodel', 'rb') as file:
            weights = file.read()
        with open(raw + '.solverstate', 'rb') as file:
            state = parse_bytes(caffe_pb2.SolverState(), file.read())
        stored = {layer.name: [len(blob.data) for blob in layer.blobs]
                  for layer in parse_bytes(caffe_pb2.NetParameter(), weights).layer if layer.blobs}
    except (OSError, ValueError) as error:
        raise UserError('%s: Caffe could not write a snapshot (%s): is the disk full?' % (raw, error))
    finally:
        files.remove(raw + '.caffemodel')
        files.remove(raw + '.solverstate')
    sizes = {name: [blob.count for blob in blobs] for name, blobs in solver.net.params.items()}
    if stored != sizes or not state.history:
        raise UserError('%s: Caffe could not write a whole snapshot: is the disk full?' % raw)
    state.ClearField('learned_net')  # a path, which would tie the snapshot to this place
    return weights, state.SerializeToString()


def _sha256(data):
    return hashlib.sha256(data).hexdigest()


# --- reading ---------------------------------------------------------------------------------

def newest(run: str) -> Optional[Snapshot]:
    """The newest Snapshot that is undamaged, or None; says which ones it had to pass over, and removes them."""
    for stage, iteration, path in reversed(stored(run)):
        damage, losses = problem(path, stage, iteration)
        if damage is None:
            return Snapshot(path, stage, iteration, losses)
        progress.say('%s: damaged (%s): going back to the snapshot before it' % (path, damage))
        remove(path)
    return None


def problem(path: str, stage: int, iteration: int) -> Tuple[Optional[str], Optional[List[float]]]:
    """(what is wrong with a snapshot or None, its losses)."""
    try:
        with open(os.path.join(path, STATE)) as file:
            state = json.load(file)
        for name, digest in sorted(state['sha256'].items()):
            with open(os.path.join(path, name), 'rb') as file:
                if _sha256(file.read()) != digest:
                    return '%s has changed' % name, None
        if (state['stage'], state['iteration'], sorted(state['sha256'])) != (stage, iteration, [SOLVER, WEIGHTS]):
            return '%s is of another snapshot' % STATE, None
        return None, [float(loss) for loss in state['losses']]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return '%s: %s' % (type(error).__name__, error), None


def restore(solver: CaffeSolver, snapshot: Snapshot) -> None:
    """Gives a new solver a snapshot's weights, momentum and iteration."""
    solver.restore(os.path.join(snapshot.path, SOLVER))
    solver.net.copy_from(os.path.join(snapshot.path, WEIGHTS))


# --- thinning --------------------------------------------------------------------------------

def thin(run: str, keep: Callable[[int], bool]) -> None:
    """Removes old snapshots, but the last two and those whose iteration keep(iteration) wants."""
    for _, iteration, path in stored(run)[:-2]:
        if not keep(iteration):
            remove(path)


def remove(path: str) -> None:
    """Removes a snapshot; interrupted half way, it counts as removed."""
    files.remove(os.path.join(path, STATE))
    files.remove(path)
