"""The recorded tables as data frames."""

import os
from typing import Dict, List

import numpy as np
import pandas as pd

from .from_bcnn import UserError, csv_tables, paper, schema
from .requirements import ROOT

RESULTS = os.path.join(ROOT, 'analysis', 'results')
FILLS = 'python tools/record.py'  # the command that fills the results folder
EMPTY = 'no results recorded yet: train and evaluate, then run `%s`' % FILLS
KINDS = {'int': 'int64', 'float': 'float64', 'int?': 'float64', 'float?': 'float64', 'text': 'object',
         'text?': 'object'}

Tables = Dict[str, pd.DataFrame]


def load(folder: str = RESULTS) -> Tables:
    """{table: data frame} of a results folder, empty where nothing is recorded; text is never missing, only empty."""
    if not os.path.isdir(folder) and os.path.exists(folder):
        raise UserError('%s: not a folder' % folder)
    return mark({name: frame(name, csv_tables.read(folder, name)) for name in schema.TABLES})


def mark(tables: Tables) -> Tables:
    """The tables, with a column `of_paper` in those of runs: which rows may stand in the paper's."""
    for name in ('curves', 'curve_wrong', 'evaluations'):
        tables[name] = tables[name].assign(of_paper=_of_paper(tables[name]))
    return tables


def _of_paper(table: pd.DataFrame) -> pd.Series:
    """Which rows may stand in the paper's: not those of runs that were started from weights, nor those that belong to
    another experiment though their net and data are the paper's."""
    own = [experiment == paper.experiment_of(dataset, net) for experiment, dataset, net in
           zip(table['experiment'], table['dataset'], table['net'])]
    return (table['init'] == '') & pd.Series(own, index=table.index, dtype=bool)


def frame(name: str, rows: List[dict]) -> pd.DataFrame:
    """The data frame of a table's rows."""
    columns = schema.TABLES[name].columns
    table = pd.DataFrame([list(row.values()) for row in rows], columns=list(columns))
    for column, kind in columns.items():
        if kind.startswith('text'):
            table[column] = [value or '' for value in table[column]]
        table[column] = table[column].astype(KINDS[kind])
    return table


def is_empty(tables: Tables) -> bool:
    return all(len(table) == 0 for table in tables.values())


def where(table: pd.DataFrame, **values) -> pd.DataFrame:
    """The rows in which these columns have these values."""
    matching = np.ones(len(table), bool)
    for column, value in values.items():
        matching &= table[column].values == value  # pandas' own comparison is slow for so few rows
    return table[matching]


def by_probabilities(table: pd.DataFrame, method: str) -> pd.DataFrame:
    """The rows of a method; of MC dropout those that average probabilities, not scores."""
    return table[(table['method'] == method) & (table['average'] != 'scores')]
