"""Records as JSON files: read and written whole, compared, and told apart by checksums."""

import hashlib
import json
from typing import Any, Dict, List, Optional

from ..errors import UserError
from . import files

MAX_JSON = 64 << 20  # bytes: no record of ours comes near


# --- records ---------------------------------------------------------------------------------

def read_json(path: str) -> Optional[Dict[str, Any]]:
    """The dictionary in a JSON file of ours, None where there is no file; one line if it is damaged."""
    try:
        with open(path) as file:
            text = file.read(MAX_JSON + 1)
        if len(text) > MAX_JSON:
            raise ValueError('too large')
        record = json.loads(text)
        if isinstance(record, dict):
            return record
        raise ValueError('not an object')
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise UserError('%s: damaged (%s): remove its folder to start anew' % (path, error))


def write_json(path: str, value: Dict[str, Any]) -> None:
    """Writes a dictionary, whole or not at all."""
    with files.atomic(path) as temporary, open(temporary, 'w') as file:
        json.dump(value, file, indent=1)
        file.write('\n')


def sha256(path: str) -> str:
    """The SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        for chunk in iter(lambda: file.read(1 << 20), b''):
            digest.update(chunk)
    return digest.hexdigest()


def identity(config: Dict[str, Any]) -> str:
    """The SHA-256 of what a config says; how many iterations it has does not change what a run is."""
    said = {name: value for name, value in config.items() if name != 'iterations'}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def differences(theirs: Dict[str, Any], mine: Dict[str, Any]) -> List[str]:
    """['T 50, here 10', ...]: where two configs differ, nested names joined by dots."""
    texts = []
    for name in list(mine) + [name for name in theirs if name not in mine]:
        old, new = theirs.get(name), mine.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            texts += ['%s.%s' % (name, text) for text in differences(old, new)]
        elif old != new:
            texts.append('%s %s, here %s' % (name, _short(old), _short(new)))
    return texts


def _short(value):
    text = 'none' if value is None else str(value)
    return text if len(text) < 40 else text[:12] + '...'
