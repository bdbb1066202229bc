"""What each figure shows, in words, for those who cannot see it."""

import fig2
import fig3
from records import curves, evaluations, names, uncertainty
from records.from_bcnn import paper
from records.load import where


def quality(tables, dataset, net):
    """The cells of a net: calibration, and the error with a fifth of the images rejected."""
    groups = evaluations.chosen(tables, dataset, net)
    cells = ['%.3f' % measure(groups, method) for measure in (uncertainty.calibration_error, uncertainty.likelihood)
             for method in ('standard', 'mc')]
    for method, measure in (('standard', 'max_prob'), ('mc', 'entropy'), ('mc', 'mutual_information')):
        at = where(uncertainty.error_kept(tables, groups, method, measure), rejected=20)
        cells.append('%.2f' % at['mean'].iloc[0] if len(at) else names.DASH)
    return cells


def _alt_fig2(tables):
    parts = []
    for dataset, net, method in fig2.RUNS:
        rows = curves.of_paper(tables, 'fig2', dataset, net, method)
        if len(rows):
            mean = curves.over_seeds(rows)
            parts.append('%s on %s ends at %.2f%%'
                         % (names.curve(net, method), paper.title(dataset), mean['mean'].iloc[-1]))
    return 'Two panels, MNIST and CIFAR-10: test error against iterations, both axes logarithmic. %s.' % (
        '; '.join(parts) or 'Nothing run yet')


def _alt_fig3(tables):
    parts = []
    for dataset, net, method in fig3.RUNS:
        mean = curves.over_seeds(curves.of_paper(tables, 'fig3', dataset, net, method))
        if len(mean):
            parts.append('%s, %s: lowest %.2f%%, at the end %.2f%%'
                         % (names.curve(net, method), paper.title(dataset), mean['mean'].min(),
                            mean['mean'].iloc[-1]))
    return 'Six panels: test error against iterations for three sizes of training set. %s.' % (
        '; '.join(parts) or 'Nothing run yet')


def _alt_fig4(tables):
    parts = []
    for shown in evaluations.by_passes(tables):
        if shown.group is not None:
            mean = evaluations.passes(tables, shown.group)
            parts.append('%s falls from %.2f%% with one pass to %.2f%% with %d, Standard dropout has %.2f%%' % (
                shown.name, mean['mean'].iloc[0], mean['mean'].iloc[-1], mean['t'].max(),
                evaluations.measured(shown.group)['standard']))
    return 'Test error against the number of passes T. %s.' % ('; '.join(parts) or 'Nothing evaluated yet')


def _alt_reliability(tables):
    parts = []
    for target in (target for target in evaluations.targets(tables) if target[1] not in uncertainty.HINGE):
        standard, mc = quality(tables, *target)[:2]
        parts.append('%s: ECE %s with Standard, %s with MC dropout' % (names.target(*target), standard, mc))
    return 'Reliability diagrams. %s.' % ('; '.join(parts) or 'Nothing evaluated yet')


def _alt_risk(tables):
    parts = []
    for target in evaluations.targets(tables):
        kept = quality(tables, *target)[4:]
        parts.append('%s: with a fifth of the images rejected, the error is %s%% by Standard confidence, %s%% by MC '
                     'entropy, %s%% by mutual information' % ((names.target(*target),) + tuple(kept)))
    return 'Error of the kept images against the share rejected. %s.' % ('; '.join(parts) or 'Nothing evaluated yet')


def _alt_images(tables):
    shown = [names.target(*target) for target in evaluations.targets(tables)
             if len(uncertainty.extreme_images(tables, *target))]
    return 'Small pictures of the most and the least uncertain test images. %s.' % (
        '; '.join(shown) or 'Nothing evaluated yet')


ALTS = {'fig2': _alt_fig2, 'fig3': _alt_fig3, 'fig4': _alt_fig4, 'reliability': _alt_reliability,
        'risk_coverage': _alt_risk, 'uncertain_images': _alt_images}
