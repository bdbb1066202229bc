"""What the campaigns with containers share: Debian's podman and runc in the place of a Docker engine, and the record.

The base image is made of Debian's own packages, so that no image registry is asked.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for place in (ROOT, os.path.join(ROOT, 'tests')):
    sys.path.insert(0, place)

from bcnn.results import csv_tables, writing  # noqa: E402
from bcnn.system import provenance  # noqa: E402
from conftest import project_files  # noqa: E402

USER = 1000  # of the images
BASE = 'docker.io/library/debian:bullseye-slim'  # of the Dockerfile
KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
PROGRAMS = ('podman', 'buildah', 'runc', 'mmdebstrap')
LIMITS = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096']  # else runc may not set them
SHOWN = ('exit', 'megabytes', 'passed', 'skipped', 'failed', 'note')
SECRETS = ('data/mnist/secret', 'runs/quick/secret', 'x.caffemodel', '.caffe/secret', 'debs/secret', 'bcnn/__pycache__/x.pyc')


class Wrong(Exception):
    """What is not as it should be, in one line."""


def last_line(said):
    return (said.strip().splitlines() or ['nothing'])[-1]


def host_mirror():
    """The Debian mirror that this machine's apt uses."""
    uris = subprocess.check_output(['apt-get', 'indextargets', '--no-release-info', '--format', '$(REPO_URI)',
                                    'Created-By: Packages'], universal_newlines=True).split()
    return next(uri for uri in uris if uri.rstrip('/').endswith('/debian'))


class Trial:
    """The containers of one folder: their store, what they are given, and the rows that are measured."""

    def __init__(self, folder, driver, target, part=()):
        self.folder, self.driver, self.target = os.path.abspath(folder), driver, target
        self.part = part  # of the tests; empty: all
        self.rows = []  # of the step that is under way
        self.engine = ['podman', '--storage-driver=' + driver, '--root', os.path.join(self.folder, 'store'), '--runroot',
                       os.path.join(self.folder, 'run'), '--runtime', shutil.which('runc'), '--cgroup-manager', 'cgroupfs']
        self.version = subprocess.check_output(['podman', '--version'], universal_newlines=True).strip()
        self.commit = provenance.short_commit(provenance.collect({}))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    # --- podman --------------------------------------------------------------------------------

    def podman(self, *words, log=None):
        """(exit code, what a podman command says); while it runs that can be read in a log."""
        path = self.path((log or 'podman').replace(' ', '-') + '.log')
        with open(path, 'w') as file:
            code = subprocess.call(self.engine + list(words), stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        with open(path, errors='replace') as file:
            return code, file.read()

    def must(self, *words, log=None):
        code, said = self.podman(*words, log=log)
        if code:
            raise Wrong('podman %s: %s' % (' '.join(words[:2]), last_line(said)))
        return said

    def make_base(self):
        """The base image of the Dockerfile, of the same release's own packages."""
        if self.podman('image', 'exists', BASE)[0] == 0:
            return
        subprocess.check_call(['mmdebstrap', '--variant=minbase', '--include=ca-certificates', '--quiet', 'bullseye',
                               self.path('base.tar'), 'deb [signed-by=%s] %s bullseye main' % (KEYRING, host_mirror())])
        self.must('import', self.path('base.tar'), BASE)

    def build(self, target, context, *options):
        """(seconds, what it says) of building a target of the Dockerfile as it is."""
        self.make_base()
        began = time.time()
        said = self.must('build', '--isolation', 'chroot', '--network', 'host', '--pull=never', '--layers', '--target', target,
                         '-t', 'bcnn:' + target, *options, context, log='build-' + target)
        return time.time() - began, said

    def megabytes(self, target):
        return int(last_line(self.must('image', 'inspect', '--format', '{{.Size}}', 'bcnn:' + target))) / 1e6

    def run(self, step, *command, options=(), network='host', image=None):
        """(exit code, all that a command in a new container says); kept in a log, and told as a row."""
        began = time.time()
        code, said = self.podman('run', '--rm', '--network', network, *LIMITS, *options, image or 'bcnn:' + self.target,
                                 *command, log='%s-%s' % (self.target, step))
        self.note(step, time.time() - began, ' '.join(command), code, network, said)
        return code, said

    # --- what containers are given -----------------------------------------------------------------

    def mounts(self, name='mounted'):
        """The options for mounted runs and data below a folder that belongs to the image's user."""
        place = self.path(self.target + '-' + name)
        for part in ('runs', 'data'):
            os.makedirs(os.path.join(place, part), exist_ok=True)
        given = os.path.join(place, 'data', 'downloads')
        own = os.environ.get('BCNN_DOWNLOADS') or os.path.expanduser('~/.cache/bcnn/downloads')
        if os.path.isdir(own) and not os.path.isdir(given):  # the image has no npm, and the original sites may be away
            shutil.copytree(own, given)
        subprocess.check_call(['chown', '-R', '%d:%d' % (USER, USER), place])
        return ['-v', place + '/runs:/bcnn/runs', '-v', place + '/data:/bcnn/data']

    def project(self):
        """A folder with the project as it is here, without what git does not know."""
        place = self.path('context')
        shutil.rmtree(place, ignore_errors=True)
        for name in project_files():
            os.makedirs(os.path.join(place, os.path.dirname(name)), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), os.path.join(place, name))
        return place

    def context(self):
        """The same with what is there on a machine that is used, and must not come into an image: for `docker build .`"""
        place = self.project()
        for name in SECRETS:
            os.makedirs(os.path.join(place, os.path.dirname(name)), exist_ok=True)
            with open(os.path.join(place, name), 'w') as file:
                file.write('not for the image')
        return place

    def check_content(self):
        """Megabytes of the project in the image, which has nothing else of the context."""
        inside = set(self.must('run', '--rm', *LIMITS, 'bcnn:' + self.target, 'find', '.', '-type', 'f').split())
        wanted = {'./' + name for name in project_files()}
        extra = {name for name in inside if '__pycache__' not in name} - wanted
        if extra or wanted - inside - {'./.dockerignore'}:
            raise Wrong('in the image and not of the project, or the reverse: %s' % sorted(extra or wanted - inside)[:3])
        return sum(os.path.getsize(os.path.join(ROOT, name)) for name in project_files()) / 1e6

    # --- the record ----------------------------------------------------------------------------------

    def note(self, step, seconds, command=None, code=None, network=None, said='', megabytes=None, note=None):
        """A row of containers.csv; the counts are those of pytest's last line."""
        counts = {word: int(count) for count, word in re.findall(r'(\d+) (passed|failed|skipped|error)', last_line(said))}
        self.rows.append(dict(
            image=self.target, step=step, command=command, exit=code, network=network, seconds=seconds,
            megabytes=megabytes, passed=counts.get('passed'), skipped=counts.get('skipped'), note=note, engine=self.version,
            failed=counts.get('failed', 0) + counts.get('error', 0) if counts else None, commit=self.commit))


# --- the project's own commands in an image -----------------------------------------------------------

# What must be the same wherever it is computed, on the same CPU.
RESULTS = ['mnist-%s-seed1/%s' % (net, name) for net in ('lenet_all', 'lenet_ip', 'lenet_none')
           for name in ('final.caffemodel', 'curve.csv')] + ['mnist-lenet_all-seed1/mc/T50/result.json']


def run_quick(trial, other, where, *words):
    """tools/run_all.sh with mounted runs and data: the results of the folder `other`, made `where`, in not too many lines."""
    code, said = trial.run('quick', 'tools/run_all.sh', *words, options=trial.mounts())
    if code:
        raise Wrong('tools/run_all.sh ends with %d: %s' % (code, last_line(said)))
    trial.rows[-1]['note'] = same_results(trial, other, where, len(said.splitlines()), trial.rows[-1]['seconds'])


def same_results(trial, other, where, lines, seconds):
    """What a run of the profile quick showed; anything else is wrong."""
    own = trial.path(trial.target + '-mounted', 'runs', 'quick')
    different = [name for name in RESULTS if read(os.path.join(own, name)) != read(os.path.join(other, name))]
    if different:
        raise Wrong('not the bytes of %s: %s' % (other, ', '.join(different)))
    # 60 lines for the five minutes of a quiet machine; in each minute more there are two jobs and the whole
    if lines > 60 + 3 * max(0, seconds / 60 - 5):
        raise Wrong('%d lines of output in %d s' % (lines, seconds))
    return 'the bytes of %d results as %s; %d lines of output' % (len(RESULTS), where, lines)


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def run_tests(trial, step, **options):
    """tools/test.sh: nothing fails; why tests were skipped is the row's note."""
    code, said = trial.run(step, 'tools/test.sh', '-rs', *trial.part, **options)
    trial.rows[-1]['note'] = '; '.join(reasons(said))
    if code:
        raise Wrong('tools/test.sh ends with %d: %s' % (code, last_line(said)))


def reasons(said):
    """['12 no npm here', ...]: why tests were skipped, as `pytest -rs` lists it."""
    counts = {}
    for count, reason in re.findall(r'^SKIPPED \[(\d+)\] \S+ (.*)$', said, re.MULTILINE):
        reason = reason.partition('; tried ')[0]  # all the places where a file is not
        counts[reason] = counts.get(reason, 0) + int(count)
    return ['%d %s' % (count, reason[:80]) for reason, count in sorted(counts.items())]


def campaign(doc, target, steps):
    """Does the steps that are asked for, and ends the process: with 0 if all is as it should be."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--folder', required=True, help='for the store, the mounted folders and the logs')
    parser.add_argument('--only', help='some of the steps: %s,%s' % (steps[0].__name__, steps[-1].__name__))
    parser.add_argument('--part', nargs='+', default=[], metavar='PATH', help='of the tests (default: all): tests/mc tests/nets')
    parser.add_argument('--driver', default='overlay', help='of the store: overlay (default), or vfs where that is not there')
    parser.add_argument('--record', action='store_true',
                        help='add what was measured in this folder to analysis/results/containers.csv, if nothing is wrong')
    args = parser.parse_args()
    names = [step.__name__ for step in steps]
    asked = args.only.split(',') if args.only else names
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if not set(asked) <= set(names):
        parser.error('--only: the steps are %s' % ','.join(names))
    if os.geteuid() or missing:
        sys.exit('needs root%s' % (', and apt-get install %s' % ' '.join(missing) if missing else ''))
    os.makedirs(args.folder, exist_ok=True)
    trial = Trial(args.folder, args.driver, target, args.part)
    wrong = [step.__name__ for step in steps if step.__name__ in asked and not right(trial, step)]
    if args.record and not wrong:
        rows = [row for row in csv_tables.read(trial.folder, 'containers') if row['image'] == target]
        print('recorded in %s' % os.path.relpath(writing.record('containers', rows)))
    sys.exit(1 if wrong else 0)


def right(trial, step):
    """Whether a step did what it should; then its rows are kept in the folder."""
    trial.rows, wrong = [], None
    try:
        step(trial)
    except Wrong as error:
        wrong = error
    for row in trial.rows:
        print('%-10s %7.1f s  %s' % (row['step'], row['seconds'], ', '.join('%s %s' % (name, row[name]) for name in SHOWN
                                                                            if row[name] is not None)), flush=True)
    if wrong:
        print('WRONG      %s: %s' % (step.__name__, wrong), flush=True)
    else:
        writing.record('containers', trial.rows, trial.folder)
    return not wrong
