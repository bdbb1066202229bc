"""The jobs of a plan: what each does, where, and what it needs. Standard library only."""

from typing import Dict, NamedTuple, Optional, Tuple, Union


class Train(NamedTuple):
    """A training run."""

    name: str                     # of the job, 'train-mnist-lenet_all-seed1'
    experiments: Tuple[str, ...]  # of the paper that it serves
    dataset: str
    net: str
    seed: int
    iterations: Tuple[int, ...]   # of each stage
    schedule: int                 # K where they are 1/K of the paper's in proportion, 1 where its schedule is cut off
    points: str                   # of --eval-points
    T: int
    adaptive: bool                # whether the points are measured with adaptive T
    limit: Optional[int]          # of the test images; None for all
    processes: int                # that measure
    cores: int                    # that it counts for; less than its processes where training, which takes one, is most
    folder: str
    needs: Tuple[str, ...]        # the sets of tools/prepare_data.py
    streams: Optional[int] = None  # the version of the random numbers; None for the newest


class Evaluate(NamedTuple):
    """An MC evaluation of final weights."""

    name: str
    experiments: Tuple[str, ...]
    dataset: str
    net: str
    weights: str
    T: int
    repeats: int
    limit: Optional[int]
    processes: int
    cores: int
    folder: str
    after: Optional[str]          # the job that makes the weights; None for published and shipped ones
    needs: Tuple[str, ...]
    optional: bool                # left out where its weights cannot be fetched
    sampler: str                  # of --sampler
    streams: Optional[int] = None


class Study(NamedTuple):
    """A question beyond the paper, asked of trained weights (tools/study.py)."""

    name: str
    experiments: Tuple[str, ...]  # the question, of beyond.QUESTIONS
    dataset: str
    net: str
    seed: int
    study: str                    # of beyond.STUDIES
    run: str                      # the folder of the training
    iteration: int                # of the weights
    T: int
    passed: int                   # images that pass through the net
    processes: int
    cores: int
    folder: str
    after: str
    needs: Tuple[str, ...]
    streams: Optional[int] = None


Job = Union[Train, Evaluate, Study]


class Plan(NamedTuple):
    """A profile's jobs."""

    profile: str
    about: str
    disk: str
    folder: str                   # of its runs, stamps, logs and report
    jobs: Dict[str, Job]          # by name, those asked for
    left_out: Tuple[str, ...]     # what of the profile there is nothing to do with here, in words
