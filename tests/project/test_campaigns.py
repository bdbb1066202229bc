"""The campaigns, which no test runs: each of them starts, and its page names it with what it needs."""

import glob
import os
import re
import subprocess
import sys

import pytest

from conftest import ROOT

FOLDER = os.path.join(ROOT, 'tests', 'campaigns')
STARTED_BY_OTHERS = ('faults/clock.py', 'faults/train_stages.py')  # what campaign.py disturbs


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


SCRIPTS = sorted(os.path.relpath(path, FOLDER) for path in glob.glob(os.path.join(FOLDER, '**', '*.py'), recursive=True)
                 if "__name__ == '__main__'" in read(path) and not path.endswith(STARTED_BY_OTHERS))


def test_the_page_has_every_campaign():
    lines = re.findall(r'^\| `([\w/]+\.py)` \|(.*)\|$', read(os.path.join(FOLDER, 'README.md')), re.MULTILINE)
    assert sorted(name for name, _ in lines) == SCRIPTS
    assert all(len(cells.split('|')) == 3 and all(map(str.strip, cells.split('|'))) for _, cells in lines)


@pytest.mark.caffe
@pytest.mark.parametrize('script', SCRIPTS)
def test_a_campaign_starts(script):
    """All that it imports is there."""
    result = subprocess.run([sys.executable, os.path.join(FOLDER, script), '--help'], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, universal_newlines=True)
    assert result.returncode == 0 and result.stdout.startswith('usage: '), result.stdout
