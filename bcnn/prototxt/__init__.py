"""Any net's prototxt: read, rewrite (Standard, MC, replicate), draw.

    reading      a file as a message, old formats upgraded
    facts        what is in a net: its dropout layers, where it samples, its scores
    rewriting    Standard and MC nets made of training nets
    ends         for that: which scores its softmax is made of, and its inputs
    versions     for that: blobs told apart before and after a layer in place
    masks        an MC net that takes its dropout masks from outside
    neighbours   other prototxts beside a net's, which may know more of its images
    draw         a picture of a net

Knows nothing of the paper's nets, of training, evaluation, or the files of runs.
"""
