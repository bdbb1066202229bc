"""What makes an evaluation the paper's: the digests are those of the real nets and of the real test sets."""

import hashlib

import pytest

from bcnn import nets
from bcnn.data import sets
from bcnn.mc import identity
from bcnn.prototxt import reading
from datahelp import prepared

pytestmark = pytest.mark.caffe


def digest(message):
    return hashlib.sha256(reading.to_text(message).encode()).hexdigest()


@pytest.mark.parametrize('dataset, net', [place for place, entry in nets.REGISTRY.items() if entry.dataset == entry.base])
def test_the_nets_are_those_of_the_code(dataset, net):
    standard = digest(nets.deploy(net, dataset))
    sampled = bool(nets.find(dataset, net).where)
    assert identity.net_of({'standard_net': standard, 'mc_net': None}) == (dataset, net)
    assert identity.net_of({'standard_net': standard, 'mc_net': 'another'}) is None
    if sampled:
        assert identity.net_of({'standard_net': standard, 'mc_net': digest(nets.mc(net, dataset))}) == (dataset, net)


@pytest.mark.parametrize('dataset, net', [('mnist', 'lenet_all'), ('cifar10', 'nin'), ('cifar10', 'dsn_aug')])
def test_the_test_sets_are_the_real_ones(dataset, net):
    prepared(nets.find(dataset, net).data.test.split('/')[1])
    assert identity._test_digest(dataset, net, 10000, sets.DATA) == identity.TEST_SETS[dataset]
    first = identity._test_digest(dataset, net, 200, sets.DATA)
    assert identity.is_test_set({'images': first, 'count': 200}, dataset, net) is True
    assert identity.is_test_set({'images': first, 'count': 201}, dataset, net) is False
    assert identity.is_test_set({'images': first, 'count': 200}, dataset, net, '/nowhere') is None
