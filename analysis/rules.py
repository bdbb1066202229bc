"""The rules for verdicts with their dates, and the verdicts that a rule changed: rules.md."""

import os

from command_line import start, write
from verdicts import rules


def make(tables, out, judgement=None):
    """Writes rules.md; gives its path."""
    return [write(os.path.join(out, 'rules.md'), rules.markdown(tables, judgement))]


if __name__ == '__main__':
    start(__doc__, make)
