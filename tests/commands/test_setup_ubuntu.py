"""tools/setup.sh on machines like Ubuntu: Debian's keyring and a mirror from what the machine's own archive carries.

Each machine here is a folder in the place of / and an archive of a few packages, with an apt that reads it; nothing
needs root or the network. With Ubuntu's own archive none of this was run.
"""

import hashlib
import os
import shutil
import subprocess

import pytest
from test_setup import nothing_left, setup  # noqa: F401  (a fixture)

from conftest import one_clear_line

KEYRING = 'usr/share/keyrings/debian-archive-keyring.gpg'
TEMPLATE = 'usr/share/python-apt/templates/Debian.info'
MIRROR = 'http://127.0.0.1:1/debian'
INFO = '''ChangelogURI: http://127.0.0.1:1/changelogs/%s
Suite: {series}-security
BaseURI: http://127.0.0.1:1/debian-security/

Suite: {series}
RepositoryType: deb
BaseURI: http://127.0.0.1:1/debian/
MirrorsFile: Debian.mirrors
'''

pytestmark = pytest.mark.skipif(not shutil.which('apt-get'), reason='no apt-get: this way is for Debian and Ubuntu')


@pytest.fixture
def machine(tmp_path, setup):  # noqa: F811
    """Makes a machine, and gives a function that runs setup.sh on it."""
    def make(system='ubuntu', archive=('debian-archive-keyring', 'python-apt-common'), origin='Ubuntu', name='ubuntu',
             files=()):
        root = tmp_path / 'machine'
        put(root / 'etc/os-release', 'ID=%s\nID_LIKE=debian\n' % system)
        for path, text in files:
            put(root / path, text)
        config = apt(tmp_path, archive_of(tmp_path / 'archives' / name, archive, origin))
        return lambda **env: setup(cache=tmp_path / 'empty', CAFFE_TEST_MACHINE=str(root), APT_CONFIG=str(config),
                                   **dict({'CAFFE_DEBIAN_MIRROR': ''}, **env))
    return make


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


CONTENT = {'debian-archive-keyring': (KEYRING, 'keys'), 'python-apt-common': (TEMPLATE, INFO)}


def archive_of(folder, packages, origin):
    """An archive with some of the two packages."""
    folder.mkdir(parents=True)
    listed = ''
    for package in packages:
        content, made = folder.parent / package, folder / (package + '_7_all.deb')
        put(content / CONTENT[package][0], CONTENT[package][1])
        control = 'Package: %s\nVersion: 7\nArchitecture: all\nMaintainer: nobody\nDescription: none\n' % package
        put(content / 'DEBIAN/control', control)
        subprocess.run(['dpkg-deb', '-b', str(content), str(made)], check=True, stdout=subprocess.DEVNULL)
        data = made.read_bytes()
        listed += '%sFilename: ./%s\nSize: %d\nSHA256: %s\n\n' % (control, made.name, len(data),
                                                                  hashlib.sha256(data).hexdigest())
    (folder / 'Packages').write_text(listed)
    (folder / 'Release').write_text('Origin: %s\nLabel: %s\n' % (origin, origin))
    return folder


def apt(tmp_path, archive):
    """The settings of an apt whose only source is this archive, updated."""
    place = tmp_path / 'apt'
    for folder in ('state/lists/partial', 'cache/archives/partial'):
        (place / folder).mkdir(parents=True)
    put(place / 'sources.list', 'deb [trusted=yes] file:%s ./\n' % archive)
    put(place / 'status', '')
    put(place / 'apt.conf', '\n'.join('%s "%s";' % item for item in (
        ('Dir::Etc::main', '/dev/null'), ('Dir::Etc::parts', '/dev/null'), ('Dir::Etc::sourcelist', place / 'sources.list'),
        ('Dir::Etc::sourceparts', '/dev/null'), ('Dir::State', place / 'state'), ('Dir::State::status', place / 'status'),
        ('Dir::Cache', place / 'cache'), ('APT::Sandbox::User', ''))))
    subprocess.run(['apt-get', '-qq', 'update'], check=True, env=dict(os.environ, APT_CONFIG=str(place / 'apt.conf')))
    return place / 'apt.conf'


def test_both_come_from_the_machines_own_archive(machine, setup):  # noqa: F811
    result = machine()()
    assert result.stdout.splitlines()[:2] == [
        "setup: keyring: of debian-archive-keyring_7_all.deb, from this machine's own signed archive",
        "setup: mirror: %s, of python-apt-common_7_all.deb, from this machine's own signed archive" % MIRROR]
    one_clear_line(result, 'no network', 'cannot reach the mirror %s' % MIRROR)
    assert nothing_left(setup.prefix)


def test_what_is_installed_is_taken_as_it_is(machine):
    result = machine(archive=(), files=[(KEYRING, 'keys'), (TEMPLATE, INFO)])()
    assert result.stdout.splitlines()[0] == 'setup: mirror: %s, of python-apt-common, which is installed' % MIRROR
    assert 'keyring:' not in result.stdout
    one_clear_line(result, 'cannot reach the mirror %s' % MIRROR)


def test_settings_come_first(machine, tmp_path):
    put(tmp_path / 'my keyring.gpg', 'keys')
    result = machine(files=[(TEMPLATE, INFO)])(CAFFE_DEBIAN_MIRROR='http://127.0.0.1:1/mine',
                                               CAFFE_DEBIAN_KEYRING=str(tmp_path / 'my keyring.gpg'))
    assert 'keyring:' not in result.stdout and 'mirror:' not in result.stdout
    one_clear_line(result, 'cannot reach the mirror http://127.0.0.1:1/mine')


@pytest.mark.parametrize('archive, words', [
    ((), ('no keyring', 'install debian-archive-keyring', 'CAFFE_DEBIAN_KEYRING', 'Unable to locate package')),
    (('debian-archive-keyring',), ('no Debian mirror', 'CAFFE_DEBIAN_MIRROR', 'python-apt-common'))])
def test_an_archive_without_them_is_one_line_that_names_the_setting(machine, setup, archive, words):  # noqa: F811
    one_clear_line(machine(archive=archive)(), *words)
    assert nothing_left(setup.prefix)


def test_a_template_without_a_mirror_is_one_line(machine):
    one_clear_line(machine(files=[(KEYRING, 'keys'), (TEMPLATE, 'BaseURI: http://127.0.0.1:1/debian-security/\n')])(),
                   'names no Debian mirror', 'CAFFE_DEBIAN_MIRROR')


@pytest.mark.parametrize('system, origin, name, taken', [
    ('ubuntu', 'Jenkins', 'debian', False),       # somebody's packages for Debian
    ('debian', 'Jenkins', 'debian', True),        # no lists that tell origins yet would look like this
    ('ubuntu', 'Debian', 'mirror', True),         # Debian under another name
    ('linuxmint', 'Ubuntu', 'packages', False)])
def test_debians_mirror_is_known_by_its_origin_and_elsewhere_than_on_ubuntu_by_its_name(machine, system, origin, name, taken):
    result = machine(system=system, origin=origin, name=name, files=[(KEYRING, 'keys'), (TEMPLATE, INFO)])()
    assert ('mirror:' not in result.stdout) == taken
    one_clear_line(result, 'archives/%s' % name if taken else MIRROR)
