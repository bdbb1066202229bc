#!/bin/sh
# workflow/slurm/status.sh JOB  -  print what Snakemake wants to know: running, success or failed.
#
# No answer from Slurm's controller is no news: the job is said to run until it answers.
answer=$(scontrol --oneliner show job "$1" 2>&1)
case $answer in
    *JobState=COMPLETED*) echo success ;;
    # All that Slurm has given up, and nothing that it will start again by itself; and what it has forgotten,
    # as it does some minutes after a job's end. The job itself has written down whether it was complete.
    *JobState=FAILED* | *JobState=CANCELLED* | *JobState=TIMEOUT* | *JobState=OUT_OF_MEMORY* | *JobState=NODE_FAIL* | \
    *JobState=BOOT_FAIL* | *JobState=DEADLINE* | *JobState=PREEMPTED* | *JobState=REVOKED* | *'Invalid job id'*)
        if [ "$(cat ".snakemake/slurm/$1.exit" 2>/dev/null)" = 0 ]; then echo success; else echo failed; fi ;;
    *) echo running ;;
esac
