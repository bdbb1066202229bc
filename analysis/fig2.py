"""Figure 2: test error of LeNet against iterations on MNIST and CIFAR-10, Standard and MC dropout."""

from command_line import start
from drawing import style
from records import curves, names, smaller
from records.from_bcnn import paper
from records.load import where

RUNS = [(run.dataset, run.net, method) for run in paper.find('fig2') for method in run.methods]


def draw(tables):
    """The figure: a panel a data set."""
    notes = smaller.notes(tables, 'fig2', RUNS)
    seeds = where(tables['curves'], experiment='fig2')['seed'].nunique()
    notes.append('MC: mean of T softmax outputs, 50 in the paper. Standard: weights scaled, one pass.'
                 + (' Bands: one standard deviation over seeds; thin: each seed.' if seeds > 1
                    else ' One training seed.' if seeds else ''))
    figure, ((left, right),) = style.panels(1, 2, notes, panel=(3.9, 3.2), legend=1)
    panel(left, tables, in_place_of_mnist(tables))
    panel(right, tables, 'cifar10')
    left.set_ylabel('test error, %')
    return style.finish(figure, columns=5)


def in_place_of_mnist(tables):
    """'mnist', or the data set of the same size that a machine without MNIST was given."""
    recorded = set(tables['curves']['dataset'])
    return 'fashion_mnist' if 'fashion_mnist' in recorded and 'mnist' not in recorded else 'mnist'


def panel(axes, tables, dataset):
    """Draws the curves of a data set that are there."""
    axes.set_title(paper.title(dataset) + (' (not in the paper)' if dataset == 'fashion_mnist' else ''))
    errors = []
    in_paper = 'cifar10' if dataset == 'cifar10' else 'mnist'
    sides = [(net, method) for run_dataset, net, method in RUNS if run_dataset == in_paper]
    schedule = curves.schedule_for(tables, dataset, sides)
    for net, method in sides:
        rows = curves.curve(tables, dataset, net, method, paper.run_of('fig2', in_paper, net).T, schedule)
        if len(rows):
            style.line(axes, rows, label=names.curve(net, method), **style.curve_look(net, method))
            errors += list(rows['error'])
    if not errors:
        style.absent(axes, 'not run yet:\npython tools/train.py')
        return
    style.log_iterations(axes)
    style.log_errors(axes, errors)


if __name__ == '__main__':
    start(__doc__, style.maker(draw, 'fig2'))
