#!/usr/bin/env python3
"""tools/run_all.sh --cluster slurm against a real Slurm on this machine: the same results as without it.

    sudo tools/python tests/campaigns/slurm_quick.py                      quick, shortened: a quarter of an hour on 2 cores
    sudo tools/python tests/campaigns/slurm_quick.py --profile quick      quick itself: an hour or so
    sudo tools/python tests/campaigns/slurm_quick.py --only local,crash   some of the runs below

Not a part of tools/test.sh. Needs root and Debian's slurmctld, slurmd, slurm-client and munge, and MNIST
prepared; starts tests/campaigns/slurm_cluster.py in a folder of its own and stops it. Each run is in runs/slurm_<name>:

    local        no Slurm: what the others are compared with
    refused      a partition that is not there: exit code 1, and the end says so for each job
    cluster      nothing happens
    daemon       kill -9 of a node's slurmd while it trains; the training itself goes on
    crash        kill -9 of a node's slurmd and of all its jobs
    controller   kill -9 of slurmctld while jobs run; it is away for 20 seconds
    interrupted  Ctrl-C for run_all.sh; started again, it adopts the jobs that run

Equal means: the bytes of every final.caffemodel, and every row of the report's tables but for the names of
the profile and of the commit. Exit code 0 if all is equal.
"""

import argparse
import csv
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from slurm_cluster import NODES, Cluster

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SUBMIT = os.path.join(ROOT, 'workflow', 'slurm', 'submit.sh')
SHORT = {'about': 'the quick profile, shortened, to try a cluster', 'disk': '100 MB', 'runs': {
    'mnist-lenet_all': {'iterations': [1000], 'T': 10, 'test_limit': 500, 'processes': 2,
                        'evaluate': {'T': 10, 'repeats': 2, 'limit': 500}},
    'mnist-lenet_*': {'iterations': [1000], 'T': 10, 'test_limit': 500}}}
AWAY = 20  # seconds that a killed controller stays away
HOURS = 3 * 3600
started = []  # the processes of run_all.sh, to end them with this one


class Wrong(Exception):
    """What is not as it should be, in one line."""


class Trial:
    """One run of run_all.sh, in the folder runs/slurm_<name>."""

    def __init__(self, name, profile, place, cluster):
        self.name, self.cluster = name, cluster
        self.folder = os.path.join(ROOT, 'runs', 'slurm_' + name)
        self.profile = os.path.join(place, 'slurm_%s.json' % name)
        self.output = os.path.join(place, name + '.out')
        with open(self.profile, 'w') as file:
            json.dump(profile, file)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *options):
        """run_all.sh at work, as a process."""
        command = [os.path.join(ROOT, 'tools', 'run_all.sh'), '--profile', self.profile] + list(options)
        with open(self.output, 'ab') as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                       env=self.cluster.environment())
        started.append(process)
        return process

    def finish(self, process, code=0):
        found = process.wait(HOURS)
        require(found == code, 'exit code %d, not %d: see %s' % (found, code, self.output))

    def text(self):
        with open(self.output, errors='replace') as file:
            return file.read()

    def log(self):
        """Snakemake's own words."""
        with open(os.path.join(self.folder, 'logs', 'snakemake.log'), errors='replace') as file:
            return file.read()

    def training(self, process):
        """(Slurm's number, node) of a training job that is under way: it runs, and has a snapshot."""
        while process.poll() is None:
            for number, node, name, _ in self.jobs('RUNNING'):
                run = name.split('.')[0].partition('-')[2]
                snapshots = os.path.join(self.folder, run, 'snapshots', 'stage*', 'state.json')
                if name.startswith('train-') and glob.glob(snapshots) and not os.path.exists(self.done(run)):
                    return number, node
            time.sleep(0.2)
        raise Wrong('ended before anything could be killed: see ' + self.output)

    def done(self, run):
        return os.path.join(self.folder, run, 'done.json')

    def jobs(self, states='all'):
        """[(number, node, name, state)] of this folder's jobs that Slurm knows."""
        answer = self.cluster.run('squeue', '--noheader', '--states=' + states, '--format=%i|%N|%j|%T|%Z')
        rows = [line.split('|') for line in answer.stdout.splitlines()]
        return [tuple(row[:4]) for row in rows if row[4] == self.folder]

    def restarts(self, number):
        """How often Slurm has started a job again by itself."""
        text = self.cluster.run('scontrol', '--oneliner', 'show', 'job', number).stdout
        return int(text.partition(' Restarts=')[2].split(' ')[0] or 0)


# --- the runs --------------------------------------------------------------------------------------

def local(trial):
    trial.finish(trial.start())


def refused(trial):
    trial.finish(trial.start('--cluster', 'slurm', '--partition', 'nowhere'), code=1)
    lines = [line for line in trial.text().splitlines() if line.startswith('FAILED train-')]
    require(len(lines) == 3 and all('Invalid partition' in line for line in lines),
            'the end does not say that the partition was refused: see ' + trial.output)


def cluster(trial):
    trial.finish(trial.start('--cluster', 'slurm', '--partition', 'main', '--time', '2:00:00', '--mem', '2500M'))
    used = sorted(set(row[1] for row in trial.jobs()))
    require(used == list(NODES), 'jobs ran on %s only' % used)


def daemon(trial):
    process = trial.start('--cluster', 'slurm')
    number, node = trial.training(process)
    trial.cluster.kill(node)
    say('killed slurmd of %s, which runs job %s' % (node, number))
    wait_for('job %s to be started again, or its end' % number,
             lambda: trial.restarts(number) or number not in [row[0] for row in trial.jobs('RUNNING,PENDING')])
    say('job %s was %s' % (number, 'started again' if trial.restarts(number) else 'done before Slurm missed the node'))
    trial.finish(process)  # on one node
    trial.cluster.restart(node)
    wait_for('both nodes', lambda: trial.cluster.nodes_up() == list(NODES))


def crash(trial):
    process = trial.start('--cluster', 'slurm')
    number, node = trial.training(process)
    trial.cluster.crash(node)
    say('killed %s with job %s' % (node, number))
    wait_for('job %s to be started again' % number, lambda: trial.restarts(number))
    trial.cluster.restart(node)
    trial.finish(process)


def controller(trial):
    process = trial.start('--cluster', 'slurm')
    number, _ = trial.training(process)
    trial.cluster.kill('controller')
    say('killed slurmctld while job %s runs' % number)
    time.sleep(AWAY)
    require(trial.cluster.run('squeue').returncode, 'there is another slurmctld')
    trial.cluster.restart('controller')
    trial.finish(process)
    require('Trying to restart' not in trial.log(), 'a job was taken for failed: see ' + trial.output)


def interrupted(trial):
    process = trial.start('--cluster', 'slurm')
    number, _ = trial.training(process)
    process.send_signal(signal.SIGINT)
    trial.finish(process, code=130)
    left = [row[0] for row in trial.jobs('RUNNING')]
    require(number in left, 'job %s did not go on' % number)
    say('interrupted; jobs %s go on' % ', '.join(left))
    before = len(trial.log())
    trial.finish(trial.start('--cluster', 'slurm'))
    ended = trial.log()[before:]
    for found in left:
        require("external jobid '%s'" % found in ended, 'job %s was not adopted: see %s' % (found, trial.output))


RUNS = (local, refused, cluster, daemon, crash, controller, interrupted)


# --- what must be equal ----------------------------------------------------------------------------

def results(folder):
    """{file: content} of a run that must not depend on where it was computed."""
    found = {}
    for path in glob.glob(os.path.join(folder, '*', 'final.caffemodel')):
        with open(path, 'rb') as file:
            found[os.path.relpath(path, folder)] = file.read()
    for path in glob.glob(os.path.join(folder, 'report', 'results', '*.csv')):
        with open(path, newline='') as file:
            rows = [dict(row, profile=None, commit=None) for row in csv.DictReader(file)]
        require(rows, '%s: no rows' % path)
        found[os.path.relpath(path, folder)] = rows
    return found


def compare(folder):
    """How much is equal to the local run, in words; refuses what is not."""
    theirs, mine = results(os.path.join(ROOT, 'runs', 'slurm_local')), results(folder)
    require(sorted(theirs) == sorted(mine), 'not the same files: %s, locally %s' % (sorted(mine), sorted(theirs)))
    different = sorted(name for name in mine if mine[name] != theirs[name])
    require(not different, 'other than locally: ' + ', '.join(different))
    weights = [name for name in mine if name.endswith('.caffemodel')]
    require(len(weights) == 3, '%d final.caffemodel, not 3' % len(weights))
    rows = sum(len(mine[name]) for name in mine if name not in weights)
    return '%d final.caffemodel, %d rows' % (len(weights), rows)


def check_options(slurm, place):
    """Refuses a submit.sh that does not hand partition, time, memory, CPUs and GPUs to Slurm."""
    script = os.path.join(place, 'options.1')
    with open(script, 'w') as file:
        file.write('#!/bin/sh\necho "GPU $CUDA_VISIBLE_DEVICES"\n')
    environment = dict(slurm.environment(), BCNN_PARTITION='second', BCNN_TIME='7', BCNN_MEM='600M')
    number = subprocess.run([SUBMIT, '2', '3000', '1', script], cwd=place, env=environment, check=True,
                            stdout=subprocess.PIPE, universal_newlines=True).stdout.strip()
    text = slurm.run('scontrol', '--oneliner', 'show', 'job', number).stdout
    for word in ('Partition=second', 'TimeLimit=00:07:00', 'MinMemoryNode=600M', 'CPUs/Task=2', 'gpu:1'):
        require(word in text, 'submit.sh: no %s in: %s' % (word, text))
    log = os.path.join(place, 'logs', 'slurm')
    wait_for('the job that shows its GPU', lambda: any('GPU 0' in read(path) for path in glob.glob(log + '/options.*')))


# --- the rest --------------------------------------------------------------------------------------

def require(condition, message):
    if not condition:
        raise Wrong(message)


def wait_for(what, ready, seconds=120):
    give_up = time.time() + seconds
    while not ready():
        require(time.time() < give_up, 'waited %d s for %s' % (seconds, what))
        time.sleep(0.5)


def read(path):
    with open(path) as file:
        return file.read()


def say(text):
    print('%s  %s' % (time.strftime('%H:%M:%S'), text), flush=True)


def profile_named(name):
    if name is None:
        return SHORT
    with open(os.path.join(ROOT, 'workflow', 'profiles.json')) as file:
        return json.load(file)[name]


def trials(names, profile, place, slurm):
    """The number of runs that went wrong."""
    wrong = 0
    for run in RUNS:
        if run.__name__ not in names:
            continue
        trial = Trial(run.__name__, profile, place, slurm)
        began = time.time()
        say('%s: begins' % trial.name)
        try:
            run(trial)
            if run not in (local, refused):
                say('equal: ' + compare(trial.folder))
            say('%s: ok, %d s' % (trial.name, time.time() - began))
        except Wrong as error:
            say('%s: WRONG: %s' % (trial.name, error))
            wrong += 1
            if trial.name == 'local':
                break
            wait_for('all jobs to end', lambda: not slurm.run('squeue', '--noheader').stdout.strip(), HOURS)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--profile', help='of workflow/profiles.json; must be of the three LeNets on MNIST')
    parser.add_argument('--only', metavar='NAMES', help='of runs, with commas between; local may be there from before')
    args = parser.parse_args()
    names = args.only.split(',') if args.only else [run.__name__ for run in RUNS]
    place = tempfile.mkdtemp(prefix='slurm_quick.')
    slurm = Cluster(os.path.join(place, 'slurm'))
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that what was started is stopped
    slurm.start()
    try:
        say('a Slurm in %s, what run_all.sh says in %s' % (slurm.folder, place))
        check_options(slurm, place)
        wrong = trials(names, profile_named(args.profile), place, slurm)
    finally:
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait()
        slurm.stop()
    if wrong:
        sys.exit('slurm_quick.py: %d wrong: see %s' % (wrong, place))
    shutil.rmtree(place)


if __name__ == '__main__':
    main()
