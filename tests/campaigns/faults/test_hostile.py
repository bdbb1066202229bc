"""Damaged and hostile files: one line, within bounds, nothing run, nothing written elsewhere. Many more: inputs.py."""

import io
import os
import random
import sys
import tarfile
import time
import zipfile

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import formats  # noqa: E402
import mutate  # noqa: E402

import inputs  # noqa: E402
from bcnn import engine  # noqa: E402
from bcnn.data import archives  # noqa: E402
from bcnn.errors import UserError  # noqa: E402
from bcnn.inputs import pictures, preprocessing, sources  # noqa: E402
from bcnn.system import npz  # noqa: E402
from conftest import one_clear_line  # noqa: E402

SLOW = ('records of an evaluation', 'records of a run')


@pytest.fixture(scope='module')
def readers(tmp_path_factory):
    """A reader for each format, made when first asked for."""
    made, place = {}, tmp_path_factory.mktemp('formats')

    def get(name):
        if name not in made:
            made[name] = inputs.ALL[name](str(place / str(len(made))))
        return made[name]
    return get


@pytest.mark.parametrize('name', sorted(inputs.ALL))
def test_nothing_but_one_line_refusals(readers, name, monkeypatch):
    monkeypatch.setenv('BCNN_MEMORY', '3G')
    reader = readers(name)
    few = getattr(reader, 'forks', False) or name in SLOW

    @settings(max_examples=6 if few else 60, database=None)
    @given(st.integers(0, 2 ** 32), st.binary(max_size=40))
    def check(seed, noise):
        rng = random.Random(seed)
        for data in (mutate.mutated(rng.choice(reader.samples), rng, reader.samples), noise)[:1 if few else 2]:
            _, problem = inputs.attempt(reader, data)
            assert problem is None, (problem, data[:200])

    check()


def test_whole_files_are_taken(readers):
    """A reader that refuses everything would pass the test above."""
    for name in ('idx', 'CIFAR binary', 'PNG of CIFAR', 'JSON labels', 'gzip', 'manifest.json', 'zca.npz', 'npz images', 'pictures',
                 'labels.csv', 'mean file', 'LMDB', 'prototxt', 'prototxt in Caffe', 'caffemodel', 'solverstate', 'curve.csv'):
        reader = readers(name)
        assert any(inputs.attempt(reader, sample) == (False, None) for sample in reader.samples), name


def test_the_watcher_sees(readers, tmp_path):
    class Bad(formats.Format):
        def make(self):
            return [b'']

        def feed(self, data):
            if data == b'write':
                open(os.path.join(os.path.expanduser('~'), '.no', 'such', 'place'), 'w')
            if data == b'run':
                os.system('true')
            if data == b'say':
                os.write(2, b'libfoo: error\n')
            raise {b'two': UserError('two\nlines'), b'bug': KeyError('x')}.get(data, UserError('fine'))

    reader = Bad(str(tmp_path))
    assert inputs.attempt(reader, b'') == (True, None)
    for data in (b'write', b'run', b'say', b'two', b'bug') if hasattr(sys, 'addaudithook') else (b'say', b'two', b'bug'):
        assert inputs.attempt(reader, data)[1], data


# --- memory

BIG = 'layer { name: "y" type: "InnerProduct" bottom: "x" top: "y" inner_product_param { num_output: %d } }'
INPUT = 'layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 1 dim: %d } } }\n'


@pytest.mark.parametrize('width, outputs', [(40000, 50000), (10 ** 6, 10 ** 6), (2 * 10 ** 9, 1), (1, 2 * 10 ** 9)])
def test_a_net_that_claims_more_than_there_is(tmp_path, monkeypatch, width, outputs):
    monkeypatch.setenv('BCNN_MEMORY', '1G')
    path = tmp_path / 'net.prototxt'
    path.write_text(INPUT % width + BIG % outputs)
    begin = time.monotonic()
    with pytest.raises(UserError, match=r'more memory than the 1024 MB.*BCNN_MEMORY|INT_MAX') as caught:
        engine.load_net(str(path))
        engine.call(lambda: engine.caffe.Net(str(path), engine.TEST).forward() and None)
    assert '\n' not in str(caught.value) and time.monotonic() - begin < 60


def test_a_caffemodel_that_claims_a_million_million_elements(tmp_path, tool, monkeypatch):
    """10^12 weights in a file of a few bytes: through the whole command, in one line."""
    model = engine.caffe_pb2.NetParameter()
    for name in ('conv1', 'conv2', 'ip1', 'ip2'):
        layer = model.layer.add(name=name, type='InnerProduct')
        layer.blobs.add().shape.dim.extend([10 ** 6, 10 ** 6])
        layer.blobs.add().shape.dim.extend([10 ** 12])
    (tmp_path / 'w.caffemodel').write_bytes(model.SerializeToString())
    np.savez(str(tmp_path / 'x.npz'), images=np.zeros((2, 1, 28, 28), np.uint8), labels=np.zeros(2, int))
    result = tool('mc_eval.py', '--net', 'lenet_ip', '--weights', tmp_path / 'w.caffemodel', '--data', tmp_path / 'x.npz',
                  '--out', tmp_path / 'out', python=sys.executable)
    one_clear_line(result, 'w.caffemodel', '1000000x1000000')


def test_weights_that_fit_by_name_but_not_in_memory(tmp_path, monkeypatch):
    monkeypatch.setenv('BCNN_MEMORY', '700M')
    path = tmp_path / 'net.prototxt'
    path.write_text(INPUT % 20000 + BIG % 20000)
    with pytest.raises(UserError, match='needs more memory'):
        engine.load_net(str(path))


def test_an_npz_that_unpacks_to_more_than_there_is(tmp_path, monkeypatch):
    monkeypatch.setenv('BCNN_MEMORY', '200M')
    path = str(tmp_path / 'bomb.npz')
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as packed, packed.open('images.npy', 'w', force_zip64=True) as file:
        for _ in range(300):
            file.write(bytes(1 << 20))
    with pytest.raises(UserError, match='unpacks to 300 MB'):
        sources.open_images(path)


def test_a_tar_header_that_is_endless(tmp_path, monkeypatch):
    """A name of 200 MB, which tarfile would read whole before anybody could look at it."""
    monkeypatch.setattr(archives, 'MAX_BYTES', 1 << 20)
    long = tarfile.TarInfo('././@LongLink')
    long.type, long.size = tarfile.GNUTYPE_LONGNAME, 200 << 20
    import gzip
    with gzip.open(str(tmp_path / 'a.tgz'), 'wb', 1) as file:
        file.write(long.tobuf(tarfile.GNU_FORMAT))
        for _ in range(200):
            file.write(bytes(1 << 20))
    with pytest.raises(UserError, match='more than 1 MB'):
        archives.members(str(tmp_path / 'a.tgz'), {'x': 1})


# --- no code from data

class Evil:
    """Unpickled, it would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize('name', ['x.npz', 'block.npz', 'zca.npz'])
def test_a_pickle_in_an_npz_is_not_run(tmp_path, name):
    from bcnn.data import whiten
    path, canary = str(tmp_path / name), str(tmp_path / 'canary')
    np.savez(path, images=np.array([Evil(canary)], dtype=object), labels=np.array([Evil(canary)], dtype=object),
             settings=np.array([Evil(canary)], dtype=object), mean=np.zeros(1), transform=np.zeros((1, 1)))
    for read in (sources.open_images, whiten.load, lambda path: npz.read(path, 'x')):
        with pytest.raises(UserError):
            read(path)
    assert not os.path.exists(canary)


def test_a_bare_pickle_and_a_bare_array_are_no_npz(tmp_path):
    import pickle
    canary = str(tmp_path / 'canary')
    (tmp_path / 'x.npz').write_bytes(pickle.dumps(Evil(canary)))
    with pytest.raises(UserError, match='not readable'):
        sources.open_images(str(tmp_path / 'x.npz'))
    with open(str(tmp_path / 'x.npz'), 'wb') as file:
        np.save(file, np.arange(3))
    with pytest.raises(UserError, match='not readable'):
        sources.open_images(str(tmp_path / 'x.npz'))
    assert not os.path.exists(canary)


def test_a_picture_that_is_a_program_is_refused():
    """PIL reads EPS by starting Ghostscript on it."""
    from PIL import Image
    out = io.BytesIO()
    Image.new('RGB', (4, 4)).save(out, 'EPS')
    with pytest.raises(UserError, match='a EPS, which is not one of PNG'):
        pictures.decode(out.getvalue(), 'x.png')


# --- found by the fuzzer, or on the way

@pytest.mark.parametrize('table', [b'a.png,\xc2\xb2\n', b'a.png,1\0\n', b'\xff\xfe,1\n', b'a\0.png,1\n', b'a.png,99999999999\n', b'"a.png,1\n'])
def test_labels_that_are_no_numbers(tmp_path, table):
    (tmp_path / 'a.png').write_bytes(b'')
    (tmp_path / 'labels.csv').write_bytes(table)
    with pytest.raises(UserError, match='labels.csv'):
        sources.open_images(str(tmp_path))


@pytest.mark.filterwarnings('error')  # numpy's would be lines of their own
def test_a_mean_of_another_size_is_one_line():
    for shape in ((3, 4, 4), (3, 0, 0), (1, 2, 3)):
        with pytest.raises(UserError, match='the mean is of'):
            preprocessing.apply(preprocessing.Transform(1.0, np.zeros(shape, np.float32), None), np.zeros((2, 3, 2, 2), np.uint8))
    same = preprocessing.apply(preprocessing.Transform(1.0, np.ones((3, 1, 1), np.float32), None), np.ones((2, 3, 2, 2), np.uint8))
    assert not same.any()


def test_an_npz_with_parts_that_are_no_arrays(tmp_path):
    path = str(tmp_path / 'x.npz')
    with zipfile.ZipFile(path, 'w') as packed:
        packed.writestr('images', b'hello')
    with pytest.raises(UserError, match='no array'):
        npz.read(path, 'x')


def test_a_name_of_two_lines_is_refused_in_one(tmp_path):
    (tmp_path / 'labels.csv').write_text('"a\nb.png",1\n')
    with pytest.raises(UserError) as caught:
        sources.open_images(str(tmp_path))
    assert '\n' not in str(caught.value)


def test_a_truncated_lmdb_is_one_line(readers, tmp_path):
    """LMDB's library ends the process with SIGBUS where a page is missing."""
    whole = readers('LMDB').samples[0]
    place = tmp_path / 'set'
    place.mkdir()
    refused = 0
    for length in (100, 4096, 8192, len(whole) // 2, len(whole) - 4096):
        (place / 'data.mdb').write_bytes(whole[:length])
        try:
            sources.open_images(str(place)).scan(40)
        except UserError as error:
            assert 'not a readable LMDB' in str(error)
            refused += 1
    assert refused >= 4


def test_a_prototxt_with_names_that_are_no_text(tmp_path):
    path = tmp_path / 'x.prototxt'
    path.write_bytes(formats.NET.encode().replace(b'"conv"', b'"\xff\xfe"'))
    with pytest.raises(UserError, match='not a prototxt'):
        engine.load_net(str(path))


def test_a_caffemodel_with_names_that_are_no_text(readers, tmp_path, capfd):
    whole = readers('caffemodel').samples[0]
    (tmp_path / 'w').write_bytes(whole.replace(b'conv', b'\xff\xfe\xff\xfe'))
    with pytest.raises(UserError, match='not a caffemodel, or damaged'):
        engine.weight_shapes(str(tmp_path / 'w'))
    assert capfd.readouterr().err == ''  # where protobuf would have complained


@pytest.mark.parametrize('words', [
    ('--gpu', '9' * 22), ('--mode', 'replicate', '--T', '9' * 14), ('--seed', '9' * 30), ('--batch', '-' + '9' * 30)])
def test_numbers_that_are_too_large_are_one_line(tool, words):
    result = tool('mc_eval.py', '--net', 'lenet_ip', *words, python=sys.executable)
    one_clear_line(result, words[-2], 'below 2147483648')


def test_an_empty_name_is_one_line(tool):
    one_clear_line(tool('mc_eval.py', '--net', '', python=sys.executable), "no net ''")


def test_an_odd_environment(tool, tmp_path):
    result = tool('prepare_data.py', '--list', '--data', tmp_path, env={'OPENBLAS_NUM_THREADS': 'abc'}, python=sys.executable)
    assert result.returncode == 0, result.stderr


def test_a_folder_whose_name_is_no_text(tool, tmp_path):
    name = os.path.join(os.fsencode(str(tmp_path)), b'\xff')
    os.mkdir(name)
    result = tool('status.py', '--runs', os.fsdecode(name), python=sys.executable)
    one_clear_line(result, 'no training runs here')
