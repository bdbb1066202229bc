"""Every command of README.md, executed as typed, from the top, in a project with small data and a short quick profile.

Blocks marked ```sh are executed. Those marked ```sh docker, ```sh conda and ```sh cluster need an engine that a
test machine has not: what they call of this project is checked for being there and taking these options.
"""

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

import trainhelp
from bcnn import engine, nets
from bcnn.data import sets
from conftest import ROOT

README = os.path.join(ROOT, 'README.md')
ELSEWHERE = ('docker', 'conda', 'cluster')
ITSELF = 'tools/test.sh'  # runs this test
BENCH = 'python tools/bench.py --quick'  # a minute, and test_bench_command.py types the same


def blocks():
    """[(section, kind, [command])] of the README's shell blocks; kind is '' for those to execute."""
    section, kind, found = '', None, []
    for line in open(README, encoding='utf-8'):
        if kind is None and line.startswith('#'):
            section = line.strip('# \n')
        if line.startswith('```'):
            words = line[3:].split()
            kind = ' '.join(words[1:]) if kind is None and words[:1] == ['sh'] else 'other' if kind is None else None
            if kind not in (None, 'other'):
                found.append((section, kind, []))
        elif kind not in (None, 'other'):
            command = line.split('  #')[0].strip()
            if command:
                found[-1][2].append(command)
    return found


def executed():
    return [(section, command) for section, kind, commands in blocks() if kind == '' for command in commands]


def test_the_readme_has_no_other_kinds_of_blocks_and_no_indented_commands():
    assert {kind for _, kind, _ in blocks()} <= {''} | set(ELSEWHERE)
    assert len(executed()) > 20
    assert {ITSELF, BENCH} <= {command for _, command in executed()}
    indented = [line for line in open(README, encoding='utf-8') if re.match(r'    (python|tools/|docker|conda)', line)]
    assert not indented


@pytest.mark.parametrize('command', [command for _, kind, commands in blocks() if kind for command in commands])
def test_commands_for_other_machines_call_what_is_there(command):
    for path in re.findall(r'(?:tools|workflow|tests|analysis)/[\w/.]+', command):
        assert os.path.exists(os.path.join(ROOT, path)), path
    words = shlex.split(command)
    for k, word in enumerate(words):
        if re.match(r'tools/\w+\.(py|sh)$', word) and word != ITSELF:
            options = [other for other in words[k + 1:] if other != '...']
            assert parser_of(word).parse_args(options) is not None
    if words[:2] == ['docker', 'build'] and '--target' in words:
        target = words[words.index('--target') + 1]
        assert re.search(r'^FROM .* AS %s$' % target, open(os.path.join(ROOT, 'Dockerfile')).read(), re.MULTILINE)


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
    listed = subprocess.run(['git', '-C', ROOT, 'ls-files'], stdout=subprocess.PIPE, universal_newlines=True)
    for name in listed.stdout.splitlines():
        if os.path.exists(os.path.join(ROOT, name)):
            os.makedirs(str((folder / name).parent), exist_ok=True)
            shutil.copy2(os.path.join(ROOT, name), str(folder / name))
    os.symlink(PREFIX, str(folder / '.caffe'))
    if sets.manifest('cifar10_pad4'):  # whitening takes minutes; test_data_cifar.py does it
        subprocess.check_call(['cp', '-al', sets.DATA, str(folder / 'data')])
        shutil.rmtree(str(folder / 'data' / 'mnist'), ignore_errors=True)
    (folder / 'bin').mkdir()  # `python`, which not every machine has under that name
    os.symlink(shutil.which('python3'), str(folder / 'bin' / 'python'))
    return folder


def use_small_data(folder):
    """Puts small sets in the place of the real ones, and weights and a net like those that a user would bring."""
    shutil.rmtree(str(folder / 'data'), ignore_errors=True)
    (folder / 'data').mkdir()
    trainhelp.make_data(folder / 'data')
    (folder / 'data' / 'nin_weights').mkdir()
    trainhelp.make_subset(folder / 'data', 4)
    engine.call(save_weights, nets.deploy('nin', 'cifar10'), str(folder / 'data/nin_weights/cifar10_nin.caffemodel'))
    engine.call(save_weights, nets.deploy('lenet_all', 'mnist'), str(folder / 'my.caffemodel'))
    shutil.copy(str(folder / 'prototxt/mnist/lenet_all/train_test.prototxt'), str(folder / 'my_train_val.prototxt'))
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


PREFIX = os.environ.get('CAFFE_PREFIX') or os.path.join(ROOT, '.caffe')


@pytest.mark.slow
def test_every_command_works_as_typed(tmp_path):
    project = make_project(tmp_path)
    environment = dict(os.environ, PATH='%s:%s' % (project / 'bin', os.environ['PATH']))
    todo = [(section, command) for section, command in executed() if command not in (ITSELF, BENCH)]
    # the data first, for real; then everything else on small data
    order = [one for one in todo if one[0] == 'The data'] + [None] + [one for one in todo if one[0] != 'The data']
    for one in order:
        if one is None:
            use_small_data(project)
            continue
        began = time.time()
        said = subprocess.run(one[1], shell=True, cwd=str(project), env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=900)
        print('%6.1f s  %s' % (time.time() - began, one[1]))  # pytest -s: where the minutes of this test go
        assert said.returncode == 0, '%s\n%s' % (one[1], said.stdout[-2000:])
