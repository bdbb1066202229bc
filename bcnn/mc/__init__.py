"""MC dropout evaluation: what to evaluate, passes and their sums, metrics, blocks, the summary.

    cli                    from the arguments of tools/mc_eval.py to its table
    targets                what to evaluate: a net of the paper, or a user's prototxt
    evaluation             the folder of an evaluation: its config, its blocks, its result
    sampling               one block: a batch of images with all passes of a repetition
    forward                the passes, as a stream of softmax batches
    antithetic, adaptive   other ways to pass: masks in pairs; no more passes than an image needs
    running_sums           what the passes add up to
    metrics                how good predictions are, and how sure
    summary                from all blocks to the result
    so_far                 what a long evaluation says on the way
    identity               whether an evaluation is one of the paper's

Knows nothing of figures, the workflow and the training loop. `metrics` knows
neither Caffe nor files: numpy in, numbers out.
"""
