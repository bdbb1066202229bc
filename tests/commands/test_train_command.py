"""tools/train.py and tools/status.py as users run them, on small real data."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

import trainhelp
from bcnn.system import places
from bcnn.training import curve
from conftest import ROOT, one_clear_line

TRAIN = os.path.join(ROOT, 'tools', 'train.py')


@pytest.fixture(scope='module')
def data(tmp_path_factory):
    return trainhelp.make_data(tmp_path_factory.mktemp('data'))


def begin(data, out, *args):
    command = [sys.executable, TRAIN, '--net', 'lenet_ip', '--cpu', '--data', data, '--out', str(out),
               '--T', '3', '--snapshot-every', '5', '--jobs', '1']
    return subprocess.Popen(command + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            universal_newlines=True, start_new_session=True)


def test_a_run_stopped_by_the_keyboard_and_by_kill(data, tool, tmp_path):
    """Ctrl-C reaches every process of the terminal at once, kill -9 only one."""
    points = ('--iters', '40', '--eval-points', '10,40')
    process = begin(data, tmp_path / 'whole', *points)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert 'complete, at iteration 40: Standard' in out and err == ''

    process = begin(data, tmp_path / 'run', *points)
    trainhelp.wait_for(lambda: places.stored(str(tmp_path / 'run')))
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130 and 'stopped by SIGINT after iteration' in out and 'Traceback' not in err
    first = places.stored(str(tmp_path / 'run'))[-1][1]

    process = begin(data, tmp_path / 'run', *points)
    trainhelp.wait_for(lambda: places.stored(str(tmp_path / 'run'))[-1][1] > first)
    process.kill()
    process.communicate()

    process = begin(data, tmp_path / 'run', *points)
    assert process.communicate()[1] == '' and process.returncode == 0
    assert trainhelp.result(tmp_path / 'run') == trainhelp.result(tmp_path / 'whole')
    assert [row.n for row in curve.read(str(tmp_path / 'run' / 'curve.csv'))] == ['200', '200']
    shown = tool('status.py', '--runs', tmp_path).stdout.splitlines()
    assert [line.split()[:2] for line in shown] == [['run', 'state'], ['run', 'done'], ['whole', 'done']]


def test_a_terminal_gets_a_bar(data, tmp_path):
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack('HHHH', 30, 160, 0, 0))
    process = subprocess.Popen([sys.executable, TRAIN, '--net', 'lenet_none', '--cpu', '--data', data, '--iters', '20',
                                '--out', str(tmp_path / 'run'), '--eval-points', '10'],
                               stderr=side, stdout=subprocess.DEVNULL)
    os.close(side)
    shown = b''
    try:
        while True:
            shown += os.read(main, 10000)
    except OSError:  # the other end is closed
        os.close(main)
    assert process.wait() == 0
    text = shown.decode('utf-8', 'replace')
    assert re.search(r' 5%\|.+\| run: iteration 1 of 20, loss \d\.\d+, lr 0\.0099\d*, '
                     r'[\d.]+ (it/s|s/it), \d+:\d\d left', text), text


@pytest.mark.parametrize('args, parts', [
    (('--net', 'lenet_al'), ["no net 'lenet_al'; there are: lenet_all"]),
    (('--net', 'lenet_all', '--dataset', 'mnits'), ["no data set 'mnits'; there are: mnist"]),
    (('--net', 'nin', '--dataset', 'mnist'), ["no net 'nin' for mnist"]),
    (('--net', 'lenet_all', '--fraction', '3'), ['--fraction 3', '1/4']),
    (('--net', 'nin', '--fraction', '4'), ['--fraction 4 of cifar10']),
    (('--net', 'lenet_all', '--iters', '0'), ['--iters 0', '1 or more']),
    (('--net', 'lenet_all', '--iters', '5,5'), ['--iters 5,5']),
    (('--net', 'lenet_all', '--iters', 'ten'), ['--iters ten']),
    (('--net', 'dsn', '--iters', '5,5'), ['--iters 5,5', '3 of them, one a stage']),
    (('--net', 'lenet_all', '--seed', '-1'), ['--seed is -1']),
    (('--net', 'lenet_all', '--T', '0'), ['--T is 0']),
    (('--net', 'lenet_all', '--threads', '0'), ['--threads is 0']),
    (('--net', 'lenet_all', '--jobs', '0'), ['--jobs is 0']),
    (('--net', 'lenet_all', '--snapshot-every', '0'), ['--snapshot-every is 0']),
    (('--net', 'lenet_all', '--test-limit', '201'), ['200 images', '--test-limit 201']),
    (('--net', 'lenet_all', '--eval-points', 'lgo'), ['--eval-points lgo', 'log:N']),
    (('--net', 'lenet_all', '--fraction', '4', '--no-prepare'), ['mnist_4: not ready', 'python tools/prepare_data.py mnist']),
])
def test_what_cannot_be_is_one_line(data, tool, tmp_path, args, parts):
    result = tool('train.py', '--cpu', '--data', data, '--out', tmp_path / 'run', *args, python=sys.executable)
    one_clear_line(result, *parts)
    assert result.returncode == 2
    assert not (tmp_path / 'run').exists()  # and nothing was begun


def test_gpu_and_cpu_exclude_each_other(tool):
    result = tool('train.py', '--net', 'nin', '--gpu', '0', '--cpu')
    assert result.returncode == 2 and 'not allowed with' in result.stderr


def test_an_absent_gpu_is_one_line(data, tool, tmp_path):
    result = tool('train.py', '--net', 'lenet_all', '--gpu', '77', '--data', data, '--out', tmp_path / 'run',
                  python=sys.executable)
    one_clear_line(result, 'GPU 77 asked for')
    assert not (tmp_path / 'run').exists()


def test_a_place_that_cannot_be_written_is_one_line(data, tool, tmp_path):
    (tmp_path / 'file').write_text('')
    result = tool('train.py', '--net', 'lenet_none', '--cpu', '--data', data, '--out', tmp_path / 'file' / 'run',
                  python=sys.executable)
    one_clear_line(result, str(tmp_path / 'file'))


def test_divergence_is_one_line_and_exit_1(tmp_path, tool):
    """Raw pixels where the net expects whitened ones, as in the authors' issue 3; a small net's worth of them."""
    images, labels = trainhelp.mnist('train', 128)
    bright = 255 - trainhelp.padded(images, 32, 1)
    trainhelp.make_set(tmp_path / 'data', 'cifar10', train=(bright, labels), test=(bright[:10], labels[:10]))
    begin = time.time()
    result = tool('train.py', '--net', 'lenet_none', '--dataset', 'cifar10', '--cpu', '--data', tmp_path / 'data',
                  '--out', tmp_path / 'run', '--eval-points', 'none', python=sys.executable)
    one_clear_line(result, 'diverged at iteration', 'raw CIFAR-10')
    assert result.returncode == 1 and time.time() - begin < 300
    assert 'diverged' in tool('status.py', '--runs', tmp_path).stdout


@pytest.mark.parametrize('name', ['train.py', 'status.py', 'bench.py'])
def test_help_has_an_example(tool, name):
    result = tool(name, '--help')
    assert result.returncode == 0 and 'example' in result.stdout and 'python tools/' + name in result.stdout
