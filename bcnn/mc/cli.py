"""From the arguments of a command to library calls, and from results to what people read."""

import argparse
import os
import sys
from fractions import Fraction
from typing import Any, Dict, Iterator, Optional, Sequence, Tuple

from .. import engine, paper
from ..errors import UserError
from ..inputs import preprocessing
from ..prototxt.ends import Shapes
from . import adaptive, evaluation, so_far, targets

DEFAULT_T = paper.run_of('table1', 'cifar10', 'dsn_aug').T  # for every net: Table 1's, and Figure 4's last


def evaluate(args: argparse.Namespace) -> str:
    """Do what tools/mc_eval.py was asked for and print the result; gives the folder where it is stored."""
    engine.require_device(args.gpu)
    without = args.standard_only or args.net == 'lenet_none' and args.T is None
    common = dict(limit=args.limit, crops=args.crops, standard_only=without, options=options_of(args),
                  classes=args.classes, title=args.name)
    if args.net is not None:
        target = targets.of_arguments(args, data=args.data, **common)
    else:
        target = targets.of_prototxt(args.prototxt, args.weights, args.data, shape_of(args.shape), args.output,
                                     **common)
    print('\n'.join(target.notes), flush=True)
    settings = evaluation.Settings(
        T=DEFAULT_T if args.T is None else args.T, repeats=args.repeats, seed=args.seed, mode=mode_of(args),
        batch=args.batch, crops=args.crops, gpu=args.gpu, rule=rule_of(args), groups=groups_of(args),
        streams=args.streams)
    settings = evaluation.prepare(target, settings)
    for warning in target.warnings:
        print('warning: %s' % warning, file=sys.stderr, flush=True)
    folder = args.out or evaluation.folder_of(target, settings)
    try:
        result = evaluation.run(target, settings, folder, 1 if args.gpu is not None else args.jobs, so_far.quicker)
    except (KeyboardInterrupt, SystemExit):
        print('\n'.join(so_far.lines(folder, settings.repeats)), flush=True)
        raise
    print('\n'.join(table(target, result, args.average)))
    print('stored in %s' % os.path.relpath(folder))
    return folder


def options_of(args: argparse.Namespace) -> preprocessing.Options:
    """The preprocessing.Options of the arguments that launcher.image_options() adds."""
    return preprocessing.Options(scale=_scale(args.scale), mean=args.mean, channels=args.channels,
                                 resize=_size(args.resize), crop=args.crop)


def _scale(text):
    try:
        return None if text is None else float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise UserError('--scale %s: not a number like 0.00390625 or 1/256' % text)


def _size(text):
    """(227, 227) of '227,227' or '227'; None of None."""
    if text is None:
        return None
    parts = text.replace('x', ',').split(',')
    if not all(part.strip().isdigit() for part in parts) or len(parts) > 2:
        raise UserError('--resize %s: not of the form 227,227 (height, width)' % text)
    return tuple(int(part) for part in (parts * 2)[:2])


def mode_of(args: argparse.Namespace) -> str:
    """The mode of an evaluation, from options that do not all go together."""
    asked = [text for text, used in (('--adaptive', args.adaptive), ('--adaptive-check', args.adaptive_check),
                                     ('--mode replicate', args.mode == 'replicate')) if used]
    alone = args.sampler == 'shared' or asked[-1:] == ['--mode replicate']
    if asked and alone and args.sampler != 'independent':
        asked.append('--sampler ' + args.sampler)
    if len(asked) > 1:
        raise UserError('%s does not go with %s' % tuple(asked[:2]))
    return 'adaptive' if args.adaptive else args.mode if args.sampler == 'independent' else args.sampler


def groups_of(args: argparse.Namespace) -> Optional[int]:
    """The groups of channels for masks in groups, 0 for as many as suit; None where such masks were not asked for."""
    if args.sampler != 'independent':
        if args.groups is not None and args.groups < 1:
            raise UserError('--groups is %d: it must be 1 or more' % args.groups)
        return args.groups or 0
    if args.groups is not None:
        raise UserError('--groups says nothing without --sampler antithetic or shared')
    return None


def rule_of(args: argparse.Namespace) -> Optional[adaptive.Rule]:
    """The adaptive.Rule to sample by, or to check; None where it was not asked for."""
    if not (args.adaptive or args.adaptive_check):
        if args.adaptive_error is not None:
            raise UserError('--adaptive-error says nothing without --adaptive or --adaptive-check')
        return None
    return adaptive.Rule() if args.adaptive_error is None else adaptive.Rule(args.adaptive_error)


def shapes_of(texts: Optional[Sequence[str]]) -> Shapes:
    """The shape of '3,32,32', {blob: shape} of ['x=3,32,32', 'y=1,8,8'] for several inputs, None of nothing."""
    if not texts or len(texts) == 1 and '=' not in texts[0]:
        return shape_of(texts[0] if texts else None)
    for text in texts:
        if '=' not in text:
            raise UserError('--shape %s: with several inputs each shape is of the form blob=3,32,32' % text)
    return {name: shape_of(shape) for name, _, shape in (text.partition('=') for text in texts)}


def shape_of(text: Optional[str]) -> Optional[Tuple[int, ...]]:
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


def table(target: targets.Target, result: Dict[str, Any], average: str = 'probs') -> Iterator[str]:
    """The lines of a result for people."""
    count, T = result['config']['count'], result['config']['T']
    yield '%s on %d images, weights %s' % (target.name, count, os.path.relpath(target.weights))
    yield '%-24s %-34s %8s %8s %8s' % ('', 'error %', 'NLL', 'Brier', 'ECE')
    yield _row('Standard dropout', '%.2f' % result['standard']['error'], result['standard'])
    if 'mc' not in result:
        yield 'no MC dropout: %s' % ('not asked for' if result['config']['dropout'] else 'the net has no dropout layer')
        return
    other = 'scores' if average == 'probs' else 'probs'
    for kind in (average, other):
        mc = result['mc'][kind]
        yield _row('MC dropout T=%d, %s' % (T, kind), _spread(mc), mc['summary'])
    test, difference = result['mc'][average]['mcnemar'], result['mc'][average]['difference']
    yield 'MC less Standard: %+.2f points (95%% of bootstraps %+.2f to %+.2f)' % (
        difference['points'], difference['low'], difference['high'])
    yield 'exact McNemar p = %.3g (only Standard right %d, only MC right %d)' % (
        test['p'], test['only_standard_right'], test['only_mc_right'])
    means = result['uncertainty']
    yield 'mean uncertainty: entropy %.4f = expected entropy %.4f + mutual information %.4f; variation ratio %.4f' % (
        means['entropy'], means['expected_entropy'], means['mutual_information'], means['variation_ratio'])
    if 'adaptive' in result:
        yield from _passes(result['adaptive'], count, T)


def _passes(adaptively, count, T):
    """The lines on how many passes an adaptive evaluation took, and how far its predictions can be trusted."""
    for k, passes in enumerate(adaptively['passes'], 1):
        yield ('repetition %d: %.2f passes an image, %.1f%% of T=%d (median %g, 90%% of images %g or fewer, 99%% %g; '
               '%d images took all)' % (k, passes['mean'], passes['percent_of_T'], T, passes['median'],
                                        passes['percentile_90'], passes['percentile_99'], passes['all_T']))
        if 'check' in passes:
            check = passes['check']
            yield ('so adaptive T would have it: %d of %d predictions differ from those after all %d passes '
                   '(%.2f%% agree), error %.2f%%' % (check['different'], count, T, check['agreement'], check['error']))
    yield ('guaranteed for adaptive T: a prediction is that of all %d passes with a probability of at least %g%%'
           % (T, adaptively['guaranteed_agreement']))


def _spread(mc):
    if mc['std'] is None:
        return '%.2f (1 repetition)' % mc['mean']
    return '%.2f +- %.2f, lowest %.2f, of %d' % (mc['mean'], mc['std'], mc['lowest'], mc['repetitions'])


def _row(name, error, summary):
    return '%-24s %-34s %8.4f %8.4f %8.4f' % (name, error, summary['nll'], summary['brier'], summary['ece'])
