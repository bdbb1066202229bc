"""The figures: what is drawn (lines, bands, ticks, colours, notes), from result sets whose right picture is known."""

import itertools
import re

import numpy as np
import pytest

import fig2
import fig3
import fig4
import reliability
import risk_coverage
import table1
import uncertain_images
from analysishelp import Synthetic, whole_paper
from drawing import bench_chart, bench_growth, style
from records import curves, evaluations, uncertainty
from records.from_bcnn import UserError

MODULES = (fig2, fig3, fig4, reliability, risk_coverage, uncertain_images, bench_chart, bench_growth)


@pytest.fixture(scope='module')
def paper_tables():
    return whole_paper().tables()


def drawn(module, tables):
    with style.drawing():
        return module.draw(tables)


def lines(axes):
    """{label: line} of the lines with a label."""
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith('_')}


def xy(line):
    return list(line.get_xdata()), pytest.approx(list(line.get_ydata()))


def notes(figure):
    return ' '.join(text.get_text() for text in figure.texts if text.get_gid() == 'notes').replace('\n', ' ')


def absents(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts if text.get_gid() == 'absent']


def bands(axes):
    """{name: (x, low, high)} of the bands, low and high at each x."""
    found = {}
    for band in axes.collections:
        points = np.concatenate([path.vertices for path in band.get_paths()])
        xs = sorted(set(points[:, 0]))
        found[band.get_gid()] = (xs, [points[points[:, 0] == x, 1].min() for x in xs],
                                 [points[points[:, 0] == x, 1].max() for x in xs])
    return found


# --- Figure 2 ----------------------------------------------------------------------------------

def small_fig2():
    made = Synthetic()
    made.curve('mnist', 'lenet_all', 'standard', {100: 3000, 1000: 500})
    made.curve('mnist', 'lenet_all', 'mc', {100: 1500, 1000: 200})
    made.curve('mnist', 'lenet_none', 'standard', {100: 800, 1000: 300})
    return made


def test_fig2_draws_each_curve_as_the_paper_describes():
    mnist, cifar = drawn(fig2, small_fig2().tables()).axes
    found = lines(mnist)
    assert sorted(found) == ['lenet-all MC', 'lenet-all Standard', 'lenet-none']
    assert xy(found['lenet-all Standard']) == ([100, 1000], [30.0, 5.0])
    assert xy(found['lenet-all MC']) == ([100, 1000], [15.0, 2.0])
    assert found['lenet-all Standard'].get_linestyle() == '--' and found['lenet-all MC'].get_linestyle() == '-'
    assert found['lenet-none'].get_linestyle() == ':'
    assert found['lenet-all Standard'].get_color() == found['lenet-all MC'].get_color() == style.COLOURS['lenet_all']
    assert found['lenet-none'].get_color() == style.COLOURS['lenet_none']
    assert mnist.get_xscale() == 'log' and mnist.get_xlabel() == 'iterations'
    assert not lines(cifar)


def test_fig2_says_what_is_short_and_what_is_missing():
    figure = drawn(fig2, small_fig2().tables())
    assert 'Shorter than the paper: all curves: the first 1,000 of 10,000,000 iterations (0.01%)' in notes(figure)
    assert 'Not run: lenet-ip Standard, lenet-ip MC on MNIST; all curves on CIFAR-10.' in notes(figure)
    assert absents(figure) == ['not run yet:\npython tools/train.py']


def test_a_full_fig2_has_nothing_to_excuse(paper_tables):
    figure = drawn(fig2, paper_tables)
    assert 'Shorter' not in notes(figure) and 'Not run' not in notes(figure) and not absents(figure)
    assert len(lines(figure.axes[0])) == len(lines(figure.axes[1])) == 5
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert sorted(labels) == sorted(lines(figure.axes[0]))


def test_ticks_are_written_out():
    figure = drawn(fig2, whole_paper().tables())
    figure.canvas.draw()
    axes = figure.axes[0]
    low, high = axes.get_xlim()
    shown = [label.get_text() for label, x in zip(axes.get_xticklabels(), axes.get_xticks()) if low <= x <= high]
    assert shown == ['100', '1k', '10k', '100k', '1M', '10M']
    assert [label.get_text() for label in axes.get_yticklabels()] == ['0.5', '1', '2', '5', '10', '20']


def test_seeds_give_a_mean_a_band_of_one_std_and_thin_lines():
    made = Synthetic()
    for seed, errors in ((1, 100), (2, 120), (3, 140)):
        made.curve('mnist', 'lenet_all', 'mc', {100: 10 * errors, 1000: errors}, seed)
    axes = drawn(fig2, made.tables()).axes[0]
    assert xy(lines(axes)['lenet-all MC']) == ([100, 1000], [12.0, 1.2])
    xs, low, high = bands(axes)['band lenet-all MC']
    assert (xs, low, high) == ([100, 1000], pytest.approx([10.0, 1.0]), pytest.approx([14.0, 1.4]))
    thin = [line for line in axes.lines if line.get_gid() == 'seed']
    assert [list(line.get_ydata()) for line in thin] == [[10.0, 1.0], [12.0, 1.2], [14.0, 1.4]]
    assert all(line.get_linewidth() < 1 for line in thin)


def test_one_seed_has_no_band():
    assert not bands(drawn(fig2, small_fig2().tables()).axes[0])


def test_the_mean_is_only_where_all_seeds_are():
    made = Synthetic()
    made.curve('mnist', 'lenet_all', 'mc', {100: 1000, 1000: 100}, seed=1)
    made.curve('mnist', 'lenet_all', 'mc', {100: 2000}, seed=2)
    axes = drawn(fig2, made.tables()).axes[0]
    assert xy(lines(axes)['lenet-all MC']) == ([100], [15.0])
    assert [list(line.get_xdata()) for line in axes.lines if line.get_gid() == 'seed'] == [[100, 1000], [100]]


def test_the_papers_T_and_the_most_images_are_taken():
    made = Synthetic()
    made.curve('mnist', 'lenet_all', 'mc', {100: 11}, n=1000)
    made.curve('mnist', 'lenet_all', 'mc', {100: 120}, T=50)
    made.curve('mnist', 'lenet_all', 'mc', {100: 130}, T=100)
    tables = made.tables()
    assert list(curves.curve(tables, 'mnist', 'lenet_all', 'mc', T=50)['error']) == [1.2]
    assert list(curves.curve(tables, 'mnist', 'lenet_all', 'mc', T=7)['error']) == [1.3]


def test_a_part_of_the_test_set_is_said():
    figure = drawn(fig2, Synthetic().curve('cifar10', 'lenet_all', 'mc', {100000: 30}, n=500, T=7).tables())
    assert '500 of 10,000 test images' in notes(figure) and 'T = 7, the paper has 50' in notes(figure)


def test_points_with_adaptive_T_say_what_they_promise_and_give_way_to_full_ones():
    one = Synthetic().curve('mnist', 'lenet_all', 'mc', {100: 900, 1000: 300}, adaptive=0.01)
    figure = drawn(fig2, one.tables())
    assert 'adaptive T: an image is passed until its class after all 50 passes is settled, right with a probability of ' \
        'at least 99%' in notes(figure)
    both = one.curve('mnist', 'lenet_all', 'mc', {100: 901, 1000: 301})
    figure = drawn(fig2, both.tables())
    assert 'adaptive' not in notes(figure)
    assert list(curves.curve(both.tables(), 'mnist', 'lenet_all', 'mc', 50)['errors']) == [901, 301]


def test_stages_follow_each_other():
    made = Synthetic()
    for stage, points in ((1, {10: 9, 50: 8}), (2, {20: 7})):
        made.curve('cifar10', 'dsn', 'standard', points, stage=stage)
    assert list(curves.curve(made.tables(), 'cifar10', 'dsn', 'standard')['iteration']) == [10, 50, 70]


# --- Figure 3 ----------------------------------------------------------------------------------

def test_fig3_has_six_panels_and_marks_the_rise(paper_tables):
    figure = drawn(fig3, paper_tables)
    assert len(figure.axes) == 6
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ['lenet-ip Standard, all of MNIST', 'lenet-all MC, all of MNIST',
                      'lenet-ip Standard, 1/4 of MNIST',
                      'lenet-all MC, 1/4 of MNIST', 'lenet-ip Standard, 1/32 of MNIST', 'lenet-all MC, 1/32 of MNIST']
    assert all(figure.axes[k].get_ylim() == figure.axes[k + 1].get_ylim() for k in (0, 2, 4))
    quarter = figure.axes[2]
    mean = curves.over_seeds(curves.of_paper(paper_tables, 'fig3', 'mnist_4', 'lenet_ip', 'standard'))
    marked = [line for line in quarter.lines if line.get_gid() == 'lowest'][0]
    assert list(marked.get_ydata()) == [mean['mean'].min()]
    rise = [text.get_text() for text in quarter.texts if text.get_gid() == 'rise']
    assert rise == ['end %+.2f over the lowest' % (mean['mean'].iloc[-1] - mean['mean'].min())]
    assert mean['mean'].iloc[-1] - mean['mean'].min() > 0.2


def test_fig3_cuts_figure_2s_longer_runs_at_its_own_schedule(paper_tables):
    assert curves.curve(paper_tables, 'mnist', 'lenet_ip', 'standard')['iteration'].max() == 10000000
    figure = drawn(fig3, paper_tables)
    assert max(max(line.get_xdata()) for line in figure.axes[0].lines) == 1000000
    assert 'lenet-all MC on MNIST: T = 50, the paper has 10.' in notes(figure)


@pytest.mark.parametrize('errors, ticks', [
    ([0.5, 90], [0.5, 1, 2, 5, 10, 20, 50, 100]), ([0.6, 4.0], [0.6, 0.8, 1, 1.2, 1.5, 2, 2.5, 3, 4]), ([1.0, 2.0], [1, 1.2, 1.5, 2])])
def test_an_axis_of_errors_has_ticks_to_read_them_by(errors, ticks):
    """Powers of ten with their double and their half, unless these would be one or two."""
    axes = style.panels(1, 1, [])[1][0][0]
    style.log_errors(axes, errors)
    assert list(axes.get_yticks()) == pytest.approx(ticks)


# --- Figure 4 ----------------------------------------------------------------------------------

def test_fig4_draws_mean_band_and_standard():
    made = Synthetic().evaluation('cifar10', 'dsn_aug', 795, [[900, 800, 760], [920, 820, 780]], weights='trained',
                                  seed=1,
                                  iterations=200000)
    (axes,) = drawn(fig4, made.tables()).axes
    by_id = {line.get_gid(): line for line in axes.lines}
    assert xy(by_id['mc']) == ([1, 2, 3], [9.1, 8.1, 7.7])
    assert list(by_id['standard'].get_ydata()) == [7.95, 7.95] and by_id['standard'].get_linestyle() == '--'
    xs, low, high = bands(axes)['band']
    std = 0.2 / np.sqrt(2)
    assert (xs, low) == ([1, 2, 3], pytest.approx([9.1 - std, 8.1 - std, 7.7 - std]))
    assert high == pytest.approx([9.1 + std, 8.1 + std, 7.7 + std])
    paper_lines = [line.get_ydata()[0] for line in axes.lines if line.get_gid() == 'paper']
    assert paper_lines == [7.71, 7.95]


def test_fig4_leaves_the_paper_off_a_scale_on_which_nothing_else_could_be_seen():
    made = Synthetic().evaluation('cifar10', 'dsn_aug', 150, [[148, 146], [147, 145]], n=200, weights='trained', seed=1,
                                  iterations=600)
    figure = drawn(fig4, made.tables())
    (axes,) = figure.axes
    assert not [line for line in axes.lines if line.get_gid() == 'paper']
    assert axes.get_ylim()[0] > 70
    assert 'the paper has 7.95 with Standard and 7.71 with MC dropout, off this scale' in notes(figure)
    assert not fig4.on_scale('nin', 0.0) and fig4.on_scale('nin', 10.43) and fig4.on_scale('nin', 20.0)
    assert not fig4.on_scale('nin', 21.0) and not fig4.on_scale('nin', 5.0)


def test_fig4_shows_what_was_started_from_given_weights_beside_its_net_without_the_papers_lines():
    made = Synthetic().evaluation('cifar10', 'dsn_aug', 795, [[900, 771], [905, 772]], weights='trained', seed=1, iterations=200000)
    made.evaluation('cifar10', 'dsn_aug', 600, [[590, 520], [600, 530]], weights='trained', seed=1, iterations=750, n=5000,
                    init='ab' * 32, config='own')
    made.evaluation('cifar10', 'nin', 1043, [[1100, 1050], [1090, 1040]])
    figure = drawn(fig4, made.tables())
    assert [axes.get_title() for axes in figure.axes] == ['Augmented-DSN', 'Augmented-DSN\nfrom weights abababab',
                                                          "NIN\n(not in the paper's figure)"]
    by_id = {line.get_gid(): line for line in figure.axes[1].lines}
    assert set(by_id) == {'mc', 'standard'} and xy(by_id['mc']) == ([1, 2], [11.9, 10.5])
    assert 'Augmented-DSN from weights abababab: the first 750 of 200,000 iterations' in notes(figure)


@pytest.mark.parametrize('module', [reliability, risk_coverage])
def test_evaluations_on_few_images_are_left_out_beside_larger_ones(module):
    small = Synthetic().evaluation('cifar10', 'dsn', 150, [[148, 146], [147, 145]], n=999, weights='trained', seed=1,
                                   iterations=600)
    assert len(drawn(module, small.tables()).axes) == 1  # all there is
    both = small.evaluation('cifar10', 'nin', 104, [[110, 105], [109, 104]], n=1000)
    figure = drawn(module, both.tables())
    assert [axes.get_title() for axes in figure.axes if axes.get_visible()] == ['NIN on CIFAR-10']
    assert 'Left out: DSN on CIFAR-10, evaluated on 999 images only.' in notes(figure)


def test_fig4_without_augmented_dsn_says_so_and_shows_nin():
    figure = drawn(fig4, Synthetic().evaluation('cifar10', 'nin', 1043, [[1100, 1050], [1090, 1040]]).tables())
    assert [axes.get_title() for axes in figure.axes] == ['Augmented-DSN', "NIN\n(not in the paper's figure)"]
    assert absents(figure) == ['not evaluated yet:\npython tools/mc_eval.py --net dsn_aug']
    assert 'NIN: T = 2 of 100; 2 of 5 repetitions.' in notes(figure)


# --- what the paper does not have ----------------------------------------------------------------

def test_reliability_draws_bins_with_enough_images_and_the_ece(paper_tables):
    figure = drawn(reliability, paper_tables)
    assert [axes.get_title() for axes in figure.axes] == ['NIN on CIFAR-10']
    assert ('Left out: DSN on CIFAR-10, Augmented-DSN on CIFAR-10. DSN is trained with a hinge loss: its probabilities are '
            'a softmax of margins') in notes(figure)
    assert 'a softmax of margins' in notes(drawn(risk_coverage, paper_tables))
    found = lines(figure.axes[0])
    assert sorted(found) == ['MC, ECE 0.020', 'Standard, ECE 0.070']
    xs, ys = list(found['Standard, ECE 0.070'].get_xdata()), list(found['Standard, ECE 0.070'].get_ydata())
    assert xs == pytest.approx([(b + 0.5) / 15 for b in range(5, 15)])  # bin 4 has 5 images only
    assert ys == pytest.approx([0.8 * x for x in xs])


def test_risk_coverage_draws_each_measure(paper_tables):
    axes = drawn(risk_coverage, paper_tables).axes[0]
    found = lines(axes)
    assert len(found) == 6
    assert xy(found['Standard: 1 - max p']) == ([0, 10, 20, 50, 90], [10.43 * kept for kept in (1, 0.9, 0.8, 0.5, 0.1)])
    assert all(line.get_ydata()[0] == pytest.approx(10.30) for name, line in found.items() if name.startswith('MC'))


def test_uncertain_images_shows_the_pictures_and_marks_errors(paper_tables):
    figure = drawn(uncertain_images, paper_tables)
    assert len(figure.axes) == 3 * 2 * 8
    assert [text.get_text() for text in figure.texts if text.get_gid() == 'title'][:2] == [
        'NIN on CIFAR-10: most uncertain', 'NIN on CIFAR-10: least uncertain']
    first = figure.axes[0]
    pixels = first.images[0].get_array()
    assert pixels.shape == (32, 32, 3) and list(np.asarray(pixels[0, 0])) == [7, 8, 9]
    colours = {text.get_gid(): text.get_color() for text in first.texts if text.get_gid()}
    assert colours == {'standard': uncertain_images.WRONG,
                       'mc': uncertain_images.RIGHT}  # label 1; Standard says 3, MC 1
    assert [text.get_text() for text in first.texts] == ['true: automobile', 'Std: cat 0.50', 'MC: automobile 0.90']


def test_grey_images_and_missing_pictures():
    made = Synthetic().evaluation('mnist', 'lenet_all', 60, [[50, 40]], seed=1, weights='trained', iterations=1000)
    figure = drawn(uncertain_images, made.tables())
    assert figure.axes[0].images[0].get_array().shape == (28, 28)
    made.rows['thumbnails'] = []
    figure = drawn(uncertain_images, made.tables())
    assert not figure.axes[0].images and absents(figure)[0] == 'image 1\n(no picture\nrecorded)'


def test_damaged_pixels_are_refused_by_name():
    made = Synthetic().evaluation('mnist', 'lenet_all', 60, [[50, 40]], seed=1, weights='trained', iterations=1000)
    made.rows['thumbnails'][0]['pixels'] = 'AAAA'
    with pytest.raises(UserError, match='thumbnails.csv: the pixels of mnist image 1 are damaged'):
        drawn(uncertain_images, made.tables())


# --- all of them -----------------------------------------------------------------------------------

@pytest.mark.parametrize('module', MODULES, ids=lambda module: module.__name__)
def test_without_results_a_figure_says_what_is_missing(module):
    figure = drawn(module, Synthetic().tables())
    assert absents(figure)


@pytest.mark.parametrize('module, kind', [
    (fig2, 'curves'), (fig3, 'curves'), (fig4, 'convergence'), (fig4, 'evaluations'), (reliability, 'calibration'),
    (risk_coverage, 'risk'), (uncertain_images, 'images')], ids=lambda part: getattr(part, '__name__', part))
def test_a_table_may_be_missing(module, kind, paper_tables):
    drawn(module, dict(paper_tables, **{kind: Synthetic().tables()[kind]})).canvas.draw()


def test_files_are_the_same_bytes_twice_whatever_the_users_settings(tmp_path):
    import matplotlib
    made = small_fig2()
    first = style.maker(fig2.draw, 'fig2')(made.tables(), str(tmp_path / 'a'))
    with matplotlib.rc_context({'font.size': 20, 'lines.linewidth': 7, 'figure.dpi': 50}):
        second = style.maker(fig2.draw, 'fig2')(made.tables(), str(tmp_path / 'b'))
    for a, b in zip(first, second):
        with open(a, 'rb') as one, open(b, 'rb') as two:
            assert one.read() == two.read()
    with open(first[1]) as file:
        assert not re.search(r'\d{4}-\d\d-\d\dT', file.read())  # no date


# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISIONS = {
    'usual': np.eye(3),
    'protanopia': np.array([[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                            [-0.003882, -0.048116, 1.051998]]),
    'deuteranopia': np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                              [-0.011820, 0.042940, 0.968881]])}


def lab(colour, vision):
    """CIE L*a*b* of '#rrggbb' as somebody with this vision sees it."""
    rgb = np.array([int(colour[k:k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.clip(VISIONS[vision].dot(np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)), 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]).dot(linear)
    f = np.cbrt(xyz / np.array([0.9505, 1.0, 1.089]))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize('vision', sorted(VISIONS))
def test_colours_differ_for_everybody(vision):
    for a, b in itertools.combinations(style.COLOURS.values(), 2):
        assert np.linalg.norm(lab(a, vision) - lab(b, vision)) > 25, (a, b)


def test_colours_differ_in_grey():
    lightness = sorted(lab(colour, 'usual')[0] for colour in style.COLOURS.values())
    assert min(np.diff(lightness)) > 12 and lightness[-1] < 75  # and are dark enough for white paper


def test_the_colours_are_the_papers():
    def hue(name):
        return 'rgb'[int(np.argmax([int(style.COLOURS[name][k:k + 2], 16) for k in (1, 3, 5)]))]
    assert [hue(name) for name in ('lenet_all', 'lenet_ip', 'lenet_none')] == ['b', 'g', 'r']


# --- Table 1 ---------------------------------------------------------------------------------------

def test_table1_has_our_figures_beside_the_papers():
    made = Synthetic().evaluation('cifar10', 'nin', 1043, [[1100, 1020], [1100, 1030], [1100, 1040]],
                                  p=[0.9, 0.25, 0.1])
    nin, dsn, aug = table1.rows(made.tables())
    assert (nin['standard'], nin['mc'], nin['std'], nin['lowest']) == pytest.approx((10.43, 10.30, 0.1, 10.20))
    assert (nin['paper_standard'], nin['paper_mc'], nin['paper_std']) == (10.43, 10.27, 0.05)
    assert (nin['n'], nin['repetitions'], nin['mcnemar_p'], nin['seed']) == (10000, 3, 0.25, None)
    assert nin['shorter'] == 'T = 2 of 100; 3 of 5 repetitions'
    assert dsn['standard'] is None and dsn['shorter'] == 'not run' and aug['paper_lowest'] == 7.51


def test_table1_marks_short_runs_in_every_format():
    made = Synthetic().evaluation('cifar10', 'dsn', 900, [[890] * 100] * 5, weights='trained', seed=2, iterations=500)
    lines = table1.rows(made.tables())
    markdown, latex = table1.markdown(lines), table1.latex(lines)
    row = [line for line in markdown.splitlines() if line.startswith('| DSN')][0]
    assert row.startswith('| DSN* | 9.00 | 8.90 | 0.00 | 8.90 | 9.37 | 9.32 | 0.02 | – | 8.95 | 0.00 |')
    assert row.endswith('| 100 | 10,000 | 5 | 0.01 | 2 | the first 500 of 200,000 iterations (0.25%) |')
    assert len(set(line.count('|') for line in markdown.splitlines() if line.startswith('|'))) == 1
    assert r'DSN* & 9.00 & 8.90' in latex and r'(0.25\%)' in latex
    body = [line for line in latex.splitlines() if ' & ' in line]
    assert len(set(line.count('&') for line in body)) == 1 and all(line.endswith(r'\\') for line in body)
    assert table1.comma_separated(lines).splitlines()[2].startswith('dsn,9,8.9,0,8.9,9.37')


def test_a_table_line_a_seed_longest_training_first():
    made = Synthetic()
    made.evaluation('cifar10', 'dsn', 950, [[940] * 100] * 5, weights='trained', seed=1, iterations=1000)
    made.evaluation('cifar10', 'dsn', 930, [[920] * 100] * 5, weights='trained', seed=2, iterations=200000)
    made.evaluation('cifar10', 'dsn', 999, [[998]], weights='trained', seed=2, iterations=200000, n=2000,
                    config='small')
    lines = [line for line in table1.rows(made.tables()) if line['net'] == 'dsn']
    assert [(line['seed'], line['standard']) for line in lines] == [(2, 9.3), (1, 9.5)]


def test_repetitions_with_other_masks_are_pooled_whatever_machine_made_them():
    made = Synthetic()
    made.evaluation('cifar10', 'nin', 1043, [[1100, 1020], [1120, 1030]], config='first', mc_seed=1)
    made.evaluation('cifar10', 'nin', 1043, [[1140, 1040]], config='second', mc_seed=2)
    made.evaluation('cifar10', 'nin', 1043, [[1999, 1999]], config='other batch', mc_seed=1)  # masks of the first again
    made.evaluation('cifar10', 'nin', 99, [[88, 88]], n=100, config='small', mc_seed=3)
    tables = made.tables()
    nin = table1.rows(tables)[0]
    assert (nin['mc'], nin['std'], nin['lowest'], nin['repetitions']) == pytest.approx((10.30, 0.1, 10.20, 3))
    mean = evaluations.passes(tables, evaluations.with_passes(tables, 'cifar10', 'nin'))
    assert list(mean['mean']) == pytest.approx([11.2, 10.3]) and set(mean['count']) == {3}
    assert len(uncertainty.extreme_images(tables, 'cifar10', 'nin')) == 16  # of one repetition


def test_weights_of_unknown_origin_and_other_trainings_are_not_pooled():
    made = Synthetic()
    for k, config in enumerate(('mine', 'yours'), 1):
        made.evaluation('own', 'net', 100 * k, [[90 * k]], weights='unknown', config=config, mc_seed=k)
        made.evaluation('cifar10', 'dsn', 100 * k, [[90 * k]], weights='trained', seed=1, iterations=1000 * k,
                        config='dsn' + config, mc_seed=k)
    assert [len(group) for pair in (('own', 'net'), ('cifar10', 'dsn'))
            for group in evaluations.chosen(made.tables(), *pair)] == [3, 3]  # Standard, MC by probs and by scores


def test_latex_escapes():
    assert table1.escape('a_b & 5% {x} \\') == r'a\_b \& 5\% \{x\} \textbackslash{}'
