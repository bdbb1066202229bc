"""How the figures look: colours for colour-blind people and grey print, and files that are byte-stable."""

import contextlib
import io
import os

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from command_line import write
from records import curves, names

# The paper's colours in shades of clearly different lightness (blue darkest, then red, then green).
COLOURS = {'lenet_all': '#12379c', 'lenet_ip': '#3fb27f', 'lenet_none': '#d1352b'}
MARKERS = {'lenet_all': 'o', 'lenet_ip': 's', 'lenet_none': '^'}
STANDARD, MC = '--', '-'
BLUE, DARK, GREY = COLOURS['lenet_all'], '#222222', '#767676'
BAND = 0.22  # opacity

RC = {
    'font.family': 'DejaVu Sans', 'font.size': 9.5, 'axes.titlesize': 10.5, 'axes.labelsize': 9.5,
    'legend.fontsize': 8.5,
    'xtick.labelsize': 8.5, 'ytick.labelsize': 8.5, 'axes.spines.top': False, 'axes.spines.right': False,
    'axes.grid': True,
    'grid.color': '#e3e3e3', 'grid.linewidth': 0.7, 'axes.axisbelow': True, 'lines.linewidth': 1.7,
    'lines.markersize': 4.0,
    'legend.frameon': False, 'figure.facecolor': 'white', 'savefig.facecolor': 'white', 'svg.hashsalt': 'bcnn',
    'path.simplify': False}
NOTE_SIZE, NOTE_HEIGHT = 7.5, 0.145  # points, inches a line
LEGEND_HEIGHT = 0.27


@contextlib.contextmanager
def drawing():
    """Our settings and nothing of the user's own matplotlibrc, for the time of a figure."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


def panels(rows, columns, notes, panel=(3.5, 2.75), legend=0):
    """(figure, axes as a list of rows) with small print below the panels, and room for lines of a legend above."""
    width = columns * panel[0] + 0.3
    figure = sheet(width, rows * panel[1] + legend * LEGEND_HEIGHT, notes)
    figure.top = 1 - legend * LEGEND_HEIGHT / figure.get_figheight()
    return figure, figure.subplots(rows, columns, squeeze=False)


def sheet(width, height, notes):
    """An empty figure of this size in inches, and below it its small print."""
    text = names.wrap(notes, int(width * 17.5))
    below = (len(text.splitlines()) + 0.35) * NOTE_HEIGHT if text else 0.05
    height += below
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)  # which matplotlib 3.3 needs to measure text
    if text:
        figure.text(0.012, 0.06 / height, text, fontsize=NOTE_SIZE, color='#444444', va='bottom', ha='left',
                    linespacing=1.25, gid='notes')
    figure.below, figure.top = below / height, 1  # for finish()
    return figure


def finish(figure, columns=0):
    """Lays the panels out, now that they have labels; one legend of so many columns for all of them."""
    figure.tight_layout(rect=(0, figure.below, 1, figure.top))
    handles = {}
    for axes in figure.axes if columns else ():
        for handle, label in zip(*axes.get_legend_handles_labels()):
            handles.setdefault(label, handle)
    if handles:
        figure.legend(list(handles.values()), list(handles), loc='upper center', ncol=columns, handlelength=2.8,
                      columnspacing=1.6)
    return figure


def log_iterations(axes):
    """Iterations on a logarithmic axis, powers of ten written out."""
    axes.set_xscale('log')
    axes.set_xlabel('iterations')
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short(x)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def short(x):
    """100, 1k, 10k, 1M"""
    for size, unit in ((1e6, 'M'), (1e3, 'k')):
        if x >= size:
            return '%g%s' % (x / size, unit)
    return '%g' % x


def log_errors(axes, values):
    """Errors on a logarithmic axis with plain percentages."""
    axes.set_yscale('log')
    values = [value for value in values if value > 0]
    if values:
        low, high = min(values), max(values)
        axes.set_ylim(low / 1.15, high * 1.15)
        coarse, fine = ([step * 10.0 ** power for power in range(-3, 3) for step in steps
                         if low / 1.15 <= step * 10.0 ** power <= high * 1.15]
                        for steps in ((1, 2, 5), (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)))
        axes.yaxis.set_major_locator(FixedLocator(coarse if high / low > 6 and len(coarse) > 2 else fine))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: '%g' % y))


def line(axes, rows, x='iteration', unit='seed', **look):
    """Draws the mean over seeds with a band of one std, and each seed thinly where there are several."""
    mean = curves.over_seeds(rows, x=x)
    units = sorted(set(rows[unit]))
    if len(units) > 1:
        for value in units:
            part = rows[rows[unit] == value].sort_values(x)
            axes.plot(part[x], part['error'], color=look['color'], linestyle=look['linestyle'], linewidth=0.6,
                      alpha=0.5, gid='seed')
        axes.fill_between(mean[x], mean['mean'] - mean['std'], mean['mean'] + mean['std'], color=look['color'],
                          alpha=BAND, linewidth=0, gid='band %s' % look.get('label', ''))
    axes.plot(mean[x], mean['mean'], **look)
    return mean


def seeds_and_mean(axes, points, label, look, mark=None, line=None):
    """Draws a mark a seed and a line through their means; gives all values.

    points: [(x, {seed: value})], of which empty ones are left out; mark, line: what of the look is different.
    """
    points = [(x, by_seed) for x, by_seed in points if by_seed]
    for x, by_seed in points:
        axes.plot([x] * len(by_seed), list(by_seed.values()), gid='seeds',
                  **dict(look, linestyle='', markersize=3, **mark or {}))
    if points:
        means = [sum(by_seed.values()) / float(len(by_seed)) for _, by_seed in points]
        axes.plot([x for x, _ in points], means, label=label, **dict(look, **line or {}))
    return [value for _, by_seed in points for value in by_seed.values()]


def curve_look(net, method):
    """Colour by net, line by method: Standard dashed, MC solid, no dropout dotted."""
    linestyle = ':' if net == 'lenet_none' else STANDARD if method == 'standard' else MC
    return dict(color=COLOURS[net], marker=MARKERS[net], linestyle=linestyle,
                markerfacecolor='white' if method == 'standard' else COLOURS[net])


def band(axes, rows, x, look, label):
    """A line through the means, with a band of one std where there is any."""
    if (rows['std'] > 0).any():
        axes.fill_between(rows[x], rows['mean'] - rows['std'], rows['mean'] + rows['std'], color=look['color'],
                          alpha=BAND, linewidth=0, gid='band %s' % label)
    axes.plot(rows[x], rows['mean'], label=label, **look)


def absent(axes, text):
    """Says in an empty panel why it is empty."""
    axes.grid(False)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_color('#cccccc')
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha='center', va='center', color=GREY, fontsize=9, gid='absent')


def save(figure, out, name):
    """The paths of a figure as PNG and SVG; the same figure gives the same bytes."""
    paths = []
    for kind, metadata in (('png', {'Software': 'matplotlib'}), ('svg', {'Date': None, 'Creator': 'matplotlib'})):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=150, metadata=metadata)
        paths.append(write(os.path.join(out, 'figures', '%s.%s' % (name, kind)), buffer.getvalue()))
    return paths


def maker(draw, name):
    """make(tables, out) for command_line.start: draws one figure and saves it."""
    def make(tables, out):
        with drawing():
            return save(draw(tables), out, name)
    return make
