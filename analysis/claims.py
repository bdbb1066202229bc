"""Which statements of the paper the recorded results support, and what they say to questions of our own."""

from command_line import start
from verdicts import statements


def show(tables, _):
    """Prints a line a statement; writes nothing."""
    for title, judged in (('Statements of the paper', statements.of_paper(tables)),
                          ('Questions of our own', statements.of_ours(tables)),
                          ('Beyond the paper', statements.beyond_paper(tables))):
        print('%s:' % title)
        for statement in judged:
            print('  %-12s %s %s%s' % (statement.verdict, statement.text, statement.numbers,
                                       ' [%s]' % statement.scope if statement.scope else ''))
            if statement.decides:
                print('  %-12s would be decided by: %s' % ('', statement.decides))
    return []


if __name__ == '__main__':
    start(__doc__, show)
