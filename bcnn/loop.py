"""The training loop: Caffe's solver, step by step, so that any iteration can be the last and none is lost.

Why a run that was interrupted ends in the same bytes as one that was not (on the CPU):

  - Dropout masks: Caffe's random numbers are seeded before each iteration from (seed, stage,
    iteration). (Not before the first of a stage: there they go on from the initial weights,
    as in `caffe train`.)
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

import numpy as np

from . import curve, engine, files, mc, measure, runs, snapshots, solvers
from .errors import UserError
from .watch import Watch

SNAPSHOT_SECONDS = 60.0   # what kill -9 may cost
SNAPSHOT_SHARE = 0.01     # of the time that snapshots may take, where one takes long
STUCK = 87.3365           # -ln(FLT_MIN): SoftmaxWithLoss of a net that is certain and wrong, or NaN on a GPU
STUCK_FOR = 20            # iterations


class Diverged(UserError):
    """The loss has gone where no training comes back from."""

    exit_code = 1


def train(task, settings, run):
    """The number of the signal that stopped the run, None when it is complete. For a process of its own."""
    return _Loop(task, settings, run).go()


class _Loop:
    def __init__(self, task, settings, run):
        self.task, self.settings, self.run = task, settings, run
        self.signal, self.measuring = None, False
        for number in engine.SIGNALS:
            signal.signal(number, self._note)
        engine.use_device(settings.gpu)
        self.path = os.path.join(run, runs.CURVE)
        # Made before the solver, which draws its initial weights from its own seed.
        self.tester = None
        if settings.points != 'none':
            self.tester = measure.Tester(task, settings.seed, settings.T, settings.gpu, settings.jobs)
        self.watch = Watch(run, settings.iterations)
        self.losses, self.bad = deque(maxlen=curve.LOSSES), 0

    def _note(self, number, _frame):
        """A signal: the step in hand is finished first, a measurement is given up."""
        self.signal = number
        if self.measuring:
            raise KeyboardInterrupt

    # --- stages and segments

    def go(self):
        found = snapshots.newest(self.run)
        self._settle_curve(found)
        first = found.stage if found else 1
        for stage in range(first, len(self.task.stages) + 1):
            self._train_stage(stage, found if stage == first else None)
            if self.signal:
                break
        self.watch.end(self.losses[-1] if self.losses else None)
        return self.signal

    def _settle_curve(self, found):
        """Keeps the rows up to the snapshot that are wanted: a run that is made longer has other last ones."""
        reached = (found.stage, found.iteration) if found else (0, 0)
        self.rows = [row for row in curve.read(self.path)
                     if (row.stage, row.iteration) <= reached and self._due(row.stage, row.iteration)]
        curve.write(self.path, self.rows)

    def _train_stage(self, stage, found):
        """A stage from a snapshot or from its beginning; ends with the file of its weights, or on a signal."""
        target = self.settings.iterations[stage - 1]
        length = segment_length(self.task, stage)
        self.losses = deque(found.losses if found else (), maxlen=curve.LOSSES)
        self.saved, self.saved_at, self.cost = found.iteration if found else 0, time.monotonic(), 0.0
        while True:
            done = found.iteration if found else 0
            self.watch.at(stage, done)
            solver = self._solver(stage, found, length)
            self._steps(solver, stage, min(target, (done // length + 1) * length if length else target))
            if self.signal:
                return
            if solver.iter == target:
                break
            found = self._snapshot(solver, stage)
            del solver  # before the next is made: two would need twice the memory
        path = os.path.join(self.run, weights_name(stage, len(self.task.stages)))
        save_weights(solver.net, path, self.task.stages[stage - 1])

    def _solver(self, stage, found, length):
        """The solver of the segment that a snapshot is in (None: the first), ready for its next iteration."""
        done = found.iteration if found else 0
        segment = done // length if length else 0
        message = stage_message(self.task, self.settings, stage, self.run)
        message.random_seed = mc.seed_for(self.settings.seed, stage, segment)
        # Its data layer has a thread of its own, which must not take the signals: Python learns of
        # those too late where another thread gets them.
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, engine.SIGNALS)
        solver = engine.load_solver(message)
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        if self.task.stages[stage - 1].companions:
            # Through a proxy: a solver that its own callback refers to would never be freed.
            solvers.decay_companions(weakref.proxy(solver), message)
        if found:
            snapshots.restore(solver, found)
            for _ in range((done - segment * length) % cycle(self.task, stage)):
                solver.net._forward(0, 0)
            mc.use_seed(self.settings.seed, stage, done)
        elif stage > 1:
            hand_on(os.path.join(self.run, weights_name(stage - 1, len(self.task.stages))), solver.net)
        if self.tester:
            self.tester.share(solver.net)
        return solver

    # --- iterations

    def _steps(self, solver, stage, stop):
        """Iterations up to `stop`, or to a signal, with what is due between them."""
        seed, every_step = self.settings.seed, self.settings.gpu is None
        loss_blobs = [solver.net.blobs[name] for name in solver.net.outputs]
        message = self.task.stages[stage - 1].solver

        def lr():
            return curve.learning_rate(message, solver.iter)

        while True:
            iteration = solver.iter
            self._between(solver, stage, iteration, lr)
            if self.signal or iteration >= stop:
                return
            if iteration and every_step:  # on a GPU seeding costs, and other things vary as well
                mc.use_seed(seed, stage, iteration)
            solver.step(1)
            loss = math.fsum(float(blob.data) for blob in loss_blobs)
            self.losses.append(loss)
            if not self._is_sane(loss):
                self._diverged(stage, iteration + 1, loss)
            self.watch.step(iteration + 1, loss, lr)

    def _between(self, solver, stage, iteration, lr):
        """What is due after an iteration: a snapshot, the test error. A signal is answered by a snapshot."""
        missing = self._due(stage, iteration) and (not self.rows or self.rows[-1][:2] != (stage, iteration))
        last = iteration == self.settings.iterations[stage - 1]
        if iteration != self.saved and (missing or last or self.signal or self._snapshot_due(iteration)):
            self._snapshot(solver, stage)
        if missing and not self.signal:
            self._measure(stage, iteration, lr())

    def _due(self, stage, iteration):
        due = curve.points(self.settings.points, self.task.stages[stage - 1].solver.test_interval)
        return due(iteration, self.settings.iterations[stage - 1])

    def _measure(self, stage, iteration, lr):
        try:
            with self.watch.measuring(self.losses[-1]):
                self.measuring = True
                if self.signal:  # came just before
                    raise KeyboardInterrupt
                errors = self.tester.errors(stage, iteration)
                self.measuring = False
        except (KeyboardInterrupt, SystemExit) as error:  # ours, or engine.work's for SIGINT and SIGTERM
            self.measuring = False
            self.signal = self.signal or (signal.SIGINT if isinstance(error, KeyboardInterrupt) else signal.SIGTERM)
            return
        mc.use_seed(self.settings.seed, stage, iteration)
        self.rows.append(curve.row(stage, iteration, lr, self.losses, errors, self.task.count, self.settings.T))
        curve.write(self.path, self.rows)
        self.watch.say('%siteration %d: %s, train loss %s' % (
            'stage %d, ' % stage if len(self.task.stages) > 1 else '', iteration, curve.percent(self.rows[-1]),
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
        made = snapshots.write(self.run, stage, solver, self.losses)
        snapshots.thin(self.run, curve.log_spaced)
        self.saved, self.saved_at = solver.iter, time.monotonic()
        self.cost = self.saved_at - start
        return made

    def _is_sane(self, loss):
        self.bad = self.bad + 1 if abs(loss - STUCK) < 0.001 else 0
        return math.isfinite(loss) and self.bad < STUCK_FOR

    def _diverged(self, stage, iteration, loss):
        record = {'stage': stage, 'iteration': iteration, 'loss': str(loss)}
        runs.write_json(os.path.join(self.run, runs.DIVERGED), record)
        raise Diverged(divergence(self.run, record))


def divergence(run, record):
    """What to say of a run that diverged."""
    last = runs.stored(run)
    kept = 'its last good snapshot is %s' % last[-1][2] if last else 'before its first snapshot'
    return ('%s: diverged at iteration %s (loss %s), %s. Likely causes: images that are not prepared as the net needs '
            'them (raw CIFAR-10 instead of the whitened set), or a learning rate that is too high. Remove the folder '
            'to start anew'
            % (run, record.get('iteration'), record.get('loss'), kept))


# --- data, solvers and weights of a stage ------------------------------------------------------

def data_layer(net):
    """The data layer of a training net's TRAIN phase."""
    return next(layer for layer in net.layer if layer.type == 'Data'
                and not any(rule.phase == engine.TEST for rule in layer.include))


def cycle(task, stage):
    """After how many iterations the data layer is back at record 0: 1,875 for MNIST at batch 64."""
    batch = data_layer(task.stages[stage - 1].net).data_param.batch_size
    return task.records // math.gcd(task.records, batch)


def segment_length(task, stage):
    """The iterations of a segment; 0 (the stage is one segment) where the data layer draws no random numbers."""
    transform = data_layer(task.stages[stage - 1].net).transform_param
    return cycle(task, stage) if transform.mirror or transform.crop_size else 0


def stage_message(task, settings, stage, run):
    """The SolverParameter that is run in a stage: the paper's, with our paths; testing and snapshots are ours."""
    message = engine.caffe_pb2.SolverParameter()
    message.CopyFrom(task.stages[stage - 1].solver)
    for field in ('test_iter', 'test_interval', 'display'):
        message.ClearField(field)
    message.net = os.path.join(run, net_name(task, stage))
    message.max_iter = settings.iterations[stage - 1]
    message.snapshot, message.snapshot_after_train = 0, False
    message.snapshot_prefix = os.path.join(run, snapshots.PREFIX)
    message.random_seed = mc.seed_for(settings.seed, stage, 0)
    gpu = settings.gpu is not None
    message.solver_mode = message.GPU if gpu else message.CPU
    if gpu:
        message.device_id = settings.gpu
    return message


def net_name(task, stage):
    return os.path.basename(task.stages[stage - 1].solver.net)


def weights_name(stage, stages):
    return runs.FINAL if stage == stages else 'stage%d.caffemodel' % stage


def save_weights(net, path, stage):
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


def hand_on(weights, net):
    """Gives a net the weights of the stage before; layers that it has no more (companions) are dropped."""
    stored = engine.weight_shapes(weights)
    missing = sorted(set(net.params) - set(stored))
    if missing:
        raise UserError('%s: no weights for %s' % (weights, ', '.join(missing)))
    net.copy_from(weights)
