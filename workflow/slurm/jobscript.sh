#!/bin/sh
# properties = {properties}
# A pattern that Snakemake fills in (so braces of the shell would be written twice).
cd "$SLURM_SUBMIT_DIR" || exit 1
notes=.snakemake/slurm
# A node that Slurm has lost may go on with the job that is started again here: wait for its end.
exec 9>"$notes/$SLURM_JOB_NAME.lock" && flock 9
rm -f "$notes/$SLURM_JOB_ID.exit"
# Snakemake 5.24 does not hand its --scheduler on, and the other one needs a solver.
command=$(sed 's/-m snakemake /&--scheduler greedy /' <<'END_OF_COMMAND'
{exec_job}
END_OF_COMMAND
)
(eval "$command")
code=$?
echo "$code" >"$notes/.$SLURM_JOB_ID" && mv "$notes/.$SLURM_JOB_ID" "$notes/$SLURM_JOB_ID.exit"
exit "$code"
