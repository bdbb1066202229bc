#!/bin/sh
# tools/run_all.sh  -  from a fresh clone to a report: real Caffe, real MNIST, the three LeNets.
#
# Sets up, prepares MNIST, trains lenet_all, lenet_ip and lenet_none for ITERS iterations with
# their Standard and MC test errors on the way (the left end of Figure 2), evaluates lenet_all
# with its uncertainty, and draws the figures and analysis/report.html. Minutes on two cores.
# Each step goes on from where it was: run it again after an interruption, or with more ITERS
# (the paper has 10,000,000).
#     ITERS=10000 tools/run_all.sh
set -eu
iters=${ITERS:-1000}
case $iters in '' | *[!0-9]* | 0*) echo "run_all.sh: ITERS=$iters: not a number of iterations" >&2; exit 2 ;; esac
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
cd "$here/.."
tool() { name=$1; shift; echo "--- $name $*"; "$here/python" "$here/$name" "$@"; }

"$here/setup.sh"
tool prepare_data.py mnist
for net in lenet_all lenet_ip lenet_none; do
    tool train.py --net "$net" --dataset mnist --seed 1 --iters "$iters"
done
tool mc_eval.py --net lenet_all --dataset mnist --T 50 --repeats 2
tool record.py --profile quick
"$here/python" analysis/plot.py
echo "report: $(pwd)/analysis/report.html"
