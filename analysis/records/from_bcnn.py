"""All that analysis/ takes from bcnn, in one place: the paper's table, the columns of the results, costs, errors.

These modules are plain Python; nothing here needs Caffe.
"""

import sys

from .requirements import ROOT

if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from bcnn import beyond, paper  # noqa: E402,F401  (after the path is set)
from bcnn.errors import UserError  # noqa: E402,F401
from bcnn.results import csv_tables, schema  # noqa: E402,F401
from bcnn.system import durations  # noqa: E402,F401
from bcnn.workflow import cost  # noqa: E402,F401
