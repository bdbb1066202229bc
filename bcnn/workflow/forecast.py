"""How long it still takes: expected seconds, corrected by what the steps have taken here so far."""

from typing import Dict, Sequence, Tuple

from . import steps

TRUSTED = 0.03   # of a step: from here on its own speed says more than any expectation
AT_LEAST = 5.0   # seconds of work before it is believed


class Forecast:
    """Follows the Looks of all Steps from one moment to the next."""

    def __init__(self, todo: Sequence[steps.Step], cores: int):
        self.todo, self.cores = todo, cores
        self.first = {}  # name: the Look with which a step was first seen running

    def left(self, looks: Dict[str, steps.Look]) -> Tuple[Dict[str, float], float]:
        """({name: seconds that a step has left}, seconds until all are done), from {name: Look}."""
        for name, look in looks.items():
            if look.state == steps.RUNNING:
                self.first.setdefault(name, look)
        slower = self._slower(looks)
        own = {step.name: self._own(step, looks[step.name], slower) for step in self.todo
               if looks[step.name].state in (steps.WAITING, steps.RUNNING)}
        return own, finish(self.todo, own, self.cores)

    def _slower(self, looks):
        """How many times as long as expected things take here."""
        taken = expected = 0.0
        for step in self.todo:
            look = looks[step.name]
            if step.expected and look.state == steps.DONE and look.seconds:
                taken, expected = taken + look.seconds, expected + step.expected * (1 - self._begun_with(step.name))
            elif step.expected and look.state == steps.RUNNING and look.share is not None:
                gone = look.seconds - self.first[step.name].seconds
                taken, expected = taken + gone, expected + step.expected * (look.share - self._begun_with(step.name))
        return taken / expected if taken > AT_LEAST and expected > 0 else 1.0

    def _begun_with(self, name):
        """The share that was there before: of a step that goes on after an interruption."""
        look = self.first.get(name)
        return look.share or 0.0 if look else 0.0

    def _own(self, step, look, slower):
        """Seconds that one step has left."""
        if look.state == steps.RUNNING and look.share is not None:
            gone, more = look.seconds - self.first[step.name].seconds, look.share - self._begun_with(step.name)
            if more > TRUSTED and gone > AT_LEAST:
                return gone / more * (1 - look.share)
            return step.expected * slower * (1 - look.share)
        return max(step.expected * slower * (1 - (look.share or 0.0)) - look.seconds, 0.0)


def finish(todo: Sequence[steps.Step], left: Dict[str, float], cores: int) -> float:
    """Seconds until all steps are done on so many cores, each begun as soon as what it waits for is, in their order.

    left: {name: seconds} of those that are not done.
    """
    ends, free = {}, [0.0] * max(cores, 1)  # when each core is free
    for step in todo:
        if step.name in left:
            free.sort()
            width = min(step.cores, len(free))
            begin = max([free[width - 1]] + [ends.get(name, 0.0) for name in step.after])
            ends[step.name] = begin + left[step.name]
            free[:width] = [ends[step.name]] * width
    return max(ends.values()) if ends else 0.0
