"""What every script of analysis/ shares: the recorded results as data frames, which of them to show, the command line.

Needs pandas and matplotlib, nothing else; of this project's package only the paper's table,
the columns of the results and what runs cost, which are plain Python.
"""

import argparse
import glob
import os
import subprocess
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

try:
    import matplotlib  # noqa: F401  (drawn with in style.py)
    import pandas as pd
except ImportError as missing:
    python = os.path.join(os.path.dirname(HERE), 'tools', 'python')  # the one of tools/setup.sh has both
    ready = os.path.exists(python) and subprocess.call([python, '-c', 'import matplotlib, pandas'],
                                                       stderr=subprocess.DEVNULL) == 0
    if ready and 'BCNN_RELAUNCHED' not in os.environ:
        os.execve(python, [python] + sys.argv, dict(os.environ, BCNN_RELAUNCHED='1'))
    sys.exit('%s: %s: pip install pandas matplotlib, or tools/setup.sh' % (os.path.basename(sys.argv[0]), missing))

from bcnn import paper, results  # noqa: E402  (after the path is set)
from bcnn.errors import UserError  # noqa: E402

RESULTS = os.path.join(HERE, 'results')
FILLS = 'python tools/record.py'  # the command that fills the results folder
Z = 1.96  # standard errors on each side: a 95% interval
SMALL = 1000  # test images; of fewer, calibration and ranking say little
EMPTY = 'no results recorded yet: train and evaluate, then run `%s`' % FILLS
KINDS = {'int': 'int64', 'float': 'float64', 'int?': 'float64', 'float?': 'float64', 'text': 'object',
         'text?': 'object'}


# --- the results -------------------------------------------------------------------------------

def load(folder=RESULTS):
    """{table: data frame} of a results folder, empty where nothing is recorded; text is never missing, only empty."""
    if not os.path.isdir(folder) and os.path.exists(folder):
        raise UserError('%s: not a folder' % folder)
    return {name: frame(name, results.read(folder, name)) for name in results.TABLES}


def frame(name, rows):
    """The data frame of a table's rows."""
    columns = results.TABLES[name].columns
    made = pd.DataFrame([list(row.values()) for row in rows], columns=list(columns))
    for column, kind in columns.items():
        if kind.startswith('text'):
            made[column] = [value or '' for value in made[column]]
        made[column] = made[column].astype(KINDS[kind])
    return made


def is_empty(tables):
    return all(len(table) == 0 for table in tables.values())


def where(table, **values):
    """The rows in which these columns have these values."""
    for column, value in values.items():
        table = table[table[column] == value]
    return table


# --- curves ------------------------------------------------------------------------------------

def curve(tables, dataset, net, method, T=None):
    """The rows of one curve, all seeds: error in percent on the most test images there are.

    MC takes the asked T where it is recorded, else the largest. Iterations of later stages
    count on from the stage before.
    """
    rows = where(tables['curves'], dataset=dataset, net=net, method=method)
    rows = rows[rows['average'] != 'scores']
    if len(rows) and method == 'mc':
        rows = where(rows, T=T if T in set(rows['T']) else rows['T'].max())
    if len(rows):
        rows = where(rows, n=rows['n'].max())
    rows = rows.assign(error=100.0 * rows['errors'] / rows['n'], iteration=_cumulative(rows))
    return rows.sort_values(['seed', 'iteration'])


def _cumulative(rows):
    before = {}
    for seed, of_seed in rows.groupby('seed'):
        total = 0
        for stage in sorted(set(of_seed['stage'])):
            before[seed, stage] = total
            total += of_seed[of_seed['stage'] == stage]['iteration'].max()
    return [iteration + before[seed, stage] for seed, stage,
            iteration in zip(rows['seed'], rows['stage'], rows['iteration'])]


def over_seeds(rows, x='iteration', y='error'):
    """Mean and standard deviation (0 for one) of y over the seeds, where all have a value; columns x, mean, std, count.

    Seeds that share no x at all are kept as they are.
    """
    groups = rows.groupby(x)[y]
    made = pd.DataFrame({'mean': groups.mean(), 'std': groups.std(ddof=1).fillna(0.0), 'count': groups.count()})
    return made[made['count'] == made['count'].max()].reset_index()


# --- evaluations -------------------------------------------------------------------------------

def evaluations(tables, dataset, net):
    """One evaluation a training seed, the best there is, as the rows of evaluations.csv: longest training first,
    then most images, passes, repetitions. Only what the paper did: T independent passes for every image."""
    rows = where(tables['evaluations'], dataset=dataset, net=net)
    rows = rows[rows['mode'].isin(['stream', 'replicate'])]
    chosen = []
    for _, of_seed in rows.groupby(rows['seed'].fillna(-1)):
        best = max(_pooled(of_seed), key=_worth)
        if _worth(best)[0]:  # has both methods
            chosen.append(best)
    return sorted(chosen, key=_worth, reverse=True)


def _pooled(rows):
    """The evaluations among some rows of one training seed.

    Those that differ in nothing but the seed of the masks are one, with the repetitions of
    all: these may have been made on several days and machines.
    """
    found = {}
    for config, group in rows.groupby('config'):
        about = group.iloc[0]
        what = (config if about['weights'] == 'unknown' else '', about['weights'], str(about['iterations']),
                group['T'].max(), about['mode'], str(about['crops']), group['n'].max(), about['device'])
        by_masks = found.setdefault(what, {})
        # the same masks in other batches are no further repetitions: the longer of the two
        by_masks[about['mc_seed']] = max(by_masks.get(about['mc_seed'], group), group, key=len)
    return [pd.concat([by_masks[seed] for seed in sorted(by_masks)]) for by_masks in found.values()]


def _worth(group):
    mc = where(group, method='mc', average='probs')
    both = len(mc) > 0 and 'standard' in set(group['method'])
    return both, share(group.iloc[0]), group['n'].max(), group['T'].max(), len(mc)


def share(row):
    """How much of the paper's schedule the weights of a row saw: 1 for all of it, 0 where that is not known."""
    full = paper.schedule(row['experiment'], row['dataset'], row['net'])
    if row['weights'] == 'published':
        return 1.0
    return min(1.0, row['iterations'] / full) if full and row['iterations'] == row['iterations'] else 0.0


def evaluated(tables):
    """[(dataset, net)] with an MC evaluation to show, the paper's order first; see left_out()."""
    pairs = _evaluated(tables)
    return [pair for pair in pairs if not _is_small(tables, pair)] or pairs


def left_out(tables):
    """[(dataset, net)] that evaluated() leaves out: on so few images that they would be noise beside the others."""
    shown = evaluated(tables)
    return [pair for pair in _evaluated(tables) if pair not in shown]


def _is_small(tables, pair):
    return evaluations(tables, *pair)[0]['n'].max() < SMALL


def _evaluated(tables):
    rows = where(tables['evaluations'], method='mc')
    pairs = sorted(set(zip(rows['dataset'], rows['net'])))
    order = [(run.dataset, run.net) for run in paper.RUNS]
    pairs = [pair for pair in pairs if evaluations(tables, *pair)]
    return sorted(pairs, key=lambda pair: (order.index(pair) if pair in order else len(order), pair))


def of_evaluations(table, chosen):
    """The rows of a table that belong to these evaluations."""
    return table[table['config'].isin([config for group in chosen for config in group['config']])]


# --- in words ----------------------------------------------------------------------------------

def count(number):
    """12,345"""
    return '{:,}'.format(int(number))


def spread(mean, std):
    """'1.23 +- 0.04', without the second where it is not known."""
    return '%.2f' % mean + ('' if std is None or std != std else ' +- %.2f' % std)


def percent(part):
    """'1%', '0.02%': a share for people."""
    return '%s%%' % ('%.2g' % (100.0 * part) if part < 0.1 else '%.0f' % (100.0 * part))


def length(iterations, full):
    """'100,000 of 10,000,000 iterations (1%)', or '' where the run is as long as the paper's."""
    if not full or iterations >= full:
        return ''
    return '%s of %s iterations (%s)' % (count(iterations), count(full), percent(iterations / float(full)))


def shortened(tables, experiment, runs):
    """Notes for runs (dataset, net, method) that are missing, shorter than the paper's, or on part of the test set."""
    missing, short, part = [], {}, {}
    for name in runs:
        dataset, net, method = name
        run = paper.run_of(experiment, dataset, net)
        rows = curve(tables, dataset, net, method, run.T)
        if not len(rows):
            missing.append(name)
            continue
        # the shortest of the seeds
        reached = length(rows.groupby('seed')['iteration'].max().min(), sum(run.iterations))
        if reached:
            short.setdefault(reached, []).append(name)
        if rows['n'].iloc[0] < paper.TEST_IMAGES:
            part.setdefault('%s of %s test images' % (count(rows['n'].iloc[0]), count(paper.TEST_IMAGES)),
                            []).append(name)
        if method == 'mc' and rows['T'].iloc[0] != run.T:
            part.setdefault('T = %d, the paper has %d' % (rows['T'].iloc[0], run.T), []).append(name)
    drawn = [run for run in runs if run not in missing]
    notes = ['Shorter than the paper: %s: %s.' % (_names(names, drawn), text) for text, names in short.items()]
    notes += ['%s: %s.' % (_names(names, drawn), text) for text, names in part.items()]
    return notes + (['Not run: %s.' % _names(missing, runs)] if missing else [])


def _names(some, all_of_them):
    """'all curves on MNIST; lenet-ip MC on CIFAR-10': some of the curves in few words."""
    if len(some) == len(all_of_them) > 1:
        return 'all curves'
    words = []
    for dataset in sorted(set(run[0] for run in some), key=[run[0] for run in some].index):
        here = [run for run in some if run[0] == dataset]
        every = len(here) > 1 and len(here) == len([run for run in all_of_them if run[0] == dataset])
        names = 'all curves' if every else ', '.join(curve_name(net, method) for _, net, method in here)
        words.append('%s on %s' % (names, paper.title(dataset)))
    return '; '.join(words)


def curve_name(net, method):
    """'lenet-all MC'; a net without dropout has one method only."""
    return paper.title(net) + ('' if net == 'lenet_none' else {'standard': ' Standard', 'mc': ' MC'}[method])


def wrap(notes, width):
    """Notes as lines of at most this many characters."""
    return '\n'.join(line for note in notes for line in textwrap.wrap(note, width))


# --- the command line --------------------------------------------------------------------------

def parser(text):
    made = argparse.ArgumentParser(description=text)
    made.add_argument('--results', default=RESULTS, metavar='DIR',
                      help='the recorded tables (default: analysis/results/)')
    made.add_argument('--out', default=HERE, metavar='DIR',
                      help='where figures/, tables/ and report.html go (default: analysis/)')
    return made


def start(text, make, argv=None):
    """Runs make(tables, out), which gives the paths it wrote, and ends the process; errors are one line."""
    args = parser(text).parse_args(argv)
    name = os.path.basename(sys.argv[0])
    try:
        tables = load(args.results)
        if is_empty(tables):
            print('%s: %s: %s' % (name, os.path.relpath(args.results), EMPTY), file=sys.stderr)
        for path in make(tables, args.out):
            print(os.path.relpath(path))
    except UserError as error:
        sys.exit(_fail(name, error))
    except OSError as error:
        sys.exit(_fail(name, '%s: %s' % (error.filename, error.strerror) if error.filename else error))
    except KeyboardInterrupt:
        _fail(name, 'interrupted')
        sys.exit(130)
    sys.exit(0)


def _fail(name, problem):
    print('%s: %s' % (name, ' '.join(str(problem).split())), file=sys.stderr)
    return 2


def write(path, data):
    """Writes text or bytes beside the place and renames; gives the path. Leaves nothing else behind."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _sweep(path)
    part = '%s.%d.part' % (path, os.getpid())
    try:
        with open(part, 'wb') as file:
            file.write(data if isinstance(data, bytes) else data.encode('utf-8'))
        os.replace(part, path)
    except BaseException:  # a full disk, Ctrl-C
        if os.path.exists(part):
            os.remove(part)
        raise
    return path


def _sweep(path):
    """Removes what killed writers of this file left; where there is no /proc nobody can tell who still writes."""
    for left in glob.glob(glob.escape(path) + '.*.part') if os.path.isdir('/proc/self') else ():
        writer = left.split('.')[-2]
        if writer.isdigit() and not os.path.isdir('/proc/' + writer):
            os.remove(left)
