#!/bin/sh
# on_gpu.sh 0,1 COMMAND...  -  COMMAND... --gpu N on the first of these GPUs that no other job of ours holds.
#
# Snakemake counts GPUs but does not name them. The lock of a GPU goes with the command's
# process, so that it is free again however that ends.
set -eu
gpus=$1
shift
folder=${BCNN_GPU_LOCKS:-$(CDPATH='' cd -- "$(dirname -- "$0")/../runs" && pwd)}
while :; do
    for gpu in $(echo "$gpus" | tr ',' ' '); do
        exec 9> "$folder/.gpu$gpu.lock"
        if flock --nonblock 9; then
            exec "$@" --gpu "$gpu"
        fi
    done
    sleep 2 # one was free when Snakemake started this: another user of these locks, who will end
done
