"""Makes sure of pandas and matplotlib: starts the script again under tools/python where this Python lacks them."""

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

try:
    import matplotlib  # noqa: F401
    import pandas  # noqa: F401
except ImportError as missing:
    python = os.path.join(ROOT, 'tools', 'python')  # the one of tools/setup.sh has both
    ready = os.path.exists(python) and subprocess.call([python, '-c', 'import matplotlib, pandas'],
                                                       stderr=subprocess.DEVNULL) == 0
    if ready and 'BCNN_RELAUNCHED' not in os.environ:
        os.execve(python, [python] + sys.argv, dict(os.environ, BCNN_RELAUNCHED='1'))
    sys.exit('%s: %s: pip install pandas matplotlib, or tools/setup.sh' % (os.path.basename(sys.argv[0]), missing))
