"""Every command of README.md and docs/, executed as typed, in a project with small data and a short quick profile.

Blocks marked ```sh are executed, and so are those marked ```python. Those marked ```sh docker, ```sh conda and
```sh cluster need what a test machine has not, those marked ```sh long take hours: what they call of this project is
checked for being there and taking these options. Of commands in running text, between backticks, the options are.
"""

import glob
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

import pytest
from PIL import Image

import ownhelp
import trainhelp
from bcnn import engine, nets
from bcnn.data import sets
from bcnn.errors import UserError
from conftest import ROOT, project_files
from datahelp import fetched, prepared

# Training first: what is evaluated later must be there.
FIRST = ['docs/data_and_training.md', 'README.md']
PAGES = FIRST + sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, 'docs', '*.md'))
                       if os.path.relpath(path, ROOT) not in FIRST)
ELSEWHERE = ('docker', 'conda', 'cluster', 'long')
ITSELF = 'tools/test.sh'  # runs this test
TYPED_ELSEWHERE = {'python tools/bench.py --quick': 'tests/commands/test_bench_command.py'}  # a minute is enough once
PREFIX = os.environ.get('CAFFE_PREFIX') or os.path.join(ROOT, '.caffe')
FENCE = re.compile(r'^```(\w+)?(?: (\w+))?\n(.*?)^```$', re.DOTALL | re.MULTILINE)


def text_of(page):
    with open(os.path.join(ROOT, page), encoding='utf-8') as file:
        return file.read()


def blocks(page):
    """[(language, kind, text)] of the fenced blocks of a page; kind is '' where it is not said."""
    return [(language, kind, text) for language, kind, text in FENCE.findall(text_of(page))]


def commands(page, *kinds):
    """The shell commands of a page in blocks of these kinds."""
    lines = [line for language, kind, text in blocks(page) if language == 'sh' and kind in kinds
             for line in text.splitlines()]
    return [line.split('  #')[0].strip() for line in lines if line.split('  #')[0].strip()]


def executed():
    """Every command to execute, once, in the order of the pages."""
    every = []
    for page in PAGES:
        every += [command for command in commands(page, '') if command not in every]
    return every


def in_running_text(page):
    """The commands between backticks that call a tool or script with options."""
    return [words for words in re.findall(r'`([^`\n]+)`', FENCE.sub('', text_of(page)))
            if re.match(r'(python3? )?(tools|analysis)/\w+\.(py|sh) \S', words)]


def test_the_pages_have_no_other_kinds_of_blocks_and_no_indented_commands():
    for page in PAGES:
        for language, kind, text in blocks(page):
            assert (language, kind) in [('sh', ''), ('python', ''), ('text', '')] + [('sh', kind) for kind in ELSEWHERE]
        assert text_of(page).count('```') == 2 * len(blocks(page)), page
        assert not re.search(r'^    (python|tools/|docker|conda)', text_of(page), re.MULTILINE), page
    assert {ITSELF} | set(TYPED_ELSEWHERE) <= set(executed())


def test_what_is_typed_elsewhere_is_typed_there():
    for command, test in TYPED_ELSEWHERE.items():
        tool, *options = command.split('/')[1].split()
        assert "'%s', '%s'" % (tool, "', '".join(options)) in text_of(test), command


@pytest.mark.parametrize('command', sorted({command for page in PAGES for command in in_running_text(page)}))
def test_commands_in_running_text_have_options_that_there_are(command):
    tool, *words = [word for word in shlex.split(command) if word not in ('python', 'python3')]
    assert os.path.exists(os.path.join(ROOT, tool))
    if tool.startswith('tools/') and tool not in (ITSELF, 'tools/setup.sh'):
        known = parser_of(tool)._option_string_actions  # a part of a command line, so that it cannot be parsed
        assert [word for word in words if word.startswith('-') and word not in known] == []


@pytest.mark.parametrize('command', sorted({command for page in PAGES for command in commands(page, *ELSEWHERE)}))
def test_commands_for_other_machines_call_what_is_there(command):
    for path in re.findall(r'(?:tools|workflow|tests|analysis)/[\w/.]+', command):
        assert os.path.exists(os.path.join(ROOT, path)), path
    words = shlex.split(command)
    for k, word in enumerate(words):
        if re.match(r'tools/\w+\.(py|sh)$', word) and word not in (ITSELF, 'tools/setup.sh'):
            assert parser_of(word).parse_args(words[k + 1:]) is not None
    if words[:2] == ['docker', 'build'] and '--target' in words:
        target = words[words.index('--target') + 1]
        assert re.search(r'^FROM .* AS %s$' % target, text_of('Dockerfile'), re.MULTILINE)


def parser_of(tool):
    name = os.path.splitext(os.path.basename(tool))[0]
    sys.path.insert(0, os.path.join(ROOT, 'tools'))
    spec = importlib.util.spec_from_file_location('readme_' + name, os.path.join(ROOT, 'tools', name + '.py'))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.make_parser()


# --- executing -------------------------------------------------------------------------------------


def make_project(folder):
    """A copy of the code, small data, and what the README's user has: a net of their own, published weights."""
    for name in project_files():
        os.makedirs(str((folder / name).parent), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, name), str(folder / name))
    os.symlink(PREFIX, str(folder / '.caffe'))
    (folder / 'bin').mkdir()  # `python`, which not every machine has under that name
    os.symlink(shutil.which('python3'), str(folder / 'bin' / 'python'))
    return folder


def use_small_data(folder):
    """Puts small sets in the place of real ones, and weights and a net like those that a user would bring."""
    (folder / 'data').mkdir()
    trainhelp.make_data(folder / 'data', tested=60, tested_in_colour=3)  # T=100 of DSN, five times, on each
    (folder / 'data' / 'nin_weights').mkdir()
    trainhelp.make_subset(folder / 'data', 4)
    engine.call(save_weights, nets.deploy('nin', 'cifar10'), str(folder / 'data/nin_weights/cifar10_nin.caffemodel'))
    engine.call(save_weights, nets.deploy('lenet_all', 'mnist'), str(folder / 'my.caffemodel'))
    for theirs, ours in (('my_train_val', 'train_test'), ('my_deploy', 'deploy')):
        shutil.copy(str(folder / 'prototxt/mnist/lenet_all' / (ours + '.prototxt')), str(folder / (theirs + '.prototxt')))
    ownhelp.write_pictures(folder / 'photos', (30, 200), (28, 28))
    Image.fromarray(ownhelp.digit()).save(str(folder / 'digit.png'))
    shutil.copytree(str(folder / 'data/mnist/test_lmdb'), str(folder / 'my_test_lmdb'))
    stamps = folder / 'runs' / 'quick' / 'stamps'
    stamps.mkdir(parents=True)
    (stamps / 'data-mnist.done').write_text('')  # the small set is all that is needed
    shorten(folder / 'workflow' / 'profiles.json')


def shorten(path):
    """The quick profile with a tenth of its iterations: on small data more of them show nothing new."""
    profiles = json.loads(path.read_text())
    for run in profiles['quick']['runs'].values():
        run['iterations'] = [count // 10 for count in run['iterations']]
    path.write_text(json.dumps(profiles))


def save_weights(message, path):
    engine.load_net(message).save(path)


def run(words, project, **options):
    """Runs a command in the project; fails with what it said."""
    began = time.time()
    environment = dict(os.environ, PATH='%s:%s' % (project / 'bin', os.environ['PATH']))
    said = subprocess.run(words, cwd=str(project), env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, timeout=900, **options)
    print('%6.1f s  %s' % (time.time() - began, words))  # pytest -s: where the minutes of this test go
    assert said.returncode == 0, '%s\n%s' % (words, said.stdout[-2000:])
    return said.stdout


# What the user of a Python block has, and what must have come out: a number, by which passes differ.
BEFORE = 'import numpy\nimages = numpy.random.RandomState(1).rand(3, 1, 28, 28).astype("float32")\n'
AFTER = {'README.md': '''
assert probs.shape == (3, 10) and abs(probs.sum(axis=1) - 1).max() < 1e-5
print(abs(probs - net.forward()['prob']).max())  # a single pass is another sample, not the mean
''', 'docs/own_nets.md': '''
assert result.mean.shape == result.standard.shape == (3, 10) and abs(result.mean.sum(axis=1) - 1).max() < 1e-5
print(256 * result.std.max())  # images of at most 1, and a net for bytes: passes differ by little
'''}


def as_typed(preparing):
    """The commands that prepare data, or all others: without those that run these tests or are typed in another.

    An image has Caffe in the system's own place, so that commands of the prefix are not for it.
    """
    return [command for command in executed() if ('prepare_data.py' in command) == preparing and command != ITSELF
            and command not in TYPED_ELSEWHERE and (os.path.isdir(PREFIX) or not command.startswith('.caffe/'))]


@pytest.mark.slow
def test_every_command_works_as_typed(tmp_path):
    """On small data; those that prepare data have a test of their own."""
    project = make_project(tmp_path)
    use_small_data(project)
    for command in as_typed(preparing=False):
        run(command, project, shell=True)
    for page in PAGES:
        run_python_of(page, project)


@pytest.mark.slow
def test_the_commands_that_prepare_data_work_as_typed(tmp_path):
    """For real, but for CIFAR-10, which is whitened once for all tests, by the same command."""
    out_of_reach = ', '.join(name for name in ('mnist', 'cifar10') if not within_reach(name))
    if out_of_reach:
        pytest.skip('out of reach here: %s' % out_of_reach)
    project = make_project(tmp_path)
    (project / 'data').mkdir()
    os.symlink(os.path.join(prepared('cifar10'), 'cifar10'), str(project / 'data' / 'cifar10'))
    for command in as_typed(preparing=True):
        run(command, project, shell=True)
    assert all(sets.manifest(name, str(project / 'data')) for name in ('mnist', 'cifar10'))


def within_reach(name):
    """Whether a set's files can be had here."""
    try:
        return bool(fetched(name))
    except UserError:
        return False


def run_python_of(page, project):
    """Runs the Python block of a page, if it has one."""
    code = [text for language, _, text in blocks(page) if language == 'python']
    assert len(code) == (page in AFTER)
    for text in code:
        said = run([os.path.join(ROOT, 'tools', 'python'), '-c', BEFORE + text + AFTER[page]], project)
        assert float(said.split()[-1]) > 1e-3
