"""Disturbs every command of the project at random moments, runs it again, and compares with an undisturbed run.

Counts faults, resumed runs, bytes that differ and results that are lost (both have to be 0), and
writes them as rows of analysis/results/faults.csv. Takes any subset of the commands:

    tools/python tests/campaigns/faults/campaign.py --seed 1 --minutes 60 --report analysis/results/faults.csv
    tools/python tests/campaigns/faults/campaign.py --targets train,mc_eval --rounds 3
"""

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import OrderedDict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import inject  # noqa: E402
import ledger  # noqa: E402
from targets import TARGETS  # noqa: E402

PROGRESS = re.compile(r'\d+% of .*left|: \d+ s, \d+:\d\d$')  # lines of a long step; see bcnn.progress


class Trial:
    """One fault on one command, and the run after it."""

    def __init__(self, target, calm, rng):
        self.target, self.calm, self.rng = target, calm, rng
        self.mark = '%x' % rng.getrandbits(64)

    def start(self, **options):
        return inject.Started(self.target, self.mark, **options)

    def moment(self):
        """Seconds until the fault: anywhere in the time that the command takes undisturbed."""
        return self.rng.uniform(0, self.calm.seconds)

    def sizes(self):
        return self.calm.sizes

    def size(self):
        return sum(self.calm.sizes)

    def wait_for_end(self, seconds=20):
        """The process ids that are still there after so long: none, if all is well."""
        deadline = time.monotonic() + seconds
        while True:
            left = inject.marked(self.mark)
            if not left or time.monotonic() > deadline:
                return left
            time.sleep(0.02)

    @contextlib.contextmanager
    def disk(self, kilobytes):
        """The folder of the command on a disk of its own, of this size; its files are moved off it in the end."""
        place = os.path.dirname(self.target.out)
        mount(place, 'size=%s' % ('%dk' % kilobytes if kilobytes else '3g'))
        try:
            yield
            self.wait_for_end()
            mount(place, 'remount,rw,size=3g')
            kept = tempfile.mkdtemp(dir=self.target.place)
            if os.path.exists(self.target.out):
                subprocess.check_call(['cp', '-a', self.target.out, kept])
        finally:
            for pid in self.wait_for_end(5):
                os.kill(pid, signal.SIGKILL)
            self.wait_for_end(5)
            subprocess.check_call(['umount', place])
        if os.path.exists(os.path.join(kept, 'out')):
            os.rename(os.path.join(kept, 'out'), self.target.out)
        shutil.rmtree(kept)

    def remount(self, options):
        for _ in range(100):  # busy until the last file is closed
            if not mount(os.path.dirname(self.target.out), 'remount,%s,size=3g' % options, check=False):
                return
            time.sleep(0.1)
        raise RuntimeError('cannot remount %s' % options)


def mount(place, options, check=True):
    run = subprocess.check_call if check else subprocess.call
    return run(['mount', '-t', 'tmpfs', '-o', options, 'none', place], stderr=subprocess.DEVNULL)


def can_mount(place):
    with tempfile.TemporaryDirectory(dir=place) as folder:
        if mount(folder, 'size=1m', check=False):
            return False
        subprocess.check_call(['umount', folder])
        return True


# --- an undisturbed run ----------------------------------------------------------------------------

class Calm:
    """What the command does when nobody disturbs it: its result, its time, the sizes of its files."""

    def __init__(self, target):
        self.result = {}
        for _ in range(2):  # twice: what differs between two such runs would prove nothing
            clear(target)
            begin = time.monotonic()
            outcome = inject.Started(target, 'calm').end()
            self.seconds = time.monotonic() - begin
            if outcome.exit != 0:
                raise RuntimeError('%s fails undisturbed: %s' % (target.command(), outcome.said))
            before, self.result = self.result, target.result()
            if before and before != self.result:
                raise RuntimeError('%s: two undisturbed runs differ' % target.command())
        self.sizes = [os.path.getsize(os.path.join(target.out, path)) for path in self.result
                      if not os.path.islink(os.path.join(target.out, path))]


def clear(target):
    shutil.rmtree(target.out, ignore_errors=True)


# --- a trial ---------------------------------------------------------------------------------------

def disturb(target, calm, fault, rng, most_faults=3):
    """(counts, problems): the fault one to three times in a row, then the run that has to make it good."""
    counts = OrderedDict((name, 0) for name in ('cases', 'refused', 'resumed', 'bytes_different', 'results_lost'))
    problems = []
    clear(target)
    for _ in range(rng.randint(1, most_faults) if fault.startswith('kill') else 1):
        trial = Trial(target, calm, rng)
        outcome = inject.FAULTS[fault](trial)
        counts['cases'] += outcome.injected
        if outcome.exit not in (0, None):
            counts['refused'] += 1
            problems += complaints(outcome, target.chatty)
    resume(target, calm, Trial(target, calm, rng), counts, problems)
    return counts, ['%s: %s' % (fault, problem) for problem in problems + left_over(trial)]


def resume(target, calm, trial, counts, problems):
    outcome = trial.start().end()
    if outcome.exit != 0:
        problems.append('does not go on: exit %s, %s' % (outcome.exit, outcome.said.strip()[-300:]))
    counts['resumed'] += outcome.exit == 0
    found = target.result()
    lost = sorted(set(calm.result) - set(found))
    counts['results_lost'] += len(lost)
    more = sorted(path for path in set(found) - set(calm.result))
    differ = sorted(path for path in calm.result if path in found and found[path] != calm.result[path])
    counts['bytes_different'] += len(differ)
    for word, paths in (('lost', lost), ('left behind', more), ('differs', differ)):
        problems += ['%s: %s' % (word, path) for path in paths[:3]]


def complaints(outcome, chatty=False):
    """What is wrong with how a command ended: anything but one line; of a chatty one, a traceback."""
    lines = [line for line in outcome.said.splitlines() if line.strip() and not PROGRESS.search(line)]
    if outcome.exit == 'hangs':
        return ['hangs: %s' % outcome.said.strip()[-200:]]
    if 'Traceback' in outcome.said or len(lines) != 1 and not chatty:
        return ['exit %s with %d lines: %s' % (outcome.exit, len(lines), ' | '.join(lines[-4:])[-600:])]
    return []


def left_over(trial):
    """What is wrong where processes of a trial do not end; one that was stopped before its first step may, and goes on."""
    for pid in inject.marked(trial.mark):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    left = trial.wait_for_end(5)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return ['processes left: %d' % len(left)] if left else []


# --- the campaign ------------------------------------------------------------------------------------

def pairs(names, place):
    """[(target name, fault)] that make sense here."""
    disks = can_mount(place)
    return [(name, fault) for name in names for fault in inject.FAULTS
            if (disks or fault not in inject.NEED_DISK)
            and (TARGETS[name].workers or fault not in inject.NEED_WORKERS)
            and (name != 'setup' or fault != 'clock jumps')]  # setup.sh reads no clock


def run(names, seed, minutes, rounds, say=print, only=None):
    """[rows of the table faults]: every fault on every target in turn, until the time is over."""
    rng, rows, prepared = random.Random(seed), OrderedDict(), {}
    deadline = time.monotonic() + minutes * 60 if minutes else None
    with tempfile.TemporaryDirectory(prefix='bcnn-faults-') as place:
        order = [pair for pair in pairs(names, place) if only is None or pair[1] in only]
        for number in range(rounds):
            rng.shuffle(order)
            for name, fault in order:
                if deadline and time.monotonic() > deadline:
                    return list(rows.values())
                if name not in prepared:
                    target = TARGETS[name](os.path.join(place, re.sub(r'\W+', '-', name)))
                    prepared[name] = target, Calm(target)
                    say('%s: %.1f s undisturbed, %d files' % (name, prepared[name][1].seconds, len(prepared[name][1].result)))
                begin = time.monotonic()
                counts, problems = disturb(prepared[name][0], prepared[name][1], fault, rng)
                add(rows, name, fault, counts, problems, time.monotonic() - begin, seed)
                say('round %d, %s, %s: %s' % (number + 1, name, fault, '; '.join(problems) or 'ok'))
    return list(rows.values())


def add(rows, name, fault, counts, problems, seconds, seed):
    row = rows.setdefault((name, fault), ledger.new_row('fault', name, fault, seed))
    for column, value in counts.items():
        row[column] += value
    row['problems'] += len(problems)
    row['seconds'] += seconds


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--minutes', type=float, default=60, help='stop after so long (default 60)')
    parser.add_argument('--rounds', type=int, default=1000, help='how often each fault, at most')
    parser.add_argument('--targets', default=','.join(TARGETS), help='default: all')
    parser.add_argument('--faults', help='default: all; names separated by semicolons')
    parser.add_argument('--report', metavar='CSV', help='put the counts into this table')
    return parser


def main(args):
    names = [next(name for name in TARGETS if name.replace(', ', '-') == word.replace(', ', '-'))
             for word in re.split(r',(?! )', args.targets)]
    only = args.faults.split(';') if args.faults else None
    rows = run(names, args.seed, args.minutes, args.rounds, say=lambda text: print(text, flush=True), only=only)
    if args.report:
        ledger.store(args.report, rows)
    print('%d faults injected, %d runs resumed, %d results differ, %d results lost, %d problems' % tuple(
        sum(row[name] for row in rows) for name in ('cases', 'resumed', 'bytes_different', 'results_lost', 'problems')))
    return 1 if any(row['problems'] for row in rows) else 0


if __name__ == '__main__':
    sys.exit(main(make_parser().parse_args()))
