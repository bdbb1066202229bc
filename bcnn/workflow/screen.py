"""Lines on a terminal that are redrawn in place, below others that stay; nothing but ANSI codes.

    screen = Screen(sys.stdout)
    screen.show(stay=['one is done'], moving=[...])     # again and again
    screen.show(stay=['all is done'])                   # at the end: what moved is gone

A line is a list of (text, style) pairs, or a text. It is cut where the terminal ends, so that it never takes two rows
when it is drawn; after the terminal was made narrower, the rows that the old lines have come to are counted.
"""

import contextlib
import os
from typing import Iterable, List, Optional, TextIO, Tuple, Union

STYLES = {'': '', 'good': '32', 'bad': '31;1', 'bar': '36', 'faint': '2', 'strong': '1'}

Line = Union[str, List[Tuple[str, str]]]  # its text, or (text, style) pairs


def is_terminal(out: TextIO) -> bool:
    """Whether lines can be redrawn on a stream."""
    return out.isatty() and os.environ.get('TERM', 'dumb') != 'dumb'


class Screen:
    """What is drawn on one terminal."""

    def __init__(self, out: TextIO):
        self.out = out
        self.coloured = not os.environ.get('NO_COLOR')
        self.signs = 'utf' in (out.encoding or '').lower()
        self.lengths = []  # of the lines that move, as last drawn

    def size(self) -> Tuple[int, int]:
        """(columns, rows) of the terminal now."""
        try:
            size = os.get_terminal_size(self.out.fileno())
            return (size.columns or 80), (size.lines or 24)
        except (OSError, ValueError):
            return 80, 24

    def show(self, stay: Iterable[Line] = (), moving: Iterable[Line] = ()) -> None:
        """Replaces the lines that move, with new lines above them that stay."""
        columns, rows = self.size()
        moving = [cut(line, columns - 1) for line in list(moving)[:max(rows - 1, 1)]]
        text = self._erase(columns) + ''.join(self._styled(cut(line, columns - 1)) + '\n' for line in stay)
        self.lengths = [sum(len(part) for part, _ in line) for line in moving]
        with contextlib.suppress(OSError):  # the terminal has gone: what is to be done is done all the same
            self.out.write(text + '\n'.join(map(self._styled, moving)))
            self.out.flush()

    def _erase(self, columns):
        """The codes that take the cursor from the end of the moving lines to their beginning, and clear from there."""
        up = sum(max(1, -(-length // columns)) for length in self.lengths) - 1
        return ('\033[%dA' % up if up > 0 else '') + '\r\033[J' if self.lengths else ''

    def _styled(self, line):
        return ''.join('\033[%sm%s\033[0m' % (STYLES[style], part) if style and self.coloured else part
                       for part, style in line)

    def bar(self, share: Optional[float], width: int) -> List[Tuple[str, str]]:
        """A bar as (text, style) pairs; share None where nobody knows."""
        full, empty = ('━', '─') if self.signs else ('#', '-')
        done = int(round((share or 0.0) * width))
        return [(full * done, 'bar'), (empty * (width - done), 'faint')]


def cut(line: Line, width: int) -> List[Tuple[str, str]]:
    """A line of at most so many characters, as pairs."""
    pairs, room = [(line, '')] if isinstance(line, str) else line, max(width, 1)
    kept = []
    for text, style in pairs:
        kept.append((text[:room], style))
        room -= len(text)
        if room <= 0:
            break
    if room < 0:
        kept[-1] = (kept[-1][0][:-1] + '>', kept[-1][1])
    return kept
