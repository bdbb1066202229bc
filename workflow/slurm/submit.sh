#!/bin/sh
# workflow/slurm/submit.sh [SBATCH OPTIONS] JOBSCRIPT  -  hand a job of the workflow to Slurm, print its number.
#
# Snakemake calls this. Partition, time, account and so on come from sbatch's own variables
# (SBATCH_PARTITION, SBATCH_TIMELIMIT, SBATCH_ACCOUNT, ...; see man sbatch).
# While the controller is away, it is waited for, up to an hour.
set -u
for script; do :; done                      # the last argument
folder=$(dirname -- "$script")              # .snakemake/tmp.XXXXXXXX, another for each run of Snakemake
name=$(basename -- "$script").${folder##*.}
logs=.snakemake/slurm
mkdir -p "$logs" || exit 1

controller_answers() { scontrol ping 2>/dev/null | grep -q 'is UP'; }

give_up=$(($(date +%s) + 3600)) refused=0
while ! answer=$(sbatch --parsable --requeue --open-mode=append --job-name="$name" --output="$logs/%x.log" "$@"); do
    if controller_answers; then
        refused=$((refused + 1))            # not at the first: it may have come back just now
        [ "$refused" -lt 3 ] || exit 1
    elif [ "$(date +%s)" -gt "$give_up" ]; then
        echo "submit.sh: no answer from Slurm for an hour" >&2
        exit 1
    fi
    sleep 5
    # An answer that was lost does not mean that the job was: it must not run twice.
    answer=$(squeue --noheader --format=%i --name="$name" --states=PENDING,RUNNING,CONFIGURING 2>/dev/null | tail -n 1)
    [ -z "$answer" ] || break
done
echo "${answer%%;*}"
