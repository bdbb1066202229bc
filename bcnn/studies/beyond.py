"""The studies beyond the paper as tools/study.py runs them: one after the other, each in a line or two."""

import argparse
import math
from typing import Iterator

from .. import beyond
from ..data import sets
from ..errors import UserError
from . import approximation, off_data, quality, trained

MEASURES = {'approximation': approximation.measure, 'quality': quality.measure, 'off_data': off_data.measure}


def command(args: argparse.Namespace) -> Iterator[str]:
    """Yields lines for people: what each of the weights gave."""
    study = beyond.STUDIES[args.study]
    settings = trained.Settings(T=study.T if args.T is None else args.T, count=args.limit, seed=args.seed,
                                jobs=args.jobs, data=args.data)
    for name, value in (('--T', settings.T), ('--limit', args.limit)):
        if value is not None and value < 2:
            raise UserError('%s is %d: two or more are needed for a spread' % (name, value))
    subjects = [trained.subject(path, args.iteration) for path in args.weights]  # refused before anything is run
    for name in study.sets:
        sets.ensure(name, settings.data, not args.no_prepare)
    for subject in subjects:
        yield '%s, %s, seed %d, %d iterations' % (beyond.title(subject.net), subject.dataset, subject.seed,
                                                  subject.iterations)
        tables = trained.run(args.study, MEASURES[args.study], subject, settings, args.out)
        yield from ('  ' + LINES[table](row) for table, rows in tables.items() if table in LINES for row in rows)


def _approximation(row):
    same = '' if row.get('common') is None else ', %.0f%% of its square the same for all images' % (
        100 * row['common'])
    return '%-10s %-13s distance %5.1f%% of its size%s' % (
        row['layer'], row['type'], 100 * math.sqrt(max(0.0, row['distance'])), same)


def _quality(row):
    information = row['mutual_information']
    return '%-8s error %.2f%%, ECE %.4f, NLL %.4f%s' % (
        row['method'], 100.0 * row['errors'] / row['n'], row['ece'], row['nll'],
        '' if information is None else ', mutual information %.4f' % information)


def _off_data(row):
    gain = '' if row['gain'] is None else ', %+.4f [%+.4f, %+.4f] over the one before' % (
        row['gain'], row['gain_low'], row['gain_high'])
    angle = '' if row['angle'] is None else ' by %d' % row['angle']
    return '%-18s %-8s %-18s AUROC %.4f%s' % (row['against'] + angle, row['method'], row['measure'], row['auroc'], gain)


LINES = {'approximation': _approximation, 'quality': _quality, 'off_data': _off_data}
