"""The commands that made the recorded results, as far as the results tell."""

import common

NIN_WEIGHTS = ' --weights data/nin_weights/cifar10_nin.caffemodel'


def commands(tables, experiment):
    """The commands that made an experiment's rows; the paper's full runs where there are none."""
    runs = common.paper.find(experiment)
    if experiment in ('table1', 'fig4'):
        moved = placement_commands(tables) if experiment == 'table1' else []
        return moved + evaluation_commands(tables, [(run.dataset, run.net) for run in runs])
    lines = []
    for run in runs:
        rows = common.where(tables['curves'], dataset=run.dataset, net=run.net)
        for _, group in rows.groupby('config'):
            lines.append(training_command(run.net, run.dataset, group))
        if not len(rows):
            lines.append('python tools/train.py --net %s --dataset %s --seed 1    # not run yet'
                         % (run.net, run.dataset))
    return lines + ['python tools/record.py', 'python analysis/%s.py' % experiment]


def training_command(net, dataset, group):
    """tools/train.py with what the recorded rows of one run show of its settings."""
    stages = group.groupby('stage')['iteration'].max()
    line = 'python tools/train.py --net %s --dataset %s --seed %d --iters %s' % (
        net, dataset, group['seed'].iloc[0], ','.join('%d' % n for n in stages))
    passes = group['T'].max()
    if passes:
        line += ' --T %d' % passes
    if group['n'].max() < common.paper.TEST_IMAGES:
        line += ' --test-limit %d' % group['n'].max()
    return line


def evaluation_commands(tables, pairs):
    """tools/mc_eval.py for the evaluations that are shown."""
    lines = []
    for dataset, net in pairs:
        chosen = common.evaluations(tables, dataset, net)
        for group in chosen:
            if group['weights'].iloc[0] == 'trained':
                lines.append(_training_of(tables, net, dataset, group['seed'].iloc[0]))
            lines += [_evaluation_command(net, dataset, made) for _, made in group.groupby('mc_seed')]
        if not chosen:
            lines.append('python tools/mc_eval.py --net %s --dataset %s --T 100 --repeats 5    # not run yet'
                         % (net, dataset))
    return lines + ['python tools/record.py', 'python analysis/plot.py']


def placement_commands(tables):
    """tools/placement.py for the nets whose dropout was moved."""
    lines = []
    for (net, T, n, seed), _ in tables['placement'].groupby(['net', 'T', 'n', 'mc_seed']):
        dataset, name = net.split('/')
        weights = NIN_WEIGHTS if name == 'nin' else ''
        part = ' --limit %d' % n if n < common.paper.TEST_IMAGES else ''
        lines.append('python tools/placement.py --net %s --dataset %s%s --T %d --seed %d%s --record'
                     % (name, dataset, weights, T, seed, part))
    return lines


def _training_of(tables, net, dataset, seed):
    rows = common.where(tables['curves'], dataset=dataset, net=net, seed=seed)
    if len(rows):
        return training_command(net, dataset, rows)
    return 'python tools/train.py --net %s --dataset %s --seed %d' % (net, dataset, seed)


def _evaluation_command(net, dataset, group):
    row, mc = group.iloc[0], common.where(group, method='mc', average='probs')
    line = 'python tools/mc_eval.py --net %s --dataset %s --T %d --repeats %d' % (net, dataset, mc['T'].max(), len(mc))
    if row['weights'] == 'published':
        line += NIN_WEIGHTS
    elif row['weights'] == 'trained':
        line += ' --training-seed %d' % row['seed']
    if row['mc_seed'] != 1:
        line += ' --seed %d' % row['mc_seed']
    if row['mode'] != 'stream':
        line += ' --mode %s' % row['mode']
    if row['n'] < common.paper.TEST_IMAGES:
        line += ' --limit %d' % row['n']
    return line
