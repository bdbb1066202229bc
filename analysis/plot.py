"""Every figure, Table 1, the report and the rules from the recorded results, with pandas and matplotlib alone."""

import os

import rules
import table1
from command_line import start
from pages import report
from verdicts.rules import judge


def make(tables, out):
    """Writes all; gives the paths."""
    pictures = report.draw(tables, out)
    figures = [os.path.join(out, 'figures', name + kind) for name in pictures for kind in ('.png', '.svg')]
    judgement = judge(tables)
    return (figures + table1.make(tables, out) + report.make(tables, out, pictures, judgement)
            + rules.make(tables, out, judgement))


if __name__ == '__main__':
    start(__doc__, make)
