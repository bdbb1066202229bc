"""The engine against real Caffe: bad files become one line, good ones compute, seeds repeat."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from google.protobuf import text_format

from bcnn import engine, selftest
from bcnn.errors import CaffeError, UserError
from conftest import ROOT

pytestmark = pytest.mark.caffe

INPUT = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 dim: 4 dim: 4 } } }\n'
IP = ('layer { name: "y" type: "InnerProduct" bottom: "x" top: "y" '
      'inner_product_param { num_output: 5 weight_filler { type: "gaussian" std: 1 } } }\n')
DROPOUT = 'layer { name: "d" type: "Dropout" bottom: "y" top: "d" phase: TRAIN }\n'


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        (path.write_bytes if isinstance(text, bytes) else path.write_text)(text)
        return str(path)
    return write


def parse(text):
    return text_format.Parse(text, engine.caffe_pb2.NetParameter())


def save(net, path):
    net.save(str(path))
    return str(path)


# --- nets and weights

def test_loads_from_a_file_and_from_a_message(write):
    engine.set_seed(3)
    first = engine.load_net(write('net.prototxt', INPUT + IP))
    engine.set_seed(3)
    second = engine.load_net(parse(INPUT + IP))
    assert first.params['y'][0].data.shape == (5, 48)
    assert np.array_equal(first.params['y'][0].data, second.params['y'][0].data)


@pytest.mark.parametrize('text, problem', [
    (INPUT.replace('top:', 'tap:'), 'no field named "tap"'),
    ('layer { name: "x" type: "Inptu" top: "x" }', 'Unknown layer type: Inptu'),
    (IP, "Unknown bottom blob 'x'"),
    (INPUT + 'layer { name: "c" type: "Convolution" bottom: "x" top: "c" convolution_param { num_output: 2 } }', 'kernel_size'),
    (INPUT + 'layer { name: "c" type: "Convolution" bottom: "x" top: "c" '
     'convolution_param { num_output: 2 kernel_size: 9 } }' + IP.replace('"y"', '"z"'), 'shape[i] >= 0 (-4 vs. 0) (layer c)'),
    ('layer { name: "d" type: "Data" top: "x" data_param { source: "/no/lmdb" backend: LMDB batch_size: 1 } }', 'No such file'),
    ('layer {', 'Expected'),
    ('\x00\x01\x02', 'Invalid'),
])
def test_a_bad_prototxt_is_one_line_with_its_name(write, text, problem):
    path = write('bad net.prototxt', text)
    with pytest.raises(UserError) as caught:
        engine.load_net(path)
    message = str(caught.value)
    assert message.startswith(path + ': ') and '\n' not in message
    assert problem in message


def test_missing_files_are_named(write, tmp_path):
    good = write('net.prototxt', INPUT + IP)
    for arguments in [(str(tmp_path / 'none.prototxt'),), (str(tmp_path),), (good, str(tmp_path / 'none.caffemodel'))]:
        with pytest.raises(UserError, match='no such file') as caught:
            engine.load_net(*arguments)
        assert arguments[-1] in str(caught.value)


def test_weights_come_back_bit_for_bit(tmp_path):
    engine.set_seed(1)
    net = engine.load_net(parse(INPUT + IP))
    path = save(net, tmp_path / 'w.caffemodel')
    engine.set_seed(2)
    again = engine.load_net(parse(INPUT + IP), path)
    for old, new in zip(net.params['y'], again.params['y']):
        assert np.array_equal(old.data, new.data)


def test_weights_that_do_not_fit_are_refused(tmp_path):
    small = save(engine.load_net(parse(INPUT + IP)), tmp_path / 'small.caffemodel')
    other = IP.replace('"y"', '"z"').replace('5', '6')
    large = save(engine.load_net(parse(INPUT + IP + other)), tmp_path / 'large.caffemodel')
    with pytest.raises(UserError, match='no weights for z'):
        engine.load_net(parse(INPUT + IP + other), small)
    with pytest.raises(UserError, match='weights for z, which the net does not have'):
        engine.load_net(parse(INPUT + IP), large)
    assert engine.load_net(parse(INPUT + IP), large, extra_weights=True)
    with pytest.raises(UserError, match='layer y has weights of shape 5x48 and 5, the net needs 7x48 and 7'):
        engine.load_net(parse(INPUT + IP.replace('5', '7')), small)


def test_weights_of_the_old_format_fit(tmp_path):
    """V1 layers with four-dimensional blobs, as the model zoo published them."""
    model = engine.caffe_pb2.NetParameter()
    layer = model.layers.add(name='y', type=engine.caffe_pb2.V1LayerParameter.INNER_PRODUCT, bottom=['x'], top=['y'])
    layer.inner_product_param.num_output = 5
    values = np.arange(5 * 48, dtype=np.float32)
    layer.blobs.add(num=1, channels=1, height=5, width=48, data=values)
    layer.blobs.add(num=1, channels=1, height=1, width=5, data=[9] * 5)
    path = tmp_path / 'old.caffemodel'
    path.write_bytes(model.SerializeToString())
    net = engine.load_net(parse(INPUT + IP), str(path))
    assert np.array_equal(net.params['y'][0].data, values.reshape(5, 48))
    assert np.array_equal(net.params['y'][1].data, [9] * 5)


@pytest.mark.parametrize('content', [b'', b'hello world, this is no model', b'<html>404</html>', b'\xff' * 100])
def test_a_file_that_is_no_caffemodel_is_refused(write, content):
    """Caffe itself takes some of these without a word and leaves the weights random."""
    path = write('w.caffemodel', content)
    with pytest.raises(UserError) as caught:
        engine.load_net(parse(INPUT + IP), path)
    assert path in str(caught.value)


def test_a_damaged_caffemodel_is_refused(write, tmp_path):
    whole = open(save(engine.load_net(parse(INPUT + IP)), tmp_path / 'w.caffemodel'), 'rb').read()
    for length in (1, 10, len(whole) // 2, len(whole) - 1):
        with pytest.raises(UserError):
            engine.load_net(parse(INPUT + IP), write('cut.caffemodel', whole[:length]))


def test_a_bad_solver_is_one_line(write):
    net = write('net.prototxt', INPUT + IP)
    for text, problem in [('nett: "x"', 'no field named "nett"'), ('net: "%s" type: "SGDX"' % net, 'Unknown solver type'),
                          ('net: "/no/net.prototxt"', '/no/net.prototxt')]:
        path = write('solver.prototxt', text)
        with pytest.raises(UserError) as caught:
            engine.load_solver(path)
        assert str(caught.value).startswith(path) and problem in str(caught.value)


# --- device and seeds

def anew(code):
    """What a program prints that begins with a Python of its own: the device of a process is settled once."""
    code = 'import os, sys; sys.path.insert(0, %r); from bcnn import engine\n%s' % (ROOT, textwrap.dedent(code))
    env = {name: value for name, value in os.environ.items() if name != 'CUDA_VISIBLE_DEVICES'}  # which this one has set
    return subprocess.run([sys.executable, '-c', code], env=env, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def test_a_gpu_is_refused_where_there_is_none():
    """Which is found out without opening it: afterwards this process may still become one of the CPU's, or fork."""
    assert 'GPU 0 asked for' in anew('''
        if engine.has_gpu():
            print('GPU 0 asked for and there')
        else:
            try:
                engine.require_device(0)
            except engine.UserError as error:
                assert error.exit_code == 2
                print(error)
        assert engine._device == []
        engine.use_device(None)
        assert not engine.on_gpu()
        ''')


@pytest.mark.parametrize('first', ['engine.use_device(None)', 'engine.set_seed(1)', 'engine.load_net(net)',
                                   'engine.call(lambda: None); engine.set_seed(1)'])
def test_a_process_of_the_cpu_and_its_children_open_no_gpu(first):
    """A Caffe with CUDA would have opened one at its first call, which no fork survives; so GPUs are out of its sight."""
    assert anew('''
        from google.protobuf import text_format
        net = text_format.Parse(engine.ON_GPU, engine.caffe_pb2.NetParameter())
        assert 'CUDA_VISIBLE_DEVICES' not in os.environ
        %s
        assert os.environ['CUDA_VISIBLE_DEVICES'] == ''
        for open_it in (lambda: engine.use_device(0), lambda: engine.call(engine.use_device, 0)):
            try:
                open_it()
            except RuntimeError as error:
                print(error)
        ''' % first).count('has begun with the CPU') == 2


def test_the_same_seed_gives_the_same_masks():
    net = engine.load_net(parse(INPUT + IP + DROPOUT))

    def masks(seed):
        engine.set_seed(seed)
        net.blobs['x'].data[...] = 1
        return net.forward()['d'].copy()

    assert np.array_equal(masks(5), masks(5))
    assert not np.array_equal(masks(5), masks(6))


# --- the child process

def test_a_child_gives_back_results_and_exceptions():
    assert engine.call(np.add, 2, 3) == 5
    with pytest.raises(UserError, match='mine'):
        engine.call(fail, UserError('mine'))
    with pytest.raises(ZeroDivisionError) as caught:
        engine.call(fail, ZeroDivisionError('bug'))
    assert 'in fail' in str(caught.value.__cause__)  # where it happened is not lost


def fail(error):
    raise error


def test_a_result_that_cannot_travel_is_said():
    with pytest.raises(RuntimeError, match='cannot leave'):
        engine.call(lambda: lambda: 1)


@pytest.mark.parametrize('death, message', [
    (lambda: os.kill(os.getpid(), signal.SIGKILL), 'signal 9.*memory'),
    (lambda: os.kill(os.getpid(), signal.SIGSEGV), 'signal 11'),
    (lambda: os._exit(3), 'exit code 3'),
    (lambda: engine.caffe.Net('/no/such', 0), 'Could not open'),
])
def test_a_dead_child_is_an_error(death, message):
    with pytest.raises((CaffeError, RuntimeError), match=message):
        engine.call(death)


def test_a_child_computes_with_a_net_of_its_parent():
    net = engine.load_net(parse(INPUT + IP))
    net.blobs['x'].data[...] = 1
    assert np.array_equal(engine.call(lambda: net.forward()['y'].copy()), net.forward()['y'])


def send_once_there(path, number):
    """Sends this process a signal as soon as a child has written a file: a moment earlier it would end the tests."""
    def wait():
        while not path.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    threading.Thread(target=wait, daemon=True).start()


def appear_and_sleep(path):
    path.write_text('')
    time.sleep(30)


def test_signals_reach_the_child_and_end_the_call(tmp_path):
    send_once_there(tmp_path / 'first', signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        engine.call(appear_and_sleep, tmp_path / 'first')
    send_once_there(tmp_path / 'second', signal.SIGTERM)
    with pytest.raises(SystemExit) as caught:
        engine.call(appear_and_sleep, tmp_path / 'second')
    assert caught.value.code == 143


def test_a_killed_parent_takes_its_child_along(tmp_path):
    script = ('import sys, time; sys.path.insert(0, %r); from bcnn import engine\n'
              'def work():\n'
              '    open(%r, "w").write(str(__import__("os").getpid())); time.sleep(60)\n'
              'engine.call(work)' % (ROOT, str(tmp_path / 'pid')))
    parent = subprocess.Popen([sys.executable, '-c', script])
    child = int(wait_for(lambda: (tmp_path / 'pid').exists() and (tmp_path / 'pid').read_text()))
    parent.kill()
    parent.wait()
    assert wait_for(lambda: not alive(child))


def wait_for(condition, seconds=20):
    deadline = time.time() + seconds
    while time.time() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError('waited %s s in vain' % seconds)


def alive(pid):
    try:
        with open('/proc/%d/stat' % pid) as file:
            return file.read().rsplit(')', 1)[1].split()[0] != 'Z'
    except FileNotFoundError:
        return False


def test_glog_is_silent_but_python_is_heard(tmp_path):
    """Python's stderr in a child is the real one; what C++ code writes to descriptor 2 is not."""
    script = ('import sys, os; sys.path.insert(0, %r); from bcnn import engine\n'
              'def work():\n'
              '    os.write(2, b"from C++"); print("from Python", file=sys.stderr)\n'
              'engine.call(work)' % ROOT)
    result = subprocess.run([sys.executable, '-c', script], stderr=subprocess.PIPE, universal_newlines=True)
    assert result.stderr == 'from Python\n'


# --- reading an abort

@pytest.mark.parametrize('log, words', [
    ('', ''),
    ('WARNING: Logging before InitGoogleLogging()\nF1116 03:00:00.5 77 net.cpp:70] Check failed: a == b (1 vs. 2) no\n'
     '*** Check failure stack trace: ***\n    @ 0x7f\n', 'Check failed: a == b (1 vs. 2) no'),
    ('F1116 03:00:00.5 77 x.cpp:1] two\nlines\n*** Check failure', 'two lines'),
    ('[libprotobuf ERROR google/protobuf/text_format.cc:309] Error parsing: 1:2: bad\nF1116 03:00:00 7 u.cpp:9] Check failed\n',
     'Error parsing: 1:2: bad'),
    ("terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n", 'std::bad_alloc'),
    ('nothing of interest\n', ''),
])
def test_last_words(log, words):
    assert engine.last_words(log) == words


# --- what it is

def test_describe_names_what_computed():
    about = engine.describe()
    assert about['caffe'].startswith('1.0') and about['threads'] >= 1
    assert about['blas'] in ('openblas', 'mkl', 'blis', 'atlas')


def test_selftest_passes_and_can_fail():
    assert selftest.check().startswith('Caffe 1.0')
    with pytest.raises(UserError, match='BLAS'):
        selftest.check(blas='no-such-blas')


def test_workers_share_the_tasks_and_give_all_results():
    def make():
        mine = os.getpid()
        return lambda task: (mine, task * task)

    results = dict(engine.work(make, range(20), jobs=2))
    assert {task: square for task, (_, square) in results.items()} == {n: n * n for n in range(20)}
    assert len({pid for pid, _ in results.values()} - {os.getpid()}) == 2


def test_a_dying_worker_ends_the_others():
    def make():
        def work(task):
            if task == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.01)
            return os.getpid()
        return work

    done = {}
    with pytest.raises(CaffeError, match='signal 9'):
        for task, pid in engine.work(make, range(100), jobs=2):
            done[task] = pid
    assert len(done) < 100
    assert all(not alive(pid) for pid in done.values())
