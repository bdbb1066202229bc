"""What reproduces: the paper's statements with their verdicts, and questions of our own, counted apart."""

from pages.html import MARKS, Html, Section, badge, fill, items, join, put, table, text
from records import load, names
from records.from_bcnn import paper
from verdicts.deviations import NOT_COVERED
from verdicts.judging import CONTRADICTED, SUPPORTED, UNDECIDED

PAPER = {SUPPORTED: 'reproduced', CONTRADICTED: 'not reproduced', UNDECIDED: 'undecided'}
OURS = {SUPPORTED: 'yes', CONTRADICTED: 'no', UNDECIDED: 'undecided'}


def section(tables, statements, questions, changed):
    """Both lists; changed: how many verdicts a later rule changed."""
    return Section('claims', 'Claims', 'What reproduces', fill(
        'claims', lead=_lead(tables, statements), table=_table(statements, PAPER, 'what the paper says'),
        questions=_counts(questions, OURS), our_table=_table(questions, OURS, 'what we ask'), changed=_changed(changed),
        not_covered=items([put('$what <span class="why">$why</span>', what=what, why=why)
                           for what, why in NOT_COVERED])))


def _lead(tables, statements):
    if load.is_empty(tables):
        return text('Nothing is recorded yet. Train and evaluate, then run `%s` and `python analysis/plot.py`.'
                    % load.FILLS)
    return put('Of $all statements of the paper: $counts.', all='%d' % len(statements),
               counts=_counts(statements, PAPER))


def _counts(judged, words):
    """How many there are of each verdict."""
    here = [word(statement, words) for statement in judged]
    return join([put('<b>$n $word</b>', n='%d' % here.count(kind), word=kind) for kind in MARKS if kind in here], ', ')


def _table(judged, words, heading):
    rows = [[put('<a href="#$anchor">$title</a>', anchor=statement.experiment, title=place(statement.experiment)),
             statement.text, join([badge(word(statement, words)), _rests(statement)], '')] for statement in judged]
    return table(['where', heading, 'here'], rows, left=3, kind='stack')


def _changed(number):
    if not number:
        return Html('')
    return put('<a href="#rules">$count</a> changed by a rule that was written after results were seen.',
               count='%d verdict%s' % (number, ' was' if number == 1 else 's were'))


def place(experiment):
    """'Figure 2', 'Time'"""
    return names.experiment(experiment) if experiment in paper.EXPERIMENTS else 'Time'


def word(statement, words=None):
    """The report's word for a statement's verdict."""
    return (words or PAPER)[statement.verdict] if statement.was_run else 'not run'


def _rests(statement):
    """On what the verdict rests, in few words below it."""
    words = ', '.join(part for part in (statement.share, statement.rests) if part)
    return put('<br><span class="small">$words</span>', words=words) if words else Html('')
