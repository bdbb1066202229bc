"""The kernels asked of OpenBLAS, from what a processor says of itself, and that OpenBLAS takes them."""

import os
import subprocess
import sys

import numpy  # noqa: F401  (loads the BLAS)
import pytest

from bcnn.system import blas
from conftest import ROOT

AVX512 = 'avx avx2 fma bmi2 avx512f avx512cd avx512bw avx512dq avx512vl'


@pytest.mark.parametrize('flags, name', [
    ('fpu sse2 ' + AVX512, 'SkylakeX'),
    ('fpu avx avx2 fma bmi2 avx512f', 'Haswell'),  # a part of AVX-512 is not enough
    ('fpu avx avx2 fma bmi2', 'Haswell'),
    ('fpu avx', 'Sandybridge'),
    ('fpu sse2', None),
])
def test_kernels_by_flags(tmp_path, flags, name):
    path = tmp_path / 'cpuinfo'
    path.write_text('processor\t: 0\nmodel name\t: x\nflags\t\t: %s\nbugs\t\t:\n' % flags)
    assert blas.kernel(str(path)) == name


def test_no_cpuinfo_leaves_the_choice_to_openblas(tmp_path):
    assert blas.kernel(str(tmp_path / 'none')) is None
    (tmp_path / 'arm').write_text('Features : fp asimd\n')
    assert blas.kernel(str(tmp_path / 'arm')) is None


def environment_after(call, **env):
    code = 'import os; from bcnn.system import blas; %s; print([os.environ.get(n) for n in ("OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE")])' % call
    clean = {name: value for name, value in os.environ.items() if name not in blas.THREADS + ('OPENBLAS_CORETYPE',)}
    return eval_list(subprocess.run([sys.executable, '-c', code], cwd=ROOT, env=dict(clean, **env), check=True,
                                    stdout=subprocess.PIPE, universal_newlines=True).stdout)


def eval_list(text):
    return [None if part.strip() == 'None' else part.strip().strip("'") for part in text.strip().strip('[]').split(',')]


def test_one_thread_unless_asked_for():
    assert environment_after('blas.prepare()') == ['1', blas.kernel()]
    assert environment_after('blas.prepare(3)') == ['3', blas.kernel()]


def test_the_users_choice_holds():
    assert environment_after('blas.prepare()', OPENBLAS_NUM_THREADS='2', OPENBLAS_CORETYPE='Nehalem') == ['2', 'Nehalem']


def test_openblas_takes_the_kernels():
    library, kernels = blas.loaded()
    if library != 'openblas' or not blas.kernel():
        pytest.skip('no OpenBLAS in this process')
    assert kernels == os.environ['OPENBLAS_CORETYPE']


MAPS = '''55e0-55e1 r--p 00000000 fe:00 12   /a place/usr/bin/python3.9
7f00-7f01 rw-p 00000000 00:00 0
7f01-7f02 r-xp 00000000 fe:00 13   /a place/lib/openblas-pthread/%s
7f02-7f03 r-xp 00000000 fe:00 14   /a place/lib/libm.so.6
'''


@pytest.mark.parametrize('file, name', [('libopenblasp-r0.3.13.so', 'openblas'), ('libmkl_rt.so.1', 'mkl'), ('libblis.so.3', 'blis')])
def test_the_library_is_found_in_a_path_with_spaces(file, name):
    assert blas.find(MAPS % file) == ('/a place/lib/openblas-pthread/' + file, name)


def test_no_library_known():
    assert blas.find(MAPS % 'libother.so') == (None, 'unknown')


def test_a_library_whose_file_is_gone_is_still_named(monkeypatch):
    """The prefix is made anew under a run that takes days: found by tests/campaigns/faults/campaign.py."""
    monkeypatch.setattr(blas, 'find', lambda maps: ('/no/libopenblas.so.0 (deleted)', 'openblas'))
    assert blas.loaded() == ('openblas', None)
