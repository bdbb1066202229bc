"""What the paper says, statement by statement, and questions of our own: two lists, counted apart.

A module an experiment; each function gives a judging.Statement computed from the recorded tables.
"""

from typing import List

from records.load import Tables
from verdicts.judging import Statement
from verdicts.statements import beyond, figure2, figure3, figure4, table1, time


def of_paper(tables: Tables) -> List[Statement]:
    """The statements of the paper with their verdicts, in its order."""
    return (figure2.statements(tables) + figure3.statements(tables) + table1.statements(tables)
            + figure4.statements(tables) + time.statements(tables))


def beyond_paper(tables: Tables) -> List[Statement]:
    """The open questions that were asked, judged by rules that were written before their runs; a list of its own."""
    return beyond.statements(tables)


def of_ours(tables: Tables) -> List[Statement]:
    """Questions that the paper does not answer, judged by the same rules."""
    return figure3.questions(tables) + table1.questions(tables) + figure4.questions(tables)
