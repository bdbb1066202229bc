"""How results are called: numbers, spreads, nets and curves in words."""

import textwrap
from typing import List, Optional, Tuple

from .from_bcnn import paper

DASH = u'\u2013'  # for what is not known
Curve = Tuple[str, str, str]  # (data set, net, method)
# Weights that recorded trainings were started from, by SHA-256: those that tools/nin_to_dsn.py makes of NIN's.
NIN_AS_DSN = ('f406c0b1b93d5a5ebfc32fd0b99a2e3f79764bc7db8bae092456dbf568b9363f',)


def count(number: float) -> str:
    """12,345"""
    return '{:,}'.format(int(number))


def plural(number: int, noun: str) -> str:
    """'1 seed', '3 seeds'"""
    return '%d %s%s' % (number, noun, '' if number == 1 else 's')


def spread(mean: float, std: Optional[float]) -> str:
    """'1.23 +- 0.04', without the second where it is not known."""
    return '%.2f' % mean + ('' if std is None or std != std else ' +- %.2f' % std)


def percent(part: float) -> str:
    """'1%', '0.02%': a share for people."""
    return '%s%%' % ('%.2g' % (100.0 * part) if part < 0.1 else '%.0f' % (100.0 * part))


def target(dataset: str, net: str) -> str:
    """'lenet-all on MNIST'"""
    return '%s on %s' % (paper.title(net), paper.title(dataset))


def start(init: str) -> str:
    """Which weights a training was started from: "NIN's weights", or 'weights 0123abcd'."""
    return "NIN's weights" if init in NIN_AS_DSN else 'weights %s' % init[:8]


def curve(net: str, method: str) -> str:
    """'lenet-all MC'; a net without dropout has one method only."""
    return paper.title(net) + ('' if net == 'lenet_none' else {'standard': ' Standard', 'mc': ' MC'}[method])


def curves(some: List[Curve], every: List[Curve]) -> str:
    """'all curves on MNIST; lenet-ip MC on CIFAR-10': some of the curves in few words."""
    if len(some) == len(every) > 1:
        return 'all curves'
    words = []
    for dataset in sorted(set(run[0] for run in some), key=[run[0] for run in some].index):
        here = [run for run in some if run[0] == dataset]
        all_here = len(here) > 1 and len(here) == len([run for run in every if run[0] == dataset])
        called = 'all curves' if all_here else ', '.join(curve(net, method) for _, net, method in here)
        words.append('%s on %s' % (called, paper.title(dataset)))
    return '; '.join(words)


def experiment(name: str) -> str:
    """'Figure 2'"""
    return paper.EXPERIMENTS[name].split(':')[0]


def wrap(notes: List[str], width: int) -> str:
    """Notes as lines of at most this many characters."""
    return '\n'.join(line for note in notes for line in textwrap.wrap(note, width))
