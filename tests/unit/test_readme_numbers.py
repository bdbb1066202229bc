"""The numbers that README.md shows are those of analysis/results, not somebody's memory."""

import os
import re

import numpy as np
import pytest

from bcnn import results
from conftest import ROOT

RESULTS = os.path.join(ROOT, 'analysis', 'results')


def readme():
    with open(os.path.join(ROOT, 'README.md'), encoding='utf-8') as file:
        return ' '.join(file.read().split(' '))


def evaluation(dataset, net):
    """(Standard error, [MC errors]) of the recorded evaluation with the most repetitions, as the report takes it."""
    rows = [row for row in results.read(RESULTS, 'evaluations')
            if (row['dataset'], row['net']) == (dataset, net) and row['mode'] == 'stream']
    configs = {row['config'] for row in rows}
    found = {}
    for config in configs:
        errors = {kind: [100.0 * row['errors'] / row['n'] for row in rows if row['config'] == config
                         and row['method'] == kind and row['average'] in (None, 'probs')] for kind in ('standard', 'mc')}
        found[config] = errors['standard'][0], errors['mc']
    return max(found.values(), key=lambda pair: len(pair[1]))


@pytest.mark.parametrize('start, dataset, net', [('| NIN, published', 'cifar10', 'nin'),
                                                 ('| lenet-all, MNIST', 'mnist', 'lenet_all')])
def test_headline_table(start, dataset, net):
    line = next(line for line in readme().splitlines() if line.startswith(start))
    standard, mc = evaluation(dataset, net)
    cells = [cell.strip() for cell in line.split('|')]
    assert cells[2] == '%.2f' % standard
    spread = ' +- %.2f' % np.std(mc, ddof=1) if len(mc) > 1 else ''
    assert cells[3].startswith('%.2f%s (' % (np.mean(mc), spread))
    words = {1: 'one', 2: 'two', 3: 'three', 4: 'four', 5: 'five'}
    assert '(%s repetition' % words[len(mc)] in cells[3]


def test_what_adaptive_and_antithetic_sampling_give():
    text = ' '.join(readme().split())
    nin = [row for row in results.read(RESULTS, 'adaptive') if row['net'] == 'cifar10/nin' and row['n'] == 10000]
    row = min(nin, key=lambda row: row['different'] is None)
    assert '%.1f%% of the passes, test error %.2f%%' % (row['percent'], 100.0 * row['errors'] / row['n']) in text
    gains = [row['gain'] for row in results.read(RESULTS, 'sampler')]
    assert '%.1f to %.1f times less variance' % (min(gains), max(gains)) in text


def test_speeds():
    bench = {(row['part'], row['subject'], row['way']): row['value'] for row in results.read(RESULTS, 'bench')}
    passes = [bench['MC', net, 'stream'] / 1000 for net in ('mnist/lenet_all', 'mnist/lenet_ip', 'cifar10/nin')]
    assert '| %.2f ms / %.3f ms / %.1f ms |' % tuple(passes) in readme()
    assert '64 images | %.0f ms |' % bench['training', 'mnist/lenet_all', 'driver'] in readme()
    cifar = [value for (part, subject, way), value in bench.items()
             if part == 'training' and way == 'driver' and subject.startswith('cifar10')]
    low, high = re.search(r'on CIFAR-10, NIN or DSN \| ([\d.]+) to ([\d.]+) s', readme()).groups()
    assert ('%.1f' % (min(cifar) / 1000), '%.1f' % (max(cifar) / 1000)) == (low, high)
