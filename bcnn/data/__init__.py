"""Real MNIST and CIFAR-10, verified, and prepared as the paper's runs had them.

    catalogue            where the files come from, and their checksums
    obtain               the verified files, from the user, an earlier download, or the network
    download, archives   how they are fetched, and read out of archives
    sets                 the prepared sets: prepare(), require(), what is ready
    recipes              how each set is made
    idx, cifar           the original formats
    whiten               GCN + ZCA; whiten.load('data/cifar10/zca.npz').apply(images) for new images
    records              Caffe's LMDB records as arrays
    check                the statistics that a right preparation has
    show                 contact sheets

Knows the paper's table, but no nets.
"""
