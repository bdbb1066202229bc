#!/bin/sh
# workflow/slurm/submit.sh CPUS MEGABYTES GPUS JOBSCRIPT  -  hand a job of the workflow to Slurm, print its number.
#
# Snakemake calls this as config.yaml says. tools/run_all.sh sets BCNN_PARTITION, BCNN_TIME and BCNN_MEM
# from its options; all else (account, QOS, constraint, ...) goes by sbatch's own variables: man sbatch.
set -u
cpus=$1 memory=${BCNN_MEM:-$2} gpus=$3 script=$4
[ "$gpus" -gt 0 ] || gpus=''
job=$(basename -- "${script%.*}") # without the number Snakemake gave it
log=logs/$job.log                 # the workflow's; what Snakemake and Slurm say on the node goes to logs/slurm/
# The name tells any later call which job of which folder this is.
name=$job.$(pwd | cksum | cut -d ' ' -f 1)
mkdir -p logs/slurm .snakemake/slurm || exit 1

# What runs on the node: Snakemake's script, begun with what status.sh and a job that starts twice need.
content() {
    cat <<'END'
#!/bin/sh
notes=$PWD/.snakemake/slurm
# A node that Slurm has lost may go on with the job that is started again here: wait for its end.
exec 9>"$notes/$SLURM_JOB_NAME.lock" && flock 9
rm -f "$notes/$SLURM_JOB_ID.exit"
trap 'echo "$?" >"$notes/.$SLURM_JOB_ID" && mv "$notes/.$SLURM_JOB_ID" "$notes/$SLURM_JOB_ID.exit"' EXIT
END
    # Snakemake 5.24 does not hand its --scheduler on, and its other one needs a solver.
    sed 's/-m snakemake /&--scheduler greedy /' "$script"
}

submit() {
    content | sbatch --parsable --requeue --job-name="$name" --output='logs/slurm/%x.log' --open-mode=append \
        --cpus-per-task="$cpus" --mem="$memory" ${gpus:+--gres="gpu:$gpus"} \
        ${BCNN_PARTITION:+--partition="$BCNN_PARTITION"} ${BCNN_TIME:+--time="$BCNN_TIME"} 2>>"$log"
}

# The same job may be with Slurm already: after a lost answer, or when Snakemake was stopped and started
# again. One that runs is adopted; one that waits would look for files of the Snakemake that is gone.
adopt() {
    scancel --user="$(id -u)" --name="$name" --state=PENDING 2>/dev/null
    number=$(squeue --user="$(id -u)" --name="$name" --states=RUNNING --noheader --format=%i 2>/dev/null | tail -n 1)
    [ -n "$number" ]
}

controller_answers() {
    scontrol ping 2>/dev/null | grep -q 'is UP'
}

# A controller that is away is waited for, an hour long. One that answers before and after has refused the job.
give_up=$(($(date +%s) + 3600))
while [ "$(date +%s)" -lt "$give_up" ]; do
    if controller_answers; then
        # Slurm may give a number twice, after a crash; and it may put the name of a cluster behind it.
        if adopt || { number=$(submit) && rm -f ".snakemake/slurm/${number%%;*}.exit"; }; then
            echo "${number%%;*}"
            exit 0
        fi
        if controller_answers; then
            tail -n 1 "$log" >&2
            exit 1
        fi
    fi
    sleep 5
done
echo "submit.sh: no answer from Slurm's controller for an hour" | tee -a "$log" >&2
exit 1
