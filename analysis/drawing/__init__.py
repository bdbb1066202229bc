"""How figures look and are saved, and the parts that several of them share.

Knows matplotlib and the records. Knows nothing of verdicts and pages.
"""

import records  # noqa: F401  (says what to do where there is no matplotlib)
