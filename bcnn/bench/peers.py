"""What people would use instead: PyTorch, baal and torch-uncertainty, in a private venv outside the project.

They want another Python and another numpy than Caffe, so they run as a process of their own
(bcnn/bench/torch_peer.py), which is asked over pipes. Nothing of this project needs them but the benchmark.
"""

import json
import os
import shutil
import subprocess
from typing import Any, Dict, List, Optional, Sequence

from ..errors import UserError
from ..system import blas, files, progress

# torch first and alone: a CPU build that a later step must not replace. The other two come without
# what they ask for (torchvision, lightning, jupyter ...: gigabytes that MC dropout does not use), but
# for what their imports need.
STEPS = (
    ['torch==2.13.0+cpu'],
    ['numpy', 'scipy', 'scikit-learn', 'structlog<23', 'torchmetrics', 'tqdm', 'einops', 'pillow', 'matplotlib'],
    ['--no-deps', 'baal==2.1.0', 'torch-uncertainty==0.13.0'],
)
WITHOUT_CPU_BUILD = ['torch==2.13.0']  # where the package index has no build marked +cpu
PYTHONS = ('python3.11', 'python3.12', 'python3.13', 'python3.10', 'python3')
HOW = 'not installed: python tools/bench.py --peers'
DONE = 'complete'
DEVICE = 'BCNN_PEER_DEVICE'  # what the process on the other side computes on, in torch's words


def folder() -> str:
    """Where the venv is."""
    cache = os.environ.get('XDG_CACHE_HOME') or os.path.join(os.path.expanduser('~'), '.cache')
    return os.path.join(cache, 'bcnn', 'peers')


def python(place: Optional[str] = None) -> Optional[str]:
    """The venv's Python, or None where it is not installed (completely)."""
    place = place or folder()
    return os.path.join(place, 'bin', 'python') if os.path.exists(os.path.join(place, DONE)) else None


# --- installing ------------------------------------------------------------------------------------

def install(place: Optional[str] = None) -> None:
    """Make the venv, unless it is there; whole or not at all: it is marked complete at the end."""
    place = place or folder()
    if python(place):
        progress.say('peers are installed already: %s' % place)
        return
    files.remove(place)
    with files.folder(os.path.dirname(place)):
        files.require_space(os.path.dirname(place), 3 << 30)
        _step([_python_for_torch(), '-m', 'venv', place])
        for k, packages in enumerate(STEPS):
            progress.say('installing %s' % ' '.join(packages))
            try:
                _pip(place, packages)
            except UserError:
                if k:
                    raise
                _pip(place, WITHOUT_CPU_BUILD)
    with files.atomic(os.path.join(place, DONE)) as temporary, open(temporary, 'w') as file:
        file.write('\n'.join(package for packages in STEPS for package in packages) + '\n')
    progress.say('peers are installed: %s' % place)


def _python_for_torch():
    """A Python that is new enough for the peers (3.10) and can make a venv."""
    test = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))'
    for name in PYTHONS:
        found = shutil.which(name)
        if found and subprocess.run([found, '-c', test], env=clean(), stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL).returncode == 0:
            return found
    raise UserError('no Python for the peers: they need one of 3.10 or newer, with venv and pip, on PATH')


def _pip(place, packages):
    _step([os.path.join(place, 'bin', 'python'), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check']
          + packages)


def _step(command):
    """Run a command to its end; what it complains of last is the error."""
    ended = subprocess.run(command, env=clean(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           stdin=subprocess.DEVNULL)
    if ended.returncode:
        lines = [line for line in ended.stdout.decode('utf-8', 'replace').splitlines() if line.strip()]
        wrong = [line for line in lines if 'ERROR' in line] or lines[-1:] or ['no message']
        raise UserError('the peers cannot be installed: %s' % wrong[-1].strip())


def clean(gpu: Optional[int] = None) -> Dict[str, str]:
    """An environment without what points a Python at Caffe's libraries; one thread; for the CPU, or a GPU."""
    environment = {name: value for name, value in os.environ.items() if name not in ('PYTHONPATH', 'PYTHONHOME')}
    environment.update((name, '1') for name in blas.THREADS)
    environment[DEVICE] = 'cpu' if gpu is None else 'cuda:%d' % gpu
    return environment


# --- asking ----------------------------------------------------------------------------------------

class Peer:
    """The process on the other side, started when first asked; started anew if it has died."""

    def __init__(self, command: Optional[Sequence[str]] = None, gpu: Optional[int] = None):
        self.command, self.gpu = command, gpu
        self.process = None
        self.loaded = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def load(self, net: str, path: str, layers: List[Dict[str, Any]]) -> None:
        """Tell it of a net: where its arrays are, and its layers."""
        self.loaded[net] = dict(do='load', net=net, path=path, layers=layers)
        if self.process:
            self._ask(self.loaded[net])

    def ask(self, do: str, **question: Any) -> Dict[str, Any]:
        """The answer, a dictionary; a UserError of one line where it is not installed, fails or dies."""
        if self.process is None:
            self._start()
        return self._ask(dict(question, do=do))

    def _start(self):
        command = self.command or _command()
        self.process = subprocess.Popen(command, env=clean(self.gpu), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, universal_newlines=True)
        for question in self.loaded.values():
            self._ask(question)

    def _ask(self, question):
        try:
            self.process.stdin.write(json.dumps(question) + '\n')
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except (BrokenPipeError, ConnectionError):
            answer = ''
        if not answer:
            code = self.end()
            raise UserError('the process of the peers ended with code %s' % code)
        answer = json.loads(answer)
        if 'error' in answer:
            raise UserError(answer['error'])
        return answer

    def end(self) -> Optional[int]:
        """Its exit code, after it has ended."""
        process, self.process = self.process, None
        if process is None:
            return None
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:  # in the midst of a computation
            process.kill()
            process.wait()
        process.stdout.close()
        return process.returncode


def _command():
    found = python()
    if not found:
        raise UserError(HOW)
    # -I: neither the user's own packages nor the modules that lie beside the script
    return [found, '-I', os.path.join(os.path.dirname(os.path.abspath(__file__)), 'torch_peer.py')]


def versions(peer: Peer) -> Dict[str, str]:
    """{name: version} of the peers, {} where none is installed."""
    return peer.ask('versions') if peer.command or python() else {}
