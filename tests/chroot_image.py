#!/usr/bin/env python3
"""Build a target of the Dockerfile without a Docker engine: its steps, carried out in a chroot.

    sudo python3 tests/chroot_image.py --folder /tmp/image tools/test.sh -m "not slow"

The base image becomes a minimal system of the same release made by mmdebstrap with this
machine's Debian mirror; every ARG, ENV, COPY, RUN, WORKDIR and USER step of the target and
of the stages it builds on is then done as `docker build` would; at last the command is run
as `docker run` would, as the image's user. For bases that mmdebstrap can make (debian:*).
"""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT = {'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': '/root'}


def read_stages(path):
    """The steps of each stage: {name: [(instruction, argument), ...]}."""
    with open(path) as file:
        text = re.sub(r'\\\n', ' ', re.sub(r'^#.*\n', '', file.read(), flags=re.MULTILINE))
    stages, name = {}, None
    for line in filter(None, map(str.strip, text.splitlines())):
        instruction, argument = line.split(None, 1)
        if instruction == 'FROM':
            base, name = re.fullmatch(r'(\S+) AS (\S+)', argument).groups()
            stages[name] = []
            argument = base
        stages[name].append((instruction, argument))
    return stages


def steps_of(stages, target):
    """The base image of a target, and all steps from there to the target."""
    (_, base), steps = stages[target][0], stages[target][1:]
    if base in stages:
        image, earlier = steps_of(stages, base)
        return image, earlier + steps
    return base, steps


class Image:
    """A folder that is built up by the steps of a Dockerfile."""

    def __init__(self, folder, arguments):
        self.folder, self.arguments = folder, arguments
        self.volumes = []
        self.environment, self.username, self.place, self.command = dict(ENVIRONMENT), 'root', '/', None

    def make_base(self, image, mirror):
        release = re.fullmatch(r'debian:(\w+)-slim', image).group(1)
        subprocess.run(['mmdebstrap', '--variant=minbase', '--quiet', release, self.folder,
                        'deb %s %s main' % (mirror, release)], check=True)

    def do(self, instruction, argument):
        getattr(self, instruction.lower())(argument)

    def arg(self, argument):
        name, _, default = argument.partition('=')
        self.environment[name] = self.arguments.get(name, default)

    def env(self, argument):
        self.environment.update(pair.split('=', 1) for pair in shlex.split(argument))

    def user(self, argument):
        self.username = argument
        self.environment['HOME'] = '/home/' + argument

    def workdir(self, argument):
        self.place = argument
        os.makedirs(self.inside(argument), exist_ok=True)

    def copy(self, argument):
        source, destination = argument.split()
        if source == '.':  # what git knows, which is what .dockerignore leaves
            files = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'], cwd=ROOT,
                                   check=True, stdout=subprocess.PIPE).stdout.decode().split('\0')
            pairs = [(name, os.path.join(destination, name)) for name in files if name]
        else:
            pairs = [(source, destination)]
        for name, place in pairs:
            if os.path.isfile(os.path.join(ROOT, name)):
                os.makedirs(os.path.dirname(self.inside(place)), exist_ok=True)
                shutil.copy2(os.path.join(ROOT, name), self.inside(place))

    def volume(self, argument):
        for place in json.loads(argument):
            os.makedirs(self.inside(place), exist_ok=True)

    def cmd(self, argument):
        self.command = json.loads(argument)

    def run(self, argument):
        self.execute(['/bin/sh', '-c', argument], check=True)

    def execute(self, command, check=False):
        """Run a command inside, as the image's user, in a mount namespace that ends with it."""
        binds = ''.join('mount --bind %s %s && ' % (shlex.quote(host), shlex.quote(self.inside(place)))
                        for host, place in self.volumes)
        script = (binds + 'mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && '
                  'exec chroot --userspec="$1" "$0" /bin/sh -c \'cd "$0" && exec "$@"\' "$2" "${@:3}"')
        return subprocess.run(['unshare', '--mount', 'bash', '-c', script, self.folder, self.username, self.place] + command,
                              env=self.environment, check=check).returncode

    def inside(self, path):
        return os.path.join(self.folder, os.path.join(self.place, path).lstrip('/'))


def host_mirror():
    """The Debian mirror that this machine's apt uses."""
    uris = subprocess.run(['apt-get', 'indextargets', '--no-release-info', '--format', '$(REPO_URI)',
                           'Created-By: Packages'], stdout=subprocess.PIPE, check=True).stdout.decode().split()
    return next(uri for uri in uris if uri.rstrip('/').endswith('/debian'))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--folder', required=True, help='where to build (must not exist; 2 GB)')
    parser.add_argument('--target', default='cpu')
    parser.add_argument('--volume', action='append', default=[], metavar='HOST:PLACE', help="as docker run's -v")
    parser.add_argument('command', nargs=argparse.REMAINDER, help="default: the image's own command")
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit('chroot_image.py: needs root, for chroot and mount')
    mirror = host_mirror()
    image = Image(os.path.abspath(args.folder), {'MIRROR': mirror})
    base, steps = steps_of(read_stages(os.path.join(ROOT, 'Dockerfile')), args.target)
    image.make_base(base, mirror)
    shutil.copy('/etc/resolv.conf', image.inside('etc/resolv.conf'))
    for instruction, argument in steps:
        print('--> %s %s' % (instruction, ' '.join(argument.split())), flush=True)
        image.do(instruction, argument)
    for volume in args.volume:
        host, place = volume.split(':')
        os.makedirs(image.inside(place), exist_ok=True)
        image.volumes.append((os.path.abspath(host), place))
    sys.exit(image.execute(args.command or image.command))


if __name__ == '__main__':
    main()
