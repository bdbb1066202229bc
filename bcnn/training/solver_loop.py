"""The training loop: Caffe's solver, step by step, so that any iteration can be the last and none is lost.

Why a run that was interrupted ends in the same bytes as one that was not (on the CPU):

  - Dropout masks: Caffe's random numbers are seeded before each iteration from (seed, stage,
    iteration; see bcnn.seeds). (Not before the first of a stage: there they go on from the
    initial weights, as in `caffe train`.)
  - Crops and mirrors are drawn in the data layer's own thread from a generator that is seeded
    when the layer is made. Where a net has them, training is a chain of segments that end
    where the layer is back at its first record, and each segment has a new solver, made after
    seeding from (seed, stage, segment), interrupted or not.
  - Going on inside a segment, the solver is made as the segment's was, then the data layer
    alone runs over the batches that have been used.
  - Momentum, weights and iteration are in the snapshot, exactly.
"""

import math
import os
import signal
import time
import weakref
from collections import deque
from typing import Any, Dict, Optional

import numpy as np

from .. import engine, seeds, solvers
from ..errors import UserError
from ..system import files, places, progress, store
from . import curve, snapshots, test_error, trainees
from .display import Display
from .trainees import Settings, Stage, Trainee

SNAPSHOT_SECONDS = 60.0   # what kill -9 may cost
SNAPSHOT_SHARE = 0.01     # of the time that snapshots may take, where one takes long
STUCK = 87.3365           # -ln(FLT_MIN): SoftmaxWithLoss of a net that is certain and wrong, or NaN on a GPU
STUCK_FOR = 20            # losses in a row
LOSS_EVERY = 10           # iterations between two looks at the loss on a GPU, each of which waits for it


class Diverged(UserError):
    """The loss has gone where no training comes back from."""

    exit_code = 1


def train(trainee: Trainee, settings: Settings, run: str) -> Optional[int]:
    """The number of the signal that stopped the run, None when it is complete. For a process of its own."""
    return _Loop(trainee, settings, run).go()


class _Loop:
    def __init__(self, trainee, settings, run):
        self.trainee, self.settings, self.run = trainee, settings, run
        self.signal, self.measuring = None, False
        for number in engine.SIGNALS:
            signal.signal(number, self._note)
        engine.use_device(settings.gpu)
        self.path, self.wrong_path = os.path.join(run, places.CURVE), os.path.join(run, places.WRONG)
        # Made before the solver, which draws its initial weights from its own seed.
        self.tester = None
        if settings.points != 'none':
            self.tester = test_error.Tester(trainee, settings)
        self.first = trainees.first_stage(settings.iterations)
        self.watch = Display(run, settings.iterations)
        self.losses, self.bad = deque(maxlen=curve.LOSSES), 0

    def _note(self, number, _frame):
        """A signal: the step in hand is finished first, a measurement is given up."""
        self.signal = number
        if self.measuring:
            raise KeyboardInterrupt

    def _parts(self, stream, *numbers):
        """What the seed of a stream of this run is made of."""
        return seeds.parts_of(self.settings.streams, stream, self.settings.seed, *numbers)

    # --- stages and segments

    def go(self):
        snapshot = snapshots.newest(self.run)
        self._settle_curve(snapshot)
        first = snapshot.stage if snapshot else self.first
        for stage in range(first, len(self.trainee.stages) + 1):
            self._train_stage(stage, snapshot if stage == first else None)
            if self.signal:
                break
        self.watch.end(self.losses[-1] if self.losses else None)
        return self.signal

    def _settle_curve(self, snapshot):
        """Keeps the rows up to the snapshot that are wanted: a run that is made longer has other last ones."""
        reached = (snapshot.stage, snapshot.iteration) if snapshot else (0, 0)

        def kept(rows):
            return [row for row in rows
                    if (row.stage, row.iteration) <= reached and self._due(row.stage, row.iteration)]

        self.rows, self.wrong = kept(curve.read(self.path)), kept(curve.read_wrong(self.wrong_path))
        measured = {(row.stage, row.iteration) for row in self.rows}
        self.wrong = [row for row in self.wrong if (row.stage, row.iteration) in measured]
        curve.write(self.path, self.rows)
        curve.write_wrong(self.wrong_path, self.wrong)

    def _train_stage(self, stage, snapshot):
        """A stage from a snapshot or from its beginning; ends with the file of its weights, or on a signal."""
        last = self.settings.iterations[stage - 1]
        length = segment_length(self.trainee, stage)
        self.losses = deque(snapshot.losses if snapshot else (), maxlen=curve.LOSSES)
        self.saved, self.saved_at, self.cost = snapshot.iteration if snapshot else 0, time.monotonic(), 0.0
        while True:
            done = snapshot.iteration if snapshot else 0
            self.watch.at(stage, done)
            solver = self._solver(stage, snapshot, length)
            self._steps(solver, stage, min(last, (done // length + 1) * length if length else last))
            if self.signal:
                return
            if solver.iter == last:
                break
            snapshot = self._snapshot(solver, stage)
            del solver  # before the next is made: two would need twice the memory
        path = os.path.join(self.run, weights_name(stage, len(self.trainee.stages)))
        save_weights(solver.net, path, self.trainee.stages[stage - 1])

    def _solver(self, stage, snapshot, length):
        """The solver of the segment that a snapshot is in (None: the first), ready for its next iteration."""
        done = snapshot.iteration if snapshot else 0
        segment = done // length if length else 0
        message = stage_message(self.trainee, self.settings, stage, self.run)
        message.random_seed = seeds.seed_for(*self._parts('solver', stage, segment))
        # Its data layer has a thread of its own, which must not take the signals: Python learns of
        # those too late where another thread gets them.
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, engine.SIGNALS)
        solver = engine.load_solver(message)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        if self.trainee.stages[stage - 1].companions:
            # Through a proxy: a solver that its own callback refers to would never be freed.
            solvers.decay_companions(weakref.proxy(solver), message, self.trainee.schedule)
        if snapshot:
            snapshots.restore(solver, snapshot)
            for _ in range((done - segment * length) % cycle(self.trainee, stage)):
                solver.net._forward(0, 0)
            seeds.use_seed(*self._parts('step', stage, done))
        elif stage > self.first:
            hand_on(os.path.join(self.run, weights_name(stage - 1, len(self.trainee.stages))), solver.net)
        elif self.trainee.init:
            solver.net.copy_from(self.trainee.init)
        if self.tester:
            self.tester.share(solver.net)
        return solver

    # --- iterations

    def _steps(self, solver, stage, stop):
        """Iterations up to `stop`, or to a signal, with what is due between them."""
        every_step = self.settings.gpu is None
        look = 1 if every_step else LOSS_EVERY
        loss_blobs = [solver.net.blobs[name] for name in solver.net.outputs]
        message = self.trainee.stages[stage - 1].solver

        def lr():
            return curve.learning_rate(message, solver.iter)

        while True:
            iteration = solver.iter
            self._between(solver, stage, iteration, lr)
            if self.signal or iteration >= stop:
                return
            if iteration and every_step:  # on a GPU seeding costs, and other things vary as well
                seeds.use_seed(*self._parts('step', stage, iteration))
            solver.step(1)
            if not self.losses or solver.iter % look == 0 or self._due(stage, solver.iter):
                self._look(loss_blobs, stage, solver.iter)
            self.watch.step(solver.iter, self.losses[-1], lr)

    def _look(self, loss_blobs, stage, iteration):
        """Notes the loss of an iteration, and ends a run that is lost."""
        loss = math.fsum(float(blob.data) for blob in loss_blobs)
        self.losses.append(loss)
        if not self._is_sane(loss):
            self._diverged(stage, iteration, loss)

    def _between(self, solver, stage, iteration, lr):
        """What is due after an iteration: a snapshot, the test error. A signal is answered by a snapshot."""
        missing = self._due(stage, iteration) and (not self.rows or self.rows[-1][:2] != (stage, iteration))
        last = iteration == self.settings.iterations[stage - 1]
        if iteration != self.saved and (missing or last or self.signal or self._snapshot_due(iteration)):
            self._snapshot(solver, stage)
        if missing and not self.signal:
            self._measure(stage, iteration, lr())

    def _due(self, stage, iteration):
        due = curve.points(self.settings.points, self.trainee.stages[stage - 1].solver.test_interval)
        return due(iteration, self.settings.iterations[stage - 1])

    def _measure(self, stage, iteration, lr):
        try:
            with self.watch.measuring(self.losses[-1]):
                self.measuring = True
                if self.signal:  # came just before
                    raise KeyboardInterrupt
                wrong, passes = self.tester.wrong(stage, iteration, self.watch.measured)
                images = self.trainee.source.scan(self.trainee.count)[1]
                self.measuring = False
        except (KeyboardInterrupt, SystemExit) as error:  # ours, or engine.work's for SIGINT and SIGTERM
            self.measuring = False
            self.signal = self.signal or (signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM)
            return
        seeds.use_seed(*self._parts('step', stage, iteration))
        errors = [wrong[kind].sum() if kind in wrong else None for kind in ('standard', 'mc', 'mc_scores')]
        rule = self.tester.rule
        self.rows.append(curve.row(stage, iteration, lr, self.losses, errors, self.trainee.count, self.settings.T,
                                   (rule.error, passes) if rule else None))
        wrong.pop('mc_scores', None)
        self.wrong += curve.wrong_rows(stage, iteration, wrong, images)
        curve.write_wrong(self.wrong_path, self.wrong)  # before the curve: a point that is there is complete
        curve.write(self.path, self.rows)
        progress.say('%siteration %d: %s, train loss %s' % (
            'stage %d, ' % stage if len(self.trainee.stages) > 1 else '', iteration, curve.percent(self.rows[-1]),
            self.rows[-1].train_loss))

    # --- snapshots and divergence

    def _snapshot_due(self, iteration):
        if self.bad:
            return False
        if self.settings.snapshot_every:
            return iteration % self.settings.snapshot_every == 0
        return time.monotonic() - self.saved_at > max(SNAPSHOT_SECONDS, self.cost / SNAPSHOT_SHARE)

    def _snapshot(self, solver, stage):
        start = time.monotonic()
        if not all(np.isfinite(blob.data).all() for blobs in solver.net.params.values() for blob in blobs):
            self._diverged(stage, solver.iter, float('nan'))
        snapshot = snapshots.write(self.run, stage, solver, self.losses)
        snapshots.thin(self.run, curve.log_spaced)
        self.saved, self.saved_at = solver.iter, time.monotonic()
        self.cost = self.saved_at - start
        return snapshot

    def _is_sane(self, loss):
        self.bad = self.bad + 1 if abs(loss - STUCK) < 0.001 else 0
        return math.isfinite(loss) and self.bad < STUCK_FOR

    def _diverged(self, stage, iteration, loss):
        record = {'stage': stage, 'iteration': iteration, 'loss': str(loss)}
        store.write_json(os.path.join(self.run, places.DIVERGED), record)
        raise Diverged(divergence(self.run, record))


def divergence(run: str, record: Dict[str, Any]) -> str:
    """What to say of a run that diverged."""
    last = places.stored(run)
    kept = 'its last good snapshot is %s' % last[-1][2] if last else 'before its first snapshot'
    return ('%s: diverged at iteration %s (loss %s), %s. Likely causes: images that are not prepared as the net needs '
            'them (raw CIFAR-10 instead of the whitened set), or a learning rate that is too high. Remove the folder '
            'to start anew'
            % (run, record.get('iteration'), record.get('loss'), kept))


# --- data, solvers and weights of a stage ------------------------------------------------------

def data_layer(net: engine.NetParameter) -> engine.LayerParameter:
    """The data layer of a training net's TRAIN phase."""
    return next(layer for layer in net.layer if layer.type == 'Data'
                and not any(rule.phase == engine.TEST for rule in layer.include))


def cycle(trainee: Trainee, stage: int) -> int:
    """After how many iterations the data layer is back at record 0: 1,875 for MNIST at batch 64."""
    batch = data_layer(trainee.stages[stage - 1].net).data_param.batch_size
    return trainee.records // math.gcd(trainee.records, batch)


def segment_length(trainee: Trainee, stage: int) -> int:
    """The iterations of a segment; 0 (the stage is one segment) where the data layer draws no random numbers."""
    transform = data_layer(trainee.stages[stage - 1].net).transform_param
    return cycle(trainee, stage) if transform.mirror or transform.crop_size else 0


def stage_message(trainee: Trainee, settings: Settings, stage: int, run: str) -> engine.SolverParameter:
    """The SolverParameter that is run in a stage: the paper's, with our paths; testing and snapshots are ours."""
    message = engine.caffe_pb2.SolverParameter()
    message.CopyFrom(trainee.stages[stage - 1].solver)
    for field in ('test_iter', 'test_interval', 'display'):
        message.ClearField(field)
    message.net = os.path.join(run, net_name(trainee, stage))
    message.max_iter = settings.iterations[stage - 1]
    message.snapshot, message.snapshot_after_train = 0, False
    message.snapshot_prefix = os.path.join(run, snapshots.PREFIX)
    message.random_seed = seeds.seed_for(*seeds.parts_of(settings.streams, 'solver', settings.seed, stage, 0))
    gpu = settings.gpu is not None
    message.solver_mode = message.GPU if gpu else message.CPU
    if gpu:
        message.device_id = settings.gpu
    return message


def net_name(trainee: Trainee, stage: int) -> str:
    return os.path.basename(trainee.stages[stage - 1].solver.net)


def weights_name(stage: int, stages: int) -> str:
    return places.FINAL if stage == stages else 'stage%d.caffemodel' % stage


def save_weights(net: engine.CaffeNet, path: str, stage: Stage) -> None:
    """Writes a net's weights; paths of this machine in it are replaced by the published ones."""
    with files.atomic(path) as temporary:
        net.save(temporary)
        model = engine.caffe_pb2.NetParameter()
        with open(temporary, 'rb') as file:
            model.ParseFromString(file.read())
        for layer in model.layer:
            if layer.type == 'Data':
                layer.data_param.source = data_layer(stage.net).data_param.source
        with open(temporary, 'wb') as file:
            file.write(model.SerializeToString())


def hand_on(weights: str, net: engine.CaffeNet) -> None:
    """Gives a net the weights of the stage before; layers that it has no more (companions) are dropped."""
    stored = engine.weight_shapes(weights)
    missing = sorted(set(net.params) - set(stored))
    if missing:
        raise UserError('%s: no weights for %s' % (weights, ', '.join(missing)))
    net.copy_from(weights)
