"""The solvers are the published ones; the table is written by hand from the sources."""

import pytest

import trainhelp
from bcnn import nets, solvers
from bcnn.engine import caffe_pb2
from bcnn.errors import UserError
from bcnn.training import curve

pytestmark = pytest.mark.caffe

INV = dict(base_lr=0.01, lr_policy='inv', gamma=0.0001, power=0.75, weight_decay=0.0005)
DSN = dict(weight_decay=0.0005, test_interval=500, snapshot=1000)
TABLE = {
    ('mnist', 'lenet_all', None): dict(INV, max_iter=10000000, test_interval=5000, display=1000, snapshot=100000),
    ('mnist', 'lenet_ip', None): dict(INV, max_iter=10000000, test_interval=5000, display=1000, snapshot=100000),
    ('mnist', 'lenet_none', None): dict(INV, max_iter=10000000, test_interval=5000, display=1000, snapshot=10000),
    ('cifar10', 'lenet_all', None): dict(INV, max_iter=100000, test_interval=500, display=100, snapshot=1000),
    ('cifar10', 'lenet_ip', None): dict(INV, max_iter=100000, test_interval=500, display=100, snapshot=1000),
    ('cifar10', 'lenet_none', None): dict(INV, max_iter=100000, test_interval=500, display=100, snapshot=1000),
    ('cifar10', 'nin', None): dict(base_lr=0.1, lr_policy='step', gamma=0.1, stepsize=100000, max_iter=120000,
                                   weight_decay=0.0001, test_interval=500, snapshot=10000),
    ('cifar10', 'dsn', 1): dict(DSN, base_lr=0.025, lr_policy='fixed', max_iter=50000),
    ('cifar10', 'dsn', 2): dict(DSN, base_lr=0.025, lr_policy='step', gamma=0.05, stepsize=100001, max_iter=120000),
    ('cifar10', 'dsn', 3): dict(DSN, base_lr=0.0001, lr_policy='fixed', max_iter=30000),
}
for _k in (2, 4, 8, 16, 32):
    for _net in ('lenet_all', 'lenet_ip'):
        TABLE['mnist_%d' % _k, _net, None] = dict(INV, max_iter=1000000, test_interval=5000, display=1000,
                                                  snapshot=10000)
for _net in ('lenet_all', 'lenet_ip', 'lenet_none'):
    TABLE['fashion_mnist', _net, None] = TABLE['mnist', _net, None]
for _net in ('lenet_all_ave', 'lenet_all_p10', 'lenet_all_p25', 'lenet_all_p75'):  # trained as the net they vary
    TABLE['mnist', _net, None] = TABLE['mnist', 'lenet_all', None]
for _k in (2, 4, 8, 16, 32):  # not of the authors: as on all of MNIST
    TABLE['mnist_%d' % _k, 'lenet_none', None] = TABLE['mnist', 'lenet_none', None]
for _stage in (1, 2, 3):
    TABLE['cifar10', 'dsn_aug', _stage] = TABLE['cifar10', 'dsn', _stage]


def solver_of(net, dataset, stage):
    return solvers.stages(net, dataset)['solver_stage%d' % stage if stage else 'solver']


def test_the_table_has_every_net():
    assert {(dataset, net) for dataset, net, _ in TABLE} == set(nets.REGISTRY)


@pytest.mark.parametrize('dataset, net, stage', TABLE)
def test_solver_is_as_published(dataset, net, stage):
    message = solver_of(net, dataset, stage)
    right = dict(TABLE[dataset, net, stage], momentum=0.9)
    for field, value in right.items():
        value = value if isinstance(value, str) else pytest.approx(value, rel=1e-6)
        assert getattr(message, field) == value, field
    assert list(message.test_iter) == [100]  # times a batch of 100: all 10,000 test images
    assert (message.type, message.iter_size, message.solver_mode) == ('SGD', 1, caffe_pb2.SolverParameter.CPU)
    suffix = '_stage1' if stage == 1 else ''
    assert message.net == 'prototxt/%s/%s/train_test%s.prototxt' % (dataset, net, suffix)
    assert message.snapshot_prefix == 'runs/%s-%s' % (dataset, net) + ('-stage%d' % stage if stage else '')
    # Nothing but the table and these: no clipping, no other policy's fields, no seed.
    named = set(right) | {'test_iter', 'solver_mode', 'net', 'snapshot_prefix', 'display'}
    assert {field.name for field, _ in message.ListFields()} == named


@pytest.mark.parametrize('dataset, net, stage, rates', [
    ('mnist', 'lenet_all', None, {0: 0.01, 10000: 0.01 * 2 ** -0.75, 100000: 0.01 * 11 ** -0.75}),
    ('cifar10', 'nin', None, {99999: 0.1, 100000: 0.01}),
    ('cifar10', 'dsn', 1, {0: 0.025, 49999: 0.025}),
    ('cifar10', 'dsn', 2, {100000: 0.025, 100001: 0.00125}),
])
def test_learning_rate_in_caffe(dataset, net, stage, rates, tmp_path):
    """The rate Caffe itself takes: one weight, gradient 1, no momentum from before, so it moves by the rate."""
    message = solver_of(net, dataset, stage)
    for field in ('net', 'test_iter', 'test_interval'):
        message.ClearField(field)
    message.weight_decay = 0
    message.net_param.layer.add(name='w', type='Parameter', top=['w']).parameter_param.shape.dim.append(1)
    message.net_param.layer.add(name='sum', type='Reduction', bottom=['w'], top=['sum'], loss_weight=[1])
    for iteration, rate in rates.items():
        solver = trainhelp.solver_at(iteration, message, tmp_path)
        solver.step(1)
        assert -solver.net.params['w'][0].data[0] == pytest.approx(rate, rel=1e-5)


@pytest.mark.parametrize('schedule', [2, 20, 40, 3, 7, 1000])
@pytest.mark.parametrize('dataset, net', sorted(nets.REGISTRY))
def test_a_shorter_schedule_has_the_papers_learning_rates_at_the_same_share(dataset, net, schedule):
    papers, shorters = solvers.stages(net, dataset), solvers.stages(net, dataset, schedule)
    assert list(papers) == list(shorters)
    for name, paper in papers.items():
        shorter = shorters[name]
        assert abs(shorter.max_iter - paper.max_iter / schedule) < 1
        for iteration in range(0, shorter.max_iter, max(1, shorter.max_iter // 97)):
            assert curve.learning_rate(shorter, iteration) == pytest.approx(
                curve.learning_rate(paper, iteration * schedule), rel=1e-5)
        for field, value in paper.ListFields():
            if field.name not in ('max_iter', 'stepsize', 'gamma', 'test_interval', 'snapshot'):
                assert getattr(shorter, field.name) == value


def test_dsn_in_proportion_by_hand():
    first, second, third = solvers.stages('dsn_aug', 'cifar10', 20).values()
    assert [first.max_iter, second.max_iter, third.max_iter] == [2500, 6000, 1500]
    assert [curve.learning_rate(second, i) for i in (0, 5000, 5001, 5999)] == pytest.approx(
        [0.025, 0.025, 0.00125, 0.00125])
    lenet = solvers.stages('lenet_all', 'cifar10', 20)['solver']
    assert curve.learning_rate(lenet, 500) == pytest.approx(0.01 * 2 ** -0.75)  # the paper's at 10,000


def test_a_stage_without_an_iteration_is_refused():
    with pytest.raises(UserError, match='--schedule 1/30001: a stage of 30000 iterations is left without one'):
        solvers.stages('dsn', 'cifar10', 30001)


def test_stages_by_file_name():
    assert list(solvers.stages('dsn', 'cifar10')) == ['solver_stage1', 'solver_stage2', 'solver_stage3']
    assert list(solvers.stages('lenet_ip', 'mnist')) == ['solver']
