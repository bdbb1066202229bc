"""The numbers that README.md shows are those of analysis/results, not somebody's memory."""

import os
import re
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from analysishelp import ROOT  # noqa: E402  (makes analysis/ importable)

import bench_chart
import claims
import common
import table1
from bcnn import cost, plan, results

NETS = ('mnist/lenet_ip', 'mnist/lenet_all', 'cifar10/nin')
RESULTS = os.path.join(ROOT, 'analysis', 'results')


WORDS = {2: 'two', 3: 'three', 4: 'four', 5: 'five'}


def readme():
    with open(os.path.join(ROOT, 'README.md'), encoding='utf-8') as file:
        return ' '.join(file.read().split(' '))


def part(n):
    """How a row says that not all test images were used."""
    return '' if n == common.paper.TEST_IMAGES else ', the first %s test images' % common.count(n)


EVALUATED = [('NIN, published weights, CIFAR-10, ', 'cifar10', 'nin'), ('lenet-all, MNIST, ', 'mnist', 'lenet_all'),
             ('lenet-ip, MNIST, ', 'mnist', 'lenet_ip'), ('DSN, CIFAR-10, ', 'cifar10', 'dsn'),
             ('Augmented-DSN, CIFAR-10, ', 'cifar10', 'dsn_aug')]
CURVES = [('lenet-none, MNIST, ', 'mnist', 'lenet_none'), ('lenet-all, 1/4 of MNIST, ', 'mnist_4', 'lenet_all'),
          ('lenet-ip, 1/4 of MNIST, ', 'mnist_4', 'lenet_ip'), ('lenet-all, 1/32 of MNIST, ', 'mnist_32', 'lenet_all'),
          ('lenet-ip, 1/32 of MNIST, ', 'mnist_32', 'lenet_ip'), ('lenet-all, CIFAR-10, ', 'cifar10', 'lenet_all'),
          ('lenet-ip, CIFAR-10, ', 'cifar10', 'lenet_ip'), ('lenet-none, CIFAR-10, ', 'cifar10', 'lenet_none')]


def headline(start=''):
    """The cells of the first headline row that begins so; of all of them for ''."""
    table = readme().split('| | Standard dropout |')[1].split('\n\n')[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.split('|')] for line in table]
    return next(cells for cells in rows if cells[1].startswith(start)) if start else rows


def test_every_headline_row_is_checked():
    assert sorted(cells[1] for cells in headline()) == sorted(headline(start)[1] for start, _, _ in EVALUATED + CURVES)


@pytest.mark.parametrize('start, dataset, net', EVALUATED)
def test_headline_rows_of_evaluations(start, dataset, net):
    cells, group = headline(start), common.evaluations(common.load(RESULTS), dataset, net)[0]
    line, row = table1.measured(group), group.iloc[0]
    if row['weights'] == 'trained':
        assert '%s iterations of %s,' % (common.count(row['iterations']), common.count(common.paper.schedule(
            row['experiment'], dataset, net))) in cells[1]
    assert re.split(' [([]', cells[1])[0].endswith('T=%d%s' % (line['T'], part(line['n'])))
    assert cells[2] == '%.2f' % line['standard']
    assert cells[3] == '%s (%s repetitions)' % (common.spread(line['mc'], line['std']), WORDS[line['repetitions']])
    if net in common.paper.PUBLISHED:
        published = common.paper.PUBLISHED[net]
        assert cells[4] == '%.2f / %s' % (published.standard, common.spread(published.mc, published.std))


@pytest.mark.parametrize('start, dataset, net', CURVES)
def test_headline_rows_of_curves(start, dataset, net):
    tables, cells = common.load(RESULTS), headline(start)
    last = common.curve(tables, dataset, net, 'standard').iloc[-1]
    full = common.paper.schedule(common.paper.experiment_of(dataset, net), dataset, net)
    assert cells[1].startswith('%s%s iterations of %s' % (start, common.count(last['iteration']), common.count(full)))
    assert cells[2] == '%.2f' % last['error']
    if net == 'lenet_none':
        assert cells[3] == '' and cells[1].endswith(common.count(full) + part(last['n']))
    else:
        mc = common.curve(tables, dataset, net, 'mc').iloc[-1]
        assert cells[3] == '%.2f (one measurement)' % mc['error'] and cells[1].endswith(', T=%d%s' % (mc['T'], part(mc['n'])))


def test_the_rises_of_figure_3():
    tables, text = common.load(RESULTS), ' '.join(readme().split())
    rises = []
    for net, method in (('lenet_ip', 'standard'), ('lenet_all', 'mc')):
        mean = common.over_seeds(common.curve(tables, 'mnist_32', net, method, T=10))['mean']
        rises.append(mean.iloc[-1] - mean.min())
    assert 'ends %.2f points above its lowest error, lenet-all with MC dropout %.2f,' % tuple(rises) in text
    known = {claim.key: claim for claim in claims.check(tables)}
    for dataset in ('mnist_4', 'mnist_32'):  # "ahead of lenet-ip"
        assert known['fig3-%s-mc-ahead' % dataset].verdict == claims.SUPPORTED
    for net in ('lenet_ip', 'lenet_all'):  # "both within the noise"
        assert known['fig3-mnist_32-%s-over-fits' % net].verdict == claims.UNKNOWN


def test_figure_2_on_mnist_is_judged_image_by_image_and_holds():
    tables, text = common.load(RESULTS), ' '.join(readme().split())
    assert 'Compared image by image, both are more than other test images could change' in text
    verdicts = {claim.key: claim.verdict for claim in claims.check(tables)}
    assert verdicts['fig2-mnist-standard-suffers'] == verdicts['fig2-mnist-mc-lowest'] == claims.SUPPORTED
    assert set(tables['curves'][tables['curves']['dataset'] == 'mnist']['seed']) == {1}


def test_what_cifar10_shows_so_far():
    tables, text = common.load(RESULTS), ' '.join(readme().split())
    errors = {(net, method): common.curve(tables, 'cifar10', net, method).iloc[-1]['error']
              for net in ('lenet_all', 'lenet_ip') for method in ('standard', 'mc')}
    assert "lenet-all's error from %.2f%% to %.2f%%. There lenet-ip is still ahead of it" % (
        errors['lenet_all', 'standard'], errors['lenet_all', 'mc']) in text
    assert max(errors['lenet_ip', 'standard'], errors['lenet_ip', 'mc']) < errors['lenet_all', 'mc']
    mine, theirs = [common.curve(tables, 'mnist', net, 'mc').set_index('iteration')['error']
                    for net in ('lenet_all', 'lenet_ip')]
    assert list(mine.index[mine > theirs]) == [200, 500, 1000, 2000] and 'as on MNIST from 200 to 2,000 iterations' in text
    assert {claim.verdict for claim in claims.check(tables) if claim.key.startswith('fig2-cifar10')} == {claims.UNKNOWN}


def test_what_adaptive_and_antithetic_sampling_give():
    text = ' '.join(readme().split())
    nin = [row for row in results.read(RESULTS, 'adaptive') if row['net'] == 'cifar10/nin']
    whole = [row for row in nin if row['different'] is not None and row['n'] == common.paper.TEST_IMAGES]
    total = {name: sum(row[name] for row in whole) for name in ('percent', 'different', 'n', 'errors', 'full_errors')}
    assert '%s repetitions of T=100 on all %s test images, watched' % (
        WORDS[len(whole)], common.count(common.paper.TEST_IMAGES)) in text
    assert 'decided at %.1f%% of the passes, %d of %s predictions' % (
        total['percent'] / len(whole), total['different'], common.count(total['n'])) in text
    assert 'test error %.3f%% instead of %.3f%%' % tuple(100.0 * total[name] / total['n'] for name in ('errors', 'full_errors')) in text
    gains = [row['gain'] for row in results.read(RESULTS, 'sampler')]
    assert '%.1f to %.1f times less variance' % (min(gains), max(gains)) in text


def test_where_dropout_samples():
    nin = {row['placement']: 100.0 * row['errors'] / row['n'] for row in results.read(RESULTS, 'placement')}
    assert ('MC error %.2f%% as it is, %.2f%% before pooling, %.2f%% with the first layer alone, %.2f%% with the second.' % tuple(
        nin[name] for name in ('as it is', 'before pooling', 'drop3 alone', 'drop6 alone'))) in ' '.join(readme().split())


def test_the_list_of_jobs_is_as_the_quick_profile_and_the_bench_have_it():
    known = cost.speeds(results.read(RESULTS, 'bench'))
    shown = {line.split()[0]: line.split('missing')[-1].strip() for line in readme().splitlines()
             if line.startswith(('train-mnist', 'evaluate-mnist'))}
    assert shown == {name: cost.clock(cost.seconds(job, known)) for name, job in plan.load('quick').jobs.items()}


def test_speeds():
    bench = {(row['part'], row['subject'], row['T'], row['way']): row['value'] for row in results.read(RESULTS, 'bench')}
    passes = [bench['MC', net, 100, 'stream'] / 1000 for net in NETS]
    assert '| %.4f ms / %.2f ms / %.1f ms |' % tuple(passes) in readme()
    assert '64 images | %.0f ms |' % bench['training', 'mnist/lenet_all', None, 'driver'] in readme()
    cifar = [value for (part, subject, _, way), value in bench.items()
             if part == 'training' and way == 'driver' and subject.startswith('cifar10')]
    low, high = re.search(r'on CIFAR-10, NIN or DSN \| ([\d.]+) to ([\d.]+) s', readme()).groups()
    assert ('%.1f' % (min(cifar) / 1000), '%.1f' % (max(cifar) / 1000)) == (low, high)


def test_the_table_of_ways_has_all_of_them_as_recorded():
    lines = readme().split('| way | lenet_ip |')[1].split('\n\n')[0].splitlines()[2:]
    shown = {cells[1].strip(): [cell.strip() for cell in cells[2:-1]] for cells in (line.split('|') for line in lines)}
    recorded = {}
    for row in results.read(RESULTS, 'bench'):
        if row['part'] == 'MC' and row['T'] == 100:
            recorded.setdefault(row['way'], {})[row['subject']] = row['value']
    assert shown == {way: [bench_chart.figure(values[net]) for net in NETS] for way, values in recorded.items()}
