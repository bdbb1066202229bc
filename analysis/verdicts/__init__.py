"""What the paper says, judged by the recorded results: no verdict is typed by hand.

Knows the records and statistics. Knows nothing of figures and pages.
"""
