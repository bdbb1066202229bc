"""What a long step shows: a bar with the time left on a terminal, a line now and then elsewhere.

    with progress.bar('whitening', total=60000, unit='images') as step:
        for block in blocks:
            ...
            step(len(block))
"""

import contextlib
import sys
import time
from typing import Callable, Iterator, Optional

from . import durations

EVERY = 10.0  # seconds between two lines where there is no terminal


def say(text: str) -> None:
    """Print one line of what is going on, at once; above a bar that is being shown."""
    if sys.stderr.isatty() and 'tqdm' in sys.modules:
        sys.modules['tqdm'].tqdm.write(text, file=sys.stdout)
        sys.stdout.flush()
    else:
        print(text, flush=True)


@contextlib.contextmanager
def bar(title: str, total: Optional[int] = None, unit: str = '', scale: bool = False) -> Iterator[Callable]:
    """A function step(n, note='') to call when n more of `total` units are done; the note is shown beside.

    scale=True is for bytes and the like: 12.3M instead of 12345678. A total of None means
    that nobody knows. Progress goes to stderr, so that a pipe gets results only.
    """
    if sys.stderr.isatty():
        from tqdm import tqdm
        with tqdm(desc=title, total=total, unit=' ' + unit, unit_scale=scale, leave=False, file=sys.stderr) as shown:
            def step(n=1, note=''):
                if note:
                    shown.set_postfix_str(note, refresh=False)
                shown.update(n)
            yield step
    else:
        yield _Lines(title, total, unit, scale).step


class _Lines:
    """Progress as plain lines, none for steps that are over soon."""

    def __init__(self, title, total, unit, scale):
        self.title, self.total, self.unit, self.scale = title, total, unit, scale
        self.done, self.note = 0, ''
        self.start = self.last = time.monotonic()

    def step(self, n=1, note=''):
        self.done += n
        self.note = note
        now = time.monotonic()
        if now - self.last >= EVERY:
            self.last = now
            print(self.line(now - self.start) + (', ' + self.note if self.note else ''), file=sys.stderr, flush=True)

    def line(self, seconds):
        """The line to print after so many seconds."""
        if not self.total:
            return '%s: %s %s, %s' % (self.title, self._number(self.done), self.unit, durations.clock(seconds))
        left = seconds * (self.total - self.done) / self.done if self.done else 0
        return '%s: %d%% of %s %s, %s, %s left' % (self.title, 100 * self.done // self.total, self._number(self.total),
                                                   self.unit, durations.clock(seconds), durations.clock(left))

    def _number(self, n):
        return '%.1fM' % (n / 1e6) if self.scale else '%d' % n
