"""What computed a result: versions and the commit; of the machine only what its speed depends on. And whose folder it
is: config.json and provenance.json are written together, once."""

import os
import subprocess
from typing import Any, Dict, Optional, Sequence

from ..errors import UserError
from . import places, store


def settle(folder: str, config: Dict[str, Any], what: str, software: Dict[str, Any],
           apart_from: Sequence[str] = ()) -> Optional[Dict[str, Any]]:
    """The config that a folder has; None where it had none, and gets this one and what computes it.

    Refuses the folder of another run, study or evaluation (what), with the differences; apart_from: names that may
    differ. software: of engine.describe().
    """
    path = os.path.join(folder, places.CONFIG)
    there = store.read_json(path)
    if there is None:
        store.write_json(os.path.join(folder, places.PROVENANCE), collect(software))
        store.write_json(path, config)
        return None
    same = dict.fromkeys(apart_from)
    different = store.differences(dict(there, **same), dict(config, **same))
    if different:
        raise UserError('%s holds another %s (%s): choose another --out' % (folder, what, '; '.join(different)))
    return there


def collect(software: Dict[str, Any]) -> Dict[str, Any]:
    """What computes a run: that of engine.describe() without paths, and the commit; nothing of this machine.

    modified: whether tracked files differ from that commit; None where there is none.
    """
    commit = _git('rev-parse', 'HEAD') or None
    modified = bool(_git('status', '--porcelain', '--untracked-files=no')) if commit else None
    kept = {name: value for name, value in software.items() if name != 'caffe_path'}
    return dict(kept, commit=commit, modified=modified)


def machine(software: Dict[str, Any]) -> str:
    """The processor, its cores and the BLAS, in a line; software: of engine.describe()."""
    with open('/proc/cpuinfo') as file:
        model = next((line.split(':')[1].strip() for line in file if line.startswith('model name')), 'unknown')
    return '%s, %d cores, %s %s' % (model, os.cpu_count(), software['blas'], software['blas_kernel'])


def short_commit(computed_by: Dict[str, Any]) -> Optional[str]:
    """Ten digits of a provenance's commit, as the tables have it; None where the project was no checkout."""
    return (computed_by.get('commit') or '')[:10] or None


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
