"""What run_all.sh shows: lines that are redrawn on a terminal of any width, and lines now and then elsewhere."""

import io
import json
import os

import pytest

from bcnn.system import places
from bcnn.training import curve
from bcnn.workflow import forecast, plan, screen, steps, watching
from terminal import Terminal


class Out(io.StringIO):
    """A stream that says it is a terminal of this size."""

    encoding = 'utf-8'

    def __init__(self, columns=100, rows=24):
        io.StringIO.__init__(self)
        self.columns, self.rows, self.terminal = columns, rows, Terminal(columns)

    def isatty(self):
        return True

    def fileno(self):
        return 99

    def flush(self):
        self.terminal.feed(self.getvalue())
        self.seek(0)
        self.truncate()

    def resize(self, columns):
        self.columns = columns
        self.terminal.resize(columns)


@pytest.fixture
def out(monkeypatch):
    made = Out()
    monkeypatch.setattr(os, 'get_terminal_size', lambda number: os.terminal_size((made.columns, made.rows)))
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.delenv('NO_COLOR', raising=False)
    return made


# --- the screen ------------------------------------------------------------------------------------

def test_moving_lines_are_replaced_and_others_stay(out):
    shown = screen.Screen(out)
    shown.show(moving=['a 10%', 'b 20%'])
    shown.show(stay=['a done'], moving=['b 60%', 'c 0%', 'all'])
    assert out.terminal.seen() == ['a done', 'b 60%', 'c 0%', 'all']
    shown.show(stay=['b done'], moving=['c 90%'])
    assert out.terminal.seen() == ['a done', 'b done', 'c 90%']
    shown.show(stay=['c done'])
    assert out.terminal.seen() == ['a done', 'b done', 'c done']


@pytest.mark.parametrize('columns', [7, 20, 39, 40, 41, 99, 100, 200])
def test_a_window_of_another_width_leaves_no_rests(out, columns):
    shown = screen.Screen(out)
    shown.show(stay=['stays'], moving=['x' * 80, 'y' * 300, 'z'])
    out.resize(columns)
    shown.show(moving=['p' * 80, 'q'])
    out.resize(60)
    shown.show(stay=['end'])
    assert out.terminal.seen() == ['stays', 'end']


def test_no_line_takes_two_rows_and_no_frame_more_than_the_window(out):
    out.rows = 5
    shown = screen.Screen(out)
    for _ in range(3):
        shown.show(moving=['%d %s' % (k, 'x' * 200) for k in range(50)])
    seen = out.terminal.seen()
    assert len(seen) == 4 and all(len(row) == 99 and row.endswith('>') for row in seen)


def test_colours_unless_there_should_be_none(out, monkeypatch):
    screen.Screen(out).show(stay=[[('good', 'good')]])
    assert out.terminal.colours == 2
    monkeypatch.setenv('NO_COLOR', '1')
    screen.Screen(out).show(stay=[[('good', 'good')]])
    assert out.terminal.colours == 2 and out.terminal.seen() == ['good', 'good']


def test_a_terminal_that_has_gone_is_no_error(out):
    def gone(text):
        raise OSError(5, 'Input/output error')
    out.write = gone
    screen.Screen(out).show(stay=['x'])


def test_a_bar_is_as_full_as_its_share(out):
    def text(share):
        return ''.join(part for part, _ in screen.Screen(out).bar(share, 10))
    assert [text(share) for share in (None, 0.0, 0.26, 1.0)] == ['─' * 10, '─' * 10, '━━━───────', '━' * 10]
    out.encoding = 'ascii'
    assert text(0.5) == '#####-----'


# --- what is left ------------------------------------------------------------------------------------

def step(name, expected, after=(), cores=1, job='a job'):
    return steps.Step(name=name, title=name, job=job, after=after, cores=cores, expected=expected)


def look(state, share=None, seconds=0.0, text=''):
    return steps.Look(state=state, share=share, seconds=seconds, text=text)


TODO = [step('data', 10.0, job=None), step('a', 100.0, ('data',)), step('b', 60.0, ('data',)),
        step('e', 40.0, ('a',), cores=2), step('report', 10.0, ('a', 'b', 'e'), job=None)]


@pytest.mark.parametrize('cores, right', [(1, 220.0), (2, 10 + 100 + 40 + 10), (8, 160.0)])
def test_the_end_of_all_is_that_of_the_longest_way(cores, right):
    assert forecast.finish(TODO, {one.name: one.expected for one in TODO}, cores) == right


def test_what_is_done_takes_nothing():
    assert forecast.finish(TODO, {'e': 40.0, 'report': 10.0}, 2) == 50.0
    assert forecast.finish(TODO, {}, 2) == 0.0


def test_expectations_are_corrected_by_what_was_taken():
    guess = forecast.Forecast(TODO, 2)
    waiting = look(steps.WAITING, 0.0)
    before = dict(data=waiting, a=waiting, b=waiting, e=waiting, report=waiting)
    assert guess.left(before) == ({'data': 10.0, 'a': 100.0, 'b': 60.0, 'e': 40.0, 'report': 10.0}, 160.0)
    # twice as slow as expected
    own, whole = guess.left(dict(before, data=look(steps.DONE, 1.0, 20.0), a=look(steps.RUNNING, 0.0, 0.0)))
    assert own == {'a': 200.0, 'b': 120.0, 'e': 80.0, 'report': 20.0} and whole == 300.0
    # a's own speed counts for a: a quarter in 25 seconds; the others by all that was seen
    own, whole = guess.left(dict(before, data=look(steps.DONE, 1.0, 20.0), a=look(steps.RUNNING, 0.25, 25.0)))
    slower = (20 + 25) / (10 + 25.0)
    assert own['a'] == 75.0 and own['b'] == pytest.approx(60 * slower) and own['e'] == pytest.approx(40 * slower)


def test_a_step_that_goes_on_is_judged_by_what_it_does_now():
    guess = forecast.Forecast([step('a', 100.0)], 1)
    guess.left({'a': look(steps.RUNNING, 0.5, 2.0)})
    own, _ = guess.left({'a': look(steps.RUNNING, 0.6, 22.0)})  # a tenth in 20 seconds
    assert own['a'] == pytest.approx(80.0)


# --- the steps of a plan, from files -------------------------------------------------------------------

KNOWN = {('training', 'mnist/lenet_all'): 0.03, ('MC', 'mnist/lenet_all'): 0.0002}


@pytest.fixture
def quick(tmp_path, monkeypatch):
    monkeypatch.setattr(places, 'RUNS', str(tmp_path))
    what = plan.load('quick', only='*lenet_all*')
    os.makedirs(os.path.join(what.folder, 'stamps'))
    return what


def mark(what, name, end, at=1000.0):
    path = os.path.join(what.folder, 'stamps', name + end)
    open(path, 'w').close()
    os.utime(path, (at, at))


def test_a_plan_as_steps(quick):
    todo = steps.of_plan(quick, KNOWN)
    assert [one.title for one in todo] == ['check the nets', 'prepare MNIST', 'train lenet-all on MNIST',
                                           'evaluate lenet-all on MNIST', 'draw the report']
    train, evaluation = todo[2:4]
    assert train.after == ('nets', 'data-mnist') and train.name in evaluation.after
    forward = 0.03 / 3 / 64
    assert evaluation.expected == pytest.approx(10000 * (forward + 50 * 0.0002) / 2)  # two processes
    assert train.expected == pytest.approx(1000 * 0.03 + 4 * 10000 * (forward + 10 * 0.0002) / 2)
    for one in todo:
        assert all(other in [before.name for before in todo[:todo.index(one)]] for other in one.after)


def test_seeds_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(places, 'RUNS', str(tmp_path))
    titles = [one.title for one in steps.of_plan(plan.load('quick', only='*lenet_all*', seeds=2), KNOWN)]
    assert 'train lenet-all on MNIST, seed2' in titles and 'evaluate lenet-all on MNIST, seed1' in titles


def test_looks_come_from_the_files_of_the_jobs(quick):
    train = steps.of_plan(quick, KNOWN)[2]

    def now(at=1060.0):
        return steps.look(train, quick.folder, KNOWN, at)

    assert now() == look(steps.WAITING, 0.0)
    mark(quick, train.name, '.begun')
    assert now() == look(steps.RUNNING, 0.0, 60.0, 'iteration 0 of 1,000')
    os.makedirs(train.job.folder)
    status = {'stage': 1, 'iteration': 400, 'iterations_a_second': 10.0, 'measuring': False, 'time': 1057.0}
    with open(os.path.join(train.job.folder, 'status.json'), 'w') as file:
        json.dump(status, file)
    curve.write(os.path.join(train.job.folder, 'curve.csv'), [
        curve.row(1, n, 0.01, [1], (952, 832, None), 10000, 50, (0.01, 7)) for n in (100, 200)])
    seen = now()
    assert seen.text == 'iteration 430 of 1,000, Standard 9.52%, MC 8.32% at 200'  # three seconds on
    point = 10000 * (0.03 / 3 / 64 + 10 * 0.0002)
    assert seen.share == pytest.approx((430 * 0.03 + 2 * point) / (1000 * 0.03 + 4 * point))
    assert now(5000.0).text.startswith('iteration 400 of')  # no news for long: what it said last
    mark(quick, train.name, '.failed', 1030.0)
    os.makedirs(os.path.join(quick.folder, 'logs'))
    with open(steps.log_of(quick.folder, train.name), 'w') as file:
        file.write('begins\ntrain.py: no space left\n\n')
    assert now() == look(steps.FAILED, None, 30.0, 'train.py: no space left')
    mark(quick, train.name, '.done', 1090.0)
    assert now() == look(steps.DONE, 1.0, 90.0, 'Standard 9.52%, MC 8.32%')


def test_damaged_files_stop_nobody_from_looking(quick):
    train = steps.of_plan(quick, KNOWN)[2]
    mark(quick, train.name, '.begun')
    os.makedirs(train.job.folder)
    for name, text in (('status.json', '{"stage": "x"}'), ('status.json', '{'), ('curve.csv', 'a,b\n')):
        with open(os.path.join(train.job.folder, name), 'w') as file:
            file.write(text)
        assert steps.look(train, quick.folder, KNOWN, 1010.0) == look(steps.RUNNING, None, 10.0)


def test_marks_of_an_earlier_call_are_forgotten_and_stamps_are_not(quick):
    for end in ('.begun', '.failed', '.done'):
        mark(quick, 'nets', end)
    steps.forget(quick.folder)
    assert os.listdir(os.path.join(quick.folder, 'stamps')) == ['nets.done']


def test_a_report_that_is_older_than_a_result_is_not_the_report(quick):
    report = steps.of_plan(quick, KNOWN)[-1]
    os.makedirs(os.path.join(quick.folder, 'report'))
    path = os.path.join(quick.folder, 'report', 'report.html')
    open(path, 'w').close()
    os.utime(path, (1000.0, 1000.0))
    assert steps.look(report, quick.folder, KNOWN).state == steps.DONE
    mark(quick, 'train-mnist-lenet_all-seed1', '.done', 2000.0)
    assert steps.look(report, quick.folder, KNOWN).state == steps.WAITING


# --- what is shown -------------------------------------------------------------------------------------

def looks(**changes):
    found = {one.name: look(steps.WAITING, 0.0) for one in TODO}
    found.update(changes)
    return found


@pytest.fixture
def now(monkeypatch):
    moment = [1000.0]
    monkeypatch.setattr(watching.time, 'time', lambda: moment[0])
    return moment


def new(out=None):
    return watching.new(TODO, forecast.Forecast(TODO, 2), out)


def test_on_a_terminal_done_steps_stay_and_the_others_move(out, now):
    shown = new(out)
    shown.update(looks(data=look(steps.RUNNING, None, 3.0, 'fetching')))
    assert out.terminal.seen()[:2] == ['▸ data       0:03  fetching', '· a         ~1:40  waits for: data']
    now[0] += 60
    shown.update(looks(data=look(steps.DONE, 1.0, 10.0, '60,000 images'), a=look(steps.RUNNING, 0.25, 25.0, 'iteration 25'),
                       b=look(steps.FAILED, None, 3.0, 'no space')))
    assert out.terminal.seen() == [
        '✓ data       0:10  60,000 images', '✗ b          0:03  no space',
        '▸ a       ' + '━━━━━───────────────' + '  25%  1:15 left  iteration 25',
        '· e         ~0:40  waits for: a', '· report    ~0:10  waits for: e and 1 more', '',
        '━' * 6 + '─' * 34 + '  15%  1:00 gone, about 2:05 left']
    shown.stop()
    shown.update(looks(data=look(steps.DONE, 1.0, 10.0), a=look(steps.RUNNING, 0.25, 25.0, 'iteration 25')))
    assert out.terminal.seen()[-1] == 'stopping: what runs keeps what it has (1:00 gone)'
    shown.end(looks(data=look(steps.DONE, 1.0, 10.0), a=look(steps.RUNNING, 0.25, 25.0, 'iteration 25')))
    assert out.terminal.seen() == ['✓ data       0:10  60,000 images', '✗ b          0:03  no space',
                                   '▸ a       stopped at 25%, iteration 25']


@pytest.mark.parametrize('columns', [10, 30, 50, 80])
def test_on_a_narrow_terminal_titles_and_times_are_what_is_left(out, now, columns):
    out.columns = out.terminal.columns = columns
    shown = new(out)
    for _ in range(3):
        shown.update(looks(a=look(steps.RUNNING, 0.25, 25.0, 'iteration 25 of 1,000, Standard 9.52%, MC 8.32%')))
    seen = out.terminal.seen()
    assert len(seen) == 7 and all(len(row) < columns for row in seen)
    if columns >= 30:
        assert any(row.startswith('▸ a') and ' 25%  1:15 left' in row for row in seen)


def test_a_low_terminal_shows_what_runs_and_counts_the_rest(out, now):
    out.rows = 7
    new(out).update(looks(data=look(steps.RUNNING, 0.5, 5.0)))
    assert [row[:8] for row in out.terminal.seen()] == ['▸ data  ', '· a     ', '· b     ', '  ... an', '', '━' + '─' * 7]


def test_elsewhere_a_line_at_the_beginning_each_minute_and_at_the_end(now, capsys):
    shown = new()
    assert isinstance(shown, watching.Lines)
    running = look(steps.RUNNING, 0.25, 25.0, 'iteration 25')
    for second in range(0, 130):
        now[0] = 1000.0 + second
        shown.update(looks(data=look(steps.DONE, 1.0, 0.0, '60,000 images'), a=running))
    shown.update(looks(data=look(steps.DONE, 1.0), a=look(steps.DONE, 1.0, 130.0, 'Standard 2.57%')))
    shown.stop()
    shown.stop()
    shown.end(looks(data=look(steps.DONE, 1.0), a=look(steps.DONE, 1.0, 130.0, 'Standard 2.57%'),
                    b=look(steps.FAILED, None, 5.0, 'no space')))
    assert [line.strip() for line in capsys.readouterr().out.splitlines()] == [
        '0:00  a: begins, about 1:15', '0:00  data: done before, 60,000 images',
        '1:00  a: 25%, 1:15 left, iteration 25', '1:00  15% of all, about 2:05 left',
        '2:00  a: 25%, 1:15 left, iteration 25', '2:00  15% of all, about 2:05 left',
        '2:09  a: done after 2:10, Standard 2.57%',
        '2:09  stopping: what runs keeps what it has', '2:09  b: failed after 0:05: no space']


def test_many_that_run_share_a_line(now, capsys):
    todo = [step('s%d' % k, 100.0) for k in range(20)]
    shown = watching.new(todo, forecast.Forecast(todo, 20))
    running = {one.name: look(steps.RUNNING, 0.5, 50.0) for one in todo}
    shown.update(running)
    assert len(capsys.readouterr().out.splitlines()) == 20
    now[0] += 60
    shown.update(running)
    assert capsys.readouterr().out == '   1:00  50% of all, 20 running, about 0:50 left\n'
