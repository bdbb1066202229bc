"""bcnn.files: whole files or none, locks that a kill frees, and disk errors in plain words."""

import os
import signal
import subprocess
import time

import pytest

from bcnn.errors import UserError
from bcnn.system import files, locks
from datahelp import python, snapshot


def write(path, text):
    with open(str(path), 'w') as file:
        file.write(text)


@pytest.fixture
def small_disk(tmp_path):
    """A real disk of 1 MB."""
    place = tmp_path / 'disk'
    place.mkdir()
    if subprocess.call(['mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', str(place)], stderr=subprocess.DEVNULL):
        pytest.skip('mounting a tmpfs needs root')
    yield place
    subprocess.check_call(['umount', str(place)])


def test_a_file_appears_whole_with_the_usual_permissions(tmp_path):
    with files.atomic(tmp_path / 'a') as temporary:
        write(temporary, 'new')
        assert not (tmp_path / 'a').exists()
    assert snapshot(tmp_path).keys() == {'a'} and (tmp_path / 'a').read_text() == 'new'
    write(tmp_path / 'usual', '')
    assert (tmp_path / 'a').stat().st_mode == (tmp_path / 'usual').stat().st_mode


@pytest.mark.parametrize('error', [ValueError, KeyboardInterrupt, SystemExit])
def test_a_block_that_fails_changes_nothing(tmp_path, error):
    write(tmp_path / 'a', 'old')
    (tmp_path / 'f').mkdir()
    write(tmp_path / 'f' / 'x', 'old')
    before = snapshot(tmp_path)
    with pytest.raises(error), files.atomic(tmp_path / 'a') as temporary:
        write(temporary, 'new')
        raise error
    with pytest.raises(error), files.atomic(tmp_path / 'f', folder=True) as temporary:
        write(os.path.join(temporary, 'y'), 'new')
        raise error
    assert snapshot(tmp_path) == before


def test_a_folder_is_replaced_as_a_whole(tmp_path):
    for text in ('first', 'second'):
        with files.atomic(tmp_path / 'f', folder=True) as temporary:
            write(os.path.join(temporary, text), text)
        assert [path.name for path in tmp_path.iterdir()] == ['f']
        assert [path.name for path in (tmp_path / 'f').iterdir()] == [text]


def test_sweep_removes_what_a_kill_left_and_nothing_else(tmp_path):
    write(tmp_path / '.other.tmp.1', '')
    write(tmp_path / 'a.tmp.1', '')
    before = snapshot(tmp_path)
    code = ('import sys, time; from bcnn.system import files, locks\n'
            'with files.atomic(sys.argv[1], folder=True):\n print("in", flush=True); time.sleep(60)')
    process = python(code, tmp_path / 'a')
    assert process.stdout.readline() == 'in\n'
    process.kill()
    process.wait()
    assert snapshot(tmp_path) != before
    files.sweep(tmp_path / 'a')
    assert snapshot(tmp_path) == before


HOLD = ('import sys, time; from bcnn.system import files, locks\n'
        'with locks.lock(sys.argv[1], lambda _: print("waiting", flush=True)):\n'
        ' print("got it", flush=True); time.sleep(float(sys.argv[2]))')


def test_the_lock_is_waited_for_and_a_kill_frees_it(tmp_path):
    first = python(HOLD, tmp_path / 'lock', 60)
    assert first.stdout.readline() == 'got it\n'
    second = python(HOLD, tmp_path / 'lock', 0)
    assert second.stdout.readline() == 'waiting\n'
    time.sleep(0.2)
    assert second.poll() is None
    first.send_signal(signal.SIGKILL)
    assert second.communicate(timeout=10)[0] == 'got it\n'
    assert first.wait() == -9 and second.returncode == 0
    assert snapshot(tmp_path) == {}


def test_who_waits_gets_the_lock_where_its_folder_was_taken_away(tmp_path):
    """Two downloads of one set, and no source works: the first leaves the folder empty, so that it goes."""
    folder = tmp_path / 'downloads'
    with files.folder(folder), locks.lock(folder / 'lock'):
        second = python(HOLD, folder / 'lock', 0)
        assert second.stdout.readline() == 'waiting\n'
    assert second.communicate(timeout=10)[0] == 'got it\n' and second.returncode == 0


def test_many_processes_never_hold_the_lock_together(tmp_path):
    code = ('import os, sys; from bcnn.system import files, locks\n'
            'for _ in range(40):\n'
            ' with locks.lock(sys.argv[1] + "/lock"):\n'
            '  os.mkdir(sys.argv[1] + "/alone"); os.rmdir(sys.argv[1] + "/alone")')
    processes = [python(code, tmp_path) for _ in range(4)]
    for process in processes:
        assert process.communicate(timeout=60)[0] == '' and process.returncode == 0
    assert snapshot(tmp_path) == {}


def test_a_full_disk(small_disk):
    with pytest.raises(UserError, match='no space left.*%s' % (small_disk / 'a')):
        with files.atomic(small_disk / 'a') as temporary:
            write(temporary, 'x' * (2 << 20))
    assert snapshot(small_disk) == {}
    with pytest.raises(UserError, match='no space left: .* has [01] MB free, 5 MB are needed'):
        files.require_space(str(small_disk / 'not' / 'yet'), 5 << 20)


def test_a_read_only_disk(small_disk):
    subprocess.check_call(['mount', '-o', 'remount,ro', str(small_disk)])
    with pytest.raises(UserError, match='read-only'), locks.lock(small_disk / 'lock'):
        pass
    with pytest.raises(UserError, match='read-only'), files.atomic(small_disk / 'a'):
        pass
    with pytest.raises(UserError, match='read-only'), files.folder(small_disk / 'a' / 'b'):
        pass


def test_an_error_about_another_file_is_not_called_ours(tmp_path):
    error = PermissionError(13, 'Permission denied', '/some/secret')
    with pytest.raises(PermissionError) as caught, files.atomic(tmp_path / 'a'):
        raise error
    assert caught.value is error


def test_folder_takes_away_what_it_made_if_that_stays_empty(tmp_path):
    with files.folder(tmp_path / 'a' / 'b'):
        assert (tmp_path / 'a' / 'b').is_dir()
    assert snapshot(tmp_path) == {}
    with files.folder(tmp_path / 'a' / 'b'):
        write(tmp_path / 'a' / 'b' / 'x', '')
    assert 'a/b/x' in snapshot(tmp_path)


def test_a_file_where_a_folder_should_be(tmp_path):
    write(tmp_path / 'a', '')
    with pytest.raises(UserError, match='is a file, not a folder'), files.folder(tmp_path / 'a' / 'b'):
        pass
    with pytest.raises(UserError, match='is a file, not a folder'):
        files.make_folder(tmp_path / 'a' / 'b')


def test_a_folder_of_somebody_elses(tmp_path):
    """As it is in a container whose user is not that of the mounted folder."""
    tmp_path.chmod(0o555)
    code = ('import os, sys; from bcnn.errors import UserError; from bcnn.system import files\n'
            'if os.geteuid() == 0: os.setuid(65534)\n'
            'try: files.make_folder(sys.argv[1] + "/runs/quick")\n'
            'except UserError as error: print(error)')
    said = python(code, tmp_path).communicate()[0]
    assert 'cannot write %s/runs/quick: no permission' % tmp_path in said and '--user' in said and len(said.splitlines()) == 1
