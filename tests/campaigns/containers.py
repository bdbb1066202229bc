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

import os
import re
import shutil
import subprocess

from podman import BASE, ROOT, Wrong, campaign, host_mirror, last_line, run_quick, run_tests

from bcnn.system import store

# --- images ------------------------------------------------------------------------------------


def build_cpu(trial, context, *options):
    return trial.build('cpu', context, '--build-arg', 'MIRROR=' + host_mirror(), *options)


def build(trial):
    seconds, _ = build_cpu(trial, trial.context(), '--no-cache')
    trial.note('build', seconds, megabytes=trial.megabytes('cpu'), note='%.1f MB of the project in it' % trial.check_content())


def rebuild(trial):
    context = trial.context()
    with open(os.path.join(context, 'bcnn', 'errors.py'), 'a') as file:
        file.write('# changed\n')
    seconds, said = build_cpu(trial, context)
    before = said.split('COPY . /bcnn')[0]  # the code
    if before.count('Using cache') != len(re.findall(r'STEP \S+ (?!FROM)\w+', before)):
        raise Wrong('a change of the code has steps before it done again')
    trial.note('rebuild', seconds, note='%d steps from the cache' % said.count('Using cache'))
    build_cpu(trial, trial.context())  # as it was


# --- runs --------------------------------------------------------------------------------------

def quick(trial):
    """Beside the same command on this machine, which makes runs/quick unless it is there."""
    subprocess.check_call([os.path.join(ROOT, 'tools', 'run_all.sh')], stdout=subprocess.DEVNULL)
    run_quick(trial, os.path.join(ROOT, 'runs', 'quick'), 'outside')


def evaluate(trial):
    code, said = trial.run('evaluate', 'tools/mc_eval.py', '--net', 'lenet_all', '--T', '50', options=trial.mounts())
    if code:
        raise Wrong('tools/mc_eval.py ends with %d: %s' % (code, last_line(said)))
    trial.rows[-1]['note'] = evaluated(said)


def evaluated(said):
    """What mc_eval.py's table says of the paper's average."""
    line = next(line for line in said.splitlines() if line.startswith('MC dropout') and ', probs' in line)
    return 'error % of {}: {}'.format(*re.split(' {2,}', line))


def tests(trial):
    run_tests(trial, 'tests')


def offline(trial):
    run_tests(trial, 'offline', network='none')


SOMEBODY = 4321  # neither the image's user nor anybody whom it knows


def foreign(trial):
    """Folders of somebody else: one line of the image's own user; as that somebody all works."""
    place = trial.path('cpu-foreign')
    shutil.rmtree(place, ignore_errors=True)
    options = trial.mounts('foreign')
    subprocess.check_call(['chown', '-R', '%d:%d' % (SOMEBODY, SOMEBODY), place])
    subprocess.check_call(['chmod', '-R', 'go-w', place])
    for step, command in (('foreign', ['tools/run_all.sh']), ('foreign, one net', ['tools/mc_eval.py', '--net', 'lenet_all'])):
        code, said = trial.run(step, *command, options=options)
        if not code or said.count('no permission') != 1 or 'no permission' not in last_line(said) or 'Traceback' in said:
            raise Wrong('%s: exit code %d: %s' % (command[0], code, said[-500:]))
        trial.rows[-1]['note'] = last_line(said)
    options += ['--user', '%d:%d' % (SOMEBODY, SOMEBODY)]
    short = ['--T', '10', '--repeats', '1', '--limit', '1000']
    code, said = trial.run('foreign, with --user', 'tools/mc_eval.py', '--net', 'lenet_all', *short, options=options)
    if code:
        raise Wrong('with --user: %s' % last_line(said))
    trial.rows[-1]['note'] = evaluated(said)


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
    archive = trial.path('archive')
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
    sources = trial.path('sources.list')
    with open(sources, 'w') as file:
        file.write('deb [trusted=yes] file:/archive ./\n')
    trial.make_base()
    # whom this machine trusts: it may reach the network through somebody whom Debian does not know
    code, said = trial.run('ubuntu', 'sh', '-c', LIKE_UBUNTU, image=BASE, options=[
        '-v', '{0}:{0}:ro'.format('/etc/ssl/certs/ca-certificates.crt'), '-v', archive + ':/archive:ro', '-v', sources + ':/etc/apt/sources.list:ro', '-v', trial.project() + ':/project:ro'])
    for word in ('keyring: of debian-archive-keyring', 'mirror: ', 'python-apt-common', 'Caffe 1.0.0 works'):
        if code or word not in said:
            raise Wrong('setup.sh ends with %d, %r: %s' % (code, word, last_line(said)))
    trial.rows[-1].update(command='tools/setup.sh; tools/check_caffe.py', note=last_line(said))


if __name__ == '__main__':
    campaign(__doc__, 'cpu', (build, rebuild, quick, evaluate, tests, offline, foreign, ubuntu))
