"""The report: pages of HTML that put every result beside the paper's.

Knows records, figures and verdicts; is known by plot.py and compare.py alone. HTML stands in templates/, with named
places; whatever comes from data is escaped on its way into them (html.fill).
"""
