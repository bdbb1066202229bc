"""The whole paper as jobs: profiles, costs, one command that does what is missing, and its state.

    jobs                what a job is: a training, an evaluation
    plan, beyond_jobs   the jobs of a profile, and their commands; what is different beyond the paper
    cost, calibration   what they should take: by recorded speeds, by what was tried here
    run_all             one command: the jobs through Snakemake, and what came of them
    steps, forecast     where each job is, and how long it still takes
    watching, screen    what is shown of that
    agreement           whether the results are those that are recorded
    status              the state of all training runs

Knows nothing of figures, and of training and evaluation only their files and commands.
"""
