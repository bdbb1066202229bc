"""Arrays as .npz files: written whole or not at all, read with one line if they are damaged."""

import io
import zipfile
from typing import Any, Dict

import numpy as np

from ..errors import UserError
from . import files, processes


def write(path: str, arrays: Dict[str, Any]) -> None:
    """Writes {name: array} as an .npz file, whole or not at all."""
    packed = io.BytesIO()  # numpy writing to a full disk itself leaves a traceback behind
    np.savez(packed, **arrays)
    with files.atomic(path) as temporary, open(temporary, 'wb') as file:
        file.write(packed.getbuffer())


def read(path: str, advice: str) -> Dict[str, np.ndarray]:
    """{name: array} of an .npz file of ours; one line with the advice if it is damaged."""
    try:
        with zipfile.ZipFile(path) as packed:  # numpy's own attempt at a damaged file leaves a traceback behind
            size = sum(part.file_size for part in packed.infolist())
        if size > (processes.memory_limit() or size):
            raise ValueError('it unpacks to %d MB, more than the memory here' % (size >> 20))
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):  # numpy gives the bytes of parts that are no arrays
                raise ValueError('%r in it is no array' % name)
        return arrays
    except FileNotFoundError:
        raise UserError('%s: no such file: %s' % (path, advice))
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise many kinds on damaged files
        raise UserError('%s: not readable (%s): %s'
                        % (path, ' '.join(str(error).split()) or type(error).__name__, advice))
