"""tools/prepare_data.py as a user runs it: what it makes, what it refuses, and that it survives a kill."""

import contextlib
import gzip
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

import pytest

from bcnn.data import check, records, sets
from bcnn.errors import UserError
from bcnn.system import files, locks
from conftest import one_clear_line
from datahelp import ROOT, mnist_bytes, put, real, snapshot, source

TOOL = 'prepare_data.py'
MNIST = [name for name, entry in sets.SETS.items() if entry.source == 'mnist' and 'draw' not in name]
# No machine on the web, wherever the test runs: a proxy that is not there.
OFFLINE = {'http_proxy': 'http://127.0.0.1:1', 'https_proxy': 'http://127.0.0.1:1', 'no_proxy': '', 'NO_PROXY': '',
           'HTTPS_PROXY': 'http://127.0.0.1:1',
           'npm_config_registry': 'http://127.0.0.1:1/', 'npm_config_fetch_retries': '0'}


@pytest.fixture(scope='module')
def prepared(tmp_path_factory):
    """A data folder with MNIST, made by the tool from the real files; not to be changed."""
    real('mnist')  # the download, if need be, counts for no single test
    data = tmp_path_factory.mktemp('prepared') / 'data'
    start = time.time()
    subprocess.check_call([sys.executable, os.path.join(ROOT, 'tools', TOOL)] + MNIST + ['--data', str(data)])
    assert time.time() - start < 60
    return data


def mdbs(data):
    """{path: sha256} of all data.mdb in a folder."""
    return {path: sha for path, sha in snapshot(data).items() if path.endswith('data.mdb')}


# --- what it makes -----------------------------------------------------------------------

def test_mnist_and_its_subsets(prepared):
    assert sorted(os.listdir(str(prepared))) == sorted(MNIST)
    for name in MNIST:
        facts = sets.manifest(name, str(prepared))
        for split in facts['splits']:
            path = str(prepared / name / (split + '_lmdb'))
            assert records.digest(path) == facts['splits'][split]['sha256'] == check.DIGESTS[name, split]


def test_a_set_is_made_without_its_siblings(tool, tmp_path, prepared):
    """And a set that another is made from is made first, in an order of its own."""
    result = tool(TOOL, 'mnist_32', '--data', tmp_path / 'data')
    assert result.returncode == 0, result.stderr
    assert os.listdir(str(tmp_path / 'data')) == ['mnist_32'] and 'mnist_32: made (' in result.stdout
    assert mdbs(tmp_path / 'data')['mnist_32/train_lmdb/data.mdb'] == mdbs(prepared)['mnist_32/train_lmdb/data.mdb']
    assert sets.with_bases(['cifar10_pad4']) == ['cifar10', 'cifar10_pad4'] and sets.with_bases(['cifar10_raw']) == ['cifar10_raw']


def test_subsets_are_random_nested_and_in_file_order(prepared):
    def content(name):
        images, labels = records.load(str(prepared / name / 'train_lmdb'))
        return labels, [image.tobytes() + bytes([label]) for image, label in zip(images, labels)]
    larger = content('mnist')[1]
    for divisor in (2, 4, 8, 16, 32):
        labels, smaller = content('mnist_%d' % divisor)
        assert len(labels) == 60000 // divisor
        facts = sets.manifest('mnist_%d' % divisor, str(prepared))
        assert facts['settings'] == {'divisor': divisor, 'seed': 0}
        assert facts['splits']['train']['classes'] == [int((labels == k).sum()) for k in range(10)]
        place = iter(larger)
        assert all(image in place for image in smaller)  # a subsequence of the larger one
        larger = smaller


def test_again_does_nothing_and_list_shows_it(tool, prepared):
    before = snapshot(prepared)
    result = tool(TOOL, *MNIST + ['--data', prepared])
    assert result.returncode == 0 and result.stdout.count(': ready (') == 6 and ': made (' not in result.stdout
    assert re.search(r'mnist_32: ready \(train 1875 records, seed 0, per class 210 192 181', result.stdout)
    assert snapshot(prepared) == before
    result = tool(TOOL, '--list', '--data', prepared)
    assert result.returncode == 0 and result.stderr == ''
    rows = {line.split()[0]: line for line in result.stdout.splitlines()[1:]}
    assert list(rows) == list(sets.SETS)
    for name, row in rows.items():
        assert ('ready' in row) == (name in MNIST) and ('missing' in row) == (name not in MNIST), row
        if name in MNIST:
            facts = sets.manifest(name, str(prepared))
            assert facts['sha256'][:16] in row and facts['source'] in row


def test_list_without_anything(tool, tmp_path):
    result = tool(TOOL, '--list', '--data', tmp_path / 'none')
    assert result.returncode == 0 and result.stdout.count('missing') == len(sets.SETS)
    assert not (tmp_path / 'none').exists()


def test_from_the_users_own_packed_files_the_bytes_are_the_same(tool, tmp_path, prepared):
    here = put(tmp_path / 'mine', {name + '.gz': gzip.compress(data, 1) for name, data in real('mnist').items()})
    env = dict(OFFLINE, BCNN_DOWNLOADS=str(tmp_path / 'no'))
    result = tool(TOOL, *MNIST + ['--from', here, '--data', tmp_path / 'data'], env=env)
    assert result.returncode == 0, result.stderr
    assert mdbs(tmp_path / 'data') == mdbs(prepared)
    assert sets.manifest('mnist', str(tmp_path / 'data'))['source'] == here
    assert not (tmp_path / 'no').exists()


def test_fashion_mnist(tool, tmp_path):
    real('fashion_mnist')
    result = tool(TOOL, 'fashion_mnist', '--data', tmp_path)
    assert result.returncode == 0, result.stderr
    for split in ('train', 'test'):
        path = str(tmp_path / 'fashion_mnist' / (split + '_lmdb'))
        assert records.digest(path) == check.DIGESTS['fashion_mnist', split]


def test_nin_weights_from_a_file(tool, tmp_path):
    weights = os.environ.get('BCNN_NIN_WEIGHTS')
    if not weights:
        pytest.skip('BCNN_NIN_WEIGHTS names no copy of the published NIN weights')
    for given in (weights, os.path.dirname(weights)):
        data = tmp_path / str(len(given))
        result = tool(TOOL, 'nin_weights', '--from', given, '--data', data)
        assert result.returncode == 0, result.stderr
        assert (data / 'nin_weights' / 'cifar10_nin.caffemodel').stat().st_size == 3869548
    result = tool(TOOL, '--check', '--data', data)
    assert result.returncode == 0 and 'all figures agree' in result.stdout


def test_contact_sheet(tool, tmp_path, prepared):
    from PIL import Image
    result = tool(TOOL, '--show', 'mnist_32', '--data', prepared, '--out', tmp_path / 'sheet.png')
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [str(tmp_path / 'sheet.png')]
    picture = Image.open(str(tmp_path / 'sheet.png'))
    assert picture.size[0] > 900 and len(set(picture.convert('L').getdata())) > 100
    one_clear_line(tool(TOOL, '--show', 'cifar10', '--data', prepared), 'not ready', 'prepare_data.py cifar10')


def test_check_finds_one_changed_byte(tool, tmp_path, prepared):
    subprocess.check_call(['cp', '-r', str(prepared / 'mnist_32'), str(tmp_path)])
    result = tool(TOOL, '--check', '--data', tmp_path)
    assert result.returncode == 0 and 'all figures agree' in result.stdout
    with open(str(tmp_path / 'mnist_32' / 'train_lmdb' / 'data.mdb'), 'r+b') as file:
        file.seek(200 * 4096 + 2000)  # in the midst of an image
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    result = tool(TOOL, '--check', 'mnist_32', '--data', tmp_path)
    assert result.returncode == 1 and 'DIFFERS' in result.stdout and '1 figures differ' in result.stdout


# --- what it refuses ---------------------------------------------------------------------

def refused(tool, data, *args, parts=(), env=None, **options):
    """One clear line, and the data folder as it was."""
    before = snapshot(data)
    result = tool(TOOL, *(args + ('--data', data)), env=env, **options)
    one_clear_line(result, *parts)
    assert snapshot(data) == before
    return result


def test_usage(tool, tmp_path):
    refused(tool, tmp_path / 'data', parts=['name a set to prepare'])
    refused(tool, tmp_path / 'data', 'imagenet', parts=['no data set is called imagenet', 'fashion_mnist'])
    refused(tool, tmp_path / 'data', '--check', parts=['nothing is ready'])
    refused(tool, tmp_path / 'data', 'mnist', '--from', tmp_path / 'nowhere', parts=['nowhere', 'no such file'])


def test_bad_files_of_the_users(tool, tmp_path, prepared):
    good = real('mnist')
    name = 't10k-labels-idx1-ubyte'
    faults = {
        'truncated': (good[name][:5000], 'truncated idx file'),
        'magic': (b'\1\2\3\4' + good[name][4:], 'magic number'),
        'label': (good[name][:-1] + b'\x0b', 'label 11 of item 9999 is out of range'),
        'html': (b'<html><body>Access denied</body></html>', 'an HTML page in place of the file'),
    }
    data = tmp_path / 'data'
    subprocess.check_call(['cp', '-r', str(prepared / 'mnist_4'), str(tmp_path / 'mnist_4')])
    data.mkdir()
    (tmp_path / 'mnist_4').rename(data / 'mnist_4')  # something that must stay as it is
    for fault, (bad, message) in faults.items():
        here = put(tmp_path / fault, dict(good, **{name: bad}))
        refused(tool, data, 'mnist', '--from', here, parts=[name, message, '27ae3e4e09519cfbb04c329615203637', here])
    with tarfile.open(str(tmp_path / 'evil.tgz'), 'w:gz') as archive:
        archive.add(os.path.join(here, name), '../../evil')
    refused(tool, data, 'mnist', '--from', tmp_path / 'evil.tgz', parts=['leads out of the archive'])
    here = put(tmp_path / 'cifar', {'data_batch_%d.bin' % i: bytes(3073) for i in range(1, 6)})
    put(here, {'test_batch.bin': bytes(3072)})
    refused(tool, data, 'cifar10', '--from', here + '/test_batch.bin', parts=['test_batch.bin', 'short CIFAR record'])


@pytest.mark.skipif(not shutil.which('npm'), reason='no npm here')
def test_no_network(tool, tmp_path):
    env = dict(OFFLINE, BCNN_DOWNLOADS=str(tmp_path / 'downloads'), npm_config_cache=str(tmp_path / 'npm'))
    result = refused(tool, tmp_path / 'data', 'mnist', env=env,
                     parts=['no source of MNIST works here', 'Connection refused', 'npm pack', '--from'])
    assert 'ECONNREFUSED' in result.stderr
    assert not (tmp_path / 'downloads').exists()


def test_no_npm(tool, tmp_path):
    (tmp_path / 'bin').mkdir()
    env = dict(OFFLINE, BCNN_DOWNLOADS=str(tmp_path / 'downloads'), PATH=str(tmp_path / 'bin'))
    refused(tool, tmp_path / 'data', 'mnist', env=env, python=sys.executable, parts=['no npm here', '--from'])


@contextlib.contextmanager
def disk(place, options):
    place.mkdir(exist_ok=True)
    if subprocess.call(['mount', '-t', 'tmpfs', '-o', options, 'none', str(place)], stderr=subprocess.DEVNULL):
        pytest.skip('mounting a tmpfs needs root')
    try:
        yield place
    finally:
        subprocess.check_call(['umount', str(place)])


def test_no_space(tool, tmp_path, monkeypatch):
    with disk(tmp_path / 'disk', 'size=4m') as place:
        refused(tool, place, 'mnist', parts=['no space left', ' MB free', str(place)])
        refused(tool, place / 'data', 'mnist', parts=['no space left', ' MB free', str(place)])
        # Where the estimate is passed, and the disk then fills up in the midst of writing.
        monkeypatch.setattr(files, 'require_space', lambda path, needed: None)
        small = mnist_bytes(6000)
        here = put(tmp_path / 'small', small)
        before = snapshot(place)
        with pytest.raises(UserError, match='no space left on the disk of %s/mnist' % place):
            sets.prepare(['mnist'], str(place), here, {'mnist': source(small)})
        assert snapshot(place) == before


def test_no_space_for_downloads(tool, tmp_path):
    with disk(tmp_path / 'disk', 'size=4m') as place:
        here = place / 'downloads'
        env = {'BCNN_DOWNLOADS': str(here), 'npm_config_cache': str(tmp_path / 'npm')}
        result = tool(TOOL, 'mnist', '--data', tmp_path / 'data', env=env)
        one_clear_line(result, 'no space left')
        assert not (tmp_path / 'data').exists() and not here.exists()


def test_a_file_size_limit(tool, tmp_path):
    real('mnist')
    command = 'ulimit -f 20000; exec "$@"'  # 10 MB in sh's blocks of 512 bytes
    before = snapshot(tmp_path)
    result = subprocess.run(['sh', '-c', command, '-', sys.executable, os.path.join(ROOT, 'tools', TOOL), 'mnist',
                             '--data', str(tmp_path / 'data')],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    one_clear_line(result, 'larger than allowed', str(tmp_path / 'data' / 'mnist'))
    assert snapshot(tmp_path) == before


def test_an_unwritable_folder(tool, tmp_path):
    if os.getuid():
        os.chmod(str(tmp_path), 0o555)
        refused(tool, tmp_path / 'data', 'mnist', parts=['cannot write', 'no permission'])
        os.chmod(str(tmp_path), 0o755)
        return
    with disk(tmp_path / 'disk', 'size=1m,ro') as place:
        refused(tool, place, 'mnist', parts=['cannot write', 'read-only', str(place)])
        refused(tool, place / 'data', 'mnist', parts=['cannot write', 'read-only', str(place)])
        env = dict(OFFLINE, BCNN_DOWNLOADS=str(place / 'downloads'))
        refused(tool, tmp_path / 'data', 'mnist', env=env, parts=['cannot write', 'BCNN_DOWNLOADS names another'])


def test_what_is_ready_on_a_read_only_disk_is_ready(tool, tmp_path, prepared):
    with disk(tmp_path / 'disk', 'size=200m') as place:
        subprocess.check_call('cp -r %s/* %s' % (prepared, place), shell=True)
        subprocess.check_call(['mount', '-o', 'remount,ro', str(place)])
        result = tool(TOOL, *MNIST + ['--data', place])
        assert result.returncode == 0 and result.stdout.count(': ready (') == 6, result.stderr


def test_a_folder_of_somebody_elses_is_left_alone(tool, tmp_path):
    put(tmp_path / 'data' / 'mnist', {'thesis.txt': b'do not lose'})
    refused(tool, tmp_path / 'data', 'mnist', parts=['was not made by this tool', 'move it away'])


# --- together, and interrupted -----------------------------------------------------------

def started(data, *args):
    command = [sys.executable, os.path.join(ROOT, 'tools', TOOL)] + MNIST + ['--data', str(data)]
    return subprocess.Popen(command + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            universal_newlines=True)


def test_of_two_at_once_one_works_and_the_other_waits(tmp_path, prepared):
    data = tmp_path / 'data'
    data.mkdir()
    with locks.lock(str(data / '.mnist.lock')):  # so that both really are there at once
        both = [started(data), started(data)]
        for process in both:
            assert process.stdout.readline() == 'mnist: waiting for another process that prepares it\n'
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert sorted((out.count(': made ('), out.count(': ready (')) for out, _ in outputs) == [(0, 6), (6, 0)]
    assert mdbs(data) == mdbs(prepared) and sorted(os.listdir(str(data))) == sorted(MNIST)


def test_killed_at_any_moment_a_rerun_ends_with_the_same_bytes(tmp_path, prepared):
    data = tmp_path / 'data'
    expected = mdbs(prepared)
    rng, whole, killed = random.Random(4), 3.0, 0
    for _ in range(60):
        begin = time.time()
        process = started(data)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.1, whole))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        for name in MNIST:  # what is there under its name is whole
            if (data / name).exists():
                assert sets.manifest(name, str(data)) is not None
        there = mdbs(data) if data.exists() else {}
        assert all(there[path] == expected[path] for path in there if not path.startswith('.'))
        if process.returncode == 0:  # it was faster: from nothing again, and aim the next kills better
            whole = time.time() - begin
            subprocess.check_call(['rm', '-rf', str(data)])
        else:
            killed += 1
        if killed == 8:
            break
    assert killed == 8
    process = started(data)
    assert process.wait(120) == 0 and process.communicate()[1] == ''
    assert mdbs(data) == expected and sorted(os.listdir(str(data))) == sorted(MNIST)


def test_interrupted_it_says_so_and_leaves_nothing(tmp_path):
    with locks.lock(str(tmp_path / '.mnist.lock')):
        process = started(tmp_path)
        assert 'waiting' in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[1] == 'prepare_data.py: interrupted\n'
    assert process.returncode == 130 and snapshot(tmp_path) == {}
