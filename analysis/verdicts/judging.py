"""The one rule by which every statement is judged, and what a judged statement holds.

A statement says that a difference is above zero. It is

- supported where the interval of the difference lies above zero, and the difference is at least the margin;
- contradicted where the interval lies below the margin (below zero where there is none);
- undecided otherwise: not significant is not contradicted.

A margin says which difference would still be none; it is written down before the runs that it judges. A statement that
two things are the same is supported where the interval lies within the margin on both sides, contradicted where it
lies beyond it.
"""

from typing import List, NamedTuple, Optional, Sequence

from records.from_bcnn import paper
from verdicts.statistics import Difference, words

SUPPORTED, CONTRADICTED, UNDECIDED = 'supported', 'contradicted', 'undecided'
OPPOSITE = {SUPPORTED: CONTRADICTED, CONTRADICTED: SUPPORTED, UNDECIDED: UNDECIDED}
SCHEDULE = 0.01  # the least share of the paper's schedule for a verdict


def judge(difference: Difference, margin: float = 0.0) -> str:
    """The verdict on the statement that this difference is above zero."""
    if difference.high < margin:
        return CONTRADICTED
    if difference.low > 0 and difference.estimate >= margin:
        return SUPPORTED
    return UNDECIDED


def equal(low: float, high: float, margin: float) -> str:
    """The verdict on the statement that a difference with these limits is none."""
    if max(abs(low), abs(high)) < margin:
        return SUPPORTED
    return CONTRADICTED if low >= margin or high <= -margin else UNDECIDED


def unanimous(verdicts: Sequence[str]) -> str:
    """The verdict that all of them are; undecided where they differ."""
    return verdicts[0] if len(set(verdicts)) == 1 else UNDECIDED


def every(verdicts: Sequence[str]) -> str:
    """Of the statement that all of these hold: contradicted if one of them is."""
    return CONTRADICTED if CONTRADICTED in verdicts else UNDECIDED if UNDECIDED in verdicts else SUPPORTED


class Evidence(NamedTuple):
    """What is known of a difference, each noise apart."""
    about: Optional[Difference]  # over the noise that the statement speaks of: seeds or masks; None if not measured
    images: Difference           # over test images
    n: int                       # test images

    def required(self) -> List[Difference]:
        """What decides: the noise the statement speaks of, the images in its place where it is not measured, and the
        images beside it where they are only a part of the test set."""
        if self.about is None:
            return [self.images]
        return [self.about] + ([self.images] if self.n < paper.TEST_IMAGES else [])

    def verdict(self, margin: float = 0.0) -> str:
        return unanimous([judge(difference, margin) for difference in self.required()])

    def words(self) -> str:
        """The differences that decide, each with its interval, and that over images beside them."""
        said = '; '.join(words(difference) for difference in self.required())
        return said if self.images in self.required() else '%s; over images %s' % (said, words(self.images))

    def noise(self) -> str:
        """'seeds', 'masks and images': what decides."""
        return ' and '.join(difference.noise for difference in self.required())


class Part(NamedTuple):
    """One of the questions that a statement is made of, answered apart."""
    question: str
    answer: str   # 'yes', 'no', 'undecided'
    numbers: str


class Statement(NamedTuple):
    """A statement of the paper, or a question of our own, with its verdict."""
    key: str
    experiment: str             # where in the report: of paper.EXPERIMENTS, or 'time'
    text: str
    verdict: str
    numbers: str                # the evidence in words
    scope: Optional[str]        # how the evidence is smaller than the paper's; None where there is none
    share: str = ''             # of the schedule, in few words, for the badge: '1% of the schedule'
    rests: str = ''             # what it rests on besides: seeds or repetitions, kind of noise
    parts: Sequence[Part] = ()
    decides: str = ''           # the run that would decide it, with its cost; '' for what is decided
    why: str = ''               # why it is not decided

    @property
    def was_run(self) -> bool:
        return self.scope is not None
