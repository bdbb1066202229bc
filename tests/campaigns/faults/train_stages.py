"""Trains DSN's three stages on a few small images: python train_stages.py DATA OUT; the driver is bcnn.training.driver.run."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [os.path.join(ROOT, 'tools'), ROOT, os.path.join(ROOT, 'tests')]

import argparse  # noqa: E402

from launcher import start  # noqa: E402


def run(args):
    import trainhelp
    from bcnn.training import driver
    trainee = trainhelp.trainee(args.data, 'dsn_aug', batch=2)
    return driver.run(trainee, trainhelp.settings(iterations=(12, 12, 6), points='5,12', T=2, jobs=1, snapshot_every=4), args.out)


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('data')
    parser.add_argument('out')
    start(parser, run)
