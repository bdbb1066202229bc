"""One device beside another: whether a GPU computes what the CPU does (tools/check_caffe.py --gpu).

    check      every net of the paper on both, a table, a verdict
    side       what one device has to show; knows nothing of the other
    verdicts   whether two devices show the same: numpy in, rows out

Nothing else imports it.
"""
