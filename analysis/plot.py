"""Every figure, Table 1 and the report from the recorded results: no Caffe, no data, pandas and matplotlib alone."""

import os

import common
import report
import table1


def make(tables, out):
    """Writes all; gives the paths."""
    pictures = report.draw(tables, out)
    figures = [os.path.join(out, 'figures', name + kind) for name in pictures for kind in ('.png', '.svg')]
    return figures + table1.make(tables, out) + report.make(tables, out, pictures)


if __name__ == '__main__':
    common.start(__doc__, make)
