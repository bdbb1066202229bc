"""What a check of stored results finds, and where two results differ."""

from typing import Any, NamedTuple, Optional

import numpy as np

OK, WRONG, UNKNOWN = 'ok', 'WRONG', 'not checked'  # unknown: there is nothing to compare with
TOLERANCE = 1e-6  # relative: another numpy may round the last digit otherwise


class Finding(NamedTuple):
    """What a check has found."""

    path: str
    state: str    # OK, WRONG or UNKNOWN
    text: str


def judge(path: str, agrees: bool, text: str, problem: Optional[str]) -> Finding:
    return Finding(path, OK if agrees else WRONG, text if agrees else problem)


def difference(a: Any, b: Any, where: str = '') -> Optional[str]:
    """Where two nested values differ ('mc.probs.mean: 10.3 and 10.4'), None where they agree."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in list(b) + [name for name in a if name not in b]:
            if name not in a or name not in b:
                return '%s is %s' % ((where + '.' + name).lstrip('.'), 'missing' if name not in a else 'too much')
            inner = difference(a[name], b[name], where + '.' + name)
            if inner:
                return inner
        return None
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        same = a.shape == b.shape and a.dtype == b.dtype and (
            np.allclose(a, b, rtol=1e-5, atol=1e-9, equal_nan=True) if a.dtype.kind == 'f' else np.array_equal(a, b))
        return None if same else '%s differs' % where.lstrip('.')
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return '%s has %d entries, %d are right' % (where.lstrip('.') or 'it', len(a), len(b))
        return next((inner for inner in (difference(x, y, '%s[%d]' % (where, i))
                                         for i, (x, y) in enumerate(zip(a, b))) if inner), None)
    return None if _same(a, b) else '%s: %s, %s is right' % (where.lstrip('.'), a, b)


def _same(a, b):
    if type(a) in (int, float) and type(b) in (int, float) and not isinstance(a, bool):
        return a == b or abs(a - b) <= TOLERANCE * max(abs(a), abs(b))
    return a == b
