#!/usr/bin/env python3
"""From a fresh clone to a report: prepare data, train, evaluate with MC dropout, record, draw.

tools/run_all.sh sets up Caffe first and then is this command. Only what is missing is made; after any
interruption the same command goes on. Results, logs and the report go to runs/<profile>/.
"""

import argparse

from launcher import start

EXAMPLES = '''profiles (workflow/profiles.json, or a file of your own):
  %s

examples:
  tools/run_all.sh
  tools/run_all.sh --profile paper --gpus 0,1
  tools/run_all.sh --profile cpu --only fig3 --seeds 3
  tools/run_all.sh --profile paper --list'''


def make_parser():
    from bcnn.workflow import plan  # loads nothing but the standard library
    parser = argparse.ArgumentParser(prog='run_all.sh', description=__doc__,
                                     epilog=EXAMPLES % '\n  '.join(plan.described()),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('--profile', default='quick', help='one of those below (default quick), or a JSON file like one of them')
    add('--only', metavar='GLOB', help="only these: an experiment, a run or both: fig3, '*lenet_all*', 'table1/*nin*'")
    add('--seeds', type=int, metavar='N', help='train with seeds 1 to N (default: as the profile says, 1)')
    add('--dataset', choices=('mnist', 'fashion_mnist'), help='in the place of MNIST')
    add('--jobs', type=int, metavar='N', help='jobs at once (default: one a core; 100 on a cluster)')
    add('--gpus', metavar='0,1', help='one job on each of these; none: CPU (default: GPU 0 if this Caffe has one)')
    add('--list', action='store_true', help='show every job: done, resumable, missing, and its expected time')
    add('--dry-run', action='store_true', help='show what would be done')
    add('--cluster', metavar='NAME', help='submit the jobs to a cluster: slurm')
    add('--partition', help='of the cluster')
    add('--time', help='limit of a cluster job, as the cluster writes it: 2-00:00:00')
    add('--mem', help='memory of a cluster job: 4G')
    return parser


def run(args):
    from bcnn.workflow import run_all
    return run_all.command(args)


if __name__ == '__main__':
    start(make_parser(), run)
