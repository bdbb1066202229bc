"""One table of packages: Debian, the two images and conda must not drift apart."""

import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

PREFIX = os.environ.get('CAFFE_PREFIX', os.path.join(ROOT, '.caffe'))


def table():
    """The rows of tools/packages.txt: (debian, name, version, version for Python 3.6)."""
    with open(os.path.join(ROOT, 'tools', 'packages.txt')) as file:
        rows = [line.split('#')[0].split() for line in file]
    return [tuple(row + [None] * (4 - len(row))) for row in rows if row]


def text(name):
    with open(os.path.join(ROOT, name)) as file:
        return file.read()


def test_conda_has_the_versions_of_the_table():
    conda = dict(re.findall(r'^  - ([\w-]+)=([\d.]+)$', text('environment.yml'), re.MULTILINE))
    assert conda.pop('python') == '3.8' and conda.pop('caffe') == '1.0'
    expected = {('python-lmdb' if name == 'lmdb' else name): version for _, name, version, _ in table() if name}
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
    for debian, _, version, _ in table():
        assert debian in installed, '%s is not installed' % debian
        if version:
            upstream = re.sub(r'^\d+:|[-+~].*$', '', installed[debian])
            assert upstream == version, debian


def test_both_images_read_the_table():
    """No second list hides in the Dockerfile: each of its package commands is fed from the table."""
    dockerfile = text('Dockerfile')
    cpu = dockerfile[dockerfile.index('AS cpu-base'):dockerfile.index('FROM gpu-base AS gpu')]
    gpu = dockerfile[dockerfile.index('AS gpu-base'):dockerfile.index('AS cpu-base')]
    assert 'tools/packages.txt' in cpu and 'tools/packages.txt' in gpu
    assert not re.search(r'python3-|caffe', cpu.split('RUN', 1)[1])
    assert not re.search(r'numpy|pandas|matplotlib|scipy', gpu)


@pytest.mark.parametrize('command, expected', [
    (r"sed 's/#.*//' tools/packages.txt | awk 'NF {print $1}'", lambda row: row[0]),
    (r"""sed 's/#.*//' tools/packages.txt | awk '$2 {print $2 "==" ($4 ? $4 : $3)}'""",
     lambda row: row[1] and '%s==%s' % (row[1], row[3] or row[2])),
])
def test_the_images_commands_read_the_table_right(command, expected):
    assert command.replace('tools/', '/tmp/') in text('Dockerfile')
    output = subprocess.run(command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, universal_newlines=True).stdout
    assert output.split() == [expected(row) for row in table() if expected(row)]


def test_the_gpu_pins_exist_for_python_3_6(tmp_path):
    """Each pin of the GPU image has a file for Python 3.6, asked of the package index without installing."""
    pip = ['python3', '-m', 'pip', 'download', '--quiet', '--disable-pip-version-check', '--no-deps', '--dest', str(tmp_path),
           '--python-version', '3.6.9', '--implementation', 'cp', '--abi', 'cp36m', '--abi', 'none', '--abi', 'abi3',
           '--platform', 'manylinux2014_x86_64', '--platform', 'manylinux2010_x86_64', '--platform', 'manylinux1_x86_64',
           '--platform', 'any', '--only-binary=:all:']
    try:
        subprocess.run(pip + ['six==1.16.0'], check=True, timeout=60, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except (OSError, subprocess.SubprocessError):
        pytest.skip('no pip, or no package index')
    pins = ['%s==%s' % (name, old or version) for _, name, version, old in table() if name]
    result = subprocess.run(pip + pins, timeout=300, stderr=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)
    assert result.returncode == 0, result.stderr[-500:]


def test_shellcheck_finds_nothing():
    if not shutil.which('shellcheck'):
        pytest.skip('no shellcheck')
    scripts = ['tools/setup.sh', 'tools/test.sh', 'tools/run_all.sh', 'tools/python', '.ci/run']
    result = subprocess.run(['shellcheck'] + scripts, cwd=ROOT, stdout=subprocess.PIPE, universal_newlines=True)
    assert result.returncode == 0, result.stdout
