"""What computed a result: versions and the commit; of the machine only what its speed depends on."""

import os
import subprocess
from typing import Any, Dict, Optional

from . import places


def collect(about: Dict[str, Any]) -> Dict[str, Any]:
    """What computes a run: `about` from engine.describe() without paths, and the commit; nothing of this machine.

    modified: whether tracked files differ from that commit; None where there is none.
    """
    commit = _git('rev-parse', 'HEAD') or None
    modified = bool(_git('status', '--porcelain', '--untracked-files=no')) if commit else None
    kept = {name: value for name, value in about.items() if name != 'caffe_path'}
    return dict(kept, commit=commit, modified=modified)


def machine(about: Dict[str, Any]) -> str:
    """The processor, its cores and the BLAS, in a line; about: from engine.describe()."""
    with open('/proc/cpuinfo') as file:
        model = next((line.split(':')[1].strip() for line in file if line.startswith('model name')), 'unknown')
    return '%s, %d cores, %s %s' % (model, os.cpu_count(), about['blas'], about['blas_kernel'])


def short_commit(about: Dict[str, Any]) -> Optional[str]:
    """Ten digits of a provenance's commit, as the tables have it; None where the project was no checkout."""
    return (about.get('commit') or '')[:10] or None


def _git(*words):
    """What a git command says of this project; '' where there is no git, or it fails."""
    if not os.path.exists(os.path.join(places.ROOT, '.git')):
        return ''
    try:
        done = subprocess.run(('git', '-C', places.ROOT) + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, universal_newlines=True)
    except OSError:
        return ''
    return done.stdout.strip() if done.returncode == 0 else ''
