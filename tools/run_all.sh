#!/bin/sh
# tools/run_all.sh [OPTIONS]  -  from a fresh clone to a report: sets up Caffe, then does the jobs of a profile.
#     tools/run_all.sh                       quick: real MNIST, the three LeNets, minutes on 2 cores
#     tools/run_all.sh --help                every option
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
case " $* " in
    *" --help "* | *" -h "*) ;; # needs no Caffe
    *) "$here/setup.sh" ;;
esac
for python in python3 python "$here/python"; do
    if command -v "$python" >/dev/null 2>&1; then
        exec "$python" "$here/run_all.py" "$@"
    fi
done
