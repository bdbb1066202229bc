"""The numbers behind a figure or table of the paper, beside the paper's."""

import fig2
import fig3
import table1
from pages.html import join, put, small, table
from records import curves, evaluations, names
from records.from_bcnn import paper
from records.load import where
from records.names import DASH


def _fig2_numbers(tables):
    rows = []
    for dataset, net, method in fig2.RUNS:
        curve = curves.of_paper(tables, 'fig2', dataset, net, method)
        head = [paper.title(dataset), names.curve(net, method)]
        if len(curve):
            last = where(curve, iteration=curves.over_seeds(curve)['iteration'].max())
            rows.append(head + [names.spread(last['error'].mean(), last['error'].std(ddof=1)),
                                names.count(last['iteration'].iloc[0]), '%d' % len(last),
                                names.count(last['n'].iloc[0]),
                                '%d' % last['T'].iloc[0] if method == 'mc' else DASH,
                                _paper_length('fig2', dataset, net)])
        else:
            rows.append(head + ['not run'] + [DASH] * 4 + [_paper_length('fig2', dataset, net)])
    note = small('The paper gives Figure 2 as curves, not as numbers. ' + _elsewhere('lenet_all'))
    return join([table(['data', 'net and method', 'final error, %', 'at iteration', 'seeds', 'n', 'T',
                        "paper's iterations"], rows, left=2), note])


def _paper_length(experiment, dataset, net):
    return names.count(paper.schedule(experiment, dataset, net))


def _elsewhere(net):
    """What others measured with a net, in words."""
    said = []
    for dataset, name, standard, mc, who in paper.ELSEWHERE:
        if name == net:
            said.append('Elsewhere: %s on %s %.2f%% Standard%s, %s.' % (
                paper.title(name), paper.title(dataset), standard,
                '' if mc is None else ', %.2f%% MC' % mc, who))
    return ' '.join(said)


def _fig3_numbers(tables):
    rows = []
    for dataset, net, method in fig3.RUNS:
        curve = curves.of_paper(tables, 'fig3', dataset, net, method)
        head = [paper.title(dataset), names.curve(net, method)]
        mean = curves.over_seeds(curve)
        if len(mean):
            low, last = mean.loc[mean['mean'].idxmin()], mean.iloc[-1]
            rows.append(head + ['%.2f' % low['mean'], names.count(low['iteration']), '%.2f' % last['mean'],
                                names.count(last['iteration']),
                                '%+.2f' % (last['mean'] - low['mean']), '%d' % last['count'],
                                _paper_length('fig3', dataset, net)])
        else:
            rows.append(head + ['not run'] + [DASH] * 5 + [_paper_length('fig3', dataset, net)])
    return join([table(['trained on', 'net and method', 'lowest error, %', 'at iteration', 'error at the end, %',
                        'at iteration', 'rise', 'seeds', "paper's iterations"], rows, left=2),
                 small('The paper gives Figure 3 as curves, not as numbers.')])


def _table1_numbers(tables):
    rows = []
    for line in table1.rows(tables):
        cell = dict(zip(table1.COLUMNS, table1.cells(line)))
        rows.append([_net(line, cell), cell['standard'], cell['paper_standard'], _with(cell['mc'], cell['std']),
                     _with(cell['paper_mc'], cell['paper_std']), cell['lowest'], cell['paper_lowest'],
                     _with(cell['mc_scores'], cell['std_scores'])]
                    + [cell[name] for name in ('T', 'n', 'repetitions', 'mcnemar_p')])
    heads = ['net', 'Standard', 'paper', 'MC', 'paper', 'lowest', 'paper', 'MC by scores', 'T', 'n', 'reps',
             'McNemar p']
    notes = ' '.join(_elsewhere(net) for net in paper.TABLE1)
    return join([table(heads, rows, kind='names'), small('%s %s' % (table1.CAPTION, notes))])


def _net(line, cell):
    """A net's name, and below it how its run is smaller than the paper's."""
    marks = (['training seed ' + cell['seed']] if line['seed'] is not None else []) + [cell['shorter']]
    marks = '; '.join(mark for mark in marks if mark)
    return put('$net<br><span class="small">$marks</span>', net=cell['net'], marks=marks) if marks else cell['net']


def _with(mean, std):
    return mean if std == DASH else '%s +- %s' % (mean, std)


def _fig4_numbers(tables):
    rows = []
    for shown in evaluations.by_passes(tables):
        known = paper.PUBLISHED[shown.net]
        published = ['%.2f' % known.standard, names.spread(known.mc, known.std)] if shown.of_paper else [DASH, DASH]
        measured = (_by_passes(tables, shown.group) if shown.group is not None else
                    ['not run'] + [DASH] * (len(PASSES) + 1))
        rows.append([shown.name] + measured + published)
    heads = ['net', 'Standard'] + ['T = %d' % t for t in PASSES] + ['below Standard from']
    return table(heads + ['paper Standard', 'paper T = %d' % paper.of_net('cifar10', 'dsn_aug').T], rows)


PASSES = (1, 10, 20, 50, 100)


def _by_passes(tables, group):
    """The errors of an evaluation: Standard, after some numbers of passes, and where it is below Standard for good."""
    mean, standard = evaluations.passes(tables, group), evaluations.error_of_standard(group)
    below = evaluations.below_from(mean, standard)
    return (['%.2f' % standard] + [_after(mean, t) for t in PASSES]
            + ['never' if below is None else 'T = %d' % below])


def _after(mean, t):
    """The error after t passes, with its spread where there are repetitions."""
    at = where(mean, t=t)
    if not len(at):
        return DASH
    return names.spread(at['mean'].iloc[0], at['std'].iloc[0] if at['count'].iloc[0] > 1 else None)


NUMBERS = {'fig2': _fig2_numbers, 'fig3': _fig3_numbers, 'table1': _table1_numbers, 'fig4': _fig4_numbers}
