"""tools/setup.sh: one-line refusals, atomic under kill -9, offline from its cache, nothing outside its places.

Everything here runs without the network; what unpacks packages, from the downloads that the set-up of
this very test run kept, and not where Caffe came another way (Docker, conda).
"""

import glob
import hashlib
import http.server
import os
import random
import re
import shutil
import signal
import ssl
import stat
import subprocess
import threading
import time

import pytest

from conftest import ROOT, one_clear_line

PREFIX = os.environ.get('CAFFE_PREFIX', os.path.join(ROOT, '.caffe'))
NO_MIRROR = 'http://127.0.0.1:1/debian'

pytestmark = pytest.mark.skipif(not shutil.which('apt-get'), reason='no apt-get: this way is for Debian and Ubuntu')
needs_downloads = pytest.mark.skipif(not os.path.exists(os.path.join(PREFIX, '.bcnn-caffe')),
                                     reason='Caffe was not installed by tools/setup.sh here, whose downloads this needs')


@pytest.fixture
def setup(tmp_path, tool):
    """Runs setup.sh for a new prefix in a path with spaces, away from every mirror."""
    def run(*options, cache=None, **env):
        env.setdefault('CAFFE_PREFIX', str(tmp_path / 'a place' / '.caffe'))
        env.setdefault('CAFFE_DEBIAN_MIRROR', NO_MIRROR)
        if cache:
            env['CAFFE_DEB_CACHE'] = str(cache)
        return tool('setup.sh', *options, env=without_caffe(tmp_path, env))
    run.prefix = tmp_path / 'a place' / '.caffe'
    return run


def without_caffe(tmp_path, env):
    """The environment with pythons that have no Caffe, so that setup.sh has work to do."""
    for name in ('python3', 'python'):
        stub(tmp_path / 'bin' / name, 'exec %s -S "$@"' % shutil.which('python3'))
    return dict(env, PATH='%s:%s' % (tmp_path / 'bin', env.get('PATH', os.environ['PATH'])))


def stub(path, line):
    path.parent.mkdir(exist_ok=True)
    path.write_text('#!/bin/sh\n%s\n' % line)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def nothing_left(prefix):
    """Whether neither a prefix nor a working folder is there."""
    return not prefix.exists() and not glob.glob(str(prefix) + '.tmp.*')


# --- it is there already

def id_of_this_version():
    """What a prefix made by this very setup.sh with this package list is marked with."""
    script = 'cat "$0"/setup.sh "$0"/packages.txt | cksum | cut -d" " -f1'
    return subprocess.run(['sh', '-c', script, os.path.join(ROOT, 'tools')], stdout=subprocess.PIPE, universal_newlines=True,
                          check=True).stdout.strip()


def made_by_this_version():
    """Whether the prefix is of this version; of another it would be made anew, under whoever uses it."""
    with open(os.path.join(PREFIX, '.bcnn-caffe')) as file:
        return file.read().strip() == id_of_this_version()


@needs_downloads
def test_a_second_run_does_nothing(tool):
    if not made_by_this_version():
        pytest.skip('%s was made by another version, for somebody else: left alone' % PREFIX)
    before = os.stat(PREFIX).st_mtime_ns
    result = tool('setup.sh')
    assert (result.returncode, result.stdout) == (0, 'setup: ready: %s\n' % PREFIX)
    assert os.stat(PREFIX).st_mtime_ns == before


@needs_downloads
def test_an_installed_caffe_is_found_and_left_alone(tool, tmp_path):
    stub(tmp_path / 'bin' / 'python3', 'exec "%s" "$@"' % os.path.join(PREFIX, 'bin', 'python'))
    result = tool('setup.sh', env={'PATH': '%s:%s' % (tmp_path / 'bin', os.environ['PATH']),
                                   'CAFFE_PREFIX': str(tmp_path / '.caffe')})
    assert result.returncode == 0
    assert result.stdout.startswith('setup: nothing to do, found Caffe 1.0.0 at ')
    assert nothing_left(tmp_path / '.caffe')


# --- refusals

def test_not_amd64(setup, tmp_path):
    stub(tmp_path / 'bin' / 'dpkg', 'echo arm64')
    one_clear_line(setup(), 'amd64', 'arm64')
    assert nothing_left(setup.prefix)


def test_no_apt_names_the_other_ways(setup, tmp_path):
    tools = tmp_path / 'few tools'
    tools.mkdir()
    for name in ('sh', 'cat', 'cksum', 'cut', 'dirname', 'sed', 'awk'):
        (tools / name).symlink_to(shutil.which(name))
    one_clear_line(setup(PATH=str(tools)), 'no apt-get', 'Docker', 'conda')
    assert nothing_left(setup.prefix)


def test_old_glibc(setup, tmp_path):
    stub(tmp_path / 'bin' / 'getconf', 'echo glibc 2.28')
    one_clear_line(setup(), 'glibc 2.31', '2.28')
    assert nothing_left(setup.prefix)


def test_no_keyring(setup):
    one_clear_line(setup(CAFFE_DEBIAN_KEYRING='/no/keyring.gpg'), '/no/keyring.gpg', 'debian-archive-keyring',
                   'CAFFE_DEBIAN_KEYRING')
    assert nothing_left(setup.prefix)


def test_no_network(setup, tmp_path):
    one_clear_line(setup(cache=tmp_path / 'empty'), 'no network', NO_MIRROR, 'CAFFE_DEBIAN_MIRROR')
    assert nothing_left(setup.prefix)


def test_a_mirror_without_bullseye(setup, tmp_path):
    (tmp_path / 'mirror').mkdir()
    one_clear_line(setup(cache=tmp_path / 'empty', CAFFE_DEBIAN_MIRROR='file://%s/mirror' % tmp_path),
                   'has no usable bullseye', 'CAFFE_DEBIAN_MIRROR', 'archive of distributions')
    assert nothing_left(setup.prefix)


@pytest.mark.skipif(not shutil.which('openssl'), reason='no openssl to make a certificate with')
def test_a_mirror_whose_certificate_is_not_trusted(setup, tmp_path):
    key, certificate = str(tmp_path / 'key.pem'), str(tmp_path / 'certificate.pem')
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=localhost', '-keyout', key, '-out',
                    certificate], check=True, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result = setup(cache=tmp_path / 'empty', CAFFE_DEBIAN_MIRROR='https://localhost:%d/debian' % server.server_port)
        server.shutdown()
    one_clear_line(result, 'does not trust the certificate', 'ca-certificates', 'CAFFE_DEBIAN_MIRROR')
    assert nothing_left(setup.prefix)


def mirror_with(folder, sign=None):
    """A mirror that has a bullseye with no package in it; sign(path) makes its InRelease."""
    place = folder / 'mirror' / 'dists' / 'bullseye'
    packages = place / 'main' / 'binary-amd64'
    packages.mkdir(parents=True)
    (packages / 'Packages').write_text('')
    digest = hashlib.sha256(b'').hexdigest()
    release = place / ('unsigned' if sign else 'Release')
    release.write_text('Suite: bullseye\nCodename: bullseye\nComponents: main\nArchitectures: amd64\n'
                       'Date: Sat, 01 Jan 2022 00:00:00 UTC\nSHA256:\n %s 0 main/binary-amd64/Packages\n' % digest)
    if sign:
        sign(release, place / 'InRelease')
    return 'file://%s/mirror' % folder


def test_an_unsigned_release_is_refused(setup, tmp_path):
    mirror = mirror_with(tmp_path)
    one_clear_line(setup(cache=tmp_path / 'empty', CAFFE_DEBIAN_MIRROR=mirror), 'has no usable bullseye', 'not signed')
    assert nothing_left(setup.prefix)


@pytest.mark.skipif(not shutil.which('gpg'), reason='no gpg to sign with')
@pytest.mark.parametrize('tamper', [False, True])
def test_only_debians_signature_counts(setup, tmp_path, tamper):
    """Signed by somebody else's key; and, where that key is named as the keyring, changed after it was signed."""
    home = tmp_path / 'gpg'
    home.mkdir(mode=0o700)

    def gpg(*words):
        subprocess.run(('gpg', '--homedir', str(home), '--batch', '--yes', '--passphrase', '') + words, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def sign(release, signed):
        gpg('--clearsign', '--output', str(signed), str(release))
        if tamper:
            signed.write_text(signed.read_text().replace('Components: main', 'Components: evil main'))

    gpg('--quick-generate-key', 'somebody', 'rsa2048', 'sign')
    gpg('--export', '--output', str(home / 'key.gpg'))
    env = {'CAFFE_DEBIAN_KEYRING': str(home / 'key.gpg')} if tamper else {}
    result = setup(cache=tmp_path / 'empty', CAFFE_DEBIAN_MIRROR=mirror_with(tmp_path, sign), **env)
    subprocess.run(['gpgconf', '--homedir', str(home), '--kill', 'all'])
    one_clear_line(result, 'has no usable bullseye')
    assert any(word in result.stderr for word in ('NO_PUBKEY', 'BADSIG', 'not signed', 'signatures', 'GPG error')), result.stderr
    assert nothing_left(setup.prefix)


@pytest.mark.skipif(os.geteuid() != 0, reason='mounting a read-only disk needs root')
def test_a_read_only_disk_is_one_line(setup, tmp_path):
    """A shell ends without a word where `:` cannot write; found by tests/campaigns/faults/campaign.py."""
    disk = tmp_path / 'disk'
    disk.mkdir()
    if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'ro,size=1m', 'tmpfs', str(disk)]).returncode:
        pytest.skip('cannot mount a tmpfs here')
    try:
        one_clear_line(setup(CAFFE_PREFIX=str(disk / '.caffe')), 'cannot write beside')
    finally:
        subprocess.run(['umount', str(disk)], check=True)


def test_a_folder_that_is_not_ours_is_left_alone(setup):
    setup.prefix.mkdir(parents=True)
    (setup.prefix / 'precious').write_text('x')
    one_clear_line(setup(), str(setup.prefix), 'not made by this script')
    assert (setup.prefix / 'precious').read_text() == 'x'


def test_no_place_for_downloads(setup, tmp_path):
    (tmp_path / 'file').write_text('')
    one_clear_line(setup(cache=tmp_path / 'file' / 'debs'), 'CAFFE_DEB_CACHE')
    assert nothing_left(setup.prefix)


@needs_downloads
@pytest.mark.skipif(os.geteuid() != 0, reason='mounting a small disk needs root')
@pytest.mark.parametrize('megabytes, needed', [(20, None), (150, '1')])
def test_no_space_left(setup, tmp_path, megabytes, needed):
    """Told beforehand by df, and in the middle of the work when df was wrong."""
    disk = tmp_path / 'disk'
    disk.mkdir()
    if needed:  # df promises room that is not there
        stub(tmp_path / 'bin' / 'df', 'echo h; echo x x x 99999999')
    mounted = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=%dm' % megabytes, 'tmpfs', str(disk)])
    if mounted.returncode:
        pytest.skip('cannot mount a tmpfs here')
    try:
        one_clear_line(setup(CAFFE_PREFIX=str(disk / '.caffe')), 'no space')
        assert nothing_left(disk / '.caffe')
    finally:
        subprocess.run(['umount', str(disk)], check=True)


# --- packages of Caffe with CUDA, built elsewhere

BUILT = ('libcaffe1', 'caffe', 'python3-caffe')
CUDA = '1.0.0+git20180821.99bd997-8+cuda11.2'


@pytest.fixture
def debs(tmp_path):
    """Makes a folder of packages that look like those of the Dockerfile's target gpu-debs, but for the changes asked for."""
    def make(without=(), extra=(), **changes):
        for name in set(BUILT) - set(without):
            deb(name, **changes)
        for version in extra:
            deb('caffe', version)
        return folder

    def deb(name, version=CUDA, architecture='amd64'):
        control = tmp_path / 'content' / 'DEBIAN' / 'control'
        control.parent.mkdir(parents=True, exist_ok=True)
        control.write_text('Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: nobody\nDescription: none\n'
                           % (name, version, architecture))
        subprocess.run(['dpkg-deb', '-b', str(tmp_path / 'content'), str(folder / ('%s_%s.deb' % (name, version)))], check=True,
                       stdout=subprocess.DEVNULL)

    folder = tmp_path / 'my debs'
    folder.mkdir()
    return make


def test_the_version_of_the_packages_is_that_of_the_dockerfile():
    with open(os.path.join(ROOT, 'Dockerfile')) as file:
        source = re.search(r'apt-get source caffe=(\S+)', file.read()).group(1)
    with open(os.path.join(ROOT, 'caffe-cuda.patch')) as file:
        patched = re.search(r'^\+caffe \((.*)\)', file.read(), re.M).group(1)
    assert patched == CUDA and re.fullmatch(re.escape(source) + r'\+cuda[\d.]+', patched)


def test_debs_of_another_architecture(setup, debs):
    one_clear_line(setup('--debs', debs(architecture='arm64')), 'libcaffe1', 'arm64', 'amd64')
    assert nothing_left(setup.prefix)


def test_debs_of_another_version(setup, debs):
    one_clear_line(setup('--debs', debs(version='1.0.0+git20180821.99bd997-8+b2')), '-8+b2', CUDA, 'Dockerfile')
    assert nothing_left(setup.prefix)


def test_a_package_is_missing(setup, debs):
    one_clear_line(setup('--debs', debs(without=['python3-caffe'])), 'no package python3-caffe', 'gpu-debs')
    assert nothing_left(setup.prefix)


def test_two_versions_of_a_package(setup, debs):
    one_clear_line(setup('--debs', debs(extra=['1.0'])), '2 packages caffe', CUDA)


def test_a_damaged_package(setup, debs):
    damaged = debs() / ('caffe_%s.deb' % CUDA)
    damaged.write_bytes(damaged.read_bytes()[:-100])
    one_clear_line(setup('--debs', damaged.parent), str(damaged), 'damaged')


def test_no_folder_of_packages(setup):
    one_clear_line(setup('--debs', '/no/debs'), '/no/debs: no such folder')
    one_clear_line(setup('--debs'), 'needs a folder')
    one_clear_line(setup('--deb', 'x'), 'no such option')


def make_prefix(setup, stamp='of an older list', cuda=None):
    """Something at the prefix's place that looks like a work of this script's."""
    setup.prefix.mkdir(parents=True)
    (setup.prefix / '.bcnn-caffe').write_text(stamp + '\n')
    if cuda:
        (setup.prefix / '.bcnn-debs').write_text(cuda + '\n')
    (setup.prefix / 'precious').write_text('x')
    return setup.prefix / 'precious'


def test_a_prefix_with_the_cpu_build_is_kept(setup, debs):
    precious = make_prefix(setup)
    one_clear_line(setup('--debs', debs()), 'holds the CPU build', 'CAFFE_PREFIX')
    assert precious.read_text() == 'x'


def test_a_prefix_with_cuda_is_not_replaced_by_the_cpu_build(setup):
    precious = make_prefix(setup, cuda='some debs')
    one_clear_line(setup(), 'holds the build with CUDA', '--debs')
    assert precious.read_text() == 'x'


def test_a_prefix_with_cuda_serves_those_who_do_not_say(setup):
    """tools/test.sh and tools/run_all.sh call setup.sh without options."""
    make_prefix(setup, stamp=id_of_this_version(), cuda='some debs')
    result = setup()
    assert (result.returncode, result.stdout) == (0, 'setup: ready: %s\n' % setup.prefix)


def test_other_debs_are_not_taken_for_these(setup, debs, tmp_path):
    """The prefix is of this version, but of other packages: work begins (and ends, without a network)."""
    precious = make_prefix(setup, stamp=id_of_this_version(), cuda='other debs')
    one_clear_line(setup('--debs', debs(), cache=tmp_path / 'empty'), 'no network')
    assert precious.read_text() == 'x'


def test_no_space_for_cuda(setup, debs, tmp_path):
    """1,500 MB are enough for the CPU build."""
    stub(tmp_path / 'bin' / 'df', 'echo h; echo x x x 1536000')
    one_clear_line(setup('--debs', debs()), 'no space', '1500 MB free', '2000 MB')
    one_clear_line(setup(cache=tmp_path / 'empty'), 'no network')
    assert nothing_left(setup.prefix)


# --- the whole way, from the cache

@needs_downloads
@pytest.mark.slow
def test_kills_leave_the_old_prefix_or_none(setup, tmp_path):
    """kill -9 at a random moment of each quarter of its time: whatever is there afterwards works; at last a whole
    set-up, offline."""
    status = dpkg_status()
    rng = random.Random(1)
    environment = without_caffe(tmp_path, dict(CAFFE_PREFIX=str(setup.prefix), CAFFE_DEBIAN_MIRROR=NO_MIRROR))
    duration, kills = 15., 4
    for part in rng.sample(range(kills), kills):
        if setup.prefix.exists():  # make it an old one, so that there is work again
            (setup.prefix / '.bcnn-caffe').write_text('of an older list\n')
        started = time.time()
        process = subprocess.Popen([os.path.join(ROOT, 'tools', 'setup.sh')], env=dict(os.environ, **environment),
                                   stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            process.wait(duration * rng.uniform(part, part + 1) / kills)
            duration = time.time() - started  # it was faster: aim the next kills better
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        assert_works_or_absent(setup.prefix)
    result = setup()
    assert result.returncode == 0, result.stderr
    assert_works_or_absent(setup.prefix)
    assert setup.prefix.exists() and not glob.glob(str(setup.prefix) + '.tmp.*')
    assert dpkg_status() == status
    assert_moves(setup.prefix, tmp_path / 'elsewhere')


def assert_works_or_absent(prefix):
    if prefix.exists():
        subprocess.run([str(prefix / 'bin' / 'python'), os.path.join(ROOT, 'tools', 'check_caffe.py')], check=True,
                       stdout=subprocess.PIPE)


def assert_moves(prefix, place):
    prefix.rename(place)
    assert_works_or_absent(place)
    subprocess.run([str(place / 'bin' / 'caffe'), '--version'], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def dpkg_status():
    if not os.path.exists('/var/lib/dpkg/status'):
        return None
    with open('/var/lib/dpkg/status', 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()


@needs_downloads
@pytest.mark.slow
def test_two_at_once_and_a_damaged_cache(setup, tmp_path, tool):
    """One does the work, the other waits; a damaged download is found (and here cannot be replaced)."""
    environment = without_caffe(tmp_path, dict(CAFFE_PREFIX=str(setup.prefix), CAFFE_DEBIAN_MIRROR=NO_MIRROR))
    both = [subprocess.Popen([os.path.join(ROOT, 'tools', 'setup.sh')], env=dict(os.environ, **environment),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True) for _ in range(2)]
    outputs = sorted((process.communicate()[0] for process in both), key=len)
    assert [process.returncode for process in both] == [0, 0], outputs
    assert 'waiting for another set-up' in outputs[0] and 'unpacking' not in outputs[0]
    assert 'unpacking' in outputs[1]

    cache = tmp_path / 'cache'
    source = os.environ.get('CAFFE_DEB_CACHE') or os.path.join(
        os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'bcnn', 'debs')
    shutil.copytree(source, str(cache))
    with open(str(next(cache.glob('python3-numpy_*.deb'))), 'r+b') as file:
        file.write(b'damaged')
    result = setup(cache=cache, CAFFE_PREFIX=str(tmp_path / 'second' / '.caffe'))
    assert result.returncode == 1
    assert 'damaged downloads' in result.stdout and 'no network' in result.stderr
    assert nothing_left(tmp_path / 'second' / '.caffe')
