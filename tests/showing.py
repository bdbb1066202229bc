"""What tools/test.sh shows: the files at work and the time left on a terminal, a line a minute elsewhere; failures at once.

    tools/test.sh                         uses it (python -m pytest -p tests.showing), unless -v or -s asks for pytest's own way
    tools/test.sh --record-durations      writes tests/durations.json, from which the time left is told; with the name of a
                                          file or folder of tests it changes what is known of those

With it the files that take longest are begun first, so that all cores end at about the same time.
"""

import collections
import json
import os
import sys
import threading
import time

import pytest
from _pytest.terminal import TerminalReporter

TESTS = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(TESTS))

from bcnn.system.durations import clock, rough  # noqa: E402
from bcnn.workflow import screen  # noqa: E402

DURATIONS = os.path.join(TESTS, 'durations.json')
FRAME, MINUTE = 0.5, 60.0
PREPARING = 'test_data_cifar.py'  # leaves CIFAR-10 in data/: others would wait for it, or skip
UNKNOWN = 0.2  # seconds of a test whose file is not in durations.json


def pytest_addoption(parser):
    parser.addoption('--record-durations', action='store_true', help='write down what each file of tests takes')
    parser.addoption('--durations-file', default=DURATIONS, metavar='PATH', help='where that is (default: %s)' % DURATIONS)


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    own_way = config.option.verbose or config.option.capture == 'no' or config.option.collectonly
    # in one process pytest holds back what is written while a test runs
    if own_way or hasattr(config, 'workerinput') or getattr(config.option, 'dist', 'no') == 'no':
        return
    reporter = config.pluginmanager.getplugin('terminalreporter')
    config.pluginmanager.unregister(reporter)
    config.pluginmanager.register(Quiet(config, sys.stdout), 'terminalreporter')
    config.pluginmanager.register(Progress(config), 'progress')


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """What others use first, then the longest files, each as a whole."""
    known = recorded(config)

    def place(item):
        name = file_of(item.nodeid)
        return not name.endswith(PREPARING), -known.get(name, (0, 1))[0], name
    items.sort(key=place)


def file_of(nodeid):
    return nodeid.partition('::')[0]


def recorded(config):
    """{file: (seconds, tests)} of durations.json."""
    try:
        with open(config.option.durations_file) as file:
            return {name: tuple(pair) for name, pair in json.load(file).items()}
    except (OSError, ValueError):
        return {}


class Quiet(TerminalReporter):
    """pytest's own reporter, without its dots."""

    def pytest_runtest_logreport(self, report):
        self._tests_ran = True
        category = self.config.hook.pytest_report_teststatus(report=report, config=self.config)[0]
        self._add_stats(category, [report])

    def pytest_runtest_logstart(self, nodeid, location):
        pass

    def pytest_runtest_logfinish(self, nodeid):
        pass


class Progress:
    """Counts tests as their reports come, and shows where they are."""

    def __init__(self, config):
        self.config, self.known = config, recorded(config)
        self.screen = screen.Screen(sys.stdout) if screen.is_terminal(sys.stdout) else None
        self.ids, self.counts, self.running = [], collections.Counter(), collections.OrderedDict()
        self.taken, self.done = collections.defaultdict(float), 0.0
        self.began, self.next, self.lock = time.time(), time.time() + MINUTE, threading.Lock()
        self.ended = threading.Event()

    # --- what pytest and xdist tell

    def pytest_sessionstart(self):
        workers = self.config.pluginmanager.getplugin('terminaldistreporter')
        if workers:
            workers._isatty, workers.ensure_show_status = False, lambda: None  # the state of its workers

    def pytest_xdist_node_collection_finished(self, node, ids):
        if not self.ids:
            self._start(ids, len(self.config.option.tx))

    def _start(self, ids, workers):
        self.ids, self.workers = ids, workers
        self.expected = sum(map(self._expected, ids)) / workers
        self.share = 0.0
        print('%s tests on %d %s, about %s' % ('{:,}'.format(len(ids)), workers, 'core' if workers == 1 else 'cores',
                                               rough(self.expected)), flush=True)
        self.began, self.next = time.time(), time.time() + MINUTE
        threading.Thread(target=self._redraw, daemon=True).start()

    def _expected(self, nodeid):
        seconds, tests = self.known.get(file_of(nodeid), (UNKNOWN, 1))
        return seconds / float(tests)

    def pytest_runtest_logstart(self, nodeid):
        with self.lock:
            self.running[nodeid] = time.time()

    def pytest_runtest_logreport(self, report):
        with self.lock:
            self.taken[file_of(report.nodeid)] += report.duration
            if report.failed:
                self.counts['failed'] += 1
                self._show(['FAILED %s' % report.nodeid])
            elif report.skipped:
                self.counts['skipped'] += 1
            if report.when == 'teardown':
                self.counts['over'] += 1
                self.done += self._expected(report.nodeid)
                self.running.pop(report.nodeid, None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self):
        self.ended.set()
        with self.lock:
            if self.screen:
                self.screen.show()
        if self.config.option.record_durations:
            self._record()

    def _record(self):
        tests = collections.Counter(map(file_of, self.ids))
        found = {name: pair for name, pair in self.known.items() if os.path.exists(os.path.join(str(self.config.rootdir), name))}
        found.update((name, [round(self.taken[name], 1), tests[name]]) for name in tests)
        with open(self.config.option.durations_file, 'w') as file:
            json.dump(found, file, indent=1, sort_keys=True)
            file.write('\n')

    # --- what is shown

    def _redraw(self):
        while not self.ended.wait(FRAME):
            with self.lock:
                if self.screen and not self.ended.is_set():
                    self._show()
                elif not self.screen and time.time() >= self.next:
                    self.next += MINUTE
                    self._show([self._summary()])

    def _show(self, stay=()):
        if not self.screen:
            for line in stay:
                print('%7s  %s' % (clock(time.time() - self.began), line), flush=True)
            return
        going = [[('▸ ' if self.screen.signs else '> ', 'bar'), ('%6s  ' % clock(time.time() - start), 'faint'),
                  (file_of(nodeid) + '  ', 'strong'), (nodeid.partition('::')[2], 'faint')]
                 for nodeid, start in list(self.running.items())[:8]]
        self.screen.show([[(line, 'bad')] for line in stay],
                         going + [self.screen.bar(self._share(), 20) + [('  ' + self._summary(), '')]])

    def _share(self):
        whole = sum(map(self._expected, self.ids))
        return self.done / whole if whole else 0.0

    def _summary(self):
        gone = time.time() - self.began
        slower = gone * self.workers / self.done if self.done and gone > 10 else 1.0
        left = (sum(map(self._expected, self.ids)) - self.done) * slower / self.workers
        return '%d%%, %s left, %s of %s tests, %d failed, %d skipped, %s gone' % (
            100 * self._share(), clock(left), '{:,}'.format(self.counts['over']), '{:,}'.format(len(self.ids)),
            self.counts['failed'], self.counts['skipped'], clock(gone))
