"""The recorded results: which tables there are, and what each of their columns means.

Tidy CSV tables, a row a measurement, each with what computed it. bcnn.results writes them,
analysis/ draws them. Standard library only.
"""

from collections import OrderedDict
from typing import Dict, NamedTuple, Tuple


class Table(NamedTuple):
    """A table of analysis/results."""

    name: str
    about: str                # what its rows are
    columns: Dict[str, str]   # {name: kind}, in order
    key: Tuple[str, ...]      # the columns that say which measurement a row is: it has one row only


# What a row was measured on. seed: of the training; empty for weights from elsewhere.
RUN = [('experiment', 'text'), ('dataset', 'text'), ('net', 'text'), ('fraction', 'text'), ('seed', 'int?')]
# How it was trained. schedule: '1/20' for a twentieth of the paper's in proportion, empty for the paper's own, to
# wherever it went; init: the SHA-256 of the weights that it started from, empty for the paper's own random ones.
TRAINING = [('schedule', 'text?'), ('init', 'text?')]
# adaptive: the most probability with which the class of an image is another than after all T passes, where T was
# adaptive; passes: the mean of an image then.
ADAPTIVE = [('adaptive', 'float?'), ('passes', 'float?')]
# streams: the version of the random numbers (bcnn.seeds); empty for the first.
STREAMS = [('streams', 'int?')]
EQUAL, GROUPS, COMMON = [('equal', 'float?')], [('groups', 'int?')], [('common', 'float?')]
LATER = TRAINING + ADAPTIVE + STREAMS + EQUAL + GROUPS + COMMON  # columns that tables of earlier versions lack
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
        ('errors', 'int'), ('n', 'int'), ('lr', 'float'), ('train_loss', 'float')] + TRAINING + ADAPTIVE,
        ('dataset', 'net', 'seed', 'schedule', 'init', 'stage', 'iteration', 'method', 'average', 'T', 'n',
         'adaptive')),
    # wrong: as in the table `wrong`; of each curve at its lowest point and at its last two
    _table('curve_wrong', 'which test images are wrong at points of a training curve', TRAINING + [
        ('stage', 'int'), ('iteration', 'int')] + METHOD + [
        ('data', 'text'), ('n', 'int'), ('wrong', 'text?')] + ADAPTIVE[:1],
        ('dataset', 'net', 'seed', 'schedule', 'init', 'stage', 'iteration', 'method', 'average', 'T', 'n',
         'adaptive')),
    # weights: where they come from: trained, published or unknown; iterations: of all stages
    _table('evaluations', 'Standard and MC test errors of final weights, a row a repetition (Table 1)', [
        ('iterations', 'int?'), ('weights', 'text')] + METHOD + [
        ('mode', 'text'), ('crops', 'int?'), ('mc_seed', 'int'), ('repetition', 'int'), ('errors', 'int'), ('n', 'int'),
        ('nll', 'float'), ('brier', 'float'), ('ece', 'float'),
        ('only_standard_right', 'int?'), ('only_mc_right', 'int?'), ('mcnemar_p', 'float?')] + TRAINING, REPETITION),
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
# Beyond the paper, by tools/study.py. iterations: of the weights. distance: of a layer's mean over masks from its
# output under weight averaging, relative to its size, squared; growth: of it from the layer before. Means over images,
# *_se their standard errors. Without the bias of T passes, so that it may be a little below zero. common: the share of
# the squared departure that is the same for all images; empty where there is no departure.
TABLES.update([
    _table('approximation', 'how far weight averaging is from the mean over masks, layer by layer', [
        ('iterations', 'int'), ('index', 'int'), ('layer', 'text'), ('type', 'text'), ('T', 'int'), ('n', 'int'),
        ('mc_seed', 'int'), ('distance', 'float'), ('distance_se', 'float'), ('growth', 'float'),
        ('growth_se', 'float')] + COMMON, ('config', 'layer')),
    _table('quality', 'errors, calibration and mutual information of variations of a net', [
        ('iterations', 'int'), ('method', 'text'), ('T', 'int'), ('mc_seed', 'int'), ('errors', 'int'), ('n', 'int'),
        ('nll', 'float'), ('brier', 'float'), ('ece', 'float'), ('entropy', 'float'),
        ('mutual_information', 'float?')], ('config', 'method')),
    # weights: row by row of the kernel, with spaces between
    _table('kernels', 'the kernels of the first convolution', [
        ('iterations', 'int'), ('layer', 'text'), ('map', 'int'), ('size', 'int'), ('weights', 'text')],
        ('config', 'layer', 'map')),
    # against: fashion_mnist or rotated; angle: empty for Fashion-MNIST and for all angles together. n, others: images
    # of the test set and of the other kind; errors: of the latter, where they have a class; inside, outside: mean of
    # the measure. gain: of the AUROC over the measure before it, with an interval of 95% over images.
    _table('off_data', 'how well uncertainty tells other images from those of the test set', [
        ('iterations', 'int'), ('against', 'text'), ('angle', 'int?'), ('method', 'text'), ('measure', 'text'),
        ('T', 'int'), ('mc_seed', 'int'), ('n', 'int'), ('others', 'int'), ('errors', 'int?'), ('auroc', 'float'),
        ('inside', 'float'), ('outside', 'float'), ('gain', 'float?'), ('gain_low', 'float?'),
        ('gain_high', 'float?')], ('config', 'against', 'angle', 'method', 'measure')),
    # probs, scores: of each pass, with spaces between; pixels: bytes in base64, row by row
    _table('rotation', 'what each pass says of a digit that is rotated', [
        ('iterations', 'int'), ('image', 'int'), ('label', 'int'), ('angle', 'int'), ('class', 'int'), ('T', 'int'),
        ('mc_seed', 'int'), ('probs', 'text'), ('scores', 'text'), ('size', 'int'), ('pixels', 'text')],
        ('config', 'angle', 'class'))])
# The one table that a person writes: a sentence or two a question, after seeing the results that it lies beside. It is
# data, so that a report of other runs does not say what ours showed.
TABLES['surprises'] = Table('surprises', 'what surprised in an experiment or a question beyond the paper', OrderedDict([
    ('question', 'text'), ('words', 'text')]), ('question',))
# What each config stands for, once for all tables. config_sha256: the whole of what `config` begins;
# data: SHA-256 of the records (training: train, then test set) or of the evaluated images; weights: of the
# evaluated weights; modified: whether the code differed from the commit.
LIBRARIES = ('caffe', 'python', 'numpy', 'protobuf', 'lmdb', 'blas', 'blas_kernel')
TABLES['provenance'] = Table('provenance', 'what computed the results: versions, checksums, seeds', OrderedDict(
    [('config', 'text'), ('config_sha256', 'text'), ('kind', 'text'), ('dataset', 'text'), ('net', 'text'),
     ('seed', 'int'), ('device', 'text?'), ('threads', 'int?'), ('data', 'text?'), ('weights', 'text?')]
    + [(name, 'text?') for name in LIBRARIES] + [('commit', 'text?'), ('modified', 'text?')] + STREAMS), ('config',))
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
# ours; equal: the same at equal accuracy, that is times the variance of the mean probabilities, 1 for plain passes.
# sgemm, memory: share of the machine's own rate of matrix products and of copying memory.
TABLES['bench'] = Table('bench', 'how fast things are on the machine that measured', OrderedDict([
    ('part', 'text'), ('subject', 'text?'), ('T', 'int?'), ('way', 'text'), ('value', 'float?'), ('unit', 'text'),
    ('low', 'float?'), ('high', 'float?'), ('times', 'float?')] + EQUAL + [
    ('sgemm', 'float?'), ('memory', 'float?'), ('rounds', 'int'), ('note', 'text?'), ('machine', 'text')]),
    ('part', 'subject', 'T', 'way'))
TABLES['bench_gpu'] = TABLES['bench']._replace(name='bench_gpu', about='the same on a GPU (tools/bench.py --gpu 0)')
# How an MC evaluation grows (tools/bench.py --growth --record). vary: which of T and images is changed;
# megabytes: the largest resident size of any process of the command.
TABLES['growth'] = Table('growth', 'how the cost of an MC evaluation grows with T, images and processes', OrderedDict([
    ('net', 'text'), ('vary', 'text'), ('T', 'int'), ('images', 'int'), ('jobs', 'int'), ('seconds', 'float'),
    ('low', 'float'), ('high', 'float'), ('megabytes', 'float'), ('batch', 'int'), ('rounds', 'int'),
    ('machine', 'text')]), ('net', 'vary', 'T', 'images', 'jobs'))
# Measured by tools/sampler.py. groups: of channels, G; a group of passes is 2^G. draws: groups of passes an image.
# variance: of a pass (summed over the classes, mean of the images); together: of the mean of a group, times its passes;
# gain: the first over the second: how many times less variance at equal passes; time: of a pass over that with Caffe's
# own dropout; worth: gain / time.
TABLES['sampler'] = Table('sampler', 'what antithetic masks gain', OrderedDict([
    ('net', 'text'), ('groups', 'int'), ('images', 'int'), ('draws', 'int'), ('variance', 'float'),
    ('together', 'float'), ('gain', 'float'), ('gain_se', 'float'), ('time', 'float'), ('worth', 'float'),
    ('weights', 'text'), ('machine', 'text')]), ('net', 'groups'))
# Measured by tools/profile_net.py: microseconds an image and pass; share in percent of the sampled part.
TABLES['layers'] = Table('layers', 'where the time of an MC pass goes', OrderedDict([
    ('net', 'text'), ('index', 'int'), ('layer', 'text'), ('type', 'text'), ('part', 'text'), ('time', 'float'),
    ('share', 'float?'), ('gflops', 'float?'), ('product_time', 'float?')]), ('net', 'index'))
# Measured by tools/check_adaptive.py. different: predictions that all T passes of the same stream change; empty
# where that was not checked. other_*: an evaluation with T passes for all and other masks, on the same images;
# noise: predictions in which the T passes of this stream and those of the other differ, by MC noise alone. groups: of
# channels, for antithetic masks; empty for masks drawn one by one.
TABLES['adaptive'] = Table('adaptive', 'adaptive T beside T passes for all', OrderedDict([
    ('net', 'text'), ('T', 'int'), ('error', 'float'), ('n', 'int'), ('mc_seed', 'int'), ('repetition', 'int'),
    ('passes', 'float'), ('percent', 'float'), ('median', 'float'), ('percentile_90', 'float'),
    ('percentile_99', 'float'), ('all_T', 'int'), ('errors', 'int'), ('different', 'int?'), ('full_errors', 'int?'),
    ('other_errors', 'int?'), ('other_different', 'int?'), ('noise', 'int?'), ('config', 'text')] + GROUPS),
    ('config', 'repetition'))
# Measured by tools/placement.py, sampled with adaptive T. passes: the mean of an image.
TABLES['placement'] = Table('placement', 'MC errors of the same weights with dropout in other places', OrderedDict([
    ('net', 'text'), ('placement', 'text'), ('T', 'int'), ('n', 'int'), ('mc_seed', 'int'), ('passes', 'float'),
    ('standard_errors', 'int'), ('errors', 'int'), ('only_standard_right', 'int'), ('only_mc_right', 'int'),
    ('config', 'text'), ('commit', 'text?')]), ('net', 'placement', 'T', 'n', 'mc_seed'))
# Results that others' should agree with, for tools/run_all.sh's last words (tools/agree.py --record): profile quick
# under several kernels of the BLAS. kind: curve or evaluation; iteration: of all stages; weights: of those evaluated.
TABLES['reference'] = Table('reference', 'results of short runs under several kernels of the BLAS', OrderedDict([
    ('dataset', 'text'), ('net', 'text'), ('seed', 'int?'), ('schedule', 'text?'), ('kind', 'text'),
    ('iteration', 'int?'), ('method', 'text'), ('T', 'int'), ('adaptive', 'float?'), ('repetition', 'int'),
    ('n', 'int'), ('errors', 'int'), ('blas', 'text?'), ('blas_kernel', 'text?'), ('device', 'text?'),
    ('weights', 'text?'), ('caffe', 'text?'), ('commit', 'text?')] + STREAMS),
    ('dataset', 'net', 'seed', 'schedule', 'kind', 'iteration', 'method', 'T', 'adaptive', 'repetition', 'n', 'blas',
     'blas_kernel', 'device', 'streams'))
# What tests/campaigns/faults/ tried. kind: fault (a command disturbed, then run again), input (damaged or hostile
# files) or soak (one long run). cases: faults injected, inputs tried, samples taken; refused: ended in
# one line; resumed: runs that went on to their end. Then what has to be 0: files of a result that
# differ from an undisturbed run's, files that are missing, and anything else that is wrong.
TABLES['faults'] = Table('faults', 'faults and hostile input tried, and what came of it', OrderedDict([
    ('kind', 'text'), ('target', 'text'), ('what', 'text'), ('cases', 'int'), ('refused', 'int'), ('resumed', 'int'),
    ('bytes_different', 'int'), ('results_lost', 'int'), ('problems', 'int'), ('seconds', 'float'), ('seed', 'int'),
    ('caffe', 'text?'), ('python', 'text?'), ('numpy', 'text?'), ('device', 'text?'), ('commit', 'text?')]),
    ('kind', 'target', 'what'))
# What tests/campaigns/containers.py and gpu_image.py did in real containers. image: the target of the Dockerfile;
# exit: of the command; megabytes: of what was made; passed, skipped, failed: of tools/test.sh.
TABLES['containers'] = Table('containers', 'the Dockerfile built and run in real containers', OrderedDict([
    ('image', 'text'), ('step', 'text'), ('command', 'text?'), ('network', 'text?'), ('exit', 'int?'),
    ('seconds', 'float'), ('megabytes', 'float?'), ('passed', 'int?'), ('skipped', 'int?'), ('failed', 'int?'),
    ('note', 'text?'), ('engine', 'text'), ('commit', 'text?')]), ('image', 'step'))
PROVENANCE_COLUMNS = tuple(name for name, _ in PROVENANCE) + ('experiment', 'fraction') + LIBRARIES + (
    'threads', 'modified', 'streams')
