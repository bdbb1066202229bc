#!/usr/bin/env python3
"""A real Slurm on this machine for tests: munged, slurmctld and two slurmd on loopback, under one folder.

    sudo python3 tests/campaigns/slurm_cluster.py start /tmp/slurm
    export SLURM_CONF=/tmp/slurm/slurm.conf                       (printed by start and env)
    sudo python3 tests/campaigns/slurm_cluster.py kill /tmp/slurm node1     (kill -9 of one daemon: controller, node1, node2)
    sudo python3 tests/campaigns/slurm_cluster.py crash /tmp/slurm node1    (and of all that runs on that node)
    sudo python3 tests/campaigns/slurm_cluster.py restart /tmp/slurm node1
    sudo python3 tests/campaigns/slurm_cluster.py stop /tmp/slurm

Two CPUs a node; partition `main` has both nodes, `second` only node2. Nothing outside the folder is
written, no other munge or Slurm is touched, and no systemd is needed. Jobs survive a restart of the
controller, and those of a node that is gone are started again on another after 10 seconds.
"""

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

PROGRAMS = {'munged': 'munge', 'slurmctld': 'slurmctld', 'slurmd': 'slurmd', 'sbatch': 'slurm-client'}
NODES = ('node1', 'node2')
PATIENCE = 60  # seconds for a daemon to come up or go
CONFIG = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# A job whose node died starts anew when the old credential is over, by default after two minutes.
AuthInfo=socket={folder}/munge.socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/controller.pid
SlurmctldLogFile={folder}/controller.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
JobRequeue=1
SlurmdTimeout=10
KillWait=5
MessageTimeout=5
MinJobAge={min_job_age}
ReturnToService=2
DefMemPerCPU=1000
GresTypes=gpu
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2 RealMemory=8000 Gres=gpu:1
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2 RealMemory=8000 Gres=gpu:1
PartitionName=main Nodes=node1,node2 Default=YES MaxTime=INFINITE DefaultTime=60
PartitionName=second Nodes=node2 MaxTime=INFINITE DefaultTime=60
"""


class Cluster:
    """The daemons of one folder; whoever asks needs no more than the folder's name."""

    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.config = self.inside('slurm.conf')

    def inside(self, name):
        return os.path.join(self.folder, name)

    def environment(self):
        """This process's environment with this Slurm in it, and nobody else's settings for sbatch."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(('SLURM_', 'SBATCH_'))}
        return dict(kept, SLURM_CONF=self.config)

    def start(self, min_job_age=300):
        """Makes the folder and all daemons; returns when both nodes wait for jobs."""
        require_programs()
        if os.path.exists(self.config):
            sys.exit('slurm_cluster.py: %s: is there already: stop it first' % self.config)
        if len(self.inside('munge.socket')) > 100:
            sys.exit('slurm_cluster.py: %s: too long for the name of a socket' % self.folder)
        for name in ('', 'state') + NODES:
            os.makedirs(self.inside(name), mode=0o755, exist_ok=True)
        with open(self.inside('munge.key'), 'wb') as file:
            os.chmod(file.name, 0o400)
            file.write(os.urandom(128))
        with open(self.config, 'w') as file:
            file.write(CONFIG.format(host=socket.gethostname().split('.')[0], folder=self.folder,
                                     ports=free_ports(3), min_job_age=min_job_age))
        with open(self.inside('gres.conf'), 'w') as file:
            file.write('NodeName=node1,node2 Name=gpu File=/dev/null\n')  # in name only: to be asked for
        for daemon in ('munge', 'controller') + NODES:
            self.launch(daemon)
        self.wait_for('both nodes', lambda: self.nodes_up() == list(NODES))

    def launch(self, daemon):
        """Starts a daemon in the background; it writes its process id to <daemon>.pid."""
        command = {
            'munge': ['munged', '--force', '--key-file=' + self.inside('munge.key'),
                      '--socket=' + self.inside('munge.socket'), '--pid-file=' + self.inside('munge.pid'),
                      '--log-file=' + self.inside('munge.log'), '--seed-file=' + self.inside('munge.seed')],
            'controller': ['slurmctld']}.get(daemon, ['slurmd', '-N', daemon])
        with open(self.inside(daemon + '.out'), 'ab') as out:
            subprocess.run([program(command[0])] + command[1:], env=self.environment(), cwd=self.folder, check=True,
                           stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self.wait_for(daemon, lambda: self.pid(daemon))

    def pid(self, daemon):
        """The process id of a daemon that runs, or None."""
        try:
            with open(self.inside(daemon + '.pid')) as file:
                number = int(file.read())
        except (OSError, ValueError):
            return None
        # A number may belong to somebody else by now: never end what is not ours.
        name = {'munge': 'munged', 'controller': 'slurmctld'}.get(daemon, 'slurmd')
        return number if os.path.basename(read('/proc/%d/comm' % number).strip()) == name else None

    def kill(self, daemon):
        """Ends a daemon as a crash would; what runs on a node goes on, as Slurm means it to."""
        number = self.pid(daemon)
        if number is None:
            sys.exit('slurm_cluster.py: %s does not run in %s' % (daemon, self.folder))
        os.kill(number, signal.SIGKILL)
        self.wait_for('the end of ' + daemon, lambda: self.pid(daemon) is None)

    def crash(self, node):
        """Ends a node as a power cut would: its daemon and all processes of its jobs."""
        self.kill(node)
        self.end_jobs(node)

    def end_jobs(self, node):
        for number in self.processes(node):
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def processes(self, node):
        """The process ids of the jobs on a node, with the shepherd of each (slurmstepd) first."""
        marks = {'SLURM_CONF=' + self.config, 'SLURMD_NODENAME=' + node}
        found, shepherds = [], []
        for number in filter(str.isdigit, os.listdir('/proc')):
            if marks <= set(read('/proc/%s/environ' % number).split('\0')):
                found.append(int(number))
                parent = parent_of(number)
                if 'slurmstepd' in read('/proc/%s/comm' % parent):
                    shepherds.append(int(parent))
        return shepherds + found

    def restart(self, daemon):
        """A daemon that was ended, started again."""
        if self.pid(daemon):
            sys.exit('slurm_cluster.py: %s runs in %s' % (daemon, self.folder))
        self.launch(daemon)

    def nodes_up(self):
        """The names of the nodes that take jobs, or run them."""
        text = self.run('sinfo', '--noheader', '--Node', '--partition=main', '--format=%N %T').stdout
        return [name for name, state in map(str.split, text.splitlines()) if state in ('idle', 'allocated', 'mixed')]

    def run(self, *command):
        return subprocess.run(command, env=self.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)

    def wait_for(self, what, ready):
        give_up = time.time() + PATIENCE
        while not ready():
            if time.time() > give_up:
                sys.exit('slurm_cluster.py: waited %d s for %s: see the .log and .out files in %s'
                         % (PATIENCE, what, self.folder))
            time.sleep(0.2)

    def stop(self):
        """Ends all jobs and daemons and removes the folder."""
        if not os.path.exists(self.config):
            sys.exit('slurm_cluster.py: %s: no such Slurm' % self.folder)
        for daemon in NODES + ('controller', 'munge'):
            if self.pid(daemon):
                self.kill(daemon)
        for node in NODES:
            self.end_jobs(node)
        shutil.rmtree(self.folder)


def require_programs():
    missing = sorted(package for name, package in PROGRAMS.items() if not program(name))
    if missing:
        sys.exit('slurm_cluster.py: no Slurm on this machine: apt-get install ' + ' '.join(missing))
    if os.geteuid():
        sys.exit('slurm_cluster.py: needs root, as slurmd does')


def program(name):
    return shutil.which(name, path=os.environ.get('PATH', '') + ':/usr/sbin:/sbin')


def free_ports(count):
    """Ports of this machine that nobody listens at."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(('127.0.0.1', 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def parent_of(number):
    return read('/proc/%s/stat' % number).rpartition(')')[2].split()[1:2][0]


def read(path):
    """The text of a file of /proc, '' when its process is gone."""
    try:
        with open(path, errors='replace') as file:
            return file.read()
    except OSError:
        return ''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('action', choices=('start', 'stop', 'env', 'kill', 'crash', 'restart'))
    parser.add_argument('folder')
    parser.add_argument('daemon', nargs='?', choices=('controller',) + NODES, help='for kill, crash and restart')
    args = parser.parse_args()
    if (args.daemon is None) == (args.action in ('kill', 'crash', 'restart')):
        parser.error('%s: %s daemon' % (args.action, 'which' if args.daemon is None else 'takes no'))
    if args.action == 'crash' and args.daemon not in NODES:
        parser.error('crash: a node')
    cluster = Cluster(args.folder)
    if args.action != 'env':
        getattr(cluster, args.action)(*filter(None, [args.daemon]))
    if args.action in ('start', 'env'):
        print('export SLURM_CONF=' + cluster.config)


if __name__ == '__main__':
    main()
