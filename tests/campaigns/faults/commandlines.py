"""Command lines as a format to be damaged: words separated by zero bytes, run as a tool runs them."""

import importlib.util
import os
import random
import shutil
import signal
import sys

import numpy as np
from formats import ROOT, Format, UserError, engine, nets, trainhelp

sys.path.insert(0, os.path.join(ROOT, 'tools'))

import launcher  # noqa: E402
from bcnn.system import processes  # noqa: E402

SECONDS = 15  # a command line that means long work is stopped then, which is no problem
VALUES = ('0', '-1', '1', '2', '3,3,3', '9' * 30, '1e3', 'nan', '', 'x', '3,32,32', '/etc/passwd', '.', '/no/where', '\udcff',
          'log', 'log:3', 'mnist', 'cifar10', 'nin', 'dsn', 'lenet_all', 'stream', 'replicate', '\u00b2', '-', '--', '%s%n', '\n')
OFFLINE = {'http_proxy': 'http://127.0.0.1:1', 'https_proxy': 'http://127.0.0.1:1', 'PATH': '/nonexistent'}


def load(name):
    spec = importlib.util.spec_from_file_location('tool_' + name, os.path.join(ROOT, 'tools', name + '.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class CommandLine(Format):
    """A tool; `last` are words put after all others, so that it writes nowhere but into the folder of the case."""

    forks = True
    tool, words, last = None, (), ()

    def make(self):
        self.module = load(self.tool)
        self.data = os.path.join(self.place, 'data')
        if not os.path.isdir(self.data):
            trainhelp.make_data(self.data)
            engine.load_net(nets.deploy('lenet_ip', 'mnist')).save(os.path.join(self.place, 'w'))
            pixels, labels = trainhelp.mnist('test', 6)
            np.savez(os.path.join(self.place, 'x.npz'), images=pixels, labels=labels)
            shutil.copy(os.path.join(ROOT, 'prototxt', 'cifar10', 'nin', 'train_test.prototxt'),
                        os.path.join(self.place, 'net.prototxt'))
        options = [word for action in self.module.make_parser()._actions for word in action.option_strings[-1:]
                   if word not in ('--help', '--draw')]
        made = [list(self.words) + [option, value] for option in options for value in VALUES]
        random.Random(self.tool).shuffle(made)
        return [b'\0'.join(os.fsencode(word) for word in words) for words in made]

    def feed(self, data):
        words = [os.fsdecode(word) for word in data.split(b'\0')[:40]] if data else []
        words = [word for word in words if not word.startswith('--dr')]
        code = processes.call(self._go, words + [word % {'here': self.place, 'data': self.data} for word in self.last])
        if code:
            raise UserError('exit %s' % code)

    def _go(self, words):
        """The exit code; in a child of its own."""
        os.chdir(self.place)
        os.environ.update(OFFLINE, BCNN_DOWNLOADS=os.path.join(self.place, 'none'))
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        said = os.path.join(self.place, 'said')
        with open(said, 'w', encoding='utf-8') as sys.stdout, open(said, 'w', errors='backslashreplace') as sys.stderr:
            try:
                args = self.module.make_parser().parse_args(words)
            except SystemExit as error:
                return error.code
            code = launcher._run(self.tool + '.py', self.module.run, args)
            sys.stdout.flush()
            return code


def command(name, words='', last=''):
    return type('CommandLine_' + name, (CommandLine,), dict(tool=name, words=words.split(), last=last.split()))


COMMANDS = {
    'command line of train': command('train', '--net lenet_ip --T 2 --eval-points 2 --jobs 1',
                                     '--cpu --iters 2 --data %(data)s --out %(here)s/run'),
    'command line of mc_eval': command('mc_eval',
                                       '--net lenet_ip --weights w --data x.npz --T 2 --repeats 1 --jobs 1',
                                       '--no-prepare --out %(here)s/out'),
    'command line of prepare_data': command('prepare_data', 'mnist --from .', '--data %(here)s/sets --out %(here)s/sheet.png'),
    'command line of record': command('record', '.', '--results %(here)s/results --data %(data)s'),
    'command line of verify': command('verify', '. --all'),
    'command line of status': command('status', '--runs runs'),
    'command line of convert_net': command('convert_net', 'net.prototxt --shape 3,32,32', '--to %(here)s/nets'),
    'command line of gen_prototxt': command('gen_prototxt', '--net nin', '--to %(here)s/prototxt'),
}
