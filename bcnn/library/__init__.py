"""MC dropout as a library: what `bcnn.load` gives.

    client            what a user holds, without Caffe
    messages          what it and the server tell each other: what to load, to predict, what came out
    server            the process that has Caffe
    session           a net and its predictions, in that process
    command           what tools/predict.py does
    report, drawing   predictions for people

Knows nothing of training, the workflow and recorded results.
"""
