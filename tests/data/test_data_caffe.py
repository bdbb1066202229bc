"""The LMDBs against real Caffe: its messages, its converters, its Data layer."""

import os
import shutil
import subprocess

import lmdb
import numpy as np
import pytest

from bcnn import engine
from bcnn.data import cifar, recipes, records
from datahelp import ROOT, put, real

pytestmark = pytest.mark.caffe


def items(path):
    with lmdb.open(str(path), readonly=True, lock=False) as env, env.begin() as transaction:
        return list(transaction.cursor())


def convert(name, *args):
    """Run one of Caffe's converters."""
    prefix = os.environ.get('CAFFE_PREFIX', os.path.join(ROOT, '.caffe'))
    tool = os.path.join(prefix, 'bin', name)
    tool = tool if os.path.exists(tool) else shutil.which(name)
    subprocess.check_call([tool] + [str(arg) for arg in args], env=dict(os.environ, GLOG_minloglevel='2'))


@pytest.mark.parametrize('kind', [np.uint8, np.float32])
def test_rows_are_what_caffe_pb2_reads_and_writes(kind):
    pixels = (np.random.RandomState(0).rand(20, 3, 5, 7) * 255).astype(kind)
    for row, image, label in zip(records.datums(pixels, np.arange(20)), pixels, range(20)):
        datum = engine.caffe_pb2.Datum.FromString(row.tobytes())
        assert (datum.channels, datum.height, datum.width, datum.label) == (3, 5, 7, label)
        if kind == np.uint8:
            assert datum.data == image.tobytes() and not datum.float_data
            assert datum.SerializeToString() == row.tobytes()
        else:
            assert np.array_equal(np.array(datum.float_data, np.float32), image.ravel()) and not datum.data
            # Written again by protobuf the floats are unpacked, as declared: five bytes each instead of four.
            assert len(datum.SerializeToString()) == len(row) + image.size - 3  # less tag and length
        assert datum.IsInitialized() and not datum.encoded


def test_mnist_is_what_convert_mnist_data_writes(tmp_path):
    files = real('mnist')
    here = put(tmp_path / 'files', files)
    for split in ('train', 't10k'):
        convert('convert_mnist_data', here + '/%s-images-idx3-ubyte' % split, here + '/%s-labels-idx1-ubyte' % split,
                tmp_path / (split + '_theirs'), '--backend=lmdb')
        records.write(str(tmp_path / (split + '_ours')), [recipes.mnist(files, split)], records.MNIST_DIGITS)
        ours, theirs = (items(tmp_path / (split + who)) for who in ('_ours', '_theirs'))
        assert len(ours) == {'train': 60000, 't10k': 10000}[split]
        assert ours == theirs


def data_net(path, batch, transform='', phase='TEST'):
    net = engine.caffe_pb2.NetParameter()
    engine.text_format.Merge('''layer { name: "data" type: "Data" top: "data" top: "label" transform_param { %s }
        data_param { source: "%s" batch_size: %d backend: LMDB } }''' % (transform, path, batch), net)
    return engine.load_net(net, phase=getattr(engine, phase))


@pytest.mark.parametrize('kind', [np.uint8, np.float32])
def test_a_stock_data_layer_reads_them(tmp_path, kind):
    pixels = (np.random.RandomState(0).rand(30, 3, 40, 40) * 255).astype(kind)
    labels = np.arange(30) % 10
    records.write(str(tmp_path / 'lmdb'), [(pixels, labels)], records.CIFAR_DIGITS)
    net = data_net(tmp_path / 'lmdb', 10)
    cropped = data_net(tmp_path / 'lmdb', 10, 'crop_size: 32')
    for start in (0, 10, 20, 0):  # the fourth batch is the first again
        net.forward()
        cropped.forward()
        assert np.array_equal(net.blobs['data'].data, pixels[start:start + 10].astype(np.float32))
        assert np.array_equal(net.blobs['label'].data, labels[start:start + 10])
        # Caffe's centre crop takes away the padding of cifar10_pad4, and nothing else.
        assert np.array_equal(cropped.blobs['data'].data, pixels[start:start + 10, :, 4:36, 4:36].astype(np.float32))


@pytest.mark.slow
def test_cifar_is_what_convert_cifar_data_writes(tmp_path):
    files = real('cifar10')
    here = put(tmp_path / 'files', files)
    (tmp_path / 'theirs').mkdir()
    convert('convert_cifar_data', here, tmp_path / 'theirs', 'lmdb')
    for split, names in (('train', cifar.TRAIN_FILES), ('test', cifar.TEST_FILES)):
        records.write(str(tmp_path / split), [recipes.batches(files, names)], records.CIFAR_DIGITS)
        ours, theirs = items(tmp_path / split), items(tmp_path / 'theirs' / ('cifar10_%s_lmdb' % split))
        assert len(ours) == {'train': 50000, 'test': 10000}[split]
        assert ours == theirs
    shutil.rmtree(str(tmp_path))
