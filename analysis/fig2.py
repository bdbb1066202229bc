"""Figure 2: test error of LeNet against iterations on MNIST and CIFAR-10, Standard and MC dropout."""

import common
import style

RUNS = [(run.dataset, run.net, method) for run in common.paper.find('fig2') for method in run.methods]


def draw(tables):
    """The figure: a panel a data set."""
    notes = common.shortened(tables, 'fig2', RUNS)
    seeds = common.where(tables['curves'], experiment='fig2')['seed'].nunique()
    notes.append('MC: mean of T softmax outputs, 50 in the paper. Standard: weights scaled, one pass.'
                 + (' Bands: one standard deviation over seeds; thin: each seed.' if seeds > 1
                    else ' One training seed.' if seeds else ''))
    made, ((left, right),) = style.figure(1, 2, notes, panel=(3.9, 3.2), legend=1)
    panel(left, tables, in_place_of_mnist(tables))
    panel(right, tables, 'cifar10')
    left.set_ylabel('test error, %')
    return style.finish(made, columns=5)


def in_place_of_mnist(tables):
    """'mnist', or the data set of the same size that a machine without MNIST was given."""
    recorded = set(tables['curves']['dataset'])
    return 'fashion_mnist' if 'fashion_mnist' in recorded and 'mnist' not in recorded else 'mnist'


def panel(axes, tables, dataset):
    """Draws the curves of a data set that are there."""
    axes.set_title(common.paper.title(dataset) + (' (not in the paper)' if dataset == 'fashion_mnist' else ''))
    values = []
    of_paper = 'cifar10' if dataset == 'cifar10' else 'mnist'
    for _, net, method in (run for run in RUNS if run[0] == of_paper):
        rows = common.curve(tables, dataset, net, method, T=50)
        if len(rows):
            style.line(axes, rows, label=common.curve_name(net, method), **look(net, method))
            values += list(rows['error'])
    if not values:
        style.absent(axes, 'not run yet:\npython tools/train.py')
        return
    style.log_iterations(axes)
    style.log_errors(axes, values)


def look(net, method):
    """Colour by net, line by method: Standard dashed, MC solid, no dropout dotted."""
    linestyle = ':' if net == 'lenet_none' else style.STANDARD if method == 'standard' else style.MC
    return dict(color=style.COLOURS[net], marker=style.MARKERS[net], linestyle=linestyle,
                markerfacecolor='white' if method == 'standard' else style.COLOURS[net])


if __name__ == '__main__':
    common.start(__doc__, style.make(draw, 'fig2'))
