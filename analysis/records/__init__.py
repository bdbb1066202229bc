"""The recorded results: which rows to show, what they measured, and how to call them.

Knows pandas and, through `from_bcnn` alone, the paper's table. Knows nothing of figures, verdicts and pages.
"""

from . import requirements  # noqa: F401  (before anything imports pandas: says what to do where there is none)
