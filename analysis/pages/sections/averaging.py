"""Where weight averaging departs from the mean over masks in the nets of Table 1, by tools/study.py approximation."""

import math

from pages.html import Html, fill, table
from records import names
from records.from_bcnn import paper
from records.load import where
from records.open_questions import percent_of_size

HEADS = ['net', 'layer', 'kind', 'distance, % of its size', 'of its square the same for all images, %', 'n', 'T']


def part(tables):
    """The part of Table 1's section, '' where nothing was measured."""
    shown = [cells for net in paper.TABLE1 for layers in measured(tables, net) for cells in rows(net, layers)]
    return fill('averaging', table=table(HEADS, shown, left=3)) if shown else Html('')


def rows(net, layers):
    """The table's rows as text: the layers after which the distance grows, and the scores, on which all depends."""
    scores = layers[layers['type'] != 'Softmax']['index'].max()
    trained = '%s, %s iterations' % (paper.title(net), names.count(layers['iterations'].iloc[0]))
    return [[trained, row['layer'], _kind(layers, row), '%.1f' % percent_of_size(row['distance']),
             names.DASH if math.isnan(row['common']) else '%.0f' % (100 * row['common']),
             names.count(row['n']), '%d' % row['T']]
            for _, row in layers.iterrows() if row['growth'] > 2 * row['growth_se'] or row['index'] == scores]


def _kind(layers, row):
    """What a layer is; a ReLU that works in place has written into what was measured, and grew nothing itself."""
    after = where(layers, index=row['index'] + 1, type='ReLU', growth=0)
    return row['type'] + (' and ReLU' if len(after) else '')


def measured(tables, net):
    """The rows of a net in order of layers, for each length of its training; of several measurements those on most
    images."""
    found = where(tables['approximation'], dataset='cifar10', net=net)
    best = [max(zip(rows['n'], rows['T'], rows['config']))[2] for _, rows in found.groupby('iterations')]
    return [where(found, config=config).sort_values('index') for config in reversed(best)]
