"""What the driver says, asked of a stand-in for it; and the lines for what is missing."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from bcnn.system import cuda
from conftest import ROOT

# A libcuda.so.1 that answers as the driver would: INIT is what cuInit returns, COUNT how many GPUs there are.
DRIVER = r'''
#include <stdlib.h>
#include <string.h>
static int number(const char *name, int other) { return getenv(name) ? atoi(getenv(name)) : other; }
int cuInit(unsigned flags) { return number("INIT", 0); }
int cuDriverGetVersion(int *version) { *version = number("VERSION", 12020); return 0; }
int cuDeviceGetCount(int *count) { *count = number("COUNT", 2); return number("INIT", 0); }
int cuDeviceGet(int *device, int ordinal) { *device = 10 + ordinal; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, device == 10 ? "First" : "Second", size); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = device == 10 ? 25438126080UL : 8UL << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 75 ? 8 : attribute == 76 ? 6 : -1; return 0; }
int cuMemGetInfo_v2(size_t *free, size_t *total) { *free = 6UL << 30; *total = 8UL << 30; return 0; }
'''
OLD = 'Check failed: error == cudaSuccess (35 vs. 0) CUDA driver version is insufficient for CUDA runtime version'


@pytest.fixture(scope='module')
def driver(tmp_path_factory):
    """Gives what an expression on bcnn.system.cuda is, in a process that finds the stand-in."""
    if not shutil.which('gcc'):
        pytest.skip('no gcc to make a stand-in for the driver with')
    folder = tmp_path_factory.mktemp('driver')
    (folder / 'driver.c').write_text(DRIVER)
    subprocess.run(['gcc', '-shared', '-fPIC', '-o', str(folder / 'libcuda.so.1'), str(folder / 'driver.c')], check=True)

    def ask(expression, **env):
        code = 'import json, sys; sys.path.insert(0, %r); from bcnn.system import cuda; print(json.dumps(%s))' % (ROOT, expression)
        env = dict(os.environ, LD_LIBRARY_PATH=str(folder), **env)
        return json.loads(subprocess.run([sys.executable, '-c', code], env=env, check=True, stdout=subprocess.PIPE).stdout)
    return ask


def test_the_driver_is_asked(driver):
    about = driver('cuda.ask()')
    assert about['cuda'] == '12.2'
    assert about['gpus'] == [{'name': 'First', 'capability': '8.6', 'memory': 25438126080},
                             {'name': 'Second', 'capability': '8.6', 'memory': 8 << 30}]
    assert driver('cuda.free_memory()') == 6 << 30


def test_a_driver_without_a_gpu(driver):
    """cuInit gives 100, CUDA_ERROR_NO_DEVICE."""
    assert driver('cuda.ask()', INIT='100', VERSION='11020') == {'driver': None, 'cuda': '11.2', 'gpus': []}


def test_no_driver():
    if os.path.exists('/proc/driver/nvidia') or shutil.which('nvidia-smi'):
        pytest.skip('there is a driver here')
    assert cuda.ask() is None


def about(*names, version='12.2'):
    return {'driver': None, 'cuda': version, 'gpus': [{'name': name, 'capability': '8.6', 'memory': 1} for name in names]}


@pytest.mark.parametrize('gpu, message, found, parts', [
    (0, 'Cannot use GPU in CPU-only Caffe: check mode.', None, ['GPU 0', 'built without GPU support', 'target gpu']),
    (0, OLD, None, ['no NVIDIA driver', 'libcuda.so.1', '--gpus all']),
    (0, OLD, about('A', version='10.2'), ['driver here is for CUDA 10.2', 'needs 11.2']),
    (0, 'no CUDA-capable device is detected', about(), ['GPU 0', 'the driver shows no GPU here']),
    (1, 'invalid device ordinal', about('A'), ['GPU 1', 'one GPU only, number 0']),
    (-1, 'invalid device ordinal', about('A', 'B'), ['GPU -1', '2 GPUs, numbers 0 to 1']),
    (1, 'no kernel image is available', about('A', 'B'), ['GPU 1 (B) cannot be used: no kernel image']),
])
def test_what_is_missing_is_said(gpu, message, found, parts):
    line = cuda.missing(gpu, message, found)
    for part in parts:
        assert part in line
    assert '\n' not in line


def test_gpus_that_were_hidden_are_named(monkeypatch):
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '3')
    assert cuda.missing(3, 'invalid device ordinal', about('A')).endswith('one GPU only, number 0 (CUDA_VISIBLE_DEVICES=3)')
