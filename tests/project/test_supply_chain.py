"""What must not be in the sources: code from data, strings that meet a shell, foreseeable names in shared folders."""

import ast
import glob
import os
import re

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = sorted(path for pattern in ('bcnn/**/*.py', 'tools/*.py', 'analysis/**/*.py', 'workflow/**/*.py')
                for path in glob.glob(os.path.join(ROOT, pattern), recursive=True))
SHELL = sorted(path for pattern in ('tools/*.sh', 'tools/python', 'workflow/**/*.sh')
               for path in glob.glob(os.path.join(ROOT, pattern), recursive=True))

# Where a string of the user's meets a program at all: each as a list of words, no shell between. Another place
# needs a review, and a line here.
PROGRAMS = {'analysis/records/requirements.py', 'bcnn/bench/measuring.py', 'bcnn/data/archives.py', 'bcnn/data/download.py',
            'bcnn/bench/peers.py',
            'bcnn/library/client.py', 'bcnn/workflow/run_all.py', 'bcnn/system/provenance.py'}


def name_of(call):
    """'os.system' of a call's function."""
    parts, node = [], call.func
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return '.'.join([node.id] + parts if isinstance(node, ast.Name) else parts)


FORBIDDEN = re.compile(r'^(eval|exec|compile|__import__|os\.(system|popen|exec[lv]p?e?|spawn\w+)|pickle\.\w+|cPickle\.\w+|'
                       r'marshal\.loads?|shelve\.open|yaml\.(load|unsafe_load)|tempfile\.mktemp|\w+\.extractall|\w+\.extract|'
                       r'input|subprocess\.getoutput|subprocess\.getstatusoutput|ctypes\.CDLL\.__init__)$')
# tools/python with the words of the command
ALLOWED = {('tools/launcher.py', 'os.execv'), ('analysis/records/requirements.py', 'os.execve')}


def faults(source, path='x.py'):
    """[(line, what)] of calls that could run what data says."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import) or isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, 'module', None) or '']
            found += [(node.lineno, name) for name in names if name.split('.')[0] in ('pickle', 'marshal', 'shelve', 'dill')]
        if not isinstance(node, ast.Call):
            continue
        name = name_of(node)
        if FORBIDDEN.match(name) and (path, name) not in ALLOWED:
            found.append((node.lineno, name))
        for keyword in node.keywords:
            value = getattr(keyword.value, 'value', getattr(keyword.value, 'id', None))
            if keyword.arg == 'shell' and value is not False or keyword.arg == 'allow_pickle' and value is not False:
                found.append((node.lineno, keyword.arg))
        if name in ('np.load', 'numpy.load') and not any(keyword.arg == 'allow_pickle' for keyword in node.keywords):
            found.append((node.lineno, 'np.load without allow_pickle=False'))
    return found


@pytest.mark.parametrize('path', PYTHON, ids=lambda path: os.path.relpath(path, ROOT))
def test_no_code_from_data(path):
    with open(path, encoding='utf-8') as file:
        assert faults(file.read(), os.path.relpath(path, ROOT)) == []


@pytest.mark.parametrize('source', [
    'eval(x)', 'exec(x)', 'import os\nos.system(x)', 'import pickle', 'from pickle import loads', 'yaml.load(f)',
    'subprocess.run(x, shell=True)', 'np.load(f)', 'np.load(f, allow_pickle=True)', 'archive.extractall(p)', 'tempfile.mktemp()',
    'subprocess.call(x, shell=yes)'])
def test_it_would_be_found(source):
    assert faults(source)


def test_programs_are_started_in_known_places_only():
    found = set()
    for path in PYTHON:
        with open(path, encoding='utf-8') as file:
            tree = ast.parse(file.read())
        if any(isinstance(node, ast.Call) and name_of(node).startswith(('subprocess.', 'os.posix_spawn')) for node in ast.walk(tree)):
            found.add(os.path.relpath(path, ROOT))
    assert found == PROGRAMS


def test_no_shell_script_evaluates_strings():
    for path in SHELL:
        with open(path) as file:
            text = re.sub(r'(^|\s)#.*', '', file.read())
        assert not re.search(r'\beval\b|\bsh -c "|\bbash -c "|`', text), path


def test_no_foreseeable_name_in_a_shared_folder():
    for path in PYTHON + SHELL:
        with open(path, encoding='utf-8') as file:
            text = re.sub(r'(^|\s)#.*', '', file.read())
        assert not re.search(r'[\'"=]/(tmp|var/tmp|dev/shm)\b|gettempdir', text), path


def test_the_docker_images_do_not_run_as_root():
    with open(os.path.join(ROOT, 'Dockerfile')) as file:
        stages = re.split(r'^FROM ', file.read(), flags=re.M)[1:]
    final = [stage for stage in stages if re.search(r'^CMD', stage, re.M)]
    assert len(final) == 2
    for stage in final:
        users = re.findall(r'^USER (\S+)', stage, re.M)
        assert users and users[-1] not in ('root', '0'), stage
        assert stage.index('USER') < stage.index('CMD')


def test_what_is_written_is_for_its_owner_to_change(tmp_path):
    """umask decides, and even umask 0 leaves no temporary file open to others on the way."""
    from bcnn.system import files
    old = os.umask(0o077)
    try:
        with files.atomic(tmp_path / 'a') as temporary:
            assert os.stat(temporary).st_mode & 0o077 == 0
            with open(temporary, 'w') as file:
                file.write('x')
    finally:
        os.umask(old)
    assert os.stat(str(tmp_path / 'a')).st_mode & 0o077 == 0


def test_a_link_somebody_has_put_is_replaced_not_followed(tmp_path):
    from bcnn.system import files
    (tmp_path / 'precious').write_text('precious')
    os.symlink(str(tmp_path / 'precious'), str(tmp_path / 'result'))
    files.write_text(str(tmp_path / 'result'), 'new')
    assert (tmp_path / 'precious').read_text() == 'precious' and (tmp_path / 'result').read_text() == 'new'
    assert not os.path.islink(str(tmp_path / 'result'))
