"""Where runs live: one folder a training run, its evaluations below it.

    config.json       what the run is: net, data and their checksums, seed, T ...; compared when it goes on
    provenance.json   what computed it: versions, commit
    *.prototxt        the nets and solvers that are run
    curve.csv         the errors at the evaluation points
    wrong.csv         which test images are wrong there
    snapshots/        one folder a snapshot; see bcnn.training.snapshots
    stageN.caffemodel the weights after each stage but the last (DSN)
    status.json       where a running process is, for tools/status.py
    diverged.json     only where the training diverged
    final.caffemodel  the weights at the end
    checksums.json    of the files that stay as they are; see tools/verify.py
    done.json         written last: a run with it is complete
"""

import glob
import os
import re
from typing import Callable, ContextManager, Iterable, List, Optional, Tuple

from ..errors import UserError
from . import files, locks, store

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMPORTED_FROM = os.path.dirname(PACKAGE)  # the folder that has bcnn/: a clone, or where pip has put it
IS_CLONE = os.path.isfile(os.path.join(IMPORTED_FROM, 'tools', 'launcher.py'))
# weights/ and prototxt/: those of the clone, or what build_backend.py has taken along
SHIPPED = IMPORTED_FROM if IS_CLONE else os.path.join(PACKAGE, 'shipped')
# of data/ and runs/: an installed package writes nothing beside itself
ROOT = IMPORTED_FROM if IS_CLONE else os.environ.get('BCNN_HOME') or os.path.join(
    os.environ.get('XDG_DATA_HOME') or os.path.expanduser(os.path.join('~', '.local', 'share')), 'bcnn')
RUNS = os.path.join(ROOT, 'runs')
RESULTS = os.path.join(ROOT, 'analysis', 'results')  # the recorded tables
WEIGHTS = os.path.join(SHIPPED, 'weights')  # this project's own caffemodels, see bcnn.weights
WEIGHTS_INDEX = 'index.json'
FINAL = 'final.caffemodel'
CONFIG, PROVENANCE, CURVE, STATUS = 'config.json', 'provenance.json', 'curve.csv', 'status.json'
WRONG = 'wrong.csv'
DIVERGED, DONE, LOCK, CHECKSUMS = 'diverged.json', 'done.json', 'lock', 'checksums.json'
SNAPSHOTS, STATE = 'snapshots', 'state.json'
# Of an evaluation, below its run; see bcnn.mc.evaluation.
EVALUATIONS, BLOCKS, RESULT, IMAGES, IMAGES_CSV = 'mc', 'blocks', 'result.json', 'images.npz', 'images.csv'
STUDIES = 'studies'  # beyond the paper, below a run; see bcnn.studies.trained
GALLERY = 'gallery.html'  # of an evaluation, to look through; see bcnn.gallery
SOURCE = 'source.json'  # where its images are, the names of their files and classes, the name that a user gave it
SNAPSHOT = re.compile(r'stage(\d+)-(\d{8,})$')


def folder(dataset: str, net: str, seed: int, runs: str = RUNS, schedule: int = 1, init: Optional[str] = None) -> str:
    """The folder of a training run; one with a shortened schedule or given weights has a name of its own."""
    name = '%s-%s-seed%d' % (dataset, net, seed)
    name += '-1of%d' % schedule if schedule != 1 else ''
    name += '-from-%s' % os.path.splitext(os.path.basename(init))[0] if init else ''
    return os.path.join(runs, name)


def furthest(dataset: str, net: str, seed: int, runs: str = RUNS) -> Optional[str]:
    """The folder of the complete run that went furthest, of train.py or of a profile of run_all.sh; None if none is.

    A run that was begun from other weights (--init) is not the paper's, and is never it.
    """
    name = os.path.basename(folder(dataset, net, seed))
    complete = [os.path.dirname(path) for pattern in ((name + '*', DONE), ('*', name + '*', DONE))
                for path in glob.glob(os.path.join(glob.escape(runs), *pattern))]
    lengths = []
    for run in complete:
        config = store.read_json(os.path.join(run, CONFIG)) or {}
        if config.get('seed') == seed and 'init' not in config:
            lengths.append((sum(store.read_json(os.path.join(run, DONE))['iterations']), run))
    return max(lengths)[1] if lengths else None


def evaluations(weights: str, name: str, runs: str = RUNS) -> str:
    """The folder for evaluations of these weights: below their run, or one of its own for weights from elsewhere."""
    run = os.path.dirname(os.path.abspath(weights))
    if os.path.exists(os.path.join(run, DONE)):
        return os.path.join(run, EVALUATIONS)
    stem, of_paper = os.path.splitext(os.path.basename(weights))[0], '/' in name
    name = name.replace('/', '-')
    # the files of weights/ are called after net and data; not the same folder as a run, which has to be empty
    shipped = of_paper and stem.startswith(name)
    return os.path.join(runs, 'weights-' + stem if shipped else '%s-%s' % (name, stem), EVALUATIONS)


def find(runs: str = RUNS) -> List[str]:
    """The folders of all training runs, those of run_all.sh's profiles one level lower; in order of name."""
    configs = [path for below in (('*',), ('*', '*'))
               for path in glob.glob(os.path.join(glob.escape(runs), *below + (CONFIG,)))]
    return sorted(os.path.dirname(path) for path in configs
                  if os.path.exists(os.path.join(os.path.dirname(path), PROVENANCE)))


def stored(run: str) -> List[Tuple[int, int, str]]:
    """[(stage, iteration, path)] of the snapshots in a run's folder, oldest first."""
    place = os.path.join(run, SNAPSHOTS)
    names = os.listdir(place) if os.path.isdir(place) else ()
    matches = [(SNAPSHOT.match(name), os.path.join(place, name)) for name in names]
    # One that is half removed has lost its state first.
    return sorted((int(match.group(1)), int(match.group(2)), path) for match, path in matches
                  if match and os.path.exists(os.path.join(path, STATE)))


def write_checksums(folder: str, names: Iterable[str]) -> None:
    """Writes checksums.json: the SHA-256 of these files in a folder, for tools/verify.py."""
    store.write_json(os.path.join(folder, CHECKSUMS),
                     {name: store.sha256(os.path.join(folder, name)) for name in sorted(names)})


def sweep(run: str) -> None:
    """Removes what killed writers left; only for the holder of the lock."""
    for place in (run, os.path.join(run, SNAPSHOTS)):
        for left in glob.glob(os.path.join(glob.escape(place), '.*')):
            files.remove(left)


# --- one process a run -----------------------------------------------------------------------

def lock(run: str, doing: str = 'being trained',
         waiting: Optional[Callable[[str], None]] = None) -> ContextManager[None]:
    """Holds a run's lock; refuses at once, with its process id, while another process holds it.

    doing: what the holder does to the folder. waiting: called with the message once, and then the
    lock is waited for.
    """
    def busy(who):
        message = '%s: %s by process %s' % (run, doing, '%d on %s' % who if who else 'unknown')
        if waiting is None:
            raise UserError('%s: wait for it, or stop it first' % message)
        waiting(message)

    return locks.lock(os.path.join(run, LOCK), busy)


def holder(run: str) -> Optional[locks.Holder]:
    """(process id, host) of the process that trains in this folder, or None."""
    return locks.holder(os.path.join(run, LOCK))
