"""What a training run shows: a bar on a terminal, a line a minute elsewhere, and status.json for those who watch it."""

import contextlib
import os
import sys
import time
from typing import Callable, Iterator, Optional, Sequence

from ..system import durations, places, progress, store

BAR, LINE, STATUS = 0.5, 60.0, 5.0  # seconds between two updates of each


class Display:
    """Follows a run through its stages; `step` is called at each iteration and nearly always does nothing."""

    def __init__(self, run: str, lengths: Sequence[int]):
        """lengths: the iterations of each stage."""
        self.run, self.lengths = run, lengths
        self.started, self.steps, self.paused = time.monotonic(), 0, 0.0
        self.bar = self._new_bar() if sys.stderr.isatty() else None
        self.next = self.next_status = self.started  # the first step shows that it runs
        self.next_line = self.started + LINE
        self.stage = self.iteration = 0
        self.loss = None

    def _new_bar(self):
        from tqdm import tqdm
        return tqdm(total=sum(self.lengths), desc=os.path.basename(self.run), leave=False, file=sys.stderr,
                    bar_format='{percentage:3.0f}%|{bar}| {desc}')

    def _draw(self, text):
        self.bar.n = self._done()
        self.bar.set_description_str('%s: %s' % (os.path.basename(self.run), text))

    def at(self, stage: int, iteration: int) -> None:
        """A stage begins, or goes on, at this iteration."""
        self.stage, self.iteration = stage, iteration

    def step(self, iteration: int, loss: float, lr: Callable[[], float]) -> None:
        """An iteration is over. lr: a function that gives the learning rate."""
        self.iteration = iteration
        self.steps += 1
        now = time.monotonic()
        if now < self.next:
            return
        text = self._text(loss, lr(), now)
        if self.bar is not None:
            self._draw(text)
        elif now >= self.next_line:
            self.next_line = now + LINE
            progress.say(text)
        if now >= self.next_status:
            self.next_status = now + STATUS
            self._write(loss, now)
        self.next = min(now + BAR, self.next_status) if self.bar is not None else min(self.next_line, self.next_status)

    @contextlib.contextmanager
    def measuring(self, loss: float) -> Iterator[None]:
        """Around an evaluation, which is no part of the speed."""
        start = time.monotonic()
        self.loss = loss
        self.measured(0.0)
        yield
        self.paused += time.monotonic() - start
        self.next = self.next_status = 0

    def measured(self, share: float) -> None:
        """So much of the evaluation is done."""
        self._write(self.loss, time.monotonic(), share)
        if self.bar is not None:
            self._draw('%s, measuring the test error: %d%%' % (self._where(), 100 * share))

    def end(self, loss: Optional[float]) -> None:
        """The run ends or stops here."""
        if self.bar is not None:
            self.bar.close()
        self._write(loss, time.monotonic())

    def _done(self):
        return sum(self.lengths[:self.stage - 1]) + self.iteration

    def _speed(self, now):
        return self.steps / max(now - self.started - self.paused, 1e-3)

    def _where(self):
        stage = 'stage %d, ' % self.stage if len(self.lengths) > 1 else ''
        return '%siteration %d of %d' % (stage, self.iteration, self.lengths[self.stage - 1])

    def _text(self, loss, lr, now):
        speed = self._speed(now)
        return '%s, loss %.4g, lr %.4g, %s, %s left' % (
            self._where(), loss, lr, rate(speed), durations.clock((sum(self.lengths) - self._done()) / speed))

    def _write(self, loss, now, measured=None):
        """now: of the clock that no one sets; the file has the time of day, for whoever reads it."""
        store.write_json(os.path.join(self.run, places.STATUS), {
            'stage': self.stage, 'iteration': self.iteration, 'targets': list(self.lengths), 'loss': loss,
            'measuring': measured is not None, 'measured': measured,
            'iterations_a_second': self._speed(now), 'time': time.time()})


def rate(speed: float) -> str:
    """'30.1 it/s', or '2.10 s/it' for slow ones."""
    return '%.1f it/s' % speed if speed >= 1 else '%.2f s/it' % (1 / max(speed, 1e-9))
