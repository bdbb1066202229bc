"""The benchmark: how fast things are here, beside the peers and beside what the machine can do.

    benchmark           which measurements there are, and their table
    measuring           what a run takes, in interleaved rounds
    mc_ways             MC evaluation our ways and the peers' ways
    comparable          whether two ways compute the same: checked, then timed
    pass_work           the work that passes are: operations and bytes
    train_steps         a training step: our driver, `caffe train`, PyTorch
    surroundings        processes, settings, data preparation, start-up
    growth              how the cost of an evaluation grows
    layer_times         where the time of a pass goes
    device_rates        what a device can do at all
    peers, torch_peer   PyTorch and its libraries: installed, and run in their own Python

Nothing else imports it.
"""
