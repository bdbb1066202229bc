"""What the NVIDIA driver says of the GPUs here, and what is missing where one cannot be used.

The driver is asked through its own library, libcuda.so.1, so that an answer needs neither Caffe nor
CUDA's own packages. To be asked in a process of its own (bcnn.system.processes): one that has asked
cannot fork another that uses a GPU.
"""

import ctypes
import os
import re
from collections import OrderedDict
from typing import Any, Dict, Optional

CAPABILITY = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
NEEDED = '11.2'      # of Debian 11, which Caffe is compiled with (Dockerfile)
VISIBLE = 'CUDA_VISIBLE_DEVICES'


def ask() -> Optional[Dict[str, Any]]:
    """The driver's version, the CUDA that it is for, the GPUs with name, capability, memory; None for no driver."""
    try:
        driver = ctypes.CDLL('libcuda.so.1')
    except OSError:
        return None
    works = driver.cuInit(0) == 0
    gpus = [_gpu(driver, number) for number in range(_number(driver.cuDeviceGetCount))] if works else []
    version = _number(driver.cuDriverGetVersion)  # 11020 for 11.2
    return OrderedDict(driver=_kernel_module(), cuda='%d.%d' % (version // 1000, version % 1000 // 10), gpus=gpus)


def _gpu(driver, number):
    device = _number(driver.cuDeviceGet, number)
    name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
    driver.cuDeviceGetName(name, len(name), device)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    capability = [_number(driver.cuDeviceGetAttribute, attribute, device) for attribute in CAPABILITY]
    return OrderedDict(name=name.value.decode('utf-8', 'replace'), capability='%d.%d' % tuple(capability),
                       memory=memory.value)


def _number(function, *args):
    """What a function of the driver's writes to its first argument; 0 where it fails."""
    value = ctypes.c_int()
    return value.value if function(ctypes.byref(value), *args) == 0 else 0


def _kernel_module():
    """The driver's own version, such as 535.104.05; None where it does not tell."""
    try:
        with open('/proc/driver/nvidia/version') as file:
            match = re.search(r'\s(\d+\.\d[\d.]*)\s', file.read())
    except OSError:
        return None
    return match and match.group(1)


def free_memory() -> int:
    """The bytes that are free on the GPU which this process has opened."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ctypes.CDLL('libcuda.so.1').cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return free.value


def is_lack_of_memory(message: str) -> bool:
    """Whether Caffe ended for want of memory on the GPU."""
    return any(words in message for words in ('cudaSuccess (2 vs. 0)', 'CUBLAS_STATUS_ALLOC_FAILED',
                                              'CURAND_STATUS_ALLOCATION_FAILED'))


def missing(gpu: int, message: str, driver: Optional[Dict[str, Any]]) -> str:
    """Why GPU number `gpu` cannot be used, in a line: from Caffe's last words and what ask() says."""
    if 'CPU-only' in message:
        return ('GPU %d asked for, but this Caffe is built without GPU support: compute on the CPU, or use the Caffe '
                "of the Dockerfile's target gpu" % gpu)
    if driver is None:
        return ('GPU %d asked for, but there is no NVIDIA driver here (libcuda.so.1 does not load): install one; a '
                'container gets it by --gpus all' % gpu)
    if 'driver version is insufficient' in message:
        return ('GPU %d asked for, but the NVIDIA driver here is for CUDA %s, and this Caffe needs %s: update it'
                % (gpu, driver['cuda'], NEEDED))
    if not 0 <= gpu < len(driver['gpus']):
        return 'GPU %d asked for, but the driver shows %s%s' % (gpu, _how_many(len(driver['gpus'])), _visible())
    return 'GPU %d (%s) cannot be used: %s' % (gpu, driver['gpus'][gpu]['name'], message)


def _how_many(count):
    return {0: 'no GPU here', 1: 'one GPU only, number 0'}.get(count, '%d GPUs, numbers 0 to %d' % (count, count - 1))


def _visible():
    return ' (%s=%s)' % (VISIBLE, os.environ[VISIBLE]) if VISIBLE in os.environ else ''
