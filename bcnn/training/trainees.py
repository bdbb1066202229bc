"""What to train, from what a user types: the nets, solvers and data of a run; and how."""

import itertools
import os
from collections import OrderedDict
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from .. import engine, nets, paper, solvers
from ..data import records, sets
from ..errors import UserError
from ..inputs import preprocessing, sources
from ..mc import adaptive


class Stage(NamedTuple):
    """One stage of a training: DSN has three, the others one."""

    name: str                       # of its solver's file
    solver: engine.SolverParameter  # with the published paths
    net: engine.NetParameter        # to train, with the published paths
    companions: bool                # whether it has companion losses, whose learning rate decays


class Trainee(NamedTuple):
    """What to train."""

    net: str
    dataset: str
    stages: List[Stage]
    standard: engine.NetParameter            # measures Standard dropout
    sampling: Optional[engine.NetParameter]  # measures MC dropout; None without dropout
    data: str                                # the folder of the prepared sets
    records: int                             # how many training images
    source: sources.Source                   # the test images
    count: int                               # how many of them
    checksums: Dict[str, str]                # of the data, by split
    schedule: int                            # K for 1/K of the paper's schedule, in proportion
    init: Optional[str]                      # a caffemodel to start from


class Settings(NamedTuple):
    """How to train."""

    seed: int
    iterations: Tuple[int, ...]     # of each stage
    points: str                     # of --eval-points
    T: int                          # passes of a measurement
    gpu: Optional[int]              # None for the CPU
    jobs: int                       # processes that measure
    snapshot_every: Optional[int]   # iterations; None for about a minute
    streams: Optional[int] = None   # of bcnn.seeds; None for those that the run began with, the newest for a new one
    rule: Optional[adaptive.Rule] = None  # of adaptive T in the measurements; None for T passes of every image


def of_paper(net: str, dataset: Optional[str] = None, fraction: Optional[int] = None, data: str = sets.DATA,
             limit: Optional[int] = None, schedule: int = 1, init: Optional[str] = None,
             prepare: bool = False) -> Trainee:
    """The Trainee for a net of the paper on its prepared data; prepare: what of that is missing."""
    if net not in nets.NETS:
        raise UserError('no net %r; there are: %s' % (net, nets.nearest_first(net, nets.NETS)))
    entry = nets.find(_dataset(net, dataset, fraction), net)
    train, test = (os.path.join(data, *path.split('/')[1:]) for path in (entry.data.train, entry.data.test))
    checksums = OrderedDict()
    for split, path in (('train', train), ('test', test)):
        name = os.path.basename(os.path.dirname(path))
        sets.ensure(name, data, prepare)
        checksums[split] = sets.checksum(name, split, data)
    source = sources.open_images(test, preprocessing.of_paper(entry.data))
    if limit is not None and not 1 <= limit <= source.count:
        raise UserError('%s has %d images: --test-limit %d is not possible' % (test, source.count, limit))
    return Trainee(
        net=net, dataset=entry.dataset, stages=_stages(entry, schedule), standard=nets.deploy(net, entry.base),
        sampling=nets.mc(net, entry.base) if entry.where else None, data=os.path.abspath(data),
        records=records.count(train), source=source, count=limit or source.count, checksums=checksums,
        schedule=schedule, init=init)


def _dataset(net, dataset, fraction):
    dataset = dataset or nets.default_dataset(net)
    if fraction in (None, 1):
        return dataset
    if dataset != 'mnist' or fraction not in paper.FRACTIONS:
        raise UserError('--fraction %s of %s: the paper has 1/1, 1/%s of mnist, for the nets with dropout'
                        % (fraction, dataset, ', 1/'.join(map(str, paper.FRACTIONS))))
    return 'mnist_%d' % fraction


def _stages(entry, schedule):
    stages = []
    for name, solver in solvers.stages(entry.net, entry.dataset, schedule).items():
        companions = name == 'solver_stage1'
        net = nets.train_test(entry.net, entry.dataset, companions=companions)
        stages.append(Stage(name=name, solver=solver, net=net, companions=companions))
    return stages


def iterations(text: Optional[str], trainee: Trainee) -> Tuple[int, ...]:
    """The iterations of each stage of `--iters TEXT`: the paper's for None, '300' at most 300 each, '300,500,100'.

    With --init the first stages may be left out: '0,0,750' has the given weights go through the last one alone.
    """
    whole = [stage.solver.max_iter for stage in trainee.stages]
    if text is None:
        return tuple(whole)
    try:
        numbers = [int(part) for part in str(text).split(',')]
    except ValueError:
        numbers = []
    trained = list(itertools.dropwhile(lambda n: n == 0, numbers)) if trainee.init else numbers
    if len(numbers) not in (1, len(whole)) or min(trained, default=0) < 1 or max(trained) >= 1 << 31:
        stages = ', or %d of them, one a stage' % len(whole) if len(whole) > 1 else ''
        left_out = '; 0 leaves out a first stage, with --init' if len(whole) > 1 else ''
        raise UserError('--iters %s: it must be a whole number, 1 or more%s%s' % (text, stages, left_out))
    if len(numbers) == len(whole):
        return tuple(numbers)
    return tuple(min(numbers[0], most) for most in whole)


def schedule(text: Optional[str]) -> int:
    """The K of `--schedule 1/K`; 1, the paper's own schedule, for None."""
    if text is None:
        return 1
    share, _, divisor = text.partition('/')
    if share != '1' or not divisor.isdigit() or not 0 < int(divisor) < 1 << 31:
        raise UserError("--schedule %s: it is 1/K, for the paper's schedule in proportion, like 1/20" % text)
    return int(divisor)


def first_stage(lengths: Sequence[int]) -> int:
    """The number of the stage that a run begins with, from the iterations of each: 1 unless stages are left out."""
    return next(number for number, length in enumerate(lengths, 1) if length)


def fitting_layers(trainee: Trainee, stage: int) -> Tuple[List[str], List[str]]:
    """(layers of a stage's net that get weights from --init, its other layers)."""
    net = engine.load_net(with_data(trainee, trainee.stages[stage - 1].net), phase=engine.TRAIN)
    fitting = engine.fitting_layers(net, trainee.init)
    return fitting, [name for name in net.params if name not in fitting]


def with_data(trainee: Trainee, net: engine.NetParameter) -> engine.NetParameter:
    """A copy of a net whose data layers read this machine's prepared sets."""
    local = engine.caffe_pb2.NetParameter()
    local.CopyFrom(net)
    for layer in local.layer:
        if layer.type == 'Data':
            layer.data_param.source = os.path.join(trainee.data, *layer.data_param.source.split('/')[1:])
    return local
