"""The section of a figure or table of the paper: claims with verdicts, figure, numbers, deviations, commands."""

from pages import alt_texts, commands
from pages.html import Html, Section, badge, code, figure, fill, items, join, put, table
from pages.sections import averaging, nin, numbers, own_nets
from pages.sections.claims import OURS, PAPER, word
from records import names
from records.from_bcnn import paper
from records.load import where
from verdicts import deviations, published

CAPTIONS = {
    'fig2': 'Test error against training iterations. Blue lenet-all, green lenet-ip, dotted red lenet-none; dashed '
            'Standard dropout, solid MC dropout.',
    'fig3': 'Test error of LeNet trained on all, a quarter and 1/32 of MNIST. Left lenet-ip with Standard dropout, '
            'right lenet-all with MC dropout.',
    'fig4': 'Test error after averaging T stochastic passes, with one standard deviation of the repetitions, against '
            'Standard dropout.'}


def section(tables, experiment, statements, questions, pictures):
    """All about one experiment."""
    picture = figure(pictures[experiment], alt_texts.ALTS[experiment](tables),
                     CAPTIONS[experiment]) if experiment in CAPTIONS else Html('')
    asked = claim_list(questions, experiment, OURS)
    return Section(experiment, names.experiment(experiment), paper.EXPERIMENTS[experiment], fill(
        'experiment', claims=claim_list(statements, experiment, PAPER),
        questions=put('<h3>What we ask besides</h3><ul class="claims">$asked</ul>', asked=asked) if asked else asked,
        surprise=surprises(tables, experiment), figure=picture, numbers=numbers.NUMBERS[experiment](tables),
        causes=_about_table1(tables) if experiment == 'table1' else Html(''),
        deviations=deviation_list(deviations.of(experiment)), commands=code(commands.commands(tables, experiment))))


def _about_table1(tables):
    """What stands below the numbers of Table 1."""
    return join([own_nets.departing(tables, of_table1=True), table1_notes(), nin.part(tables), averaging.part(tables)])


def claim_list(judged, experiment, words):
    """The statements of an experiment, each with its badge, its numbers and its parts."""
    return join([fill('claim', badge=badge(word(statement, words)), statement=statement.text, rests=_rests(statement),
                      numbers=_numbers(statement), parts=_parts(statement))
                 for statement in judged if statement.experiment == experiment])


def surprises(tables, about):
    """What is recorded as surprising in an experiment, or in a question beyond the paper."""
    return join(put('<p><b>What surprised.</b> $words</p>', words=words)
                for words in where(tables['surprises'], question=about)['words'])


def _rests(statement):
    """How the evidence is smaller than the paper's, and on what the verdict rests."""
    words = '; '.join(part for part in (statement.scope or statement.share, statement.rests) if part)
    return put('<br><span class="small">$words</span>', words=words) if words else Html('')


def _numbers(statement):
    return '%s (%s)' % (statement.numbers, statement.why) if statement.why else statement.numbers


def _parts(statement):
    rows = [[part.question, part.answer, part.numbers] for part in statement.parts]
    return table(['in three parts', 'answer', 'numbers'], rows, left=3, kind='stack words') if rows else Html('')


def table1_notes():
    """What significance means here, and the published row that cannot be as printed."""
    checks = [published.check(net) for net in paper.TABLE1]
    impossible = [put('<h3>The published row of $net cannot be as printed</h3><p>$words $meaning</p>',
                      net=paper.title(check.net), words=published.words(check), meaning=published.MEANING)
                  for check in checks if check and not check.possible]
    return fill('table1_notes', finding=join(impossible))


def time(statements, page):
    """What the paper says of time; page: the one with the benchmark."""
    return Section('time', 'Time', 'What the paper says of time',
                   fill('time', claims=claim_list(statements, 'time', PAPER), page=page))


def setup():
    """What holds for every experiment."""
    return Section('setup', 'Set-up', 'What holds for all experiments',
                   fill('setup', deviations=deviation_list(deviations.general())))


def deviation_list(some):
    """Deviations with their reasons."""
    return items([put('$what <span class="why">$why</span>', what=deviation.what, why=deviation.why)
                  for deviation in some])
