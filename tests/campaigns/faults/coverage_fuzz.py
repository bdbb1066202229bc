"""Coverage-guided fuzzing of a reader with atheris, which is not part of the project: an option for long hunts.

    pip install --target /somewhere atheris
    tools/python tests/campaigns/faults/coverage_fuzz.py --atheris /somewhere --format tar --seconds 600 --report faults.csv

Only for readers in Python (FORMATS that start no child); the samples of formats.py are where it begins.
The process ends at the first problem, with atheris's own report and the file that caused it.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def make_parser():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--atheris', metavar='DIR', help='where atheris is, if not on the path')
    parser.add_argument('--format', default='tar', help='one of formats.py that starts no child (default tar)')
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--report', metavar='CSV', help='put the count into this table')
    return parser


def main(args):
    sys.path[:0] = [args.atheris] if args.atheris else []
    try:
        import atheris
    except ImportError as error:
        sys.exit('coverage_fuzz.py: %s: pip install --target DIR atheris, then --atheris DIR' % error)
    with atheris.instrument_imports(include=['bcnn.data', 'bcnn.inputs', 'bcnn.prototxt', 'bcnn.training.curve',
                                             'bcnn.results', 'bcnn.system.store', 'tarfile', 'zipfile']):
        import formats
    import ledger
    row = ledger.new_row('input', args.format, 'guided by coverage (atheris)', args.seed)
    with tempfile.TemporaryDirectory(prefix='bcnn-atheris-') as place:
        reader = formats.FORMATS[args.format](os.path.join(place, 'here'))
        corpus = os.path.join(place, 'corpus')
        os.mkdir(corpus)
        for number, sample in enumerate(reader.samples):
            with open(os.path.join(corpus, str(number)), 'wb') as file:
                file.write(sample)

        counts = multiprocessing.Array('q', 2, lock=False)  # tried, refused
        fuzzer = os.fork()  # which ends this process in its own way
        if fuzzer == 0:
            hunt(atheris, reader, corpus, counts, args)
            os._exit(0)
        _, status = os.waitpid(fuzzer, 0)
    row.update(cases=counts[0], refused=counts[1], problems=1 if status else 0, seconds=float(args.seconds))
    if args.report:
        ledger.store(args.report, [row])
    print('%s: %d inputs tried, %d refused, %d problems' % (args.format, counts[0], counts[1], row['problems']))
    return row['problems']


def hunt(atheris, reader, corpus, counts, args):
    """Feeds the reader until the time is over; does not return."""
    from formats import UserError

    def one(data):
        counts[0] += 1
        try:
            reader.feed(data)
        except UserError as error:
            counts[1] += 1
            assert '\n' not in str(error)

    atheris.Setup([sys.argv[0], '-max_total_time=%d' % args.seconds, '-seed=%d' % args.seed, '-rss_limit_mb=3000',
                   '-verbosity=0', corpus], one)
    atheris.Fuzz()


if __name__ == '__main__':
    sys.exit(main(make_parser().parse_args()))
