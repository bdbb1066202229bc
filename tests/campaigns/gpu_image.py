#!/usr/bin/env python3
"""Build the Dockerfile's GPU image with podman, and use it where there is no GPU; what came of it goes to a file.

    sudo python3 tests/campaigns/gpu_image.py --store /var/tmp/images --debs debs --record docs/gpu_image.json

Needs podman, runc, mmdebstrap, root, 20 GB and hours (--storage-driver vfs, for kernels without overlays, copies
each layer: 60 GB). Steps that a record has are not done again; `--only check,run_all` names some. No image registry
is asked: the base is made of Debian's own packages. Without a GPU nothing can be said about kernels;
tools/check_caffe.py --gpu 0 does that on a machine that has one. What is tried here:

    debs      the target gpu-debs: time, sizes
    code      for which GPUs there is code in them (cuobjdump)
    image     the target gpu with these packages: time and size
    check     tools/check_caffe.py --gpu none in it, as user 1000
    refuse    --gpu 0: without a driver, with a driver that has no GPU, and of the CPU's build
    prefix    tools/setup.sh --debs on this machine: size, and which Caffe it is
    tests     the whole test suite in the image, in CPU mode
    run_all   tools/run_all.sh --gpus none in it, beside the same on this machine: the same numbers
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, OrderedDict

from debian_mirror import BASE, host_mirror

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
STEPS = ('debs', 'code', 'image', 'check', 'refuse', 'prefix', 'tests', 'run_all')


class Podman:
    """Images below a folder."""

    def __init__(self, store, driver):
        self.store = os.path.abspath(store)
        os.makedirs(self.store, exist_ok=True)
        self.words = ['podman', '--storage-driver', driver, '--root', os.path.join(self.store, 'store'),
                      '--runroot', os.path.join(self.store, 'run')]

    def make_base(self):
        """The base image, of Debian's packages from this machine's mirror, unless it is there."""
        if subprocess.run(self.words + ['image', 'exists', BASE]).returncode == 0:
            return
        tar = os.path.join(self.store, 'base.tar')
        run(['mmdebstrap', '--variant=minbase', '--include=ca-certificates', 'bullseye', tar,
             'deb [signed-by=%s] %s bullseye main' % (KEYRING, host_mirror())])
        run(self.words + ['import', tar, BASE])

    def build(self, target, *options):
        """Seconds that a target of the Dockerfile took."""
        self.make_base()
        start = time.time()
        run(self.words + ['build', '--isolation', 'chroot', '--network', 'host', '--pull=never', '--target', target,
                          '-t', target] + list(options) + [ROOT])
        return round(time.time() - start)

    def megabytes(self, image):
        text = run(self.words + ['image', 'inspect', '--format', '{{.Size}}', image])
        return int(text) // 1000000

    def run(self, image, *command, volumes=(), options=()):
        """(exit code, what it printed) of a command in a container, as the image's user, without a GPU."""
        words = self.words + ['--runtime', shutil.which('runc'), '--cgroup-manager', 'cgroupfs', 'run', '--rm',
                              '--network', 'host', '--ulimit', 'nofile=1024:1024', '--ulimit', 'nproc=4096:4096']
        for volume in volumes:
            words += ['-v', volume]
        done = subprocess.run(words + list(options) + [image] + list(command), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True)
        return done.returncode, done.stdout


def run(command, **options):
    """What a command prints; ends this one, with its last words, where it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, **options)
    if done.returncode:
        sys.exit('gpu_image.py: %s failed: %s' % (' '.join(command[:9]), done.stdout[-2000:]))
    return done.stdout


def last_line(text):
    return [line for line in text.splitlines() if line.strip()][-1]


# --- the steps, each gives back what to record ------------------------------------------------------------------

def debs(podman, args):
    """The packages, in args.debs."""
    seconds = podman.build('gpu-debs', '--output', 'type=local,dest=' + args.debs)
    return OrderedDict([('seconds', seconds), ('packages', {name: os.path.getsize(os.path.join(args.debs, name))
                                                            for name in sorted(os.listdir(args.debs))})])


def code(podman, args):
    """How many pieces of code the library has for each kind of GPU."""
    script = ('sed -i "s/ main.*/ main contrib non-free/" /etc/apt/sources.list && apt-get update -qq '
              '&& cd /tmp && apt-get download -qq nvidia-cuda-toolkit && dpkg-deb -x nvidia-cuda-toolkit_*.deb t '
              '&& dpkg-deb -x /debs/libcaffe1_*.deb x '
              '&& PATH=/tmp/t/usr/bin:$PATH cuobjdump --list-elf --list-ptx x/usr/lib/*/libcaffe.so.1')
    code, listed = podman.run(BASE, 'sh', '-c', script, volumes=[args.debs + ':/debs:ro'])
    kernels = Counter(re.findall(r'\.(sm_\d+)\.(cubin|ptx)', listed))
    with open(os.path.join(ROOT, 'Dockerfile')) as file:
        wanted = re.search(r'ARG CUDA_ARCHITECTURES="(.*)"', file.read()).group(1).split()
    found = {name[3:] for name, kind in kernels if kind == 'cubin'}
    assert code == 0 and (args.any_architecture or found == set(wanted)), (code, found, wanted, listed[-2000:])
    return OrderedDict(('%s %s' % key, count) for key, count in sorted(kernels.items()))


def image(podman, args):
    # what `docker build --build-context` does too: the stage of this name is not built, the folder is taken
    seconds = podman.build('gpu', '--build-context', 'gpu-debs=' + args.debs)
    return OrderedDict([('seconds', seconds), ('megabytes', podman.megabytes('gpu')),
                        ('megabytes_cpu_base', podman.megabytes(BASE))])


def check(podman, args):
    code, said = podman.run('gpu', 'python', 'tools/check_caffe.py', '--blas', 'openblas', '--gpu', 'none')
    assert code == 0, said
    return OrderedDict([('said', said.splitlines()[0]), ('verdict', last_line(said))])


def refuse(podman, args):
    """The three lines; and that nothing was begun."""
    said = OrderedDict()
    train = 'python tools/train.py --net lenet_all --gpu 0 --out /tmp/run; code=$?; test ! -e /tmp/run && exit $code'
    said['no driver'] = podman.run('gpu', 'sh', '-c', train)
    with tempfile.TemporaryDirectory() as folder:
        library = driver_without_a_gpu(folder)
        said['no GPU'] = podman.run('gpu', 'sh', '-c', train, volumes=[library + ':/driver:ro'],
                                    options=['-e', 'LD_LIBRARY_PATH=/driver'])
    here = subprocess.run([os.path.join(ROOT, 'tools', 'train.py'), '--net', 'lenet_all', '--gpu', '0', '--out', '/tmp/never'],
                          stderr=subprocess.PIPE, universal_newlines=True)
    said['CPU build'] = here.returncode, here.stderr
    for what, words in (('no driver', 'no NVIDIA driver'), ('no GPU', 'the driver shows no GPU'),
                        ('CPU build', 'built without GPU support')):
        code, text = said[what]
        assert code == 2 and len(text.splitlines()) == 1 and words in text, (what, code, text)
    return OrderedDict((what, text.strip()) for what, (_, text) in said.items())


def driver_without_a_gpu(folder):
    """The folder with Debian's own libcuda.so.1, of the driver that belongs to its CUDA, where no GPU answers."""
    os.chmod(folder, 0o755)
    listed = os.path.join(folder, 'sources.list')
    with open(listed, 'w') as file:
        file.write('deb [signed-by=%s] %s bullseye non-free\n' % (KEYRING, host_mirror()))
    options = ['-o', 'Dir::Etc::sourcelist=' + listed, '-o', 'Dir::Etc::sourceparts=/dev/null',
               '-o', 'Dir::State::lists=' + os.path.join(folder, 'lists'), '-o', 'APT::Sandbox::User=']
    os.makedirs(os.path.join(folder, 'lists', 'partial'))
    run(['apt-get'] + options + ['update', '-qq'])
    run(['apt-get'] + options + ['download', '-qq', 'libcuda1'], cwd=folder)
    name, = [name for name in os.listdir(folder) if name.endswith('.deb')]
    run(['dpkg-deb', '-x', os.path.join(folder, name), os.path.join(folder, 'x')])
    place = next(path for path, _, files in os.walk(folder) if any(file.startswith('libcuda.so.') for file in files))
    library = os.path.join(place, 'libcuda.so.1')
    if not os.path.exists(library):  # made by ldconfig on a machine where it is installed
        os.symlink(next(file for file in os.listdir(place) if file.startswith('libcuda.so.')), library)
    return place


def prefix(podman, args):
    with tempfile.TemporaryDirectory() as folder:
        place = os.path.join(folder, '.caffe')
        start = time.time()
        said = run([os.path.join(ROOT, 'tools', 'setup.sh'), '--debs', args.debs], env=dict(os.environ, CAFFE_PREFIX=place))
        seconds = round(time.time() - start)
        size = int(run(['du', '-sm', place]).split()[0])
        again = run([os.path.join(ROOT, 'tools', 'setup.sh')], env=dict(os.environ, CAFFE_PREFIX=place))
        assert 'ready' in last_line(said) and 'ready' in again
        refused = subprocess.run([os.path.join(place, 'bin', 'python'), os.path.join(ROOT, 'tools', 'check_caffe.py'),
                                  '--gpu', '0'], stderr=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
        assert refused.returncode == 2 and 'no NVIDIA driver' in refused.stderr, refused.stderr
    return OrderedDict([('seconds', seconds), ('megabytes', size), ('refused', refused.stderr.strip())])


def tests(podman, args):
    start = time.time()
    code, said = podman.run('gpu', 'tools/test.sh', '-q', volumes=mounts(args), options=['-e', 'HOME=/tmp'])
    with open(os.path.join(podman.store, 'tests.log'), 'w') as file:
        file.write(said)
    assert code == 0, said[-3000:]
    return OrderedDict([('seconds', round(time.time() - start)), ('result', last_line(said))])


def mounts(args):
    """Volumes with the data that was downloaded here, for user 1000."""
    return ['%s:/bcnn/data' % args.data] if args.data else []


def run_all(podman, args):
    """The numbers of the quick profile in the image, beside those of this machine's own Caffe."""
    found = OrderedDict()
    code, said = podman.run('gpu', 'tools/run_all.sh', '--gpus', 'none', volumes=mounts(args))
    assert code == 0, said[-3000:]
    found['image'] = headlines(said)
    found['here'] = headlines(run([os.path.join(ROOT, 'tools', 'run_all.sh'), '--gpus', 'none']))
    found['same'] = found['image'] == found['here']
    assert found['same'], found
    return found


def headlines(said):
    return [line for line in said.splitlines() if ' on MNIST, ' in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--store', required=True, help="podman's images")
    parser.add_argument('--debs', required=True, help='where the packages go')
    parser.add_argument('--record', required=True, help='JSON with what came of each step; steps in it are done')
    parser.add_argument('--data', help='a data folder that user 1000 may write, with downloads in it')
    parser.add_argument('--only', help='steps, with commas between: %s' % ','.join(STEPS))
    parser.add_argument('--storage-driver', default='overlay', help="podman's (default overlay; vfs works everywhere)")
    parser.add_argument('--any-architecture', action='store_true', help='the packages may be for fewer GPUs')
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit('gpu_image.py: needs root, for podman')
    args.debs = os.path.abspath(args.debs)
    podman, record = Podman(args.store, args.storage_driver), OrderedDict()
    if os.path.exists(args.record):
        with open(args.record) as file:
            record = json.load(file, object_pairs_hook=OrderedDict)
    for step in args.only.split(',') if args.only else STEPS:
        if step in record and not args.only:
            continue
        print('--> ' + step, flush=True)
        record[step] = globals()[step](podman, args)
        with open(args.record, 'w') as file:
            json.dump(record, file, indent=1)
            file.write('\n')


if __name__ == '__main__':
    main()
