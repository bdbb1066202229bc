"""The report's numbers: tables beside the paper's, and what each figure shows in words."""

import common
import fig2
import fig3
import fig4
import page
import reliability
import risk_coverage
import table1
import uncertain_images


# --- tables ------------------------------------------------------------------------------------

def _fig2_numbers(tables):
    rows = []
    for dataset, net, method in fig2.RUNS:
        curve = common.curve(tables, dataset, net, method, T=50)
        head = [common.paper.title(dataset), common.curve_name(net, method)]
        if len(curve):
            last = common.where(curve, iteration=common.over_seeds(curve)['iteration'].max())
            rows.append(head + [common.spread(last['error'].mean(), last['error'].std(ddof=1)),
                                common.count(last['iteration'].iloc[0]), '%d' % len(last),
                                common.count(last['n'].iloc[0]),
                                '%d' % last['T'].iloc[0] if method == 'mc' else u'\u2013',
                                _paper_length('fig2', dataset, net)])
        else:
            rows.append(head + ['not run'] + [u'\u2013'] * 4 + [_paper_length('fig2', dataset, net)])
    note = '<p class="small">The paper gives Figure 2 as curves, not as numbers. %s</p>' % page.text(
        _elsewhere('lenet_all'))
    return page.table(['data', 'net and method', 'final error, %', 'at iteration', 'seeds', 'n', 'T',
                       "paper's iterations"], rows, left=2) + note


def _paper_length(experiment, dataset, net):
    return common.count(common.paper.schedule(experiment, dataset, net))


def _elsewhere(net):
    """What others measured with a net, in words."""
    found = []
    for dataset, name, standard, mc, who in common.paper.ELSEWHERE:
        if name == net:
            found.append('Elsewhere: %s on %s %.2f%% Standard%s, %s.' % (
                common.paper.title(name), common.paper.title(dataset), standard,
                '' if mc is None else ', %.2f%% MC' % mc, who))
    return ' '.join(found)


def _fig3_numbers(tables):
    rows = []
    for dataset, net, method in fig3.RUNS:
        curve = fig3.curve(tables, dataset, net, method)
        head = [common.paper.title(dataset), common.curve_name(net, method)]
        mean = common.over_seeds(curve)
        if len(mean):
            low, last = mean.loc[mean['mean'].idxmin()], mean.iloc[-1]
            rows.append(head + ['%.2f' % low['mean'], common.count(low['iteration']), '%.2f' % last['mean'],
                                common.count(last['iteration']),
                                '%+.2f' % (last['mean'] - low['mean']), '%d' % last['count'],
                                _paper_length('fig3', dataset, net)])
        else:
            rows.append(head + ['not run'] + [u'\u2013'] * 5 + [_paper_length('fig3', dataset, net)])
    note = '<p class="small">The paper gives Figure 3 as curves, not as numbers.</p>'
    return page.table(['trained on', 'net and method', 'lowest error, %', 'at iteration', 'error at the end, %',
                       'at iteration', 'rise', 'seeds', "paper's iterations"], rows, left=2) + note


def _table1_numbers(tables):
    lines = table1.rows(tables)
    rows = []
    for line in lines:
        cell = dict(zip(table1.COLUMNS, map(page.text, table1.cells(line))))
        small = '; '.join(part for part in (line['seed'] is not None and 'training seed ' + cell['seed'],
                                            cell['shorter']) if part)
        rows.append(['%s%s' % (cell['net'], '<br><span class="small">%s</span>' % small if small else ''),
                     cell['standard'], cell['paper_standard'], _with(cell['mc'], cell['std']),
                     _with(cell['paper_mc'], cell['paper_std']), cell['lowest'], cell['paper_lowest'],
                     _with(cell['mc_scores'], cell['std_scores'])]
                    + [cell[name] for name in ('T', 'n', 'repetitions', 'mcnemar_p')])
    heads = ['net', 'Standard', 'paper', 'MC', 'paper', 'lowest', 'paper', 'MC by scores', 'T', 'n', 'reps',
             'McNemar p']
    notes = ' '.join(_elsewhere(net) for net in common.paper.TABLE1)
    return page.table(heads, rows, raw=True,
                      kind_of='names') + '<p class="small">%s %s</p>' % (page.text(table1.CAPTION), page.text(notes))


def _with(mean, std):
    return mean if std == table1.DASH else u'%s \u00b1 %s' % (mean, std)


def _fig4_numbers(tables):
    rows = []
    for net in reversed(common.paper.TABLE1):
        chosen, known = fig4.chosen_of(tables, 'cifar10', net), common.paper.PUBLISHED[net]
        paper_says = common.spread(known.mc, known.std)
        if not chosen:
            rows.append([common.paper.title(net)] + ['not run'] + [u'\u2013'] * 5
                        + ['%.2f' % known.standard, paper_says])
            continue
        mean = fig4.passes(tables, chosen[0])
        at = [common.where(mean, t=t) for t in (1, 10, 20, 50, 100)]
        rows.append([common.paper.title(net), '%.2f' % table1.measured(chosen[0])['standard']]
                    + [_at(one) for one in at] + ['%.2f' % known.standard, paper_says])
    return page.table(['net', 'Standard', 'T = 1', 'T = 10', 'T = 20', 'T = 50', 'T = 100', 'paper Standard',
                       'paper T = 100'], rows)


def _at(one):
    """The error after some passes, with its spread where there are repetitions."""
    if not len(one):
        return u'\u2013'
    return common.spread(one['mean'].iloc[0], one['std'].iloc[0] if one['count'].iloc[0] > 1 else None)


def quality(tables, dataset, net):
    chosen = common.evaluations(tables, dataset, net)
    rows = common.pd.concat(chosen)
    numbers = ['%.3f' % reliability.rows_of(rows, method)[name].mean() for name in ('ece', 'nll')
               for method in ('standard', 'mc')]
    for method, measure in (('standard', 'max_prob'), ('mc', 'entropy'), ('mc', 'mutual_information')):
        at = common.where(risk_coverage.points(tables, chosen, method, measure), rejected=20)
        numbers.append('%.2f' % at['mean'].iloc[0] if len(at) else u'\u2013')
    return numbers


NUMBERS = {'fig2': _fig2_numbers, 'fig3': _fig3_numbers, 'table1': _table1_numbers, 'fig4': _fig4_numbers}


# --- what the figures show, for those who cannot see them ---------------------------------------

def _alt_fig2(tables):
    parts = []
    for dataset, net, method in fig2.RUNS:
        rows = common.curve(tables, dataset, net, method, T=50)
        if len(rows):
            mean = common.over_seeds(rows)
            parts.append('%s on %s ends at %.2f%%'
                         % (common.curve_name(net, method), common.paper.title(dataset), mean['mean'].iloc[-1]))
    return 'Two panels, MNIST and CIFAR-10: test error against iterations, both axes logarithmic. %s.' % (
        '; '.join(parts) or 'Nothing run yet')


def _alt_fig3(tables):
    parts = []
    for dataset, net, method in fig3.RUNS:
        mean = common.over_seeds(fig3.curve(tables, dataset, net, method))
        if len(mean):
            parts.append('%s, %s: lowest %.2f%%, at the end %.2f%%'
                         % (common.curve_name(net, method), common.paper.title(dataset), mean['mean'].min(),
                            mean['mean'].iloc[-1]))
    return 'Six panels: test error against iterations for three sizes of training set. %s.' % (
        '; '.join(parts) or 'Nothing run yet')


def _alt_fig4(tables):
    parts = []
    for net in reversed(common.paper.TABLE1):
        for group in fig4.chosen_of(tables, 'cifar10', net):
            mean = fig4.passes(tables, group)
            parts.append('%s falls from %.2f%% with one pass to %.2f%% with %d, Standard dropout has %.2f%%' % (
                common.paper.title(net), mean['mean'].iloc[0], mean['mean'].iloc[-1], mean['t'].max(),
                table1.measured(group)['standard']))
    return 'Test error against the number of passes T. %s.' % ('; '.join(parts) or 'Nothing evaluated yet')


def alt_reliability(tables):
    parts = []
    for pair in common.evaluated(tables):
        ece = quality(tables, *pair)[:2]
        parts.append('%s: ECE %s with Standard, %s with MC dropout' % (reliability.name(*pair), ece[0], ece[1]))
    return 'Reliability diagrams. %s.' % ('; '.join(parts) or 'Nothing evaluated yet')


def alt_risk(tables):
    parts = []
    for pair in common.evaluated(tables):
        kept = quality(tables, *pair)[4:]
        parts.append('%s: with a fifth of the images rejected, the error is %s%% by Standard confidence, %s%% by MC '
                     'entropy, %s%% by mutual information'
                     % ((reliability.name(*pair),) + tuple(kept)))
    return 'Error of the kept images against the share rejected. %s.' % ('; '.join(parts) or 'Nothing evaluated yet')


def alt_images(tables):
    names = [reliability.name(*pair) for pair in common.evaluated(tables) if len(uncertain_images.shown(tables, *pair))]
    return 'Small pictures of the most and the least uncertain test images. %s.' % (
        '; '.join(names) or 'Nothing evaluated yet')


ALTS = {'fig2': _alt_fig2, 'fig3': _alt_fig3, 'fig4': _alt_fig4}
