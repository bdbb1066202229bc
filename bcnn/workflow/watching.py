"""What tools/run_all.sh shows while it works: a line a step, redrawn in place on a terminal, now and then elsewhere."""

import sys
import time
from typing import Any, Dict, Optional, Sequence, TextIO

from ..system.durations import clock
from . import screen, steps
from .forecast import Forecast
from .steps import Look, Step

MINUTE = 60.0  # seconds between two lines of a running step where there is no terminal
FEW = 4        # running steps that have a line each there; more share one


def new(todo: Sequence[Step], forecast: Forecast, out: Optional[TextIO] = None) -> 'Display':
    """The display that fits where the output goes."""
    out = out or sys.stdout
    return (Terminal if screen.is_terminal(out) else Lines)(todo, forecast, out)


class Display:
    """What both kinds know: the steps, when this began, what was done before."""

    def __init__(self, todo: Sequence[Step], forecast: Forecast, out: TextIO):
        self.todo, self.forecast, self.out = todo, forecast, out
        self.began, self.told, self.stopping = time.time(), set(), False

    def update(self, looks: Dict[str, Look]) -> None:
        """Shows {name: Look} as it is now."""
        left, whole = self.forecast.left(looks)
        self._show(looks, left, whole)

    def stop(self) -> None:
        """A signal has come: what runs is being ended."""
        self.stopping = True

    def _new_ends(self, looks):
        """The steps that are over and have not been told of."""
        for step in self.todo:
            if looks[step.name].state in (steps.DONE, steps.FAILED) and step.name not in self.told:
                self.told.add(step.name)
                yield step, looks[step.name]

    def _share(self, looks):
        """How much of everything is done, by expected seconds."""
        whole = sum(step.expected for step in self.todo) or 1.0
        return sum(step.expected * (looks[step.name].share or 0.0) for step in self.todo) / whole


# --- a terminal --------------------------------------------------------------------------------

class Terminal(Display):
    """Running and waiting steps move at the end of the screen; those that are over stay above them."""

    def __init__(self, *args: Any):
        Display.__init__(self, *args)
        self.screen = screen.Screen(self.out)
        self.title = max(len(step.title) for step in self.todo)
        self.marks = dict(zip((steps.DONE, steps.FAILED, steps.RUNNING, steps.WAITING),
                              '✓✗▸·' if self.screen.signs else '+!>.'))

    def _show(self, looks, left, whole):
        over = [self._over(step, look) for step, look in self._new_ends(looks)]
        going = [step for step in self.todo if looks[step.name].state == steps.RUNNING]
        waiting = [step for step in self.todo if looks[step.name].state == steps.WAITING]
        room = self.screen.size()[1] - len(going) - 4
        moving = [self._running(step, looks[step.name], left[step.name]) for step in going]
        moving += [self._waiting(step, looks, left[step.name]) for step in waiting[:max(room, 0)]]
        if len(waiting) > max(room, 0):
            moving.append([('  ... and %d more wait' % (len(waiting) - max(room, 0)), 'faint')])
        self.screen.show(over, moving + ['', self._whole(looks, whole)])

    def end(self, looks: Dict[str, Look]) -> None:
        """What moved goes; steps that are over, and those that were stopped on their way, stay."""
        stay = [self._over(step, look) for step, look in self._new_ends(looks)]
        for step in self.todo:
            look = looks[step.name]
            if look.state == steps.RUNNING:
                stay.append(self._head(step, look, 'strong') + [('stopped%s' % (
                    ' at %d%%, %s' % (100 * look.share, look.text) if look.share else ''), '')])
        self.screen.show(stay)

    def _head(self, step, look, style=''):
        mark = {steps.DONE: 'good', steps.FAILED: 'bad', steps.RUNNING: 'bar'}.get(look.state, 'faint')
        return [(self.marks[look.state] + ' ', mark), (step.title.ljust(self.title) + '  ', style)]

    def _over(self, step, look):
        style = 'bad' if look.state == steps.FAILED else ''
        return self._head(step, look) + [('%7s  ' % (clock(look.seconds) if look.seconds else ''), 'faint'),
                                         (look.text, style)]

    def _running(self, step, look, left):
        """Mark, title, bar, time left, where it is: the bar gives way first, then the end of the line."""
        columns = self.screen.size()[0]
        width = 20 if columns >= self.title + 80 else 10 if columns >= self.title + 45 else 0
        line = self._head(step, look, 'strong')
        if look.share is None:
            return line + [('%7s  ' % clock(look.seconds), 'faint'), (look.text, '')]
        line += self.screen.bar(look.share, width) + [('%4d%%  ' % (100 * look.share), 'strong')]
        return line + [('%s left  ' % clock(left), ''), (look.text, 'faint')]

    def _waiting(self, step, looks, left):
        expected = '%7s  ' % ('~' + clock(left)) if left else ' ' * 9
        for_ = [other.title for other in self.todo if other.name in step.after
                and looks[other.name].state in (steps.WAITING, steps.RUNNING)]
        text = 'waits for a free core' if not for_ else 'waits for: %s' % for_[-1]
        if len(for_) > 1:
            text += ' and %d more' % (len(for_) - 1)
        return self._head(step, looks[step.name], 'faint') + [(expected, 'faint'), (text, 'faint')]

    def _whole(self, looks, left):
        gone = '%s gone' % clock(time.time() - self.began)
        if self.stopping:
            return [('stopping: what runs keeps what it has (%s)' % gone, 'strong')]
        share = self._share(looks)
        width = max(min(self.screen.size()[0] - 40, 40), 0)
        return self.screen.bar(share, width) + [('%4d%%  ' % (100 * share), 'strong'),
                                                ('%s, about %s left' % (gone, clock(left)), '')]


# --- elsewhere ---------------------------------------------------------------------------------

class Lines(Display):
    """A line when a step begins, one a minute while it runs, one when it ends."""

    def __init__(self, *args: Any):
        Display.__init__(self, *args)
        self.begun, self.next = set(), self.began + MINUTE
        self.before = None  # the names of steps that were done before this call

    def _show(self, looks, left, whole):
        if self.before is None:
            self.before = set(name for name, look in looks.items() if look.state == steps.DONE)
        for step in self.todo:
            look = looks[step.name]
            if step.name not in self.begun and look.state != steps.WAITING:
                self.begun.add(step.name)
                if look.state == steps.RUNNING:
                    self._say('%s: begins%s' % (step.title, ', about %s' % clock(left[step.name])
                                                if step.job is not None else ''))
        for step, look in self._new_ends(looks):
            self._say('%s: %s' % (step.title, self._end_of(step, look)))
        if time.time() >= self.next:
            self.next += MINUTE
            self._each_minute(looks, left, whole)

    def _end_of(self, step, look):
        word = 'done before' if step.name in self.before else look.state
        taken = ' after %s' % clock(look.seconds) if look.seconds and step.name not in self.before else ''
        return word + taken + (', ' if look.state == steps.DONE else ': ') * bool(look.text) + look.text

    def _each_minute(self, looks, left, whole):
        going = [step for step in self.todo if looks[step.name].state == steps.RUNNING]
        for step in going if len(going) <= FEW else ():
            look = looks[step.name]
            self._say('%s: %s%s' % (step.title, '' if look.share is None else '%d%%, %s left, ' % (
                100 * look.share, clock(left[step.name])), look.text))
        self._say('%d%% of all%s, about %s left' % (
            100 * self._share(looks), ', %d running' % len(going) if len(going) > FEW else '', clock(whole)))

    def _say(self, text):
        print('%7s  %s' % (clock(time.time() - self.began), text), file=self.out, flush=True)

    def stop(self) -> None:
        if not self.stopping:
            self._say('stopping: what runs keeps what it has')
        Display.stop(self)

    def end(self, looks: Dict[str, Look]) -> None:
        """The last lines of what is over."""
        for step, look in self._new_ends(looks):
            self._say('%s: %s' % (step.title, self._end_of(step, look)))
