#!/usr/bin/env python3
"""The Dockerfile built and run in real containers: Debian's podman and runc in the place of a Docker engine.

    sudo tools/python tests/campaigns/containers.py --folder /var/tmp/containers
    sudo tools/python tests/campaigns/containers.py --folder /var/tmp/containers --only build,tests

Not a part of tools/test.sh: it needs root, a Debian machine with podman, buildah, runc and mmdebstrap, 6 GB of disk and an
hour or two. The base image is made of Debian's own packages, for no image registry is needed then. What it does:

    build      the image `cpu` of the Dockerfile as it is; its size, and what of the project is in it
    rebuild    the same after a change of the code: the layers before it are kept
    quick      tools/run_all.sh with mounted runs and data, as user 1000: the results of runs/quick, where the CPU is the same
    evaluate   tools/mc_eval.py --net lenet_all --T 50 on what `quick` has trained
    tests      tools/test.sh as the README has it, with a network
    offline    tools/test.sh without one
    foreign    folders that belong to somebody else: one line; with --user it works
    ubuntu     tools/setup.sh where apt knows no Debian mirror and no keyring is installed

Results go to containers.csv in the folder, and with --record to analysis/results. Exit code 0 if all is as it should be.
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

from debian_mirror import BASE, host_mirror  # noqa: E402

from bcnn.results import csv_tables, writing  # noqa: E402
from bcnn.system import provenance, store  # noqa: E402
from conftest import project_files  # noqa: E402

USER = 1000
PROGRAMS = ('podman', 'buildah', 'runc', 'mmdebstrap')
LIMITS = ['--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096']  # else runc may not set them
# What must be the same inside and outside, on the same CPU.
RESULTS = ['mnist-%s-seed1/%s' % (net, name) for net in ('lenet_all', 'lenet_ip', 'lenet_none')
           for name in ('final.caffemodel', 'curve.csv')] + ['mnist-lenet_all-seed1/mc/T50/result.json']


class Wrong(Exception):
    """What is not as it should be, in one line."""


class Trial:
    """The containers of one folder: their store, what they are given, and the rows that are measured."""

    def __init__(self, folder, driver):
        self.folder, self.rows = folder, []
        self.files = []  # of the project, when the context was last made
        self.engine = ['podman', '--storage-driver=' + driver, '--root', os.path.join(folder, 'store'), '--runroot',
                       os.path.join(folder, 'run'), '--runtime', shutil.which('runc'), '--cgroup-manager', 'cgroupfs']
        self.version = subprocess.check_output(['podman', '--version'], universal_newlines=True).strip()

    def podman(self, *words, **options):
        """What a podman command says, and its exit code."""
        done = subprocess.run(self.engine + list(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, universal_newlines=True, **options)
        return done.returncode, done.stdout

    def must(self, *words):
        code, said = self.podman(*words)
        if code:
            raise Wrong('podman %s: %s' % (' '.join(words[:2]), said.strip().splitlines()[-1]))
        return said

    def run(self, step, *command, options=(), network='host', image='bcnn'):
        """(exit code, all that a command in a new container says); kept in a log, and told as a row."""
        began = time.time()
        code, said = self.podman('run', '--rm', '--network', network, *LIMITS + list(options) + [image] + list(command))
        with open(os.path.join(self.folder, step.replace(' ', '-') + '.log'), 'w') as file:
            file.write(said)
        self.note(step, time.time() - began, ' '.join(command), code, network, said)
        return code, said

    def note(self, step, seconds, command=None, code=None, network=None, said='', megabytes=None, note=None):
        """A row of containers.csv; the counts are those of pytest's last line."""
        counts = {word: int(count) for count, word in re.findall(r'(\d+) (passed|failed|skipped|error)', said[-2000:])}
        row = dict(step=step, command=command, exit=code, network=network, seconds=seconds, megabytes=megabytes,
                   passed=counts.get('passed'), skipped=counts.get('skipped'),
                   failed=counts.get('failed', 0) + counts.get('error', 0) if counts else None, note=note,
                   engine=self.version, commit=provenance.short_commit(provenance.collect({})))
        self.rows.append(row)
        print('%-10s %7.1f s  %s' % (step, seconds, ', '.join('%s %s' % item for item in row.items() if item[1] is not None
                                                              and item[0] in ('exit', 'megabytes', 'passed', 'skipped',
                                                                              'failed', 'note'))), flush=True)

    def mounts(self, name='mounted'):
        """The options for mounted runs and data below a folder that belongs to the image's user."""
        place = os.path.join(self.folder, name)
        for part in ('runs', 'data'):
            os.makedirs(os.path.join(place, part), exist_ok=True)
        given = os.path.join(place, 'data', 'downloads')
        own = os.environ.get('BCNN_DOWNLOADS') or os.path.expanduser('~/.cache/bcnn/downloads')
        if os.path.isdir(own) and not os.path.isdir(given):  # the image has no npm, and the original sites may be away
            shutil.copytree(os.path.join(own, 'mnist'), os.path.join(given, 'mnist'))
        subprocess.check_call(['chown', '-R', '%d:%d' % (USER, USER), place])
        return ['-v', place + '/runs:/bcnn/runs', '-v', place + '/data:/bcnn/data']


# --- images ------------------------------------------------------------------------------------

def make_base(trial):
    """The base image of the Dockerfile, of the same release's own packages."""
    if trial.podman('image', 'exists', BASE)[0] == 0:
        return
    path = os.path.join(trial.folder, 'base.tar')
    subprocess.check_call(['mmdebstrap', '--variant=minbase', '--include=ca-certificates', '--quiet', 'bullseye', path,
                           'deb %s bullseye main' % host_mirror()])
    trial.must('import', path, BASE)


def context(trial):
    """A folder with the project as it is here, but for what git does not know: what `docker build .` is given."""
    place = os.path.join(trial.folder, 'context')
    shutil.rmtree(place, ignore_errors=True)
    trial.files = project_files()
    for name in trial.files:
        os.makedirs(os.path.join(place, os.path.dirname(name)), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, name), os.path.join(place, name))
    # what must not come into the image, and is there on a machine that is used
    for name in ('data/mnist/secret', 'runs/quick/secret', 'x.caffemodel', '.caffe/secret', 'bcnn/__pycache__/x.pyc'):
        os.makedirs(os.path.join(place, os.path.dirname(name)), exist_ok=True)
        with open(os.path.join(place, name), 'w') as file:
            file.write('not for the image')
    return place


def build_image(trial, place):
    """What building the image says."""
    return trial.must('build', '--isolation', 'chroot', '--network', 'host', '--pull=never', '--layers', '--target', 'cpu',
                      '-t', 'bcnn', '--build-arg', 'MIRROR=' + host_mirror(), place)


def build(trial):
    make_base(trial)
    place, began = context(trial), time.time()
    build_image(trial, place)
    size = int(trial.must('image', 'inspect', '--format', '{{.Size}}', 'bcnn').split()[-1]) / 1e6
    inside = set(trial.must('run', '--rm', *LIMITS, 'bcnn', 'find', '.', '-type', 'f').split())
    wanted = {'./' + name for name in trial.files}
    extra = {name for name in inside if '__pycache__' not in name} - wanted
    if extra or wanted - inside - {'./.dockerignore'}:
        raise Wrong('in the image and not of the project, or the reverse: %s' % sorted(extra or wanted - inside)[:3])
    sent = sum(os.path.getsize(os.path.join(ROOT, name)) for name in trial.files) / 1e6
    trial.note('build', time.time() - began, megabytes=size, note='%.1f MB of the project in it' % sent)


def rebuild(trial):
    place, began = context(trial), time.time()
    with open(os.path.join(place, 'bcnn', 'errors.py'), 'a') as file:
        file.write('# changed\n')
    said = build_image(trial, place)
    if 'apt-get' in said.split('COPY . /bcnn')[0] and 'Using cache' not in said:
        raise Wrong('a change of the code has the packages installed again')
    trial.note('rebuild', time.time() - began, note='%d steps from the cache' % said.count('Using cache'))
    build_image(trial, context(trial))  # as it was


# --- runs --------------------------------------------------------------------------------------

def quick(trial):
    code, said = trial.run('quick', 'tools/run_all.sh', options=trial.mounts())
    if code:
        raise Wrong('tools/run_all.sh ends with %d: %s' % (code, said.strip().splitlines()[-1]))
    different = [name for name in RESULTS if read(os.path.join(trial.folder, 'mounted', 'runs', 'quick', name))
                 != read(os.path.join(ROOT, 'runs', 'quick', name))]
    if not os.path.isdir(os.path.join(ROOT, 'runs', 'quick')):
        trial.rows[-1]['note'] = 'not compared: no runs/quick here'
    elif different:
        raise Wrong('not the bytes of runs/quick: %s' % ', '.join(different))
    else:
        trial.rows[-1]['note'] = 'the bytes of %d results as outside' % len(RESULTS)
    lines = len(said.splitlines())
    if lines > 60:
        raise Wrong('%d lines of output' % lines)


def read(path):
    """The bytes of a file, without the times and paths that differ between two runs."""
    with open(path, 'rb') as file:
        return file.read()


def evaluate(trial):
    code, said = trial.run('evaluate', 'tools/mc_eval.py', '--net', 'lenet_all', '--T', '50', options=trial.mounts())
    if code or 'MC dropout T=50' not in said:
        raise Wrong('tools/mc_eval.py ends with %d: %s' % (code, said.strip().splitlines()[-1]))


def tests(trial, network='host'):
    step = 'tests' if network == 'host' else 'offline'
    code, said = trial.run(step, 'tools/test.sh', '-ra', network=network)
    trial.rows[-1]['note'] = '; '.join(reasons(said))
    if code:
        raise Wrong('tools/test.sh ends with %d: %s' % (code, said.strip().splitlines()[-1]))


def reasons(said):
    """['12 no npm here', ...]: why tests were skipped, as `pytest -ra` lists it."""
    found = re.findall(r'^SKIPPED \[(\d+)\] \S+ (.*)$', said, re.MULTILINE)
    counts = {}
    for count, reason in found:
        counts[reason] = counts.get(reason, 0) + int(count)
    return ['%d %s' % (count, reason[:80]) for reason, count in sorted(counts.items())]


def offline(trial):
    tests(trial, 'none')


def foreign(trial):
    """Folders of root, in a container of user 1000; then as root, whose they are."""
    options, place = trial.mounts('foreign'), os.path.join(trial.folder, 'foreign')
    subprocess.check_call(['chown', '-R', '0:0', place])
    subprocess.check_call(['chmod', '-R', 'go-w', place])
    code, said = trial.run('foreign', 'tools/run_all.sh', options=options)
    lines = [line for line in said.splitlines() if not line.startswith('setup: ')]
    if not code or len(lines) != 1 or 'Traceback' in said:
        raise Wrong("folders that are somebody else's: exit code %d, %d lines: %s" % (code, len(lines), said[-200:]))
    trial.rows[-1]['note'] = lines[0]
    code, said = trial.run('foreign, with --user', 'tools/run_all.sh', '--list', options=['--user', '0:0'] + options)
    if code:
        raise Wrong('with --user: %s' % said.strip().splitlines()[-1])


# --- a machine like Ubuntu -----------------------------------------------------------------------

LIKE_UBUNTU = '''set -e
apt-get -qq -o APT::Sandbox::User= update
rm -f /usr/share/keyrings/debian-archive-* /etc/apt/trusted.gpg.d/*
sed -i 's/^ID=.*/ID=ubuntu/' /etc/os-release
useradd --create-home user && cp -r /project /home/user/project && chown -R user /home/user/project
exec su user -c 'cd ~/project && tools/setup.sh && .caffe/bin/python tools/check_caffe.py'
'''


def ubuntu(trial):
    """A bare container whose only archive is one of two packages, neither Debian's by name nor by origin."""
    archive = os.path.join(trial.folder, 'archive')
    shutil.rmtree(archive, ignore_errors=True)
    os.makedirs(archive)
    for name in ('debian-archive-keyring', 'python-apt-common'):
        subprocess.check_call(['apt-get', '-qq', '-o', 'APT::Sandbox::User=', 'download', name], cwd=archive)
    with open(os.path.join(archive, 'Packages'), 'w') as file:
        for name in sorted(os.listdir(archive)):
            if name.endswith('.deb'):
                path = os.path.join(archive, name)
                file.write('%sFilename: ./%s\nSize: %d\nSHA256: %s\n\n' % (
                    subprocess.check_output(['dpkg-deb', '-f', path], universal_newlines=True), name,
                    os.path.getsize(path), store.sha256(path)))
    with open(os.path.join(archive, 'Release'), 'w') as file:
        file.write('Origin: Ubuntu\nLabel: Ubuntu\n')
    sources = os.path.join(trial.folder, 'sources.list')
    with open(sources, 'w') as file:
        file.write('deb [trusted=yes] file:/archive ./\n')
    make_base(trial)
    code, said = trial.run('ubuntu', 'sh', '-c', LIKE_UBUNTU, image=BASE, options=[
        '-v', archive + ':/archive:ro', '-v', sources + ':/etc/apt/sources.list:ro', '-v', context(trial) + ':/project:ro'])
    for word in ('keyring: of debian-archive-keyring', 'mirror: ', 'python-apt-common', 'Caffe 1.0.0 works'):
        if code or word not in said:
            raise Wrong('setup.sh ends with %d, %r: %s' % (code, word, said.strip().splitlines()[-1]))


STEPS = (build, rebuild, quick, evaluate, tests, offline, foreign, ubuntu)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--folder', required=True, help='for the store, the mounted folders and the logs')
    parser.add_argument('--only', help='some of the steps: build,tests')
    parser.add_argument('--driver', default='overlay', help='of the store: overlay (default), or vfs where that is not there')
    parser.add_argument('--record', action='store_true', help='add what was measured to analysis/results/containers.csv')
    args = parser.parse_args()
    missing = [name for name in PROGRAMS if not shutil.which(name)]
    if os.geteuid() or missing:
        sys.exit('containers.py: needs root%s' % (', and apt-get install %s' % ' '.join(missing) if missing else ''))
    os.makedirs(args.folder, exist_ok=True)
    trial, wrong = Trial(os.path.abspath(args.folder), args.driver), 0
    for step in STEPS:
        if not args.only or step.__name__ in args.only.split(','):
            try:
                step(trial)
            except Wrong as error:
                print('WRONG      %s: %s' % (step.__name__, error), flush=True)
                wrong += 1
            writing.record('containers', trial.rows, args.folder)
    if args.record and not wrong:
        print('recorded in %s' % csv_tables.path(os.path.relpath(os.path.dirname(writing.record('containers', trial.rows))),
                                                 'containers'))
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
