"""The commands that made the recorded results, as far as the results tell."""

from records import evaluations, names
from records.from_bcnn import paper
from records.load import where

NIN_WEIGHTS = ' --weights data/nin_weights/cifar10_nin.caffemodel'
START = 'runs/start.caffemodel'  # the file that a training was started from
MODES = {'stream': '', 'replicate': ' --mode replicate', 'antithetic': ' --sampler antithetic',
         'shared': ' --sampler shared', 'adaptive': ' --adaptive'}


def commands(tables, experiment):
    """The commands that made an experiment's rows; the paper's full runs where there are none."""
    runs = paper.find(experiment)
    if experiment in ('table1', 'fig4'):
        besides = placement_commands(tables) + departing_commands(tables) if experiment == 'table1' else []
        return besides + evaluation_commands(tables, [(run.dataset, run.net) for run in runs])
    lines = []
    for run in runs:
        rows = where(tables['curves'], of_paper=True, dataset=run.dataset, net=run.net)
        for _, group in rows.groupby('config'):
            lines.append(training_command(tables, run.net, run.dataset, group))
        if not len(rows):
            lines.append('python tools/train.py --net %s --dataset %s --seed 1    # not run yet'
                         % (run.net, run.dataset))
    return lines + ['python tools/record.py', 'python analysis/%s.py' % experiment]


def _streams(tables, config):
    """The option for random numbers of the version that a recorded config had; '' for today's."""
    newer = where(tables['provenance'], config=config)['streams'].dropna()
    return '' if len(newer) else ' --streams 1'


def training_command(tables, net, dataset, group, iterations=None):
    """tools/train.py with what the recorded rows of one run show of its settings.

    iterations: of all stages together, where they are known; else the run ends with its curve.
    """
    stages, schedule = group.groupby('stage')['iteration'].max(), group['schedule'].iloc[0]
    stages.iloc[-1] = max(stages.iloc[-1], (iterations or 0) - stages.iloc[:-1].sum())
    line = 'python tools/train.py --net %s --dataset %s --seed %d %s' % (
        net, dataset, group['seed'].iloc[0],
        '--schedule %s' % schedule if schedule else
        '--iters %s' % ','.join('%d' % stages.get(stage, 0) for stage in range(1, stages.index.max() + 1)))
    passes = group['T'].max()
    if passes:
        line += ' --T %d' % passes
    if group['n'].max() < paper.TEST_IMAGES:
        line += ' --test-limit %d' % group['n'].max()
    line += _streams(tables, group['config'].iloc[0])
    if group['init'].iloc[0]:
        line += ' --init %s --out %s    # SHA-256 %s...' % (START, _started(group.iloc[0]), group['init'].iloc[0][:8])
    return line


def evaluation_commands(tables, targets):
    """tools/mc_eval.py for the evaluations that are shown."""
    lines = []
    for dataset, net in targets:
        groups = evaluations.chosen(tables, dataset, net)
        for group in groups:
            if group['weights'].iloc[0] == 'trained':
                lines.append(_training_of(tables, net, dataset, group.iloc[0]))
            lines += [_evaluation_command(tables, net, dataset, masks) for _, masks in group.groupby('mc_seed')]
        if not groups:
            run = paper.of_net(dataset, net)
            lines.append('python tools/mc_eval.py --net %s --dataset %s --T %d --repeats %d    # not run yet'
                         % (net, dataset, run.T, run.repetitions))
    return lines + ['python tools/record.py', 'python analysis/plot.py']


def placement_commands(tables):
    """tools/placement.py for the nets whose dropout was moved."""
    lines = []
    for (net, T, n, seed), _ in tables['placement'].groupby(['net', 'T', 'n', 'mc_seed']):
        dataset, name = net.split('/')
        weights = NIN_WEIGHTS if name == 'nin' else ''
        part = ' --limit %d' % n if n < paper.TEST_IMAGES else ''
        lines.append('python tools/placement.py --net %s --dataset %s%s --T %d --seed %d%s --record'
                     % (name, dataset, weights, T, seed, part))
    return lines


def departing_commands(tables):
    """What made the evaluations with random crops, and those of runs that were started from given weights."""
    lines = []
    for group in evaluations.departing(tables, of_table1=True):
        row = group.iloc[0]
        if row['init']:
            if row['init'] in names.NIN_AS_DSN:
                lines.append('python tools/nin_to_dsn.py --out %s' % START)
            runs = where(tables['curves'], dataset=row['dataset'], net=row['net'], init=row['init'], seed=row['seed'])
            lines += [training_command(tables, row['net'], row['dataset'], run, row['iterations'])
                      for _, run in runs.groupby('config')]
        if row['init'] or row['crops'] == row['crops']:
            lines += [_evaluation_command(tables, row['net'], row['dataset'], masks)
                      for _, masks in group.groupby('mc_seed')]
    return lines


def _started(row):
    """The folder for a run that was started from weights, of which only the SHA-256 is recorded."""
    return 'runs/%s-from-%s' % (row['net'], row['init'][:8])


def _training_of(tables, net, dataset, row):
    rows = where(tables['curves'], of_paper=True, dataset=dataset, net=net, seed=row['seed'], schedule=row['schedule'])
    if len(rows):
        return training_command(tables, net, dataset, rows, row['iterations'])
    return 'python tools/train.py --net %s --dataset %s --seed %d' % (net, dataset, row['seed'])


def _evaluation_command(tables, net, dataset, group):
    row, mc = group.iloc[0], where(group, method='mc', average='probs')
    line = 'python tools/mc_eval.py --net %s --dataset %s --T %d --repeats %d' % (net, dataset, mc['T'].max(), len(mc))
    if row['weights'] == 'published':
        line += NIN_WEIGHTS
    elif row['init']:
        line += ' --weights %s/final.caffemodel' % _started(row)
    elif row['weights'] == 'trained':
        line += ' --training-seed %d' % row['seed']
    if row['mc_seed'] != 1:
        line += ' --seed %d' % row['mc_seed']
    line += MODES[row['mode']]
    if row['crops'] == row['crops']:
        line += ' --crops %d' % row['crops']
    if row['n'] < paper.TEST_IMAGES:
        line += ' --limit %d' % row['n']
    return line + _streams(tables, row['config'])
