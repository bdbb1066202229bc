"""Tables and blocks of Markdown."""

from typing import List


def markdown(heads: List[str], rows: List[List[str]], left: int = 1) -> str:
    """A table whose first `left` columns are words, the others numbers."""
    rule = ['---'] * left + ['--:'] * (len(heads) - left)
    return '\n'.join('| %s |' % ' | '.join(cells) for cells in [heads, rule] + rows)


def block(lines: List[str]) -> str:
    """What a command prints."""
    return '\n'.join(['```text'] + lines + ['```'])
