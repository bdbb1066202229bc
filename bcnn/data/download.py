"""Files from the network: over http with resume, through the user's npm, through the machine's apt.

Each raises Unreachable with one line when its way does not work here, so that the next can
be tried. None decides whether the bytes are right: that is done with checksums by the caller.
"""

import contextlib
import http.client
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from ..errors import UserError
from ..system import progress

TIMEOUT = 20      # seconds without an answer, or without a byte
SLOWEST = 1000    # bytes a second; less than that over SLOW_FOR seconds is given up
SLOW_FOR = 60
ATTEMPTS = 3
TOOL_TIMEOUT = 1800  # npm or apt, for 139 MB over a slow line
CHUNK = 1 << 16


class Unreachable(UserError):
    """This way to the data does not work here; another may."""


# --- http --------------------------------------------------------------------------------

def fetch(url: str, path: str, limit: int, attempts: int = ATTEMPTS, timeout: float = TIMEOUT) -> None:
    """Downloads url to `path`, which may hold the beginning already; at most `limit` bytes."""
    for attempt in range(attempts):
        try:
            return _fetch_once(url, path, limit, timeout)
        except Unreachable:
            raise
        except (OSError, http.client.HTTPException) as error:  # URLError and timeouts are OSErrors
            if isinstance(error, OSError) and getattr(error, 'filename', None) == path:
                raise  # our disk, not the network
            cause = getattr(error, 'reason', None) or error
            if isinstance(error, urllib.error.URLError) and not isinstance(error, urllib.error.HTTPError):
                break  # no such host, or nobody answers: asking again at once does not help
    raise Unreachable('%s: %s' % (url, ' '.join(str(cause).split()) or type(cause).__name__))


def _fetch_once(url, path, limit, timeout):
    have = os.path.getsize(path) if os.path.exists(path) else 0
    request = urllib.request.Request(url, headers={'User-Agent': 'bcnn', 'Accept-Encoding': 'identity'})
    if have:
        request.add_header('Range', 'bytes=%d-' % have)
    try:
        answer = _opener().open(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # "range not satisfiable": what is there is no beginning of this file
            os.remove(path)
        raise
    with answer:
        if answer.status != 206 or not _continues(answer, have):
            have = 0
        length = answer.headers.get('Content-Length')
        total = have + int(length) if length and length.isdigit() else None
        if (total or 0) > limit:
            raise Unreachable('%s: %d bytes announced, more than the %d allowed' % (url, total, limit))
        _save(answer, url, path, have, total, limit)


def _continues(answer, have):
    return re.match(r'bytes %d-' % have, answer.headers.get('Content-Range', '')) is not None


def _save(answer, url, path, have, total, limit):
    """Append the answer's body to the first `have` bytes at `path`."""
    window, since = 0, time.monotonic()
    with open(path, 'r+b' if have else 'wb') as file, \
            progress.bar(os.path.basename(url), total, 'B', scale=True) as step:
        file.seek(have)
        file.truncate()
        step(have)
        while True:
            chunk = answer.read1(CHUNK)
            if not chunk:
                break
            have, window = have + len(chunk), window + len(chunk)
            if have > limit:
                raise Unreachable('%s: more than the %d bytes allowed' % (url, limit))
            _write(file, chunk, path)
            step(len(chunk))
            if time.monotonic() - since > SLOW_FOR:
                if window < SLOWEST * SLOW_FOR:
                    raise Unreachable('%s: too slow, %d bytes in %d s' % (url, window, SLOW_FOR))
                window, since = 0, time.monotonic()
    if total is not None and have < total:
        raise OSError('the connection ended after %d of %d bytes' % (have, total))


def _write(file, chunk, path):
    try:
        file.write(chunk)
    except OSError as error:  # named, to tell a full disk from a network error
        raise OSError(error.errno, error.strerror, path)


class _WebOnly(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https only, and from https to https only."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        # From https to http is a step down that somebody on the way may have asked for.
        allowed = ('https://',) if req.full_url.lower().startswith('https:') else ('http://', 'https://')
        if not newurl.lower().startswith(allowed):
            raise Unreachable('%s: refused, it redirects to %s' % (req.full_url, newurl.split(':')[0] + ':'))
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener():
    """urlopen without its handlers for file:, ftp: and data:; proxies from the environment."""
    opener = urllib.request.OpenerDirector()
    for handler in (urllib.request.ProxyHandler, urllib.request.UnknownHandler, urllib.request.HTTPHandler,
                    urllib.request.HTTPSHandler, urllib.request.HTTPDefaultErrorHandler, _WebOnly,
                    urllib.request.HTTPErrorProcessor):
        opener.add_handler(handler())
    return opener


# --- npm, apt ----------------------------------------------------------------------------

def npm_pack(package: str, folder: str) -> str:
    """The path of the tarball that `npm pack` puts into `folder`; the user's npm settings hold, no script runs."""
    if shutil.which('npm') is None:
        raise Unreachable('npm pack %s: no npm here' % package)
    _run(['npm', 'pack', package, '--ignore-scripts', '--loglevel=error', '--no-update-notifier'],
         folder, 'npm pack %s' % package)
    return _only(folder, '.tgz', 'npm pack %s' % package)


def apt_download(package: str, folder: str) -> str:
    """The path of the .deb that apt-get puts into `folder`, its signature checked by apt; no root needed."""
    title = 'apt-get download %s' % package
    if shutil.which('apt-get') is None:
        raise Unreachable('%s: no apt-get on this machine' % title)
    options = ['-qq', '-o', 'APT::Sandbox::User=root', '-o', 'Acquire::Retries=1']
    try:
        _run(['apt-get'] + options + ['download', package], folder, title)
    except Unreachable:
        # A fresh machine or container has no package lists, and making them needs root. So
        # they are made in a private folder, from the machine's own sources and keys.
        private = os.path.join(folder, 'apt')
        os.makedirs(os.path.join(private, 'lists', 'partial'))
        options += ['-o', 'Dir::State::Lists=%s/lists' % private, '-o', 'Dir::Cache=%s' % private,
                    '-o', 'Debug::NoLocking=1']
        _run(['apt-get'] + options + ['update'], folder, title)
        _run(['apt-get'] + options + ['download', package], folder, title)
    return _only(folder, '.deb', title)


def _run(command, folder, title):
    """Run a command in `folder`; its last error line becomes an Unreachable. It dies with us or after TOOL_TIMEOUT."""
    with tempfile.TemporaryFile() as log:  # not in `folder`, whose disk may be full
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                   env=dict(os.environ, LC_ALL='C'), start_new_session=True)
        try:
            _wait(process, title)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it may have left running, on Ctrl-C too
            process.wait()
        if process.returncode:
            log.seek(0)
            complaint = _complaint(log.read().decode('utf-8', 'replace'))
            raise Unreachable('%s: %s' % (title, complaint or 'exit code %d' % process.returncode))


def _wait(process, title):
    start = time.monotonic()
    with progress.bar(title, unit='s') as step:
        while True:
            try:
                process.wait(1)
                return
            except subprocess.TimeoutExpired:
                step(1)
                if time.monotonic() - start > TOOL_TIMEOUT:
                    raise Unreachable('%s: no end after %d s' % (title, TOOL_TIMEOUT))


def _complaint(log):
    """The line of npm's or apt's output that says what went wrong."""
    lines = [re.sub(r'^(npm )?(ERR!|error|E:) ?', '', line).strip() for line in log.splitlines()
             if re.match(r'(npm )?(ERR!|error)|E: ', line)]
    useless = re.compile(r'(code|errno|syscall|A complete log|network This)\b|$')
    return next((line for line in lines if not useless.match(line)), '')


def _only(folder, suffix, title):
    names = [name for name in os.listdir(folder) if name.endswith(suffix)]
    if len(names) != 1:
        raise Unreachable('%s: left %d %s files instead of one' % (title, len(names), suffix))
    return os.path.join(folder, names[0])
