"""The rules for verdicts with their dates, the verdicts that one changed, and the rules for runs still to come."""

from pages.html import Html, Section, fill, items, table
from records import names
from verdicts import former, rules


def section(history):
    """history: of rules.history()."""
    dated = [[rule.text, '%s, %s' % (rule.date, rule.commit), rule.known, rule.note or names.DASH]
             for rule in rules.RULES]
    heads = ['statement'] + ['rules of %s' % former_rules.commit for former_rules in former.FORMER] + ['now']
    lines = [[cell or names.DASH for cell in line] for line in history.changed]
    return Section('rules', 'Rules', 'Rules for verdicts, and since when', fill(
        'rules', rules=table(['rule', 'since', 'results known then', 'note'], dated, left=4, kind='stack words'),
        changed=table(heads, lines, left=5) if lines else Html('<p>None.</p>'), counts=items(history.counts),
        date=rules.PLANNED_DATE, planned=table(['runs', 'rule'], rules.PLANNED, left=2, kind='stack words')))
