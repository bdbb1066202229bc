"""One table of packages: Debian, the two images and conda must not drift apart."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

PREFIX = os.environ.get('CAFFE_PREFIX', os.path.join(ROOT, '.caffe'))


def table():
    """The rows of tools/packages.txt: (debian, name, version)."""
    with open(os.path.join(ROOT, 'tools', 'packages.txt')) as file:
        rows = [line.split('#')[0].split() for line in file]
    return [tuple(row + [None] * (3 - len(row))) for row in rows if row]


def text(name):
    with open(os.path.join(ROOT, name)) as file:
        return file.read()


def test_conda_has_the_versions_of_the_table():
    conda = dict(re.findall(r'^  - ([\w-]+)=([\d.]+)$', text('environment.yml'), re.MULTILINE))
    assert conda.pop('python') == '3.8' and conda.pop('caffe') == '1.0'
    expected = {('python-lmdb' if name == 'lmdb' else name): version for _, name, version in table() if name}
    assert conda == expected


def test_the_installed_packages_have_the_versions_of_the_table():
    """What Debian 11 really resolved to, as the set-up recorded it (or as dpkg knows in the CPU image)."""
    recorded = os.path.join(PREFIX, 'packages.txt')
    if os.path.exists(recorded):
        with open(recorded) as file:
            installed = dict(line.split() for line in file)
    elif shutil.which('dpkg-query'):
        lines = subprocess.run(['dpkg-query', '-W', '-f', '${Package} ${Version}\n'], stdout=subprocess.PIPE).stdout
        installed = dict(line.split() for line in lines.decode().splitlines() if len(line.split()) == 2)
    else:
        installed = {}
    if 'python3-caffe' not in installed and 'python3-caffe-cpu' not in installed:
        pytest.skip('Caffe is not from Debian packages here')
    for debian, _, version in table():
        assert debian in installed, '%s is not installed' % debian
        if version:
            upstream = re.sub(r'^\d+:|[-+~].*$', '', installed[debian])
            assert upstream == version, debian


def stages():
    """The stages of the Dockerfile: {name: (what it is built on, its steps)}."""
    parts = re.split(r'^FROM (\S+) AS (\S+)$', text('Dockerfile'), flags=re.MULTILINE)[1:]
    return {name: (base, steps) for base, name, steps in zip(parts[::3], parts[1::3], parts[2::3])}


def test_the_images_have_no_list_of_their_own():
    """Both stand on the packages of the table; the GPU's takes the packages of Caffe that were built, and no others."""
    built = stages()
    steps = built['cpu-base'][1]
    assert 'tools/packages.txt' in steps and not re.search(r'python3-|caffe', steps.split('RUN', 1)[1])
    assert [built[name][0] for name in ('cpu', 'gpu-base', 'gpu')] == ['cpu-base', 'cpu-base', 'gpu-base']
    for name in ('cpu', 'gpu'):
        assert 'apt-get' not in built[name][1]
    assert re.findall(r'apt-get install.*', built['gpu-base'][1]) == [
        'apt-get install -y --no-install-recommends /tmp/debs/*.deb \\']


def test_what_git_ignores_the_images_leave_out():
    """As patterns: git's `name/` at any depth is docker's `**/name`, git's `/name` docker's `name`."""
    def docker(pattern):
        sign, rest = ('!', pattern[1:]) if pattern.startswith('!') else ('', pattern)
        return sign + (rest.strip('/') if rest.startswith('/') else '**/' + rest.strip('/'))

    ignored = text('.dockerignore').splitlines()
    assert {docker(pattern) for pattern in text('.gitignore').split()} | {'.git'} == set(ignored[1:])
    # an exception comes after its rule
    assert all(ignored.index('!' + kept) > ignored.index(rule) for kept, rule in (
        ('runs/README.md', 'runs/*'), ('weights/*.caffemodel', '**/*.caffemodel')))


@pytest.mark.parametrize('name', ['cpu', 'gpu'])
def test_a_change_of_the_code_keeps_the_layers_before_it(name):
    """The code comes first in its stage; all that takes long or never changes is in a stage before."""
    base, steps = stages()[name]
    words = re.findall(r'^([A-Z]+) (.*)', steps, re.MULTILINE)
    assert words[0] == ('COPY', '. /bcnn')
    before = ''.join(stages()[stage][1] for stage in {base, 'cpu-base'})
    assert 'useradd' in before and 'COPY .' not in before and 'COPY tools/packages.txt' in before


def test_the_images_command_reads_the_table_right():
    command = r"sed 's/#.*//' tools/packages.txt | awk 'NF {print $1}'"
    assert command.replace('tools/', '/tmp/') in text('Dockerfile')
    output = subprocess.run(command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, universal_newlines=True).stdout
    assert output.split() == [debian for debian, _, _ in table()]


def test_shellcheck_finds_nothing():
    if not shutil.which('shellcheck'):
        pytest.skip('no shellcheck')
    scripts = ['tools/setup.sh', 'tools/test.sh', 'tools/run_all.sh', 'tools/python', '.ci/run']
    result = subprocess.run(['shellcheck'] + scripts, cwd=ROOT, stdout=subprocess.PIPE, universal_newlines=True)
    assert result.returncode == 0, result.stdout
