"""What tools/predict.py does."""

import argparse
import os
import sys

from .. import nets, paper
from ..mc import cli
from . import drawing, report
from .messages import Request, Spec
from .session import Session


def predict(args: argparse.Namespace) -> None:
    """Prints a line a picture; writes a table and a drawing where they were asked for."""
    if args.draw:
        drawing.check_path(args.draw)
    session = Session(Spec(
        prototxt=args.prototxt, net=args.net, dataset=args.dataset, weights=args.weights,
        training_seed=args.training_seed, options=cli.options_of(args), shape=cli.shape_of(args.shape),
        output=args.output, classes=args.classes, standard_only=args.net == 'lenet_none', gpu=args.gpu,
        digits=_takes_digits(args)))
    names = [os.path.relpath(path) for path in args.pictures]
    result, warnings = session.predict(Request(images=args.pictures, names=names, T=args.T, seed=args.seed,
                                               keep_samples=bool(args.draw), jobs=args.jobs))
    for warning in warnings:
        print('warning: %s' % warning, file=sys.stderr)
    print('\n'.join(session.said + list(report.lines(names, result, args.unsure))))
    if args.csv:
        report.write_csv(args.csv, names, result, args.unsure)
        print('table: %s' % args.csv)
    if args.draw:
        count = drawing.draw(args.draw, session.seen, names, result)
        print('drawn: %s%s' % (args.draw, '' if count == len(names) else ', the first %d pictures' % count))


def _takes_digits(args):
    """Whether pictures are to be made like digits: for nets of MNIST, unless the user does something else to them."""
    if args.net is None or args.as_it_is or args.resize or args.crop:
        return False
    return paper.base_of(args.dataset or nets.default_dataset(args.net)) == 'mnist'
