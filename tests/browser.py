"""A real Chromium, driven by its DevTools protocol over pipes: nothing but the program itself is needed."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')
INSTALL = ['apt-get', 'install', '-y', '--no-install-recommends', 'chromium']


def find_or_install():
    """(path, '') of a Chromium, or (None, why there is none). Installs Debian's where that is allowed to us."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found, ''
    if os.geteuid() != 0 or not shutil.which('apt-get'):
        return None, 'no Chromium here, and only root could install it: %s' % ' '.join(INSTALL)
    for command in (INSTALL, ['apt-get', 'update'], INSTALL):  # a machine may know no packages yet
        said = _run(command)
        if shutil.which('chromium'):
            return shutil.which('chromium'), ''
    return None, 'no Chromium here, and it cannot be installed: %s' % said


def _run(command):
    """The last line that a command of apt's says."""
    try:
        said = subprocess.run(command, timeout=300, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, env=dict(os.environ, DEBIAN_FRONTEND='noninteractive')).stdout
        return (said.strip().splitlines() or ['nothing'])[-1]
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)


class Browser:
    """A page in a headless Chromium, without a network. Times are in seconds, places in pixels of the page's window."""

    def __init__(self, program, folder, width=1280, height=900):
        commands, answers = os.pipe(), os.pipe()
        script = 'exec 3<&%d 4>&%d; exec "$@"' % (commands[0], answers[1])
        self._process = subprocess.Popen(
            ['bash', '-c', script, 'browser', program, '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run',
             '--disable-dev-shm-usage', '--remote-debugging-pipe', '--host-resolver-rules=MAP * ~NOTFOUND',
             '--user-data-dir=%s' % folder, '--window-size=%d,%d' % (width, height), 'about:blank'],
            pass_fds=(commands[0], answers[1]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(commands[0])
        os.close(answers[1])
        self._to, self._from, self._rest, self._count, self._session = commands[1], answers[0], b'', 0, None
        self.events = []
        target = next(one for one in self.send('Target.getTargets')['targetInfos'] if one['type'] == 'page')
        self._session = self.send('Target.attachToTarget', targetId=target['targetId'], flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.send(domain + '.enable')
        self.resize(width, height)

    # --- the protocol ------------------------------------------------------------------------

    def send(self, method, **params):
        """The result of a command of the protocol; events that come meanwhile are kept."""
        self._count += 1
        message = {'id': self._count, 'method': method, 'params': params}
        if self._session:
            message['sessionId'] = self._session
        os.write(self._to, json.dumps(message).encode() + b'\0')
        while True:
            answer = self._receive(60)
            if answer.get('id') == self._count:
                assert 'error' not in answer, '%s: %s' % (method, answer['error'])
                return answer['result']
            self.events.append(answer)

    def _receive(self, seconds):
        while b'\0' not in self._rest:
            assert select.select([self._from], [], [], seconds)[0], 'Chromium does not answer'
            more = os.read(self._from, 1 << 20)
            assert more, 'Chromium has ended'
            self._rest += more
        message, self._rest = self._rest.split(b'\0', 1)
        return json.loads(message.decode())

    # --- what a reader does ---------------------------------------------------------------------

    def open(self, address):
        self.send('Page.navigate', url='about:blank')
        self.send('Page.navigate', url=address)
        self.wait('document.readyState === "complete" && location.href.startsWith("file:")')

    def resize(self, width, height):
        self.send('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def run(self, script):
        """The value of an expression in the page."""
        answer = self.send('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in answer, answer['exceptionDetails']
        return answer['result'].get('value')

    def wait(self, script, seconds=20):
        """Waits until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < end, 'still not so: %s' % script
            time.sleep(0.05)

    def click(self, selector, number=0):
        """A click of the mouse in the middle of what a selector names, as a reader's: it hits what is on top there."""
        place = self.run('(() => { const box = document.querySelectorAll(%s)[%d].getBoundingClientRect(); '
                         'return [box.x + box.width / 2, box.y + box.height / 2]; })()' % (json.dumps(selector), number))
        for kind in ('mousePressed', 'mouseReleased'):
            self.send('Input.dispatchMouseEvent', type=kind, x=place[0], y=place[1], button='left', clickCount=1)

    def press(self, key):
        for kind in ('keyDown', 'keyUp'):
            self.send('Input.dispatchKeyEvent', type=kind, key=key, code=key)

    def choose(self, selector, value):
        """Chooses an entry of a <select>, whose list is no part of the page."""
        self.run('(() => { const list = document.querySelector(%s); list.value = %s; '
                 'list.dispatchEvent(new Event("change", {bubbles: true})); })()'
                 % (json.dumps(selector), json.dumps(value)))

    def texts(self, selector):
        return self.run('Array.from(document.querySelectorAll(%s), one => one.textContent)' % json.dumps(selector))

    def screenshot(self, path):
        with open(str(path), 'wb') as file:
            file.write(base64.b64decode(self.send('Page.captureScreenshot')['data']))

    def close(self):
        os.close(self._to)
        os.close(self._from)
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
