"""A picture of a net: layers with their sizes from top to bottom, and which part dropout makes random.

With matplotlib alone: pycaffe's own drawing needs pydot and graphviz.
"""

import os
from typing import TYPE_CHECKING, List, NamedTuple, Tuple

from ..engine import caffe_pb2, call, load_net
from ..errors import UserError
from . import facts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ('.png', '.svg', '.pdf')
WIDTH, GAP, ROW = 6.0, 0.7, 0.62  # of a box, between columns, from box to box; in inches
ONCE, RANDOM, DROPOUT = '#dce8f5', '#fdebd3', '#f2a23c'


def save(net: caffe_pb2.NetParameter, title: str, path: str) -> None:
    """Write a picture of a NetParameter to a PNG, SVG or PDF file."""
    kind = os.path.splitext(path)[1].lower()
    if kind not in FORMATS:
        raise UserError('%s: a picture is a file that ends in %s' % (path, ', '.join(FORMATS)))
    figure = picture(net, title)
    figure.savefig(path + '.part', format=kind[1:], dpi=110, metadata={'Date': None} if kind == '.svg' else None)
    os.replace(path + '.part', path)


# --- what is in the boxes ---------------------------------------------------------------------

class Box(NamedTuple):
    """What is drawn of a layer."""

    name: str
    text: str            # what it does
    size: str            # of its first top, without the batch
    weights: str         # how many
    bottoms: List[int]   # the numbers of the boxes above it
    random: bool         # whether dropout comes before it, or is it
    dropout: bool        # whether it samples itself


def boxes(net: caffe_pb2.NetParameter) -> List[Box]:
    """The layers of a net as Boxes, in-place layers told in the box of the layer they work on."""
    shapes, counts = call(_sizes, net)
    drawn, box_of, random = [], {}, set()
    for layer in net.layer:
        if layer.top and list(layer.top) == list(layer.bottom):
            box = drawn[box_of[layer.top[0]]]
            drawn[box_of[layer.top[0]]] = box._replace(text='%s, %s' % (box.text, what_it_does(layer)))
            continue
        if layer.name == 'label':
            continue
        samples = facts.samples_at_test(layer)
        if samples or random.intersection(layer.bottom):
            random.update(layer.top)
        size = ' x '.join(str(dim) for dim in shapes[layer.top[0]][1:] if dim != 1 or len(drawn) == 0) or '1'
        weights = '{:,} parameters'.format(counts[layer.name]) if counts.get(layer.name) else ''
        for top in layer.top:
            box_of[top] = len(drawn)
        bottoms = [box_of[blob] for blob in layer.bottom if blob in box_of]
        is_random = bool(random.intersection(layer.top))
        drawn.append(Box(name=layer.name, text=what_it_does(layer), size=size, weights=weights, bottoms=bottoms,
                         random=is_random, dropout=samples))
    return drawn


def _sizes(net):
    loaded = load_net(net)
    return ({name: tuple(blob.data.shape) for name, blob in loaded.blobs.items()},
            {name: sum(blob.data.size for blob in blobs) for name, blobs in loaded.params.items()})


def what_it_does(layer: caffe_pb2.LayerParameter) -> str:
    """A layer in a few words."""
    if layer.type == 'Convolution':
        conv = layer.convolution_param
        pad = ', pad %d' % conv.pad[0] if conv.pad and conv.pad[0] else ''
        return 'convolution %dx%d%s' % (_kernel(conv) + (pad,))
    if layer.type == 'Pooling':
        pool = layer.pooling_param
        kind = 'average' if pool.pool == caffe_pb2.PoolingParameter.AVE else 'max'
        if pool.global_pooling:
            return 'global %s pooling' % kind
        height, width = pool.kernel_h or pool.kernel_size, pool.kernel_w or pool.kernel_size
        return '%s pooling %dx%d, stride %d' % (kind, height, width, pool.stride)
    if layer.type == 'Dropout':
        return 'dropout, p = %g' % layer.dropout_param.dropout_ratio
    if layer.type == 'Power':
        return 'times %g' % layer.power_param.scale
    if layer.type == 'HingeLoss':
        return 'squared hinge loss' if layer.hinge_loss_param.norm == caffe_pb2.HingeLossParameter.L2 else 'hinge loss'
    return {'InnerProduct': 'inner product', 'Input': 'images', 'Softmax': 'softmax'}.get(layer.type, layer.type)


def _kernel(conv):
    """(height, width) of a convolution's kernel: one number for both, one for each, or two fields of their own."""
    sizes = list(conv.kernel_size)
    if not sizes:
        return conv.kernel_h, conv.kernel_w
    return sizes[0], sizes[1] if len(sizes) > 1 else sizes[0]


# --- where they are ------------------------------------------------------------------------------

def places(drawn: List[Box]) -> List[Tuple[int, int]]:
    """[(column, row)] of the boxes: the longest way to the end straight down, branches to its right."""
    depth = []
    for box in drawn:
        depth.append(1 + max([depth[i] for i in box.bottoms] or [0]))
    trunk, number = set(), depth.index(max(depth))
    while number is not None:
        trunk.add(number)
        number = max(drawn[number].bottoms, key=lambda i: depth[i], default=None)
    placed, rows = [], {}
    for i, box in enumerate(drawn):
        above = [placed[j] for j in box.bottoms]
        column = 0 if i in trunk else max([1] + [place[0] for place in above])
        row = max([rows.get(column, 0)] + [place[1] + (place[0] == column) for place in above])
        rows[column] = row + 1
        placed.append((column, row))
    return placed


def picture(net: caffe_pb2.NetParameter, title: str) -> 'Figure':
    """A matplotlib Figure of a NetParameter."""
    import matplotlib
    matplotlib.use('Agg')
    matplotlib.rcParams['svg.hashsalt'] = 'bcnn'  # the same bytes each time
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    drawn = boxes(net)
    grid = places(drawn)
    width = 1.2 + (1 + max(column for column, _ in grid)) * (WIDTH + GAP)
    height = 1.2 + (1 + max(row for _, row in grid)) * ROW
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.add_axes([0, 0, 1, 1])
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis('off')
    axes.text(1, 0.5, title, fontsize=15, weight='bold', va='center')
    centres = [(1 + column * (WIDTH + GAP), 1.1 + row * ROW) for column, row in grid]
    for box, (x, y) in zip(drawn, centres):
        _draw_box(axes, box, x, y)
        for i in box.bottoms:
            _draw_arrow(axes, centres[i], (x, y))
    _draw_parts(axes, drawn, centres)
    return figure


def _draw_box(axes, box, x, y):
    from matplotlib.patches import FancyBboxPatch
    colour = DROPOUT if box.dropout else RANDOM if box.random else ONCE
    axes.add_patch(FancyBboxPatch((x, y - 0.17), WIDTH, 0.34, boxstyle='round,pad=0.03,rounding_size=0.06',
                                  facecolor=colour, edgecolor='#555555', linewidth=0.8))
    axes.text(x + 0.1, y, box.name, fontsize=9, weight='bold', va='center')
    axes.text(x + 1.05, y, box.text, fontsize=9, va='center')
    axes.text(x + WIDTH - 1.65, y, box.size, fontsize=8, va='center', ha='right', color='#333333')
    axes.text(x + WIDTH - 0.1, y, box.weights, fontsize=8, va='center', ha='right', color='#777777')


def _draw_arrow(axes, start, end):
    style = dict(arrowstyle='-|>', color='#555555', linewidth=0.9, shrinkA=0, shrinkB=0)
    if start[0] == end[0]:  # straight down, or round the boxes between them
        bend = '' if end[1] - start[1] < 1.5 * ROW else 'arc3,rad=-0.3'
        points = (start[0] + WIDTH / 2, start[1] + 0.2), (end[0] + WIDTH / 2, end[1] - 0.2)
    else:  # to the side
        bend = ''
        points = (start[0] + WIDTH + 0.03, start[1]), (end[0] - 0.03, end[1])
        if start[0] > end[0]:
            points = (start[0] - 0.03, start[1]), (end[0] + WIDTH + 0.03, end[1])
    axes.annotate('', xy=points[1], xytext=points[0],
                  arrowprops=dict(style, connectionstyle=bend) if bend else style)


def _draw_parts(axes, drawn, centres):
    """The words at the left: which layers a sample has to go through again."""
    for random, words in ((False, 'computed once'), (True, 'random: once for each sample')):
        rows = [y for box, (x, y) in zip(drawn, centres) if box.random == random and x == 1]
        if rows:
            axes.plot([0.75, 0.75], [min(rows) - 0.2, max(rows) + 0.2], color='#b36b00' if random else '#4a78a8',
                      linewidth=3, solid_capstyle='butt')
            axes.text(0.5, (min(rows) + max(rows)) / 2, words, fontsize=9, rotation=90, ha='center', va='center')
