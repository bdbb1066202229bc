"""The report's section on speed: the chart, the growth plot, and who is said to be ahead."""


import pytest

from analysishelp import Synthetic
from drawing import bench_chart, bench_growth, style
from pages import speed_tables
from pages.sections import speed

PICTURES = {'bench_chart': b'', 'bench_growth': b''}


def measured(subject='cifar10/nin', T=100, **values):
    made = Synthetic()
    for way, value in values.items():
        made.speed('MC', subject, T, way, value, note='why <not>' if value is None else None)
    return made


def drawn(module, made):
    with style.drawing():
        return module.draw(made.tables())


def texts(figure, gid):
    return [text.get_text() for place in [figure] + figure.axes for text in place.texts if text.get_gid() == gid]


def test_the_chart_shows_every_way_fastest_first():
    figure = drawn(bench_chart, measured(stream=3736.1, PyTorch=5000, naive=6226.6, baal=None))
    axes, = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ['stream', 'PyTorch', 'naive']
    assert [bar.get_width() for bar in axes.patches] == [3736.1, 5000, 6226.6]
    assert texts(figure, 'value') == ['3,736', '5,000', '6,227']
    assert axes.get_title() == 'NIN on CIFAR-10, T = 100' and axes.yaxis_inverted()
    note = ' '.join(texts(figure, 'notes')).replace('\n', ' ')
    assert 'Not measured: baal (NIN on CIFAR-10, T = 100): why <not>.' in note and 'a machine' in note


def test_a_panel_for_each_net_and_number_of_passes():
    made = measured(stream=1.0)
    made.rows['bench'] += measured('mnist/lenet_ip', 20, stream=2.0).rows['bench']
    figure = drawn(bench_chart, made)
    assert [axes.get_title() for axes in figure.axes] == [
        'lenet-ip on MNIST, T = 20', '', '', 'NIN on CIFAR-10, T = 100']


def test_nothing_measured_is_said():
    for module, command in ((bench_chart, '--record'), (bench_growth, '--growth --record')):
        assert all(command in text for text in texts(drawn(module, Synthetic()), 'absent'))
    section = speed.section(Synthetic().tables(), PICTURES).body
    assert 'Nothing measured yet' in section and 'tools/bench.py --record' in section


@pytest.mark.parametrize('values, said', [
    (dict(stream=100.0, PyTorch=150.0, baal=120.0, naive=90.0), 'stream is 1.2 times as fast as baal, the fastest of'),
    (dict(stream=100.0, PyTorch=50.0), 'stream is not ahead: PyTorch takes 0.5 of its time'),
    (dict(stream=100.0, adaptive=20.0, PyTorch=150.0), 'adaptive is 5 times as fast as stream'),
    (dict(stream=100.0, baal=None), 'nothing to compare it with'),
])
def test_who_is_ahead(values, said):
    tables = measured(**values).tables()
    assert said in speed.section(tables, PICTURES).body and said in speed.alt_chart(tables)


def test_antithetic_masks_are_compared_at_equal_accuracy():
    """Twice the time of the fastest peer, and a tenth of its variance: five times ahead."""
    made = Synthetic()
    for way, value, equal in (('stream', 100.0, 1.0), ('antithetic', 180.0, 0.18), ('PyTorch, tuned', 90.0, 0.9)):
        made.speed('MC', 'cifar10/nin', 100, way, value, equal=equal)
    said = speed.section(made.tables(), PICTURES).body
    assert 'antithetic is 5 times as fast as PyTorch, tuned, the fastest of the others, at equal accuracy' in said
    assert 'stream is not ahead: PyTorch, tuned takes 0.9 of its time' in said
    table = speed_tables.equal_accuracy(made.tables()).splitlines()
    assert table[0] == '| T = 100 | NIN on CIFAR-10 |' and table[2:] == [
        '| antithetic | 0.18 |', '| PyTorch, tuned | 0.90 |', '| stream | 1.00 |']
    assert speed_tables.equal_accuracy(Synthetic().tables()).startswith('Not measured yet')


def test_where_the_time_goes():
    made = Synthetic()
    for index, (layer, kind, part, time, share) in enumerate((
            ('conv1', 'Convolution', 'once', 900.0, None), ('drop1', 'Dropout', 'sampled', 20.0, 20.0),
            ('conv2', 'Convolution', 'sampled', 50.0, 50.0), ('pool2', 'Pooling', 'sampled', 10.0, 10.0),
            ('conv3', 'Convolution', 'sampled', 20.5, 20.5))):
        made.add('layers', net='cifar10/nin', index=index, layer=layer, type=kind, part=part, time=time, share=share,
                 gflops=None, product_time=None)
    said = speed.layers(made.tables())
    assert 'conv2 50%, conv3 20%, drop1 20%, pool2 10%' in said and 'Convolution 70%, Dropout 20%, Pooling 10%' in said
    assert 'conv1' not in said and '>100<' in said and 'NIN on CIFAR-10' in said
    assert speed.layers(Synthetic().tables()) == ''


def test_the_table_escapes_notes_and_marks_what_is_missing():
    section = speed.section(measured(stream=100.0, baal=None).tables(), PICTURES).body
    assert 'why &lt;not&gt;' in section and '<not>' not in section
    assert u'<td class="l">baal</td><td>\u2013</td>' in section
    assert '<td>25%</td>' in section  # of sgemm


def growing(memory=lambda T: 150.0):
    made = Synthetic()
    for jobs in (1, 2):
        for T in (1, 10, 100):
            made.grown('lenet_all', 'T', T, 200, jobs, 1.0 + T / jobs, memory(T))
    return made


def test_the_growth_plot():
    figure = drawn(bench_growth, growing())
    seconds, empty, memory, _ = figure.axes
    lines = {line.get_gid(): line for line in seconds.lines}
    assert list(lines['lenet_all 1'].get_xdata()) == [1, 10, 100]
    assert list(lines['lenet_all 1'].get_ydata()) == [2, 11, 101]
    assert list(lines['lenet_all 2'].get_ydata()) == [1.5, 6, 51] and lines['lenet_all 2'].get_linestyle() == '--'
    assert memory.get_ylim()[0] == 0 and list(memory.lines[0].get_ydata()) == [150, 150, 150]
    assert empty.texts[0].get_gid() == 'absent'  # no images were varied
    assert 'Against T: 200 images, batches of 100.' in ' '.join(texts(figure, 'notes')).replace('\n', ' ')


def test_memory_that_grows_is_seen():
    assert bench_growth.flatness(growing().tables()['growth'], 'T') == 1
    grows = growing(lambda T: 100.0 + T).tables()
    assert bench_growth.flatness(grows['growth'], 'T') == pytest.approx(200.0 / 101)
    assert '1.98 times its least memory' in speed.alt_growth(grows)
