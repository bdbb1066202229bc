"""Small result sets whose right picture and verdict are known, as the recorder would have written them."""

import base64
import os
from collections import OrderedDict

from bcnn import paper
from bcnn.results import csv_tables, schema
from conftest import ROOT

ANALYSIS = os.path.join(ROOT, 'analysis')

PROVENANCE = OrderedDict(caffe='1.0.0', device='cpu', commit='abcdef0123', profile='cpu')


class Synthetic:
    """Rows of all tables, added run by run."""

    def __init__(self):
        self.rows = {name: [] for name in schema.TABLES}

    def add(self, name, **values):
        columns = schema.TABLES[name].columns
        if 'experiment' in columns:
            known = dict(PROVENANCE, experiment=paper.experiment_of(values['dataset'], values['net']),
                         fraction=paper.fraction_of(values['dataset']))
            values = dict(known, **values)
        values = dict({name: None for name, _ in schema.LATER if name in columns}, **values)
        assert set(values) == set(columns), set(values) ^ set(columns)
        self.rows[name].append(OrderedDict((column, values[column]) for column in columns))

    def curve(self, dataset, net, method, points, seed=1, T=50, n=10000, stage=1, schedule=None, init=None,
              adaptive=None, **more_values):
        """points: {iteration: errors}; adaptive: the probability of another class, where T was adaptive; more_values:
        of other columns, such as experiment"""
        averages = (('probs', 0), ('scores', 7)) if method == 'mc' else ((None, 0),)  # 7, so that a mix-up is seen
        for iteration, errors in points.items():
            for average, more in averages:
                self.add('curves', dataset=dataset, net=net, seed=seed, stage=stage, iteration=iteration, method=method,
                         average=average, T=T if method == 'mc' else 0, errors=errors + more, n=n, lr=0.01,
                         train_loss=0.5, schedule=schedule, init=init, adaptive=adaptive,
                         passes=7.5 if adaptive else None,
                         config='c-%s-%s-%d%s' % (dataset, net, seed, schedule or ''), **more_values)
        return self

    def curve_wrong(self, dataset, net, method, iteration, numbers, seed=1, n=10000, data='ab' * 32, schedule=None):
        """Which images are wrong at a point of a curve."""
        self.add('curve_wrong', dataset=dataset, net=net, seed=seed, schedule=schedule, stage=1, iteration=iteration,
                 method=method, average='probs' if method == 'mc' else None, T=10 if method == 'mc' else 0, data=data,
                 n=n, wrong=' '.join(map(str, numbers)) or None, config='c-%s-%s-%d' % (dataset, net, seed))
        return self

    def evaluation(self, dataset, net, standard, curves, seed=None, weights='published', iterations=None, n=10000,
                   p=0.01, config=None, mc_seed=1, right=(20, 40), schedule=None, init=None, crops=None, mode='stream',
                   device='cpu'):
        """standard: errors; curves: of each repetition the errors after each pass; p: of all, or of each; right: images
        that Standard alone and that MC alone has right."""
        T = len(curves[0])
        run = dict(dataset=dataset, net=net, seed=seed, config=config or 'e-%s-%s-%s' % (dataset, net, seed))
        kinds = [dict(method='standard', average=None, T=0, repetition=0)]
        kinds += [dict(method='mc', average=average, T=T, repetition=k) for average in ('probs', 'scores')
                  for k in range(1, len(curves) + 1)]
        for kind in kinds:
            errors = standard if kind['method'] == 'standard' else curves[kind['repetition'] - 1][-1]
            errors += 5 if kind['average'] == 'scores' else 0  # so that a mix-up is seen
            ps = p if isinstance(p, list) else [p] * len(curves)
            paired = dict(only_standard_right=right[0], only_mc_right=right[1],
                          mcnemar_p=ps[kind['repetition'] - 1]) if kind['method'] == 'mc' else dict(
                only_standard_right=None, only_mc_right=None, mcnemar_p=None)
            self.add('evaluations', iterations=iterations, weights=weights, mode=mode, crops=crops, mc_seed=mc_seed,
                     errors=errors, n=n, schedule=schedule, init=init, device=device,
                     nll=0.4, brier=0.2, ece=0.07 if kind['method'] == 'standard' else 0.02,
                     **dict(run, **dict(kind, **paired)))
            self._bins(run, kind)
            if kind['average'] != 'scores':
                self._risk(run, kind, errors, n)
        for k, curve in enumerate(curves, 1):
            for t, errors in enumerate(curve, 1):
                for average, more in (('probs', 0), ('scores', 5)):
                    self.add('convergence', method='mc', average=average, T=T, repetition=k, t=t, errors=errors + more,
                             n=n, **run)
        self._images(run, T)
        return self

    def wrong(self, dataset, net, method, lists, seed=1, n=10000, data='ab' * 32):
        """lists: of each repetition the numbers of the images that are wrong; of the evaluation above."""
        for k, numbers in enumerate(lists, method == 'mc'):
            self.add('wrong', dataset=dataset, net=net, seed=seed, config='e-%s-%s-%s' % (dataset, net, seed),
                     method=method, average='probs' if method == 'mc' else None, T=20 if method == 'mc' else 0,
                     repetition=k, data=data, n=n, wrong=' '.join(map(str, numbers)) or None)
        return self

    def _bins(self, run, kind):
        for b in range(15):
            centre = (b + 0.5) / 15
            accuracy = centre if kind['method'] == 'mc' else 0.8 * centre
            count = 100 if b >= 5 else 5 if b == 4 else 0
            self.add('calibration', bin=b, bins=15, count=count, confidence=centre if count else None,
                     accuracy=accuracy if count else None, **dict(run, **kind))

    def _risk(self, run, kind, errors, n):
        names = ['max_prob', 'entropy']
        names += ['mutual_information', 'variation_ratio'] if kind['method'] == 'mc' else []
        for k, measure in enumerate(names):
            for rejected in (0, 10, 20, 50, 90):
                self.add('risk', measure=measure, rejected=rejected, kept=n * (100 - rejected) // 100,
                         errors_kept=errors * (1 - rejected / 100.0) ** (2 + k), n=n, **dict(run, **kind))

    def _images(self, run, T):
        base = paper.base_of(run['dataset'])
        height, channels = (28, 1) if base == 'mnist' else (32, 3)
        for end, first in (('most', 0), ('least', 100)):
            for rank in range(1, 9):
                self.add('images', method='mc', average='probs', T=T, repetition=1, measure='entropy', end=end,
                         rank=rank, image=first + rank,
                         label=rank % 10, standard=3, standard_p=0.5, mc=rank % 10, mc_p=0.9, uncertainty=1.0 / rank,
                         **run)
                if not any(row['dataset'] == base and row['image'] == first + rank for row in self.rows['thumbnails']):
                    pixels = bytes(bytearray((first + 7 * rank + i) % 256 for i in range(height * height * channels)))
                    self.add('thumbnails', dataset=base, image=first + rank, height=height, width=height,
                             channels=channels,
                             pixels=base64.b64encode(pixels).decode())

    def step(self, dataset, net, milliseconds):
        """A measured training step."""
        self.speed('training', '%s/%s' % (dataset, net), None, 'driver', milliseconds, unit='ms')

    def speed(self, part, subject, T, way, value, unit='us a pass', times=None, note=None, equal=None):
        """A row of the benchmark; a value of None could not be measured."""
        known = value is not None
        self.add('bench', part=part, subject=subject, T=T, way=way, value=float(value) if known else None, unit=unit,
                 low=0.9 * value if known else None, high=1.2 * value if known else None, times=times, equal=equal,
                 sgemm=0.25 if known else None, memory=None, rounds=5 if known else 0, note=note, machine='a machine')

    def grown(self, net, vary, T, images, jobs, seconds, megabytes=150.0):
        """A row of the growth table."""
        self.add('growth', net=net, vary=vary, T=T, images=images, jobs=jobs, seconds=float(seconds),
                 low=0.9 * seconds, high=1.1 * seconds, megabytes=megabytes, batch=100, rounds=3, machine='a machine')

    def measured(self):
        """A row in each table of measurements that stand for themselves."""
        self.add('sampler', net='cifar10/nin', groups=1, images=100, draws=20, variance=0.05, together=0.025, gain=2.0,
                 gain_se=0.02, time=1.1, worth=1.8, weights='abcd', machine='a machine')
        self.add('layers', net='cifar10/nin', index=3, layer='conv2', type='Convolution', part='sampled', time=1500.0,
                 share=60.0, gflops=110.0, product_time=None)
        self.add('adaptive', net='cifar10/nin', T=100, error=0.01, n=10000, mc_seed=1, repetition=1, passes=13.0,
                 percent=13.0, median=7.0, percentile_90=25.0, percentile_99=90.0, all_T=50, errors=1030, different=None,
                 full_errors=None, other_errors=1034, other_different=40, noise=None, config='abcd', groups=None)
        self.add('placement', net='cifar10/nin', placement='before pooling', T=100, n=10000, mc_seed=1, passes=13.0,
                 standard_errors=1043, errors=1041, only_standard_right=50, only_mc_right=52, config='abcd', commit='')
        self.add('containers', image='cpu', step='build', command=None, network=None, exit=None, seconds=300.0, megabytes=1270.0,
                 passed=None, skipped=None, failed=None, note=None, engine='podman version 4.3.1', commit='abcdef0123')
        self.rows['reference'].append(OrderedDict((column, {'int': 1, 'text': 'x'}.get(kind)) for column, kind in
                                                  schema.TABLES['reference'].columns.items()))

    def fault(self, kind='fault', target='train', what='kill -9', cases=7, seconds=60.0):
        """A count of the fault campaign."""
        self.add('faults', kind=kind, target=target, what=what, cases=cases, refused=1, resumed=6, bytes_different=0,
                 results_lost=0, problems=0, seconds=seconds, seed=1, caffe='1.0.0', python='3.9.2', numpy='1.19.5',
                 device='cpu', commit='abcdef0123')

    def described(self, config, streams=None):
        """What a config stands for."""
        self.add('provenance', config=config, config_sha256=config + 56 * '0', kind='training', dataset='mnist',
                 net='lenet_all', seed=1, device='cpu', threads=1, data='ab' * 32, weights=None, caffe='1.0.0',
                 python='3.9.2', numpy='1.19.5', protobuf='3.12.4', lmdb='1.0.0', blas='openblas', blas_kernel='Haswell',
                 commit='ab' * 20, modified='no', streams=streams)

    def write(self, folder):
        """Writes the tables; gives the folder as text."""
        for name, rows in self.rows.items():
            if rows:
                with open(csv_tables.path(str(folder), name), 'w', newline='') as file:
                    file.write(csv_tables.text(name, rows))
        return str(folder)

    def tables(self):
        """The data frames, as if written and read."""
        from records import load
        return load.mark({name: load.frame(name, rows) for name, rows in self.rows.items()})


LOG = [step * 10 ** power for power in range(2, 8) for step in (1, 2, 5)]


def points(last, first, floor, rise=0.0, low=20000):
    """{iteration: errors}: falls from `first` towards `floor`, and grows by `rise` errors a decade after `low`."""
    import math
    return OrderedDict((i, int(round(floor + (first - floor) * (100.0 / i) ** 0.8
                                     + rise * max(0.0, math.log10(i / float(low))))))
                       for i in LOG if i <= last)


def whole_paper(seeds=(1, 2, 3), length=1.0):
    """All experiments with the paper's outcome; length: share of the paper's schedules."""
    made = Synthetic()
    for dataset, full, scale in (('mnist', 10000000, 1), ('cifar10', 100000, 15)):
        last = int(full * length)
        for net, method, first, floor in (('lenet_all', 'standard', 3000, 300), ('lenet_all', 'mc', 1500, 50),
                                          ('lenet_ip', 'standard', 900, 85),
                                          ('lenet_ip', 'mc', 950, 82), ('lenet_none', 'standard', 800, 110)):
            for seed in seeds:
                made.curve(dataset, net, method, points(last, min(first * scale, 8000), floor * scale + 3 * seed), seed)
    for k, dataset in enumerate(('mnist_4', 'mnist_32'), 1):
        for net, method, rise in (('lenet_ip', 'standard', 30.0 * k), ('lenet_all', 'mc', 45.0 * (k - 1))):
            for seed in seeds:
                errors = points(int(1e6 * length), 2000, 150 * k + 2 * seed, rise, low=int(20000 * length))
                made.curve(dataset, net, method, errors, seed, T=10)
    for net, standard, final in (('nin', 1043, 1027), ('dsn', 937, 930), ('dsn_aug', 795, 771)):
        curves = [[final + k - 2 + int(300.0 / t) for t in range(1, 101)] for k in range(5)]
        published = net == 'nin'
        made.evaluation('cifar10', net, standard, curves, seed=None if published else 1,
                        weights='published' if published else 'trained',
                        iterations=None if published else int(200000 * length))
    made.wrong('cifar10', 'nin', 'mc', [[3, 9999], []], seed=None)
    made.step('mnist', 'lenet_all', 33)
    made.measured()
    for way, value in (('stream', 5.0), ('naive', 200.0), ('PyTorch', 100.0), ('baal', None)):
        made.speed('MC', 'mnist/lenet_ip', 100, way, value, times=value and value / 5.0,
                   note=None if value else 'not installed: python tools/bench.py --peers')
    for jobs in (1, 2):
        for T in (1, 10, 100):
            made.grown('lenet_all', 'T', T, 200, jobs, 1 + 0.04 * T / jobs)
    made.fault()
    made.described('0123abcd')
    return made
