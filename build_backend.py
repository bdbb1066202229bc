"""What pip asks to make of this project (PEP 517, PEP 660): a wheel of bcnn/, with weights/ and prototxt/ in it.

Of our own, because the usual ones would have to be fetched, and Debian's Python with Caffe has none that pip accepts.
"""

import base64
import hashlib
import os
import re
import tarfile
import zipfile

ROOT = os.path.dirname(os.path.abspath(__file__))
SHIPPED = ('weights', 'prototxt')  # beside bcnn/ in a clone, in bcnn/shipped/ of a wheel: see bcnn.system.places
NEEDS = ('numpy<2', 'protobuf', 'pillow', 'lmdb', 'tqdm')  # Caffe itself is in no package index


def build_wheel(folder, config_settings=None, metadata_directory=None):
    """Writes the wheel; gives its name."""
    files = [(name, _read(name)) for name in _below('bcnn')]
    files += [('bcnn/shipped/' + name, _read(name)) for part in SHIPPED for name in _below(part)]
    return _write(folder, files)


def build_editable(folder, config_settings=None, metadata_directory=None):
    """Writes a wheel that only says where this clone is; gives its name."""
    return _write(folder, [('bcnn.pth', ROOT.encode() + b'\n')])


def build_sdist(folder, config_settings=None):
    """Writes an archive of what a wheel is made of; gives its name."""
    name = 'bcnn-%s' % _version()
    with tarfile.open(os.path.join(folder, name + '.tar.gz'), 'w:gz', format=tarfile.PAX_FORMAT) as archive:
        for path in ['pyproject.toml', 'build_backend.py', 'README.md', 'LICENSE'] + _all():
            archive.add(os.path.join(ROOT, path), name + '/' + path)
    return name + '.tar.gz'


def _all():
    return [name for part in ('bcnn',) + SHIPPED for name in _below(part)]


def _below(part):
    """The files of a folder of the project, in order of name."""
    found = [os.path.relpath(os.path.join(place, name), ROOT).replace(os.sep, '/')
             for place, _, names in os.walk(os.path.join(ROOT, part)) for name in names]
    return sorted(name for name in found if '__pycache__' not in name and not os.path.basename(name).startswith('.'))


def _read(name):
    with open(os.path.join(ROOT, *name.split('/')), 'rb') as file:
        return file.read()


def _version():
    return re.search(r"^__version__ = '(.*)'$", _read('bcnn/__init__.py').decode(), re.MULTILINE).group(1)


def _write(folder, files):
    version = _version()
    about = 'bcnn-%s.dist-info/' % version
    lines = ['Metadata-Version: 2.1', 'Name: bcnn', 'Version: ' + version, 'License: BSD-2-Clause',
             'Summary: Bayesian convolutional neural networks by MC dropout, on stock BVLC Caffe',
             'Requires-Python: >=3.8'] + ['Requires-Dist: ' + need for need in NEEDS]
    files = files + [
        (about + 'METADATA', ('\n'.join(lines) + '\n').encode()), (about + 'LICENSE', _read('LICENSE')),
        (about + 'WHEEL', b'Wheel-Version: 1.0\nGenerator: bcnn\nRoot-Is-Purelib: true\nTag: py3-none-any\n')]
    record = ['%s,sha256=%s,%d' % (name, base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('='),
                                   len(data)) for name, data in files]
    files.append((about + 'RECORD', '\n'.join(record + [about + 'RECORD,,', '']).encode()))
    wheel = 'bcnn-%s-py3-none-any.whl' % version
    with zipfile.ZipFile(os.path.join(folder, wheel), 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, data in files:
            archive.writestr(name, data)
    return wheel
