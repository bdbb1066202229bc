#!/usr/bin/env python3
"""Where the time of an MC pass goes: each layer, beside the matrix products it is made of."""

from launcher import parser_of, start, trained_net


def make_parser():
    parser = parser_of(__doc__, 'example: python tools/profile_net.py --net nin')
    parser.add_argument('--net', help='lenet_all, lenet_ip, nin, dsn ... (default: lenet_ip, lenet_all and nin)')
    trained_net(parser)
    parser.add_argument('--batch', type=int, default=100, help='images a batch (default 100)')
    parser.add_argument('--rounds', type=int, default=7, help='repetitions, of which medians are taken (default 7)')
    parser.add_argument('--record', action='store_true', help='write the table to analysis/results/layers.csv')
    return parser


def run(args):
    from bcnn import nets, weights
    from bcnn.bench import layer_times
    from bcnn.results import writing
    for name in [args.net] if args.net else ['lenet_ip', 'lenet_all', 'nin']:
        net = nets.find(args.dataset or nets.default_dataset(name), name)
        found = weights.at_hand(net, args.weights, args.training_seed)
        print(found.line() if found else 'weights: random ones, there are no others here; times hardly depend on them')
        rows = layer_times.rows(name, net.dataset, args.batch, args.rounds, found and found.path)
        print('\n'.join(layer_times.lines(rows)))
        if args.record:
            print('written: %s' % writing.record('layers', rows))


if __name__ == '__main__':
    start(make_parser(), run)
