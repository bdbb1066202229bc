#!/usr/bin/env python3
"""The Dockerfile's GPU packages and image, built with podman and used where there is no GPU.

    sudo tools/python tests/campaigns/gpu_image.py --folder /var/tmp/containers
    sudo tools/python tests/campaigns/gpu_image.py --folder /var/tmp/containers --only refuse,prefix

Needs what containers.py needs, 20 GB (60 GB with --driver vfs, which copies each layer) and hours; run that one first, in the
same folder. Without a GPU nothing can be said about kernels: tools/check_caffe.py --gpu 0 does that on a machine that has one.
What is tried here:

    debs      the target gpu-debs: the packages, in the folder debs; their size
    code      for which GPUs there is code in them (cuobjdump): those of the Dockerfile
    build     the target gpu; its size, and what of the project is in it
    given     the same from packages that are there already, as docs/gpu.md has it
    check     tools/check_caffe.py --gpu none in it, as user 1000
    refuse    --gpu 0: without a driver, with a driver that has no GPU, and of the CPU's build: a line each, nothing begun
    prefix    tools/setup.sh --debs on this machine: size, which Caffe it is, and that it computes
    bad       the same with what cannot be used: a line each, nothing left behind
    tests     the whole test suite in the image, in CPU mode
    quick     tools/run_all.sh --gpus none in it: the results of the CPU's image

Results go to containers.csv in the folder, and with --record to analysis/results. Exit code 0 if all is as it should be.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter

from podman import BASE, KEYRING, ROOT, Trial, Wrong, campaign, host_mirror, last_line, run_quick, run_tests

SETUP = os.path.join(ROOT, 'tools', 'setup.sh')


# --- packages and image --------------------------------------------------------------------------

def debs(trial):
    seconds, _ = trial.build('gpu-debs', trial.context(), '--no-cache', '--output', 'type=local,dest=' + trial.path('debs'))
    sizes = {name: os.path.getsize(trial.path('debs', name)) / 1e6 for name in sorted(os.listdir(trial.path('debs')))}
    trial.note('debs', seconds, megabytes=sum(sizes.values()),
               note=', '.join('%s %.1f MB' % (name.split('_')[0], size) for name, size in sizes.items()))


COUNT_CODE = '''set -e
sed -i "s/ main.*/ main contrib non-free/" /etc/apt/sources.list && apt-get update -qq
cd /tmp && apt-get download -qq nvidia-cuda-toolkit && dpkg-deb -x nvidia-cuda-toolkit_*.deb t
dpkg-deb -x /debs/libcaffe1_*.deb x
PATH=/tmp/t/usr/bin:$PATH cuobjdump --list-elf --list-ptx x/usr/lib/*/libcaffe.so.1*
'''


def code(trial):
    """How many pieces of code the library has for each kind of GPU."""
    code, said = trial.run('code', 'sh', '-c', COUNT_CODE, image=BASE, options=['-v', trial.path('debs') + ':/debs:ro'])
    pieces = Counter(re.findall(r'\.sm_(\d+)\.(cubin|ptx)', said))
    with open(os.path.join(ROOT, 'Dockerfile')) as file:
        wanted = dict(re.findall(r'ARG (CUDA_\w+)="(.*)"', file.read()))
    found = {kind: {gpu for gpu, other in pieces if other == kind} for kind in ('cubin', 'ptx')}
    if code or found != {'cubin': set(wanted['CUDA_ARCHITECTURES'].split()), 'ptx': set(wanted['CUDA_PTX'].split())}:
        raise Wrong('cuobjdump ends with %d: %s, and %s are wanted: %s' % (code, found, wanted, last_line(said)))
    trial.rows[-1].update(command='cuobjdump --list-elf --list-ptx libcaffe.so.1', note=', '.join(
        '%d %s %s' % (count, kind, gpu) for (gpu, kind), count in sorted(pieces.items())))


def build(trial):
    """With the layers that are there: `debs` has the time of the compiler, `given` that of the rest."""
    seconds, said = trial.build('gpu', trial.context())
    trial.note('build', seconds, megabytes=trial.megabytes('gpu'), note='%d steps from the cache; %.1f MB of the project in it' % (
        said.count('Using cache'), trial.check_content()))


def given(trial):
    """In the place of the stage of this name, which is not built then."""
    seconds, said = trial.build('gpu', trial.context(), '--no-cache', '--build-context', 'gpu-debs=' + trial.path('debs'))
    if 'dpkg-buildpackage' in said:
        raise Wrong('--build-context gpu-debs=debs has Caffe compiled again')
    trial.note('given', seconds, command='build --target gpu --build-context gpu-debs=debs', megabytes=trial.megabytes('gpu'),
               note='every step from nothing, but the packages, which were there')


def check(trial):
    code, said = trial.run('check', 'tools/check_caffe.py', '--blas', 'openblas', '--gpu', 'none')
    if code:
        raise Wrong('tools/check_caffe.py ends with %d: %s' % (code, last_line(said)))
    trial.rows[-1]['note'] = last_line(said)


# --- --gpu 0 without a GPU --------------------------------------------------------------------------

TRAIN = 'tools/train.py --net lenet_all --gpu 0 --out /tmp/never'


def refuse(trial):
    script = TRAIN + '; code=$?; test ! -e /tmp/never && exit $code'
    refused(trial, 'no NVIDIA driver', trial.run('refused: no driver', 'sh', '-c', script))
    with tempfile.TemporaryDirectory() as folder:
        options = ['-v', driver_without_a_gpu(folder) + ':/driver:ro', '-e', 'LD_LIBRARY_PATH=/driver']
        refused(trial, 'the driver shows no GPU', trial.run('refused: no GPU', 'sh', '-c', script, options=options))
    refused(trial, 'built without GPU support', trial.run('refused: the CPU build', 'sh', '-c', script, image='bcnn:cpu'))


def refused(trial, words, result):
    """One line with the words, exit code 2, and nothing begun."""
    code, said = result
    if code != 2 or len(said.splitlines()) != 1 or words not in said:
        raise Wrong('not %r: exit code %d, %s' % (words, code, said.strip()))
    trial.rows[-1].update(command=TRAIN, note=said.strip())


def driver_without_a_gpu(folder):
    """The folder with Debian's own libcuda.so.1, of the driver that belongs to its CUDA, where no GPU answers."""
    os.chmod(folder, 0o755)
    listed = os.path.join(folder, 'sources.list')
    with open(listed, 'w') as file:
        file.write('deb [signed-by=%s] %s bullseye non-free\n' % (KEYRING, host_mirror()))
    apt = ['apt-get', '-qq', '-o', 'Dir::Etc::sourcelist=' + listed, '-o', 'Dir::Etc::sourceparts=/dev/null',
           '-o', 'Dir::State::lists=' + os.path.join(folder, 'lists'), '-o', 'APT::Sandbox::User=']
    os.makedirs(os.path.join(folder, 'lists', 'partial'))
    subprocess.check_call(apt + ['update'])
    subprocess.check_call(apt + ['download', 'libcuda1'], cwd=folder)
    name, = [name for name in os.listdir(folder) if name.endswith('.deb')]
    subprocess.check_call(['dpkg-deb', '-x', os.path.join(folder, name), os.path.join(folder, 'x')])
    place = next(path for path, _, files in os.walk(folder) if any(file.startswith('libcuda.so.') for file in files))
    library = os.path.join(place, 'libcuda.so.1')
    if not os.path.exists(library):  # made by ldconfig on a machine where it is installed
        os.symlink(next(file for file in os.listdir(place) if file.startswith('libcuda.so.')), library)
    return place


# --- the packages in a private prefix -----------------------------------------------------------------

def setup(prefix, *words, **env):
    """(exit code, what tools/setup.sh says)."""
    done = subprocess.run([SETUP] + list(words), env=dict(os.environ, CAFFE_PREFIX=prefix, **env), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True)
    return done.returncode, done.stdout


def prefix(trial):
    with tempfile.TemporaryDirectory(dir=trial.folder) as folder:
        place, began = os.path.join(folder, '.caffe'), time.time()
        code, said = setup(place, '--debs', trial.path('debs'))
        seconds = time.time() - began
        if code or 'ready' not in last_line(said) or setup(place) != (0, 'setup: ready: %s\n' % place):
            raise Wrong('tools/setup.sh --debs ends with %d: %s' % (code, last_line(said)))
        size = int(subprocess.check_output(['du', '-sm', place]).split()[0])
        trial.note('prefix', seconds, 'tools/setup.sh --debs debs', code, megabytes=size, note=said.splitlines()[-2])
        began = time.time()
        done = subprocess.run([os.path.join(place, 'bin', 'python'), os.path.join(ROOT, 'tools', 'check_caffe.py'), '--gpu', 'none'],
                              stderr=subprocess.STDOUT, stdout=subprocess.PIPE, universal_newlines=True)
        trial.note('prefix computes', time.time() - began, 'tools/check_caffe.py --gpu none', done.returncode,
                   note=last_line(done.stdout))
        if done.returncode:
            raise Wrong('the prefix does not compute: %s' % last_line(done.stdout))


def bad(trial):
    """Copies of the packages that cannot be used, a prefix that is taken, a full disk."""
    with tempfile.TemporaryDirectory(dir=trial.folder) as folder:
        given, place = os.path.join(folder, 'debs'), os.path.join(folder, 'there', '.caffe')
        for what, spoil, words in (('debs of another architecture', rewrite('Architecture: .*', 'Architecture: arm64'), 'is for arm64'),
                                   ('debs of another version', rewrite('Version: .*', 'Version: 1.0.0-6'), 'has version 1.0.0-6'),
                                   ('a damaged package', flip_a_byte, 'not a Debian package, or damaged'),
                                   ('a package cut off', cut_off, 'not a Debian package, or damaged'),
                                   ('a missing package', os.remove, 'has no package libcaffe1')):
            shutil.rmtree(given, ignore_errors=True)
            shutil.copytree(trial.path('debs'), given)
            spoil(os.path.join(given, next(name for name in os.listdir(given) if name.startswith('libcaffe1'))))
            setup_refuses(trial, what, words, place, given)
        os.makedirs(place)
        with open(os.path.join(place, '.bcnn-caffe'), 'w') as file:  # what tells it from a folder that is not ours
            file.write('1\n')
        setup_refuses(trial, 'a prefix of the CPU build', 'holds the CPU build', place, trial.path('debs'), ['.bcnn-caffe'])
        with small_disk(folder, '500m') as disk:
            setup_refuses(trial, 'no room for the prefix', 'no space', os.path.join(disk, '.caffe'), trial.path('debs'))
        with small_disk(folder, '4g') as disk:
            no_room_for_the_compiler(trial, disk)


@contextlib.contextmanager
def small_disk(folder, size):
    """A folder with so much room."""
    disk = os.path.join(folder, 'disk')
    os.makedirs(disk, exist_ok=True)
    subprocess.check_call(['mount', '-t', 'tmpfs', '-o', 'size=' + size, 'tmpfs', disk])
    try:
        yield disk
    finally:
        subprocess.check_call(['umount', '--recursive', disk])


def no_room_for_the_compiler(trial, disk):
    """Building the packages ends before anything is fetched, with a line that says why."""
    small, context, began = Trial(disk, trial.driver, 'gpu'), trial.context(), time.time()
    small.make_base()
    with contextlib.suppress(Wrong):
        small.build('gpu-debs', context)
    with open(small.path('build-gpu-debs.log')) as file:
        said = [line.strip() for line in file if line.startswith('no room: ')]
    if len(said) != 1:
        raise Wrong('no room for the compiler: %s' % said)
    trial.note('refused: no room for the compiler', time.time() - began, 'build --target gpu-debs', note=said[0])


def rewrite(pattern, text):
    """A function that makes a package anew with another line in its description."""
    def change(path):
        content = path + '.content'
        subprocess.check_call(['dpkg-deb', '-R', path, content])
        subprocess.check_call(['sed', '-i', 's/^%s/%s/' % (pattern, text), os.path.join(content, 'DEBIAN', 'control')])
        subprocess.check_call(['dpkg-deb', '-Znone', '-b', content, path], stdout=subprocess.DEVNULL)
        shutil.rmtree(content)
    return change


def flip_a_byte(path):
    with open(path, 'r+b') as file:
        file.seek(os.path.getsize(path) // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def cut_off(path):
    os.truncate(path, os.path.getsize(path) - 100)


def setup_refuses(trial, what, words, place, packages, kept=()):
    """tools/setup.sh --debs says one line, and leaves the prefix as it was."""
    began = time.time()
    code, said = setup(place, '--debs', packages)
    left = [name for name in os.listdir(os.path.dirname(place)) if not name.endswith('.lock')] if os.path.isdir(
        os.path.dirname(place)) else []
    if code != 1 or len(said.splitlines()) != 1 or words not in said or left != ([os.path.basename(place)] if kept else []) or (
            kept and os.listdir(place) != list(kept)):
        raise Wrong('%s: exit code %d, %s; left behind: %s' % (what, code, said.strip(), left))
    trial.note('refused: ' + what, time.time() - began, 'tools/setup.sh --debs debs', code,
               note=re.sub(re.escape(trial.folder) + r'(/tmp\w+)?', '...', said.strip()))


def tests(trial):
    run_tests(trial, 'tests', options=trial.mounts())


def quick(trial):
    run_quick(trial, trial.path('cpu-mounted', 'runs', 'quick'), "in the CPU's image", '--gpus', 'none')


if __name__ == '__main__':
    campaign(__doc__, 'gpu', (debs, code, build, given, check, refuse, prefix, bad, tests, quick))
