"""The rewriter against random nets: what it makes computes, in real Caffe, what the original says.

A random net is a list of operations on blobs of four numbers an image. It is written as
prototxt, and a few lines of numpy carry the same list out; the dropout masks are read from
the MC net's own blobs.
"""

import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcnn.engine import caffe_pb2, call, load_net, set_seed
from bcnn.errors import UserError
from bcnn.mc import antithetic, forward
from bcnn.prototxt import facts, reading, rewriting

pytestmark = pytest.mark.caffe

N, D = 3, 4

# --- random nets ------------------------------------------------------------------------------------

KINDS = ('ip', 'ip', 'relu', 'relu in place', 'power in place', 'sigmoid in place', 'drop', 'drop in place',
         'drop in place', 'drop in TRAIN', 'sum', 'companion', 'accuracy')


@st.composite
def programs(draw):
    """[(kind, name, bottoms, top)] that ends in the class scores; no blob with two readers is changed in place."""
    steps, blobs, reads, inner = [], ['data'], {'data': 2}, {'data'}  # the input is not to be changed in place
    for i in range(draw(st.integers(2, 10))):
        kind = draw(st.sampled_from(KINDS))
        free = [blob for blob in blobs if reads.get(blob, 0) == 0]
        if kind.endswith(('in place', 'in TRAIN')) and not free:
            kind = 'ip'
        in_place = kind.endswith(('in place', 'in TRAIN'))
        bottom = draw(st.sampled_from(free if in_place else blobs))
        bottoms = [bottom] + ([draw(st.sampled_from(blobs))] if kind == 'sum' else [])
        name = '%s%d' % (kind.split()[0], i)
        top = bottom if in_place else name
        steps.append((kind, name, bottoms, top))
        if in_place:
            continue
        for blob in bottoms:
            reads[blob] = reads.get(blob, 0) + 1
        if kind not in ('companion', 'accuracy'):
            blobs.append(top)
            inner.update(bottoms)
    # All ends are joined, so that nothing but companions is left out, and the main loss sits on the most layers.
    for i, blob in enumerate([blob for blob in blobs if blob not in inner] or ['data']):
        steps.append(('ip', 'end%d' % i, [blob], 'end%d' % i))
        steps.append(('sum', 'join%d' % i, ['end%d' % i, 'join%d' % (i - 1) if i else 'data'], 'join%d' % i))
    steps.append(('ip', 'scores', [steps[-1][3]], 'scores'))
    return steps


FORMS = {
    'ip': 'type: "InnerProduct" inner_product_param { num_output: 4 weight_filler { type: "xavier" } }',
    'relu': 'type: "ReLU"', 'sigmoid': 'type: "Sigmoid"', 'drop': 'type: "Dropout"', 'sum': 'type: "Eltwise"',
    'power': 'type: "Power" power_param { scale: 0.5 shift: 0.25 }',
    'accuracy': 'type: "Accuracy" bottom: "label" include { phase: TEST }'}


def to_prototxt(steps):
    lines = ['input: "data" input_shape { dim: %d dim: %d } input: "label" input_shape { dim: %d }' % (N, D, N)]
    steps = steps + [('loss', 'loss', ['scores'], 'loss')]
    for kind, name, bottoms, top in steps:
        form = FORMS.get(kind.split()[0], 'type: "SoftmaxWithLoss" bottom: "label"')
        rule = 'include { phase: TRAIN }' if kind == 'drop in TRAIN' else ''
        reads = ' '.join('bottom: "%s"' % blob for blob in bottoms)
        lines.append('layer { name: "%s" %s top: "%s" %s %s }' % (name, reads, top, form, rule))
    return '\n'.join(lines)


def by_numpy(steps, data, weights, masks):
    """Softmax of the scores; masks {dropout: factors}, none for Standard."""
    blobs = {'data': data}
    for kind, name, bottoms, top in steps:
        kind, x = kind.split()[0], blobs[bottoms[0]]
        if kind == 'ip':
            blobs[top] = x @ weights[name][0].T + weights[name][1]
        elif kind == 'sum':
            blobs[top] = x + blobs[bottoms[1]]
        elif kind in CHANGES:
            blobs[top] = CHANGES[kind](x)
        elif kind == 'drop':
            blobs[top] = x * masks.get(name, 1)
    powers = np.exp(blobs['scores'] - blobs['scores'].max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


CHANGES = {'relu': lambda x: np.maximum(x, 0), 'sigmoid': lambda x: 1 / (1 + np.exp(-x)),
           'power': lambda x: 0.5 * x + 0.25}

# --- the properties ---------------------------------------------------------------------------------


def run(message, data, weights=None, seed=1):
    set_seed(5)
    net = load_net(message)
    for name, blobs in (weights or {}).items():
        for blob, value in zip(net.params.get(name, ()), blobs):
            blob.data[...] = value
    net.blobs['data'].data[...] = data
    set_seed(seed)
    net.forward()
    return net


def masks_in(net, message):
    """{dropout: its factors}, read from an MC net whose dropouts nothing changes in place."""
    found = {}
    for layer in message.layer:
        if layer.type == 'Dropout':
            before, after = net.blobs[layer.bottom[0]].data, net.blobs[layer.top[0]].data
            found[layer.name] = np.where(after != 0, 2.0, 0.0) * (before != 0)
    return found


def never_in_place(message):
    """The same net with each in-place layer out of place, to see every value: plain renaming, in order."""
    names = {}
    for layer in message.layer:
        bottoms = list(layer.bottom)
        layer.bottom[:] = [names.get(blob, blob) for blob in bottoms]
        for i, top in enumerate(layer.top):
            if top in bottoms:
                names[top] = layer.top[i] = layer.name + '_seen'
    return message


def check(steps):
    text = to_prototxt(steps)
    data = np.random.RandomState(1).randn(N, D)
    original = run(reading.parse(text), data)
    weights = {name: [blob.data.copy() for blob in blobs] for name, blobs in original.params.items()}
    standard = rewriting.to_deploy(reading.parse(text))
    found = run(standard, data, weights).blobs['prob'].data
    assert np.allclose(found, by_numpy(steps, data, weights, {}), atol=1e-5)
    scores = original.blobs['scores'].data
    assert np.array_equal(run(standard, data, weights).blobs['scores'].data, scores)

    drops = {name for kind, name, _, _ in steps if kind.startswith('drop')}
    if not drops:
        try:
            rewriting.to_mc(reading.parse(text))
        except UserError as error:
            assert 'no dropout layer' in str(error)
            return
        raise AssertionError('an MC net without dropout')
    mc = rewriting.to_mc(reading.parse(text))
    assert set(facts.dropouts(mc)) == drops
    seen = never_in_place(rewriting.to_mc(reading.parse(text)))
    net = run(seen, data, weights)
    right = by_numpy(steps, data, weights, masks_in(net, seen))
    assert np.allclose(net.blobs['prob'].data, right, atol=1e-5)
    net = run(mc, data, weights)  # the same seed and order: the same masks
    assert np.allclose(net.blobs['prob'].data, right, atol=1e-5)
    set_seed(1)
    net.forward(start=facts.first_sampling(mc))
    assert np.allclose(net.blobs['prob'].data, right, atol=1e-5)

    tiled = run(rewriting.replicate(mc, 2), data, weights).blobs['prob'].data
    outside = run(rewriting.to_mc(reading.parse(text), batch=2 * N), np.tile(data, (2, 1)), weights).blobs['prob'].data
    assert np.allclose(tiled, outside, atol=1e-6)


@settings(max_examples=40)
@given(programs())
def test_random_nets_compute_the_same(steps):
    call(check, steps)  # in a child: Caffe ends the process if it refuses a net


def check_groups(steps):
    """Passes with antithetic masks, in groups, against numpy with the same masks; how many numbers of groups it has."""
    mc, tried = rewriting.to_mc(reading.parse(to_prototxt(steps))), 0
    data = np.random.RandomState(1).randn(N, D)
    set_seed(5)
    with tempfile.NamedTemporaryFile(suffix='.caffemodel') as file:
        stock = load_net(mc)
        stock.save(file.name)
        weights = {name: [blob.data.copy() for blob in blobs] for name, blobs in stock.params.items()}
        for groups in (1, 2, 3):
            try:
                net, wiring = antithetic.load(mc, file.name, groups)
            except UserError as error:
                assert groups > 1 and 'pairs only' in str(error)
                continue
            tried += 1
            choices, points = list(antithetic.choices(groups)), [D * g // groups for g in range(groups + 1)]
            stream = forward.in_groups(antithetic.groups_of(net, wiring, np.random.RandomState(3)), data, 2 * wiring.size)
            for k, (probs, _) in enumerate(stream):
                masks = [net.blobs[name].data.copy() for name in wiring.masks]
                for start, stop, other in zip(points, points[1:], choices[k % wiring.size]):
                    masks[0][:, start:stop] = (2 - masks[0] if other else masks[0])[:, start:stop]
                right = by_numpy(steps, data, weights, dict(zip(facts.dropouts(mc), masks)))
                assert np.allclose(probs, right, atol=1e-5), (groups, k)
    return tried


def test_random_nets_in_groups_compute_the_same():
    """Antithetic masks for nets of any form: whatever is linear behind the first dropout, in place or not."""
    tried = []

    @settings(max_examples=10)
    @given(programs().filter(lambda steps: any(kind.startswith('drop') for kind, _, _, _ in steps)))
    def each(steps):
        tried.append(call(check_groups, steps))

    each()
    assert 1 in tried and 3 in tried  # nets with nothing to cut, and such that can be


# --- random texts -------------------------------------------------------------------------------------

SAMPLE = to_prototxt([('ip', 'ip1', ['data'], 'ip1'), ('drop in place', 'drop1', ['ip1'], 'ip1'),
                      ('ip', 'scores', ['ip1'], 'scores')])


PIECES = ['', '}', '{', '"', ':', ' layer ', 'type: "Dropout"', 'type: "Softmax"', 'top: "ip1"', 'bottom: "data"', '\0',
          'ü', '#', '-1', 'dim: 0']


def only_user_errors(read):
    try:
        return read()
    except UserError as error:
        assert '\n' not in str(error) and str(error).strip()
        return None


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, len(SAMPLE)), st.integers(0, 40), st.sampled_from(PIECES)),
                min_size=1, max_size=4))
def test_damaged_texts_give_a_net_or_one_line(cuts):
    text = SAMPLE
    for start, length, instead in cuts:
        text = text[:start] + instead + text[start + length:]
    net = only_user_errors(lambda: reading.parse(text))
    if net is not None:
        for make in (rewriting.to_deploy, rewriting.to_mc):
            made = only_user_errors(lambda: make(net))
            assert made is None or isinstance(made, caffe_pb2.NetParameter)


@settings(max_examples=150)
@given(st.binary(max_size=200))
def test_any_bytes_give_a_net_or_one_line(data):
    import tempfile
    with tempfile.NamedTemporaryFile(suffix='.prototxt') as file:
        file.write(data)
        file.flush()
        only_user_errors(lambda: reading.read(file.name))
