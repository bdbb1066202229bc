"""What evaluations measured of their uncertainty: calibration, errors left after rejection, the extreme images."""

import base64
from typing import List, Optional

import numpy as np
import pandas as pd

from . import evaluations
from .from_bcnn import UserError, paper
from .load import Tables, by_probabilities, where

FEW = 10  # images in a bin; of fewer, the accuracy says little
RANKING = 'entropy'  # of the predictive distribution: what the extreme images are ranked by
HINGE = ('dsn', 'dsn_aug')  # trained with a squared hinge loss: their softmax is of margins, not of a likelihood
NO_LIKELIHOOD = ('DSN is trained with a hinge loss: its probabilities are a softmax of margins, and its NLL, ECE and '
                 'entropy are not those of a likelihood.')


def calibration_error(groups: List[pd.DataFrame], method: str) -> float:
    """The ECE, mean over repetitions and seeds."""
    return by_probabilities(pd.concat(groups), method)['ece'].mean()


def likelihood(groups: List[pd.DataFrame], method: str) -> float:
    """The negative log likelihood, mean over repetitions and seeds."""
    return by_probabilities(pd.concat(groups), method)['nll'].mean()


def calibration_bins(tables: Tables, groups: List[pd.DataFrame], method: str) -> pd.DataFrame:
    """Mean confidence and accuracy of each bin over repetitions and seeds; bins with few images are left out."""
    rows = by_probabilities(evaluations.rows_of(tables['calibration'], groups), method)
    of_bin = rows[rows['count'] >= FEW].groupby('bin')
    return pd.DataFrame({'confidence': of_bin['confidence'].mean(), 'mean': of_bin['accuracy'].mean(),
                         'std': of_bin['accuracy'].std(ddof=1).fillna(0.0)})


def error_kept(tables: Tables, groups: List[pd.DataFrame], method: str, measure: str) -> pd.DataFrame:
    """Mean and std of the error kept at each share rejected, over repetitions and seeds."""
    rows = where(by_probabilities(evaluations.rows_of(tables['risk'], groups), method), measure=measure)
    at_share = (100.0 * rows['errors_kept'] / rows['kept']).groupby(rows['rejected'])
    return pd.DataFrame({'mean': at_share.mean(), 'std': at_share.std(ddof=1).fillna(0.0)}).reset_index()


def extreme_images(tables: Tables, dataset: str, net: str) -> pd.DataFrame:
    """The rows of the most and the least uncertain images of a net's best evaluation, of its first repetition."""
    best = evaluations.chosen(tables, dataset, net)[:1]
    first = [where(group, config=group['config'].iloc[0]) for group in best]
    return where(evaluations.rows_of(tables['images'], first), measure=RANKING)


def picture(tables: Tables, dataset: str, image: int) -> Optional[np.ndarray]:
    """The pixels of a test image, (height, width) or (height, width, 3); None where they are not recorded."""
    rows = where(tables['thumbnails'], dataset=paper.base_of(dataset), image=image)
    if not len(rows):
        return None
    row = rows.iloc[0]
    size = row['height'] * row['width'] * row['channels']
    try:
        data = base64.b64decode(row['pixels'], validate=True)
    except ValueError:
        data = b''
    if len(data) != size:
        raise UserError('thumbnails.csv: the pixels of %s image %d are damaged' % (dataset, image))
    shape = (row['height'], row['width']) + ((row['channels'],) if row['channels'] > 1 else ())
    return np.frombuffer(data, np.uint8).reshape(shape)
