"""Images of a user's: read from where they are, labelled, and prepared as the net was trained on.

    sources         where they are: an LMDB, an .npz file, a folder, arrays
    labels          of class folders and labels.csv
    pictures        decoded, turned, made grey, resized
    digits          photos of digits on paper, made like MNIST's
    preprocessing   what is done to them before the net

Knows nothing of nets, so that training, evaluation and the library share it.
"""
