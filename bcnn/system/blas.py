"""How the BLAS library will compute: said in the environment, before numpy or caffe load it and read that once.

OpenBLAS 0.3.13 (Debian 11) knows processors by model number and gives an unknown one its
oldest kernels (Prescott, 2004): measured 28 GFLOP/s of sgemm instead of 97 (Haswell's
kernels) or 143 (SkylakeX's) on one core of a Xeon of 2024. What a processor can do stands
in its flags, so the kernels are asked for by those.
"""

import ctypes
import os
import re
from typing import MutableMapping, Optional, Tuple

THREADS = ('OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS', 'OMP_NUM_THREADS')
NEEDS = (
    ('SkylakeX', {'avx512f', 'avx512cd', 'avx512bw', 'avx512dq', 'avx512vl'}),
    ('Haswell', {'avx2', 'fma', 'bmi2'}),
    ('Sandybridge', {'avx'}),
)


def kernel(cpuinfo: str = '/proc/cpuinfo') -> Optional[str]:
    """The name of OpenBLAS's best kernels for this processor, or None to leave the choice to it."""
    try:
        with open(cpuinfo) as file:
            flags = next((set(line.split(':')[1].split()) for line in file if line.startswith('flags')), set())
    except OSError:
        return None
    return next((name for name, needed in NEEDS if needed <= flags), None)


def prepare(threads: Optional[int] = None, environment: MutableMapping[str, str] = os.environ) -> None:
    """Set the number of threads (one unless given, or set by the user) and the kernels, for all that starts here.

    One thread: two processes of one thread beat one with two, and oversubscription is
    ruinous. Without effect on a BLAS that is loaded already.
    """
    for variable in THREADS:
        if threads:
            environment[variable] = str(threads)
        elif not environment.get(variable, '').isdigit():  # not set, or to something that is no number
            environment[variable] = '1'
    name = kernel()
    if name:
        environment.setdefault('OPENBLAS_CORETYPE', name)


def loaded() -> Tuple[str, Optional[str]]:
    """(name, kernels) of the BLAS library in this process; OpenBLAS alone tells its kernels."""
    with open('/proc/self/maps') as maps:
        path, name = find(maps.read())
    if name != 'openblas':
        return name, None
    try:
        library = ctypes.CDLL(path)
    except OSError:  # the prefix was made anew while this process runs: its files are gone, the library works on
        return name, None
    library.openblas_get_corename.restype = ctypes.c_char_p
    return name, library.openblas_get_corename().decode()


def find(maps: str) -> Tuple[Optional[str], str]:
    """(path, name) of the BLAS among the files that a process has mapped: the text of /proc/PID/maps."""
    paths = sorted(set(fields[5] for fields in (line.split(None, 5) for line in maps.splitlines()) if len(fields) == 6))
    for name in ('openblas', 'mkl', 'blis', 'atlas'):
        for path in paths:  # may have spaces
            if re.search(r'/lib%s[^/]*\.so[^/]*$' % name, path):
                return path, name
    return None, 'unknown'
