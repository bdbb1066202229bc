"""Adaptive T: an image is sampled only until its class after T passes is as good as settled.

The class after T passes is a fact about T outputs of which the first t are seen: passes are
independent draws of the same masks, so the T of them are a finite population in random order.
That a class c comes out on top of it is tested by betting (Ville 1939; Waudby-Smith and Ramdas,
"Estimating means of bounded random variables by betting", JRSS B 2024, its part on sampling
without replacement). Before each pass some money is put on the present leader getting a higher
probability than c. If c ended on top, what is left to come could on average not favour the
leader by more than

    m = -(leader's sum so far - c's sum so far) / passes left,

so that the game would be fair at best, and money grows 1/error-fold at any time with a
probability of at most `error`. When it does so against every class but the leader, the image
is decided. Only the rejection of the class that does come out on top is a mistake, hence

    P(class at the decision is not the class after T passes) <= error,

for every net and image, with no assumption on how the outputs are distributed and nothing
to pay for looking after each pass or for the number of classes. An empirical Bernstein bound
(Maurer and Pontil 2009) promises the same, but for differences between -1 and 1 its term
14 log(2/error) / 3(t - 1) alone keeps the clearest image for 26 passes at an error of 0.01, and
for 48 if each of 100 passes may be the last; this bet needs 7. A normal approximation of the
gap is quick too, but promises nothing after so few passes.

Antithetic masks (bcnn.mc.antithetic) come in groups of passes that depend on one another, but groups are independent
draws of the same kind. So the means of the groups are a finite population in random order, as single passes are; they
lie between 0 and 1, too, and the class with the largest sum of them is the class after T passes. All of the above holds
with the mean of a group in the place of a pass, and an image is looked at after each group.

The promise is about the class. Probabilities and uncertainties are those of the passes an image
had, with their standard errors; and as images leave when they look sure, their mean uncertainty is
a little lower than after T passes, which no standard error shows. Where uncertainty is the
question, give every image T passes.
"""

from collections import OrderedDict
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional

import numpy as np

from ..engine import CaffeNet
from . import forward, metrics, running_sums

ERROR = 0.01
MINIMUM = 5  # fewer passes, or groups of them, would leave nothing to estimate standard errors from
# Batches a stored block is made of: images enter while others leave, so that only the end of a
# block runs in batches that are not full.
BLOCK = 5
# A large batch means a long end of a block; from here on larger ones are no faster.
LARGEST = 500


class Rule(NamedTuple):
    """When an image has had enough passes."""

    error: float = ERROR      # the probability of deciding on another class
    minimum: int = MINIMUM    # of passes, or groups of passes, an image


class Race:
    """Which class leads after T passes: bets against each class of each image, until all but the leader have lost.

    guess: for each image the class to put the first bet on; a bad one costs passes, not
    validity. Without it there is no bet on the first pass.
    """

    def __init__(self, images: int, classes: int, T: int, rule: Rule, guess: Optional[np.ndarray] = None):
        shape = images, classes
        self.T, self.rule, self.guess = T, rule, guess
        self.passes = np.zeros(images, np.int64)
        self.sums, self.money = np.zeros(shape), np.ones(shape)
        self.possible = np.ones(shape, bool)
        # of the gains so far; the start is as if two bets had been won, which stakes all
        self.gains, self.squares = np.full(shape, 2.0), np.full(shape, 2.0)

    def add(self, images: np.ndarray, probs: np.ndarray) -> np.ndarray:
        """Whether each of these images is decided after one more pass of them with these probabilities."""
        probs = probs.astype(np.float64)
        gain = self._gain(images, probs)
        # The stake is the share of the money that grows fastest on what was seen (Kelly 1956), as far as the first
        # two terms of the logarithm tell. It is fixed before the pass is seen, which the proof needs.
        stake = np.clip(self.gains[images] / self.squares[images], 0, 1)
        self.money[images] = np.minimum(self.money[images] * (1 + stake * gain), 1e100)  # far beyond any need
        self.gains[images] += gain
        self.squares[images] += gain ** 2
        self.sums[images] += probs
        self.passes[images] += 1
        behind = self.sums[images].max(axis=1, keepdims=True) - self.sums[images]
        certain = behind > (self.T - self.passes[images])[:, None]  # a pass makes up for 1 at most
        self.possible[images] &= ~certain & (self.money[images] < 1 / self.rule.error)
        return self._decided(images)

    def _gain(self, images, probs):
        """What a full stake against each class wins in this pass; -1 is the loss of it."""
        row, sums = np.arange(len(images))[:, None], self.sums[images]
        rival = self._rivals(images, sums)
        fair = -(sums[row, rival] - sums) / (self.T - self.passes[images])[:, None]  # m above
        # The stake is lost at a difference of -1, the least there is. Where fair is -1 or below, no bet is needed.
        least = np.maximum(1 + fair, 1e-9)
        bets = fair > -1
        if self.guess is None:
            bets &= (self.passes[images] > 0)[:, None]
        return np.where(bets, np.maximum((probs[row, rival] - probs - fair) / least, -1), 0)

    def _rivals(self, images, sums):
        """For each class the one that is bet on against it: the leader, and the second against the leader."""
        rows = np.arange(len(images))
        leader = sums.argmax(axis=1)
        if self.guess is not None:
            leader = np.where(self.passes[images] == 0, self.guess[images], leader)
        others = sums.copy()
        others[rows, leader] = -1
        rivals = np.repeat(leader[:, None], sums.shape[1], axis=1)
        rivals[rows, leader] = others.argmax(axis=1)
        return rivals

    def _decided(self, images):
        possible = self.possible[images]
        leader = self.sums[images].argmax(axis=1)
        alone = (possible.sum(axis=1) == 1) & possible[np.arange(len(images)), leader]
        return alone & (self.passes[images] >= self.rule.minimum)


# --- batches that stay full -------------------------------------------------------------------

class Seats:
    """The rows of a batch, each with an image: those that are done leave, the next ones take their seats.

    What the layers before the first dropout make of an image is computed once and kept with
    its seat. passes: a forward.Passes. read(start, stop) gives pixels.
    """

    def __init__(self, passes: forward.Passes, read: Callable[[int, int], np.ndarray], count: int, batch: int):
        self.passes, self.read, self.count, self.batch = passes, read, count, batch
        self.net, self.wiring = passes.net, passes.wiring
        self.blobs = kept_blobs(self.net, self.wiring.first)
        self.next = 0               # the first image that has not been read
        self.stock = {}             # what was computed of the images that wait for a seat: blobs by their names, and
        self.kept = {}              # by numbers what passes.once() gives; and of those that have a seat
        self.waiting = np.zeros(0, int)
        self.images = np.full(min(batch, count), -1)
        self.changed = slice(None)  # rows that the net has to be given again
        self._seat(np.arange(len(self.images)))

    def forward(self) -> Iterator[forward.Pass]:
        """Yields (probabilities, scores) of a group of passes, a row an image of self.images; views."""
        rows = len(self.images)
        if self.net.blobs[self.wiring.input].data.shape[0] != rows:
            forward.resize(self.net, rows)
            self.changed = slice(None)
        if isinstance(self.changed, slice) or len(self.changed):  # a blob that is touched goes to the GPU again
            for name in self.blobs:
                self.net.blobs[name].data[self.changed] = self.kept[name][:rows][self.changed]
        self.changed = np.zeros(0, int)
        yield from self.passes.group([self.kept[k][:rows] for k in range(len(self.kept) - len(self.blobs))])

    def leave(self, done: np.ndarray) -> None:
        """Frees the seats of the rows that are done, and fills them as long as there are images."""
        empty = self._seat(np.flatnonzero(done))
        if len(empty):  # the others move up
            stay = np.delete(np.arange(len(self.images)), empty)
            for name in self.kept:
                self.kept[name] = self.kept[name][stay]
            self.images = self.images[stay]
            self.changed = slice(None)

    def _seat(self, seats):
        """The seats that stay empty, of these, after all that wait have been seated."""
        while len(seats) and self._stocked():
            here, seats = np.split(seats, [min(len(seats), len(self.waiting))])
            for name in self.stock:
                self.kept[name][here] = self.stock[name][:len(here)]
                self.stock[name] = self.stock[name][len(here):]
            self.images[here], self.waiting = self.waiting[:len(here)], self.waiting[len(here):]
            if not isinstance(self.changed, slice):
                self.changed = np.append(self.changed, here)
        return seats

    def _stocked(self):
        """Whether an image waits, after computing the next ones if need be."""
        if not len(self.waiting) and self.next < self.count:
            stop = min(self.next + self.batch, self.count)
            forward.fill(self.net, self.wiring, self.read(self.next, stop))
            self.net._forward(0, self.wiring.first - 1)
            self.stock = {name: np.array(self.net.blobs[name].data) for name in self.blobs}
            self.stock.update(enumerate(self.passes.once()))
            if not self.kept:
                self.kept = {name: np.zeros_like(blob) for name, blob in self.stock.items()}
            self.waiting, self.next = np.arange(self.next, stop), stop
            self.changed = slice(None)  # the net's blobs are those of the new images now
        return len(self.waiting) > 0


def kept_blobs(net: CaffeNet, first: int) -> List[str]:
    """The names of the blobs that layers from index `first` on read and layers before it make."""
    names = list(net._layer_names)
    tops = set(top for name in names[:first] for top in net.top_names[name])
    return sorted(tops.intersection(bottom for name in names[first:] for bottom in net.bottom_names[name]))


# --- what they add up to ------------------------------------------------------------------------

class Sums(running_sums.Sums):
    """Running sums over as many passes as each image gets. Errors after t passes: of those decided, as decided."""

    def __init__(self, labels: np.ndarray, classes: int, T: int, group: int = 1):
        running_sums.Sums.__init__(self, labels, classes, moments=True, group=group)
        self.wrong_probs, self.wrong_scores = np.zeros((2, T), np.int64)

    def _count_wrong(self, images):
        for curve, wrong in self._wrong(images):
            np.add.at(curve, self.passes[images] - 1, wrong)

    def leave(self, images: np.ndarray) -> None:
        """These images are decided: they count as they are for all passes to come."""
        for curve, wrong in self._wrong(images):
            for t in self.passes[images[wrong]]:
                curve[t:] += 1

    def _wrong(self, images):
        for curve, sums in ((self.wrong_probs, self.probs), (self.wrong_scores, self.scores)):
            yield curve, ~metrics.correct(sums[images], self.labels[images])


def sample(seats: Seats, labels: np.ndarray, T: int, rule: Rule,
           guess: Optional[np.ndarray] = None) -> Dict[str, np.ndarray]:
    """The arrays of the Sums over the images in `seats`."""
    classes, size = seats.net.blobs[seats.wiring.prob].data[0].size, seats.passes.size
    sums, race = Sums(labels, classes, T, size), Race(len(labels), classes, T // size, rule, guess)
    while len(seats.images):
        total = 0.0
        for probs, scores in seats.forward():
            _check_finite(seats, probs, scores)
            sums.add(probs, scores, seats.images)
            total = total + probs.astype(np.float64)
        ends = race.add(seats.images, total / size) | (sums.passes[seats.images] == T)
        sums.leave(seats.images[ends])
        seats.leave(ends)
    return sums.arrays()


def _check_finite(seats, probs, scores):
    """Raises forward.NotFinite with the number of the image, not of its seat."""
    try:
        forward.check_finite(seats.net, probs, scores)
    except forward.NotFinite as error:
        raise forward.NotFinite(int(seats.images[error.row]), error.blob)


# --- was it right? --------------------------------------------------------------------------------

class Watch:
    """What adaptive T would have decided, and when, while every image gets all T passes."""

    def __init__(self, images: int, classes: int, T: int, rule: Rule, guess: Optional[np.ndarray] = None,
                 group: int = 1):
        self.race, self.going = Race(images, classes, T // group, rule, guess), np.arange(images)
        self.group, self.held = group, []

    def over(self, passes: Iterable[forward.Pass]) -> Iterator[forward.Pass]:
        """The same passes, seen on the way."""
        for probs, scores in passes:
            if len(self.going):
                self.held.append(probs[self.going].astype(np.float64))
            if len(self.held) == self.group:
                decided = self.race.add(self.going, np.mean(self.held, axis=0))
                self.going, self.held = self.going[~decided], []
            yield probs, scores

    def arrays(self) -> Dict[str, np.ndarray]:
        """The class decided on and the passes it took, for each image."""
        return OrderedDict(decided=self.race.sums.argmax(axis=1), decided_after=self.race.passes * self.group)
