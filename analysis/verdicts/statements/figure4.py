"""Figure 4: how many passes are enough."""

from typing import List

import pandas as pd

from records import evaluations, names
from records.from_bcnn import paper
from records.load import Tables, where
from verdicts import deciding, statistics
from verdicts.judging import UNDECIDED, Evidence, Statement, equal
from verdicts.statements import table1

SETTLED = 0.1  # points: an error that moves less than this between 50 and 100 passes has converged


def statements(tables: Tables) -> List[Statement]:
    """What the paper says of Figure 4, which is of Augmented-DSN."""
    return [twenty_passes(tables, 'dsn_aug'), converges(tables, 'dsn_aug')]


def questions(tables: Tables) -> List[Statement]:
    """The same of NIN, whose weights are public."""
    return [twenty_passes(tables, 'nin'), converges(tables, 'nin')]


def errors_after(tables: Tables, group: pd.DataFrame, t: int) -> pd.Series:
    """The errors of each repetition after t passes, in percent."""
    rows = where(evaluations.rows_of(tables['convergence'], [group]), average='probs', t=t)
    return (100.0 * rows['errors'] / rows['n']).set_axis(list(zip(rows['config'], rows['repetition'])))


def twenty_passes(tables: Tables, net: str) -> Statement:
    """After 20 passes the mean error is below Standard dropout's by more than one std of the repetitions.

    That std is the margin: the gain has to be above zero by the masks' interval, and at least one std.
    """
    passes = paper.ENOUGH_PASSES
    key = 'fig4-%s-%d-passes' % (net, passes)
    text = 'With %s, %d passes are enough for a gain of more than one standard deviation.' % (paper.title(net), passes)
    known = table1.gain(tables, net)
    if not known:
        return table1.not_evaluated(tables, key, text, net, 'fig4')
    after = errors_after(tables, known.group, passes)
    if len(after) < 2:
        return Statement(key=key, experiment='fig4', text=text, verdict=UNDECIDED,
                         numbers='needs two repetitions with %d passes or more' % passes, scope='',
                         decides=deciding.evaluation(tables, net))
    standard, std = evaluations.error_of_standard(known.group), statistics.deviation(list(after))
    gap = statistics.over(list(standard - after), 'masks', names.plural(len(after), 'repetition'))
    numbers = 'after %d passes %.2f%% +- %.2f, Standard %.2f%% (gain %s; one std is %.2f)' % (
        passes, after.mean(), std, standard, statistics.words(gap), std)
    evidence = Evidence(gap, known.evidence.images, known.evidence.n)
    return table1.judged(tables, Statement(key=key, experiment='fig4', text=text, verdict=evidence.verdict(std),
                                           numbers=numbers, scope=''),
                         known._replace(evidence=evidence), net, std)


def converges(tables: Tables, net: str, half: int = 50, most: int = 100) -> Statement:
    """The error has converged within 100 passes: between 50 and 100 it moves by less than the margin."""
    key = 'fig4-%s-converges' % net
    text = 'With %s, the error converges within %d passes.' % (paper.title(net), most)
    known = table1.gain(tables, net)
    if not known:
        return table1.not_evaluated(tables, key, text, net, 'fig4')
    moved = (errors_after(tables, known.group, half) - errors_after(tables, known.group, most)).dropna()
    if len(moved) < 2:
        return Statement(key=key, experiment='fig4', text=text, verdict=UNDECIDED,
                         numbers='needs two repetitions with %d passes' % most, scope='',
                         decides=deciding.evaluation(tables, net))
    change = statistics.over(list(moved), 'masks', names.plural(len(moved), 'repetition'))
    numbers = 'from %d to %d passes the error falls by %s; the margin is %.2f' % (
        half, most, statistics.words(change), SETTLED)
    statement = Statement(key=key, experiment='fig4', text=text, verdict=equal(change.low, change.high, SETTLED),
                          numbers=numbers, scope='')
    return table1.judged(tables, table1.whole_set_only(statement, known.evidence.n),
                         known._replace(evidence=known.evidence._replace(about=change)), net, SETTLED)
