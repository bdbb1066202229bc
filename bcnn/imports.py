"""What importing Caffe loads: no more than is needed, because every command begins with it."""

import contextlib
import importlib
import sys
import types
from typing import Iterator


def prepare() -> None:
    """To be called before Caffe is imported: makes that take 0.3 s instead of 0.8.

    Caffe's helpers for pictures bring scikit-image and half of scipy, and nobody here uses them. And protobuf takes
    all of setuptools for what it does as well without.
    """
    load_later('caffe.io')
    with without('pkg_resources'):
        import google.protobuf.text_format  # noqa: F401


class Later(types.ModuleType):
    """Stands for a module until an attribute of it is asked for."""

    def __getattr__(self, name):
        if name.startswith('__'):  # what the import machinery asks of any module
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), name)


def load_later(name: str) -> None:
    """Let `import name` give a stand-in, unless the module is loaded already."""
    sys.modules.setdefault(name, Later(name))


@contextlib.contextmanager
def without(name: str) -> Iterator[None]:
    """`import name` fails inside as if it were not installed, unless it is loaded already."""
    hidden = name not in sys.modules
    if hidden:
        sys.modules[name] = None
    try:
        yield
    finally:
        if hidden:
            del sys.modules[name]
