"""The rules for verdicts: since when each holds, what it replaced, and those for runs that are still to come.

`python analysis/rules.py` writes rules.md from this file. A rule is never changed silently: a change is a new entry
with its commit, its date, and whether results that it judges were known.
"""

from typing import List, NamedTuple, Optional

from records import load, names
from verdicts import former, statements
from verdicts.comparing import FALL
from verdicts.judging import SCHEDULE, SUPPORTED, Statement
from verdicts.statements.figure3 import MARGIN
from verdicts.statements.figure4 import SETTLED
from verdicts.statements.table1 import AGREEMENT
from verdicts.statements.time import SAME


class Rule(NamedTuple):
    """A rule and its history."""
    text: str
    commit: str   # since which it holds; its date is the date of that commit
    date: str
    known: str    # which results were known when it was written
    note: str = ''


# The rules that followed an independent audit. They were written in d4b4346, a commit of a session whose history is
# lost; with this one its tree came into the history that there is.
AUDIT, AUDIT_DATE = 'c7de003', '2026-11-17'
NO_RESULTS = 'no results'
ALL_SO_FAR = ('all results recorded up to then: LeNets to 1% (MNIST, CIFAR-10) and 10% (fractions), NIN, DSN on 200 '
              'images')

RULES = (
    Rule('A statement that compares final errors is judged at the last iteration that all its curves have, if that '
         'is at least %s of the paper\'s schedule.' % names.percent(SCHEDULE),
         commit='aca054c', date='2026-11-16', known=NO_RESULTS),
    Rule('With three or more seeds, a difference of trainings counts when the 95% t-interval of the seed-wise '
         'differences leaves out zero. With fewer, the noise of the test images stands '
         'in.',
         commit='aca054c', date='2026-11-16', known=NO_RESULTS),
    Rule('Over-fitting may be supported by a shorter run, and contradicted only by one as long as the paper\'s.',
         commit='aca054c', date='2026-11-16', known=NO_RESULTS),
    Rule('A run shorter than the paper\'s gives no verdict while a curve of the comparison still falls.',
         commit='a2bb4c5', date='2026-11-16',
         known='MNIST\'s curves and CIFAR-10\'s lenet-all; its lenet-ip came with this commit',
         note='Then: by more than the noise of two independent sets, which could not happen at errors of 0.5%.'),
    Rule('Where it is recorded which images are wrong, the noise of a difference is that of the images on which the '
         'two disagree.',
         commit='cff2dd5', date='2026-11-16', known='all curves of Figures 2 and 3',
         note='Two statements were added with it (Standard dropout suffers), two more with 98764db (ahead on '
              'fractions).'),
    Rule('Statements of the paper and questions of our own are two lists, counted apart.',
         commit=AUDIT, date=AUDIT_DATE, known=ALL_SO_FAR,
         note='Being ahead on 1/32 became a question of ours. On 1/4 the comparison is with the best of lenet-ip, as '
              'in the paper.'),
    Rule('Supported: the interval lies above zero, and the difference is at least the margin. Contradicted: the '
         'interval lies below the margin (below zero where there is none). Undecided: everything '
         'else.',
         commit=AUDIT, date=AUDIT_DATE, known=ALL_SO_FAR,
         note='Before, a rise that was not significant at full length was a contradiction.'),
    Rule('A statement is judged by the noise it speaks of: Figures 2 and 3 of trainings, Table 1 and Figure 4 of '
         'masks (t-interval of the repetitions). Where that is not measured, test images stand in; on a part of the '
         'test set they have to agree as well. The noise of images is always shown beside '
         'it.',
         commit=AUDIT, date=AUDIT_DATE, known=ALL_SO_FAR,
         note='Before, Table 1 asked for more than one std of the repetitions, and for McNemar\'s p < 0.05 in some '
              'cases.'),
    Rule('Differences over images have score intervals (Tango for pairs, Newcombe otherwise); an exact test '
         '(McNemar, Fisher) decides whether they may exclude zero.',
         commit=AUDIT, date=AUDIT_DATE, known=ALL_SO_FAR,
         note='Before, 1.96 standard errors: 4 images against 0 counted (exact p = 0.125).'),
    Rule('A curve still falls if it lost a tenth (%s) of its error or more since the measurement before; where pairs '
         'of images or three seeds are recorded, also by more than that '
         'noise.' % names.percent(FALL),
         commit=AUDIT, date=AUDIT_DATE, known=ALL_SO_FAR,
         note='With 5% in its place lenet-ip MC on MNIST (0.76 to 0.70) would count as falling, and lenet-all '
              'being the lowest there would be undecided.'),
    Rule('Over-fitting: a rise below a tenth (%s) of the lowest error is none. With fewer than three seeds the limit '
         'that shows a rise has the level 5%% / k for the lowest of k '
         'points.' % names.percent(MARGIN),
         commit=AUDIT, date=AUDIT_DATE, known=ALL_SO_FAR,
         note='Before, curves were smoothed over three points.'),
    Rule('To be below the best of k points is to be below each of them (5% each); to be above it has the level 5% / k.',
         commit=AUDIT, date=AUDIT_DATE, known=ALL_SO_FAR),
    Rule('Our numbers agree with published ones if they are certainly closer than %.1f points; an error has '
         'converged if it certainly moves by less than %.1f points between 50 and 100 passes; times are the same '
         'within %s.' % (AGREEMENT, SETTLED, names.percent(SAME)),
         commit=AUDIT, date=AUDIT_DATE,
         known=ALL_SO_FAR + ', and the benchmark: margins of NIN and of times were chosen knowing their numbers'),
    Rule('Only the paper\'s protocol stands in the paper\'s rows: T independent passes of the images as they are, '
         'weights trained from scratch or published, no crops. Of several, by the order of records/evaluations.py '
         '(rank).',
         commit=AUDIT, date=AUDIT_DATE, known=ALL_SO_FAR),
    Rule('A schedule in proportion (1/20) is judged at its own end, without the rule on falling curves, and is never '
         'compared with one that was cut off.',
         commit=AUDIT, date=AUDIT_DATE, known='no run in proportion'),
    Rule('Repetitions that share masks (mc_eval.py --sampler shared) are judged as independent ones. They lie further '
         'apart than those, so that the interval is rather too wide.',
         commit='50052a7', date='2026-11-18', known='none of a net that was evaluated so'),
)


class Planned(NamedTuple):
    """A rule for runs that do not exist yet."""
    runs: str
    rule: str


PLANNED_DATE = '2026-11-17'
PLANNED = (
    Planned('DSN and Augmented-DSN, schedule 1/80 (1/20 was written first, and not run for lack of time), T = 100, '
            'five repetitions, 10,000 images',
            'Table 1\'s and Figure 4\'s statements by the masks\' t-interval, as for NIN; badge "schedule 1/80". '
            'That numbers agree with the published ones stays undecided whatever comes out: the training is shorter. '
            'The largest gain: Augmented-DSN\'s above each other\'s by Welch\'s interval over masks.'),
    Planned('LeNets on MNIST, seeds 2 and 3, 100,000 iterations',
            'Figure 2\'s statements by the t-interval of three seeds, which then decides alone, for or against; the '
            'paired noise of images is shown beside it. A verdict that becomes undecided is reported so.'),
    Planned('Figure 3\'s runs to 1,000,000 iterations',
            'Over-fitting: supported if the rise is above zero and at least a tenth of the lowest error; '
            'contradicted if its upper limit is below that tenth; else undecided. On all of MNIST the other way '
            'round.'),
    Planned('LeNets on CIFAR-10, schedule 1/20',
            'Figure 2\'s statements at the end of that schedule, all curves under the same; the runs cut off at '
            '1,000 iterations are no longer shown.'),
    Planned('Beyond the paper, 1: pooling (lenet-all, MAX and AVE, 20,000 iterations, five seeds each)',
            'The gap is Standard\'s error less MC\'s. "The non-linearity of pooling is why Standard dropout fails": '
            'supported if the gap is smaller with AVE by Welch\'s interval over seeds, and by at least half of the '
            'gap with MAX; contradicted if the interval of the decrease lies below half of it. Layer by layer: the '
            'relative distance grows at a pooling layer if its interval over images does, reported without a verdict.'),
    Planned('Beyond the paper, 2: less data (1 to 1/32 of MNIST, 10,000 iterations, three seeds)',
            'lenet-all MC needs at most half of the images: supported if its error on 1/2 is below lenet-ip\'s on '
            'all by the t-interval of seeds; contradicted if it is above; the number read off is interpolated in the '
            'logarithm of the images, with the range of the seeds.'),
    Planned('Beyond the paper, 3: dropout probability (0.1, 0.25, 0.5, 0.75, 10,000 iterations, three seeds)',
            'p = 0.5 is among the best: contradicted if another p is below it by 0.1 points or more and by the '
            't-interval of seeds; supported if each other\'s interval of the difference stays above -0.1; else '
            'undecided.'),
    Planned('Beyond the paper, 4: uncertainty off the data (Fashion-MNIST, rotated digits)',
            'MC\'s entropy tells them apart better than Standard\'s: supported if its AUROC is higher by at least '
            '0.01 and by an interval of 95% (images drawn anew, the same for both); contradicted if the upper limit '
            'of the gain is below 0.01; the same for mutual information against entropy.'),
)


class History(NamedTuple):
    """What the rules made of the results of today, before and now."""
    changed: List[List[str]]  # [statement, its verdict under each former set and now]; '' where it was none
    counts: List[str]         # how many statements there were under each set, and how many supported


def history(tables: load.Tables, judged: List[Statement], asked: List[Statement]) -> History:
    """The History; judged, asked: of statements.of_paper() and of_ours()."""
    before = [former.verdicts(tables, rules) for rules in former.FORMER]
    changed = []
    for statement in judged + asked:
        earlier = [verdicts.get(statement.key, '') for verdicts in before]
        if any(verdict and verdict != statement.verdict for verdict in earlier):
            changed.append([statement.text] + earlier + [statement.verdict])
    sets = [(rules.commit, list(verdicts.values())) for rules, verdicts in zip(former.FORMER, before)]
    sets += [(name, [statement.verdict for statement in some])
             for name, some in (("now, the paper's", judged), ('now, our own', asked))]
    return History(changed, ['%s: %d statements, %d supported' % (name, len(verdicts), verdicts.count(SUPPORTED))
                             for name, verdicts in sets])


class Judgement(NamedTuple):
    """All verdicts on some tables; it takes long, so that what needs it twice passes it on."""
    of_paper: List[Statement]
    of_ours: List[Statement]
    history: History


def judge(tables: load.Tables) -> Judgement:
    """The verdicts of today, and what former rules would have said."""
    judged, asked = statements.of_paper(tables), statements.of_ours(tables)
    return Judgement(judged, asked, history(tables, judged, asked))


def markdown(tables: load.Tables, judgement: Optional[Judgement] = None) -> str:
    """rules.md; judgement: of judge(), where it is there already."""
    known = (judgement or judge(tables)).history
    lines = ['# Rules for verdicts', '',
             'Written by `python analysis/rules.py`; the source is `analysis/verdicts/rules.py`.', '',
             '| rule | since | results known then | note |', '|---|---|---|---|']
    lines += ['| %s | %s, %s | %s | %s |' % (rule.text, rule.date, rule.commit, rule.known, rule.note)
              for rule in RULES]
    lines += ['', '## Verdicts that a rule changed', '',
              'By the results of today. The methods that came later are the better ones; that they came after '
              'results were seen is said here.', '',
              '| statement | %s | now |' % ' | '.join(rules.commit for rules in former.FORMER),
              '|---|%s---|' % ('---|' * len(former.FORMER))]
    lines += ['| %s |' % ' | '.join(cell or names.DASH for cell in line) for line in known.changed]
    lines += [''] + ['- %s' % line for line in known.counts]
    lines += ['', '## Rules for runs that are still to come', '',
              'Written on %s, before any of these runs had a result.' % PLANNED_DATE, '',
              '| runs | rule |', '|---|---|']
    lines += ['| %s | %s |' % planned for planned in PLANNED]
    return '\n'.join(lines) + '\n'
