"""How every Python tool starts: the package on the path, the Python that has Caffe, errors as one line.

    from launcher import start          # first, it makes `bcnn` importable
    ...
    if __name__ == '__main__':
        start(make_parser(), run)
"""

import argparse
import importlib.util
import os
import sys

TOOLS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TOOLS)
sys.path.insert(0, ROOT)


# --- command lines ---------------------------------------------------------------------------------

def parser_of(text, examples):
    """A parser whose help is this text, the options and some examples."""
    return argparse.ArgumentParser(description=text, epilog=examples,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)


def any_net(parser):
    """The options that name a net, of the paper or any other, with its weights, and say what it does to images."""
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--net', help='lenet_all, lenet_ip, lenet_none, nin, dsn or dsn_aug')
    what.add_argument('--prototxt', help='any Caffe net: train_val or deploy, old or new format')
    trained_net(parser)
    parser.add_argument('--shape', help='of an image, where the prototxt does not tell: 3,32,32')
    parser.add_argument('--output', help='the blob of class scores, where the net has several')
    image_options(parser)


def paper_net(parser):
    """The options of a tool that is for the paper's nets with dropout alone."""
    parser.add_argument('--net', required=True, help='lenet_all, lenet_ip, nin, dsn or dsn_aug')
    trained_net(parser)
    no_prepare(parser)


def trained_net(parser):
    """The options that name a net of the paper with its weights, beside --net."""
    add = parser.add_argument
    add('--dataset', help="mnist, mnist_4 ... cifar10 (default: the net's own, mnist for the LeNets)")
    add('--weights', help='a caffemodel (default: of the run that went furthest, of weights/, or published ones)')
    add('--training-seed', type=int, metavar='K', help='which training run (default 1)')


def streams(parser):
    """The option of a tool that draws random numbers for results that are recorded."""
    parser.add_argument('--streams', type=int, choices=(1, 2), help='version of the random numbers: 1 for recorded '
                        'results of before there was 2 (default: as it began, 2 for what is new)')


def no_prepare(parser):
    """The option of a tool that prepares the data it needs."""
    parser.add_argument('--no-prepare', action='store_true',
                        help='refuse where a data set is not prepared (default: prepare it)')


def image_options(parser):
    """The options that say what is done to images before the net; a prototxt's data layer says the same of its own."""
    group = parser.add_argument_group('images', 'what is done to them, where the prototxt does not say it or otherwise')
    add = group.add_argument
    add('--scale', metavar='F', help='factor, after the mean: 0.00390625 or 1/256')
    add('--mean', metavar='M', help='to subtract: a .binaryproto, an .npy, or values a channel, 104,117,123')
    add('--channels', choices=('bgr', 'rgb'), help='order of the colours of pictures (default: bgr, as Caffe)')
    add('--resize', metavar='H,W', help='bring them to this size')
    add('--crop', type=int, metavar='N', help='then take the N x N pixels in the centre')
    add('--classes', metavar='FILE', help='names of the classes, a line a class: for class folders that are not named '
        'by numbers (else they are numbered in order of name), and for names in labels.csv')


# --- starting --------------------------------------------------------------------------------------

def start(parser, run, argv=None):
    """Parse the command line, then exit with what run(args) returns, under a Python that has Caffe.

    The command line is checked first: --help and a bad option need no Caffe.
    """
    args = parser.parse_args(argv)
    if importlib.util.find_spec('caffe') is None:
        _continue_with_caffe()
    # PYTHONPATH, which the prefix's Python is kept from; last, so that it hides nothing: for a net's Python layers
    sys.path += [path for path in os.environ.get('BCNN_PYTHONPATH', '').split(os.pathsep) if path]
    from bcnn.system import blas
    blas.prepare(getattr(args, 'threads', None))  # before anything imports numpy or caffe
    sys.exit(_run(parser.prog, run, args))


def _continue_with_caffe():
    """Start this command anew, arguments unchanged, with tools/python; does not return."""
    if os.environ.get('BCNN_RELAUNCHED'):
        sys.exit('%s: %s has no Caffe: run %s/setup.sh' % (os.path.basename(sys.argv[0]), sys.executable, TOOLS))
    os.environ['BCNN_RELAUNCHED'] = '1'
    sys.stdout.flush()
    python = os.path.join(TOOLS, 'python')
    os.execv(python, [python] + sys.argv)


def _run(prog, run, args):
    os.environ.pop('BCNN_RELAUNCHED', None)  # children are commands of their own
    from bcnn.errors import UserError
    from bcnn.system import arguments
    try:
        arguments.check(args)
        return run(args)
    except UserError as error:
        message, code = str(error), error.exit_code
    except OSError as error:  # no space, no permission, a vanished folder ...
        if isinstance(error, BrokenPipeError):
            os._exit(141)  # `tool | head`: nobody reads on, and flushing would fail again
        message, code = '%s: %s' % (error.filename, error.strerror) if error.filename else str(error), 1
    except MemoryError:
        message, code = 'out of memory', 1
    except KeyboardInterrupt:
        message, code = 'interrupted', 130
    print('%s: %s' % (prog, ' '.join(message.split())), file=sys.stderr)
    return code
