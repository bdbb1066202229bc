"""Trains and evaluates for long, and samples memory, open files, threads and disk: do they grow?

One training run goes on all the time (with its measurements and snapshots), while its latest
snapshot is evaluated again and again beside it. The rule for "flat", of each quantity: the median
of the last third of the samples is not above the median of the middle third by more than 5% and
its slack (SLACK below). The disk that is looked at is that of the training run, which thins its
snapshots but keeps one at 1, 2 and 5 times each power of ten, and of temporary files.

    tools/python tests/campaigns/faults/soak.py --minutes 60 --samples soak.csv --report analysis/results/faults.csv
"""

import argparse
import csv
import os
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import ledger  # noqa: E402
from targets import trainhelp  # noqa: E402

from bcnn import nets  # noqa: E402
from bcnn.inputs import preprocessing, sources  # noqa: E402
from bcnn.mc import evaluation, targets  # noqa: E402
from bcnn.system import files, places  # noqa: E402
from bcnn.training import snapshots  # noqa: E402

# The processes that live all the time: this one, the training command, its child with Caffe. Workers come
# and go; how many there are, and what all need together, is written down but not judged.
COLUMNS = ('seconds', 'evaluations', 'evaluator_mb', 'trainer_mb', 'open_files', 'threads', 'temporary_mb', 'run_mb',
           'processes', 'all_mb')
SLACK = {'evaluator_mb': 8, 'trainer_mb': 8, 'open_files': 4, 'threads': 2, 'temporary_mb': 2, 'run_mb': 4, 'processes': 3}


# --- one sample ---------------------------------------------------------------------------------------

def family(pid):
    """A process and all that it has started."""
    found = [pid]
    for name in os.listdir('/proc'):
        try:
            with open('/proc/%s/stat' % name) as file:
                if name.isdigit() and int(file.read().rsplit(')', 1)[1].split()[1]) == pid:
                    found += family(int(name))
        except (OSError, IndexError, ValueError):
            continue
    return found


def measured(pids):
    """(megabytes, open files, threads) of some processes together."""
    rss = handles = threads = 0
    for pid in pids:
        try:
            with open('/proc/%d/status' % pid) as file:
                lines = dict(line.split(':', 1) for line in file if ':' in line)
            rss += int(lines['VmRSS'].split()[0])
            threads += int(lines['Threads'])
            handles += len(os.listdir('/proc/%d/fd' % pid))
        except (OSError, KeyError):
            continue  # it has just ended
    return round(rss / 1024.0, 1), handles, threads


def sample(begin, number, steady, run, temporary):
    """A row of COLUMNS, now; steady: this process, then those of the training."""
    everybody = family(os.getpid())
    _, handles, threads = measured(steady)
    return [round(time.monotonic() - begin, 1), number, measured(steady[:1])[0], measured(steady[1:])[0], handles, threads,
            round(size(temporary) / 1e6, 3), round(size(run) / 1e6, 3), len(everybody), measured(everybody)[0]]


def size(folder):
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(place, name))
            except OSError:
                pass
    return total


# --- the work ---------------------------------------------------------------------------------------------

def begin_training(place):
    """A process that trains until it is stopped."""
    trainee = trainhelp.trainee(os.path.join(place, 'data'), 'lenet_all', batch=16)
    how = trainhelp.settings(iterations=(10 ** 9,), points='log:20', T=5, jobs=1, snapshot_every=200)
    process = trainhelp.start(trainee, how, os.path.join(place, 'run'))
    trainhelp.wait_for(lambda: places.stored(os.path.join(place, 'run')), 120)
    return process


def evaluate(place, number):
    """One evaluation of the latest snapshot."""
    weights = os.path.join(place, 'w.caffemodel')
    try:
        shutil.copy(os.path.join(places.stored(os.path.join(place, 'run'))[-1][2], snapshots.WEIGHTS), weights)
    except FileNotFoundError:
        return  # thinned just now
    source = sources.open_images(os.path.join(place, 'data', 'mnist', 'test_lmdb'), preprocessing.Transform(scale=1 / 256.0))
    job = targets.Target('mnist/lenet_all', nets.deploy('lenet_all', 'mnist'), nets.mc('lenet_all', 'mnist'), weights,
                         False, source, source.count)
    with tempfile.TemporaryDirectory(dir=place) as out:
        evaluation.run(job, evaluation.Settings(10, 2, number, 'stream', 50, None, None), out, 2)


def soak(minutes, every, samples):
    """The samples, also written to a file as they come."""
    rows, now, over = [], {'round': 0}, threading.Event()
    with tempfile.TemporaryDirectory(prefix='bcnn-soak-') as place:
        temporary, run = os.path.join(place, 'tmp'), os.path.join(place, 'run')
        os.mkdir(temporary)
        tempfile.tempdir = temporary  # what is left in it is a leak
        trainhelp.make_data(os.path.join(place, 'data'))
        trainer, begin = begin_training(place), time.monotonic()
        steady = [os.getpid()] + family(trainer.pid)[:2]

        def watch():
            while not over.wait(every):
                rows.append(sample(begin, now['round'], steady, run, temporary))
                write(samples, rows)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            while time.monotonic() - begin < minutes * 60:
                now['round'] += 1
                evaluate(place, now['round'])
                if not trainer.is_alive():
                    raise RuntimeError('the training ended, exit code %s' % trainer.exitcode)
        finally:
            over.set()
            watcher.join()
            tempfile.tempdir = None
            trainer.terminate()
            trainer.join()
    return rows


def write(path, rows):
    if path:
        with files.atomic(path) as temporary, open(temporary, 'w', newline='') as file:
            writer = csv.writer(file, lineterminator='\n')
            writer.writerow(COLUMNS)
            writer.writerows(rows)


# --- the verdict --------------------------------------------------------------------------------------------

def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def growing(rows):
    """[(column, middle, last)] of what is not flat by the rule above."""
    third = len(rows) // 3
    found = []
    for column, slack in sorted(SLACK.items()):
        values = [row[COLUMNS.index(column)] for row in rows]
        middle, last = median(values[third:2 * third]), median(values[2 * third:])
        if last > middle * 1.05 + slack:
            found.append((column, middle, last))
    return found


def main(args):
    rows = soak(args.minutes, args.every, args.samples)
    if len(rows) < 9:
        sys.exit('soak.py: %d samples are too few to say anything: more --minutes' % len(rows))
    found = growing(rows)
    for column, middle, last in found:
        print('%s grows: %s in the middle third, %s in the last' % (column, middle, last))
    print('%d samples over %.1f minutes, %d evaluations: %s' % (
        len(rows), rows[-1][0] / 60, rows[-1][1], 'not flat' if found else 'flat'))
    if args.report:
        row = ledger.new_row('soak', 'train and mc_eval', 'memory, open files, threads, disk', 1)
        row.update(cases=len(rows), resumed=rows[-1][1], problems=len(found), seconds=rows[-1][0])
        ledger.store(args.report, [row])
    return 1 if found else 0


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--minutes', type=float, default=60)
    parser.add_argument('--every', type=float, default=5, help='seconds between two samples (default 5)')
    parser.add_argument('--samples', metavar='CSV', help='where all samples go')
    parser.add_argument('--report', metavar='CSV', help='put the verdict into this table')
    return parser


if __name__ == '__main__':
    sys.exit(main(make_parser().parse_args()))
