"""From the arguments of a command to library calls, and from results to what people read."""

import os

from . import adaptive, engine, evaluation, jobs, runs
from .errors import UserError


def evaluate(args):
    """Do what tools/mc_eval.py was asked for and print the result."""
    without = args.standard_only or args.net == 'lenet_none' and args.T is None
    common = dict(limit=args.limit, crops=args.crops, standard_only=without)
    if args.net is not None:
        job = jobs.of_paper(args.net, args.dataset, args.weights, args.training_seed, args.data, **common)
    else:
        job = jobs.of_prototxt(args.prototxt, args.weights, args.data, shape_of(args.shape), args.output, **common)
    rule = rule_of(args)
    settings = evaluation.Settings(100 if args.T is None else args.T, args.repeats, args.seed, mode_of(args),
                                   args.batch, args.crops, args.gpu, rule)
    engine.require_device(args.gpu)
    settings = evaluation.prepare(job, settings)
    folder = args.out or os.path.join(runs.evaluations(job.weights, job.name), evaluation.key(job, settings))
    result = evaluation.run(job, settings, folder, 1 if args.gpu is not None else args.jobs)
    print('\n'.join(table(job, result, args.average)))
    print('stored in %s' % os.path.relpath(folder))


def mode_of(args):
    """The mode of an evaluation, from options of which at most one may be used."""
    asked = [text for text, used in (('--adaptive', args.adaptive), ('--adaptive-check', args.adaptive_check),
                                     ('--mode replicate', args.mode == 'replicate'),
                                     ('--sampler antithetic', args.sampler == 'antithetic')) if used]
    if len(asked) > 1:
        raise UserError('%s does not go with %s' % tuple(asked[:2]))
    return 'adaptive' if args.adaptive else 'antithetic' if args.sampler == 'antithetic' else args.mode


def rule_of(args):
    """The adaptive.Rule to sample by, or to check; None where it was not asked for."""
    if not (args.adaptive or args.adaptive_check):
        if args.adaptive_error is not None:
            raise UserError('--adaptive-error says nothing without --adaptive or --adaptive-check')
        return None
    return adaptive.Rule() if args.adaptive_error is None else adaptive.Rule(args.adaptive_error)


def shape_of(text):
    """(3, 32, 32) of '3,32,32'; None of None."""
    if text is None:
        return None
    try:
        shape = tuple(int(part) for part in text.replace('x', ',').split(','))
    except ValueError:
        shape = ()
    if len(shape) != 3 or min(shape) < 1:
        raise UserError('--shape %s: not of the form 3,32,32 (channels, height, width)' % text)
    return shape


def table(job, result, average='probs'):
    """The lines of a result for people."""
    count, T = result['config']['count'], result['config']['T']
    yield '%s on %d images, weights %s' % (job.name, count, os.path.relpath(job.weights))
    yield '%-24s %-34s %8s %8s %8s' % ('', 'error %', 'NLL', 'Brier', 'ECE')
    yield _row('Standard dropout', '%.2f' % result['standard']['error'], result['standard'])
    if 'mc' not in result:
        yield 'no MC dropout: %s' % ('not asked for' if result['config']['dropout'] else 'the net has no dropout layer')
        return
    other = 'scores' if average == 'probs' else 'probs'
    for kind in (average, other):
        found = result['mc'][kind]
        name = 'MC dropout T=%d, %s' % (T, kind)
        yield _row(name, _spread(found), found['summary'])
    found = result['mc'][average]
    test, difference = found['mcnemar'], found['difference']
    yield 'MC less Standard: %+.2f points (95%% of bootstraps %+.2f to %+.2f)' % (
        difference['points'], difference['low'], difference['high'])
    yield 'exact McNemar p = %.3g (only Standard right %d, only MC right %d)' % (
        test['p'], test['only_standard_right'], test['only_mc_right'])
    means = result['uncertainty']
    yield 'mean uncertainty: entropy %.4f = expected entropy %.4f + mutual information %.4f; variation ratio %.4f' % (
        means['entropy'], means['expected_entropy'], means['mutual_information'], means['variation_ratio'])
    if 'adaptive' in result:
        yield from _passes(result['adaptive'], count, T)


def _passes(found, count, T):
    """The lines on how many passes an adaptive evaluation took, and how far its predictions can be trusted."""
    for k, one in enumerate(found['passes'], 1):
        yield ('repetition %d: %.2f passes an image, %.1f%% of T=%d (median %g, 90%% of images %g or fewer, 99%% %g; '
               '%d images took all)' % (k, one['mean'], one['percent_of_T'], T, one['median'], one['percentile_90'],
                                        one['percentile_99'], one['all_T']))
        if 'check' in one:
            check = one['check']
            yield ('so adaptive T would have it: %d of %d predictions differ from those after all %d passes '
                   '(%.2f%% agree), error %.2f%%' % (check['different'], count, T, check['agreement'], check['error']))
    yield ('guaranteed for adaptive T: a prediction is that of all %d passes with a probability of at least %g%%'
           % (T, found['guaranteed_agreement']))


def _spread(found):
    if found['std'] is None:
        return '%.2f (1 repetition)' % found['mean']
    return '%.2f +- %.2f, lowest %.2f, of %d' % (found['mean'], found['std'], found['lowest'], found['repetitions'])


def _row(name, error, summary):
    return '%-24s %-34s %8.4f %8.4f %8.4f' % (name, error, summary['nll'], summary['brier'], summary['ece'])
