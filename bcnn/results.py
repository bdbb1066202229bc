"""The recorded results: tidy CSV tables, a row a measurement, each with what computed it.

The one place that knows their columns: bcnn.record writes them, analysis/ draws them. Standard
library only.
"""

import csv
import io
import os
from collections import OrderedDict, namedtuple

from .errors import UserError

MOST = 1 << 53  # the largest whole number: what a float holds exactly, so that any tool reads it right
LONGEST = 1 << 24  # characters of a value: the wrong images of a large test set
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'analysis', 'results')

# Kinds of values; a question mark allows an empty one.
KINDS = {'text': str, 'int': int, 'float': float}

# columns: name -> kind, in order. key: the columns that say which measurement a row is;
# a second row with the same key has to have the same values.
Table = namedtuple('Table', 'name about columns key')

# What a row was measured on. seed: of the training; empty for weights from elsewhere.
RUN = [('experiment', 'text'), ('dataset', 'text'), ('net', 'text'), ('fraction', 'text'), ('seed', 'int?')]
# config: the first 8 hex digits of the SHA-256 of the configuration.
PROVENANCE = [('config', 'text'), ('caffe', 'text?'), ('device', 'text?'), ('commit', 'text?'), ('profile', 'text?')]
# average: of the T outputs as probs or scores, empty for Standard dropout, whose repetition is 0.
METHOD = [('method', 'text'), ('average', 'text?'), ('T', 'int')]
REPETITION = ('config', 'method', 'average', 'repetition')


def _table(name, about, columns, key):
    return name, Table(name, about, OrderedDict(RUN + columns + PROVENANCE), key)


TABLES = OrderedDict([
    _table('curves', 'test errors on the way of a training run (Figures 2 and 3)', [
        ('stage', 'int'), ('iteration', 'int')] + METHOD + [
        ('errors', 'int'), ('n', 'int'), ('lr', 'float'), ('train_loss', 'float')],
        ('dataset', 'net', 'seed', 'stage', 'iteration', 'method', 'average', 'T', 'n')),
    # weights: where they come from: trained, published or unknown; iterations: of all stages
    _table('evaluations', 'Standard and MC test errors of final weights, a row a repetition (Table 1)', [
        ('iterations', 'int?'), ('weights', 'text')] + METHOD + [
        ('mode', 'text'), ('crops', 'int?'), ('mc_seed', 'int'), ('repetition', 'int'), ('errors', 'int'), ('n', 'int'),
        ('nll', 'float'), ('brier', 'float'), ('ece', 'float'),
        ('only_standard_right', 'int?'), ('only_mc_right', 'int?'), ('mcnemar_p', 'float?')], REPETITION),
    _table('convergence', 'test errors after each of the T passes (Figure 4)',
           METHOD + [('repetition', 'int'), ('t', 'int'), ('errors', 'int'), ('n', 'int')], REPETITION + ('t',)),
    # confidence, accuracy: of the images in the bin; empty for an empty bin
    _table('calibration', 'confidence and accuracy in bins of confidence (reliability)', METHOD + [
        ('repetition', 'int'), ('bin', 'int'), ('bins', 'int'), ('count', 'int'), ('confidence', 'float?'),
        ('accuracy', 'float?')], REPETITION + ('bin',)),
    # errors_kept: expected, where images of equal uncertainty are rejected at random
    _table('risk', 'errors left after rejecting the most uncertain images (risk-coverage)', METHOD + [
        ('repetition', 'int'), ('measure', 'text'), ('rejected', 'int'), ('kept', 'int'), ('errors_kept', 'float'),
        ('n', 'int')],
        REPETITION + ('measure', 'rejected')),
    # wrong: the numbers of the images, with spaces between; data: SHA-256 of all the evaluated images
    _table('wrong', 'which test images are wrong, to compare two evaluations image by image',
           METHOD + [('repetition', 'int'), ('data', 'text'), ('n', 'int'), ('wrong', 'text?')], REPETITION),
    _table('images', 'the most and the least uncertain test images', METHOD + [
        ('repetition', 'int'), ('measure', 'text'), ('end', 'text'), ('rank', 'int'), ('image', 'int'),
        ('label', 'int'),
        ('standard', 'int'), ('standard_p', 'float'), ('mc', 'int'), ('mc_p', 'float'), ('uncertainty', 'float')],
        REPETITION + ('measure', 'end', 'rank')),
])
# What each config stands for, once for all tables. config_sha256: the whole of what `config` begins;
# data: SHA-256 of the records (training: train, then test set) or of the evaluated images; weights: of the
# evaluated weights; modified: whether the code differed from the commit.
LIBRARIES = ('caffe', 'python', 'numpy', 'protobuf', 'lmdb', 'blas', 'blas_kernel')
TABLES['provenance'] = Table('provenance', 'what computed the results: versions, checksums, seeds', OrderedDict(
    [('config', 'text'), ('config_sha256', 'text'), ('kind', 'text'), ('dataset', 'text'), ('net', 'text'),
     ('seed', 'int'), ('device', 'text?'), ('threads', 'int?'), ('data', 'text?'), ('weights', 'text?')]
    + [(name, 'text?') for name in LIBRARIES] + [('commit', 'text?'), ('modified', 'text?')]), ('config',))
# Pictures of the images above, once for all evaluations of a data set: bytes in base64, row by
# row, the colours of a pixel together. No provenance: they are the data set's own pixels.
THUMBNAILS = Table('thumbnails', 'the pixels of those images', OrderedDict([
    ('dataset', 'text'), ('image', 'int'), ('height', 'int'), ('width', 'int'), ('channels', 'int'),
    ('pixels', 'text')]),
    ('dataset', 'image'))
TABLES['thumbnails'] = THUMBNAILS
# Speed on one machine, which tools/bench.py --record replaces as a whole. way: what is measured, the
# others of the same part, subject and T beside it. value, low, high: median, least and most of the
# rounds, empty where it could not be measured (the note says why). times: how many times as long as
# ours. sgemm, memory: share of the machine's own rate of matrix products and of copying memory.
TABLES['bench'] = Table('bench', 'how fast things are on the machine that measured', OrderedDict([
    ('part', 'text'), ('subject', 'text?'), ('T', 'int?'), ('way', 'text'), ('value', 'float?'), ('unit', 'text'),
    ('low', 'float?'), ('high', 'float?'), ('times', 'float?'), ('sgemm', 'float?'), ('memory', 'float?'),
    ('rounds', 'int'), ('note', 'text?'), ('machine', 'text')]), ('part', 'subject', 'T', 'way'))
# How an MC evaluation grows (tools/bench.py --growth --record). vary: which of T and images is changed;
# megabytes: the largest resident size of any process of the command.
TABLES['growth'] = Table('growth', 'how the cost of an MC evaluation grows with T, images and processes', OrderedDict([
    ('net', 'text'), ('vary', 'text'), ('T', 'int'), ('images', 'int'), ('jobs', 'int'), ('seconds', 'float'),
    ('low', 'float'), ('high', 'float'), ('megabytes', 'float'), ('batch', 'int'), ('rounds', 'int'),
    ('machine', 'text')]), ('net', 'vary', 'T', 'images', 'jobs'))
# Measured by tools/sampler.py: variance of a pass (summed over the classes, mean of the images), correlation within
# a pair of complementary masks, gain: variance of the mean without pairs over that with them at equal passes, time:
# of a pass over that of Caffe's own dropout, worth: gain / time.
TABLES['sampler'] = Table('sampler', 'what antithetic masks gain', OrderedDict([
    ('net', 'text'), ('images', 'int'), ('pairs', 'int'), ('variance', 'float'), ('correlation', 'float'),
    ('correlation_se', 'float'), ('gain', 'float'), ('time', 'float'), ('worth', 'float'),
    ('weights', 'text')]), ('net',))
# Measured by tools/profile_net.py: microseconds an image and pass; share in percent of the sampled part.
TABLES['layers'] = Table('layers', 'where the time of an MC pass goes', OrderedDict([
    ('net', 'text'), ('index', 'int'), ('layer', 'text'), ('type', 'text'), ('part', 'text'), ('time', 'float'),
    ('share', 'float?'), ('gflops', 'float?'), ('product_time', 'float?')]), ('net', 'index'))
# Measured by tools/check_adaptive.py. different: predictions that all T passes of the same stream change; empty
# where that was not checked. other_*: an evaluation with T passes for all and other masks, on the same images;
# noise: predictions in which the T passes of this stream and those of the other differ, by MC noise alone.
TABLES['adaptive'] = Table('adaptive', 'adaptive T beside T passes for all', OrderedDict([
    ('net', 'text'), ('T', 'int'), ('error', 'float'), ('n', 'int'), ('mc_seed', 'int'), ('repetition', 'int'),
    ('passes', 'float'), ('percent', 'float'), ('median', 'float'), ('percentile_90', 'float'),
    ('percentile_99', 'float'), ('all_T', 'int'), ('errors', 'int'), ('different', 'int?'), ('full_errors', 'int?'),
    ('other_errors', 'int?'), ('other_different', 'int?'), ('noise', 'int?'), ('config', 'text')]),
    ('config', 'repetition'))
# Measured by tools/placement.py, sampled with adaptive T. passes: the mean of an image.
TABLES['placement'] = Table('placement', 'MC errors of the same weights with dropout in other places', OrderedDict([
    ('net', 'text'), ('placement', 'text'), ('T', 'int'), ('n', 'int'), ('mc_seed', 'int'), ('passes', 'float'),
    ('standard_errors', 'int'), ('errors', 'int'), ('only_standard_right', 'int'), ('only_mc_right', 'int'),
    ('config', 'text'), ('commit', 'text?')]), ('net', 'placement', 'T', 'n', 'mc_seed'))
# What tests/faults/ tried. kind: fault (a command disturbed, then run again), input (damaged or hostile
# files) or soak (one long run). cases: faults injected, inputs tried, samples taken; refused: ended in
# one line; resumed: runs that went on to their end. Then what has to be 0: files of a result that
# differ from an undisturbed run's, files that are missing, and anything else that is wrong.
TABLES['faults'] = Table('faults', 'faults and hostile input tried, and what came of it', OrderedDict([
    ('kind', 'text'), ('target', 'text'), ('what', 'text'), ('cases', 'int'), ('refused', 'int'), ('resumed', 'int'),
    ('bytes_different', 'int'), ('results_lost', 'int'), ('problems', 'int'), ('seconds', 'float'), ('seed', 'int'),
    ('caffe', 'text?'), ('python', 'text?'), ('numpy', 'text?'), ('device', 'text?'), ('commit', 'text?')]),
    ('kind', 'target', 'what'))
PROVENANCE_COLUMNS = tuple(name for name, _ in PROVENANCE) + ('experiment', 'fraction') + LIBRARIES + (
    'threads', 'modified')


def path(folder, name):
    return os.path.join(folder, name + '.csv')


# --- reading -----------------------------------------------------------------------------------

def read(folder, name):
    """The rows of a table as dictionaries, None for an empty value; [] where there is no file.

    Anything wrong with the file is a UserError of one line: file, line, problem.
    """
    table, where = TABLES[name], path(folder, name)
    if not os.path.exists(where):
        return []
    csv.field_size_limit(LONGEST)
    with open(where, newline='', encoding='utf-8') as file:
        return _parse(table, csv.reader(file, strict=True), where)


def _parse(table, reader, where):
    rows, seen, line = [], {}, 1
    try:
        for cells in reader:
            line = reader.line_num
            if line == 1:
                _check_header(table, cells)
                continue
            row = _row(table, cells)
            key = key_of(table, row)
            if key in seen:
                raise ValueError('the same measurement as line %d' % seen[key])
            seen[key] = line
            rows.append(row)
    except (ValueError, csv.Error) as error:  # bytes that are no UTF-8 raise a ValueError too
        raise UserError('%s, line %d: %s' % (where, max(line, reader.line_num), error))
    if reader.line_num == 0:
        raise UserError('%s, line 1: empty, without a header' % where)
    return rows


def _check_header(table, cells):
    wanted = list(table.columns)
    if cells == wanted:
        return
    missing = [name for name in wanted if name not in cells]
    extra = [name for name in cells if name not in wanted]
    problem = 'columns in another order'
    if missing or extra:
        problem = 'no column %s' % missing[0] if missing else 'unknown column %s' % extra[0]
    raise ValueError('%s; the columns are %s' % (problem, ','.join(wanted)))


def _row(table, cells):
    if len(cells) != len(table.columns):
        raise ValueError('%d values, there are %d columns' % (len(cells), len(table.columns)))
    return OrderedDict((name, _value(name, kind, cell)) for (name, kind), cell in zip(table.columns.items(), cells))


def _value(name, kind, cell):
    if not cell:
        if kind.endswith('?'):
            return None
        raise ValueError('%s is empty' % name)
    try:
        value = KINDS[kind.rstrip('?')](cell)
        if isinstance(value, float) and value - value != 0 or isinstance(value, int) and abs(value) > MOST:
            raise ValueError
    except ValueError:
        raise ValueError('%s is %r, not a %s'
                         % (name, cell, {'int': 'whole number', 'float': 'number'}[kind.rstrip('?')]))
    if name in ('n', 'errors', 'kept', 'count', 'iteration', 't') and value < 0:
        raise ValueError('%s is %r, below zero' % (name, cell))
    return value


def key_of(table, row):
    """What a row measures, as a tuple."""
    return tuple(row[name] for name in table.key)


# --- writing -----------------------------------------------------------------------------------

def text(name, rows):
    """The bytes of a table: rows in order of their key, numbers always written the same way."""
    table = TABLES[name]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator='\n')
    writer.writerow(list(table.columns))
    for row in sorted(rows, key=lambda row: order(table, row)):
        writer.writerow([cell(row[column]) for column in table.columns])
    return out.getvalue()


def cell(value):
    """How a value is written: floats with six significant digits."""
    if value is None:
        return ''
    return '%.6g' % value if isinstance(value, float) else str(value)


def order(table, row):
    """A sort key: data set, net, seed, then the table's key; empty values first."""
    names = [name for name in ('dataset', 'net', 'seed') if name in table.columns] + list(table.key)
    return [(row[name] is not None, row[name] if row[name] is not None else 0) for name in names]
