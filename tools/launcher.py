"""How every Python tool starts: the package on the path, the Python that has Caffe, errors as one line.

    from launcher import start          # first, it makes `bcnn` importable
    ...
    if __name__ == '__main__':
        start(make_parser(), run)
"""

import importlib.util
import os
import sys

TOOLS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TOOLS)
sys.path.insert(0, ROOT)


def trained_net(parser):
    """The options that name a net of the paper with its weights, beside --net."""
    add = parser.add_argument
    add('--dataset', help="mnist, mnist_4 ... cifar10 (default: the net's own, mnist for the LeNets)")
    add('--weights', help='a caffemodel (default: of the training run)')
    add('--training-seed', type=int, default=1, metavar='K', help='which training run (default 1)')


def start(parser, run, argv=None):
    """Parse the command line, then exit with what run(args) returns, under a Python that has Caffe.

    The command line is checked first: --help and a bad option need no Caffe.
    """
    args = parser.parse_args(argv)
    if importlib.util.find_spec('caffe') is None:
        _continue_with_caffe()
    from bcnn import blas
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
    from bcnn import arguments
    from bcnn.errors import UserError
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
