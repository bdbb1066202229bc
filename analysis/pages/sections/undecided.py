"""What is undecided, what would decide it, how much errors vary, and what is left of the paper's runs."""

from collections import OrderedDict

from pages.html import Html, Section, fill, items, nothing, put, table
from records import curves, evaluations, names
from records.from_bcnn import cost, durations, paper
from records.load import FILLS, where
from verdicts import variation
from verdicts.judging import UNDECIDED

HEADS = ['where', 'run', 'done', "paper's", 'share', 'the rest, one CPU core']


def section(tables, judged):
    """What would decide each open statement, and what the paper's whole runs would cost."""
    speeds = cost.speeds(tables['bench'].to_dict('records'))
    rows = _trainings_left(tables, speeds) + _evaluations_left(tables, speeds)
    left = table(HEADS, rows, left=2) if rows else Html('<p>All runs are as long as the paper\'s.</p>')
    return Section('undecided', 'Undecided', 'What is undecided, and what would decide it',
                   fill('undecided', how=_how(tables), table=_open(judged), variation=_variation(tables), left=left))


def _open(judged):
    """A row a run that would decide statements: these, and why they are open."""
    by_run = OrderedDict()
    for statement in judged:
        if statement.verdict == UNDECIDED:
            by_run.setdefault(statement.decides, []).append(statement)
    if not by_run:
        return Html('<p>Every statement is decided.</p>')
    rows = [[decides, items([put('$text <span class="small">($why)</span>', text=statement.text,
                                 why=statement.why or statement.numbers) for statement in some])]
            for decides, some in by_run.items()]
    return table(['what would decide it', 'undecided, and why'], rows, left=2, kind='stack words')


def _variation(tables):
    """The three noises of each net."""
    def cell(value):
        return names.DASH if value is None else '%.2f' % value

    rows = [[names.target(line.dataset, line.net), {'standard': 'Standard', 'mc': 'MC'}[line.method],
             '%.2f' % line.error, cell(line.masks), cell(line.seeds), cell(line.images)]
            for line in variation.all_nets(tables)]
    return table(['net', 'method', 'error, %', 'masks', 'seeds', 'images'], rows, left=2) if rows else nothing(FILLS)


def _how(tables):
    machines = sorted(set(tables['bench']['machine']))
    if not machines:
        return Html('once <code>tools/bench.py --record</code> has measured them')
    return put('from the steps and passes that <code>tools/bench.py --record</code> measured on one core ($machines)',
               machines=', '.join(machines))


def _trainings_left(tables, speeds):
    """Rows for the trainings that are shorter than the paper's."""
    rows = []
    for run in paper.RUNS:
        done, full = reached(tables, run), sum(run.iterations)
        if done < full and run.experiment != 'fig4' and run.weights == 'trained':
            rows.append(_left(run, 'training', done, full, 'iterations', cost.of_step(speeds, run.dataset, run.net)))
    return rows


def _evaluations_left(tables, speeds):
    """Rows for the repetitions of Table 1 that are missing: all passes, on all images, with fully trained weights."""
    rows = []
    for run in paper.find('table1'):
        lines = [evaluations.measured(group) for group in evaluations.chosen(tables, run.dataset, run.net)
                 if evaluations.share(group.iloc[0]) >= 1]
        done = max([0] + [line['repetitions'] for line in lines
                          if line['n'] >= paper.TEST_IMAGES and line['T'] >= run.T])
        a_pass = cost.of_pass(speeds, run.dataset, run.net)
        if done < run.repetitions:
            rows.append(_left(run, 'MC evaluation', done, run.repetitions, 'repetitions',
                              None if a_pass is None else a_pass * run.T * paper.TEST_IMAGES))
    return rows


def _left(run, what, done, full, unit, seconds):
    """The row of a run of which `full - done` is left, at so many seconds each (None: not measured)."""
    return [names.experiment(run.experiment), '%s of %s' % (what, names.target(run.dataset, run.net)),
            names.count(done), '%s %s' % (names.count(full), unit), names.percent(done / float(full)),
            names.DASH if seconds is None else durations.rough((full - done) * seconds)]


def reached(tables, run):
    """The most iterations of the paper's own schedule recorded for a run, by its curve or its evaluation."""
    by_curve = curves.curve(tables, run.dataset, run.net, 'standard', schedule='')['iteration'].max()
    by_evaluation = where(tables['evaluations'], dataset=run.dataset, net=run.net, init='',
                          schedule='')['iterations'].max()
    return int(max(iterations if iterations == iterations else 0 for iterations in (by_curve, by_evaluation)))
