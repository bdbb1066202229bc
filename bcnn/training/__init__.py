"""A training run: what to train, the solver loop, its test error, curve, snapshots, what it shows.

    trainees      what to train, from what a user types: nets, solvers, data
    driver        a run's folder from its first to its last iteration; all that can be refused before
    solver_loop   Caffe's solver, step by step, in a child process
    snapshots     of the solver: complete or absent
    test_error    which test images are wrong now
    curve         when that is measured, and the files it goes to
    display       what the run shows
    nin_to_dsn    NIN's weights for DSN, to start from

Knows nothing of figures and the workflow; of MC evaluation only the passes, their sums and the images.
"""
