"""What the paper says of time, on the machine that tools/bench.py measured: one core, no GPU."""

from typing import List, Optional, Tuple

from records import names
from records.from_bcnn import paper
from records.load import Tables, where
from verdicts.judging import CONTRADICTED, UNDECIDED, Statement, equal, unanimous

SAME = 0.1  # times that differ by less than this share are called the same
BENCH = '`python tools/bench.py --record`'
MORE = 'More rounds: `python tools/bench.py --rounds 15 --record`.'


def statements(tables: Tables) -> List[Statement]:
    """What the paper says of training and of test time."""
    return [training_time(tables), constant_time(tables)]


def _measured(tables: Tables, **what) -> Optional[Tuple[float, float, float]]:
    """(median, least, most) of the rounds of one measurement, None where it is not recorded."""
    rows = where(tables['bench'], **what)
    rows = rows[rows['value'].notnull()]
    if not len(rows):
        return None
    row = rows.iloc[0]
    return tuple(row[name] if row[name] == row[name] else row['value'] for name in ('value', 'low', 'high'))


def ratio(mine: Tuple[float, float, float], other: Tuple[float, float, float]) -> Tuple[float, float, float]:
    """(of the medians, the least and the most that the rounds allow)."""
    return mine[0] / other[0], mine[1] / other[2], mine[2] / other[1]


def same(times: Tuple[float, float, float]) -> str:
    """The verdict on two times being the same, given their ratio."""
    return equal(times[1] - 1, times[2] - 1, SAME)


def _words(times: Tuple[float, float, float]) -> str:
    return '%.2f times [%.2f, %.2f]' % times


def _scope(tables: Tables) -> str:
    machines = sorted(set(machine.split(';')[0] for machine in tables['bench']['machine']))
    return 'one CPU core (%s), no GPU' % '; '.join(machines)


def training_time(tables: Tables) -> Statement:
    """A training step of lenet-all against one of lenet-ip: dropout after all layers against the usual."""
    key, text = 'time-training', 'Training time is identical to that of existing models.'
    step = {net: _measured(tables, part='training', subject='mnist/' + net, way='driver') for net in paper.LENETS}
    if not step['lenet_all'] or not step['lenet_ip']:
        return Statement(key=key, experiment='time', text=text, verdict=UNDECIDED, numbers='not measured', scope=None,
                         decides=BENCH)
    times = ratio(step['lenet_all'], step['lenet_ip'])
    numbers = 'a step takes %s ms; lenet-all %s as long as lenet-ip; the margin is %s' % (
        ', '.join('%.1f (%s)' % (step[net][0], paper.title(net)) for net in reversed(paper.LENETS) if step[net]),
        _words(times), names.percent(SAME))
    verdict = same(times)
    return Statement(key=key, experiment='time', text=text, verdict=verdict, numbers=numbers, scope=_scope(tables),
                     share='one CPU core', rests='extremes of the rounds',
                     why='' if verdict != UNDECIDED else 'the rounds spread too far',
                     decides='' if verdict != UNDECIDED else MORE)


def constant_time(tables: Tables) -> Statement:
    """T passes of one input as one minibatch (replicate): five times the passes in the time of one fifth?"""
    key = 'time-minibatch'
    text = 'With the passes of an input in one minibatch, test time stays constant in T.'
    said, verdicts = [], []
    for subject in sorted(set(where(tables['bench'], part='MC', way='replicate')['subject'])):
        at = {T: _measured(tables, part='MC', subject=subject, way='replicate', T=T) for T in (20, 100)}
        if all(at.values()):
            times = tuple(5 * value for value in ratio(at[100], at[20]))
            said.append('%s %s' % (names.target(*subject.split('/')), _words(times)))
            verdicts.append(same(times))
    if not said:
        return Statement(key=key, experiment='time', text=text, verdict=UNDECIDED, numbers='not measured', scope=None,
                         decides=BENCH)
    verdict = CONTRADICTED if CONTRADICTED in verdicts else unanimous(verdicts)
    numbers = 'T = 100 takes, beside T = 20: %s' % '; '.join(said)
    return Statement(key=key, experiment='time', text=text, verdict=verdict, numbers=numbers, scope=_scope(tables),
                     share='one CPU core', rests='extremes of the rounds',
                     why='' if verdict != UNDECIDED else 'the rounds spread too far',
                     decides='' if verdict != UNDECIDED else MORE)
