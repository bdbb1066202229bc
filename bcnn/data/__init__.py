"""Real MNIST and CIFAR-10, verified, and prepared as the paper's runs had them.

    table     where the files come from, and their checksums
    obtain    the verified files, from the user, an earlier download, or the network
    sets      the prepared sets: prepare(), require(), what is ready
    recipes   how each set is made
    records   Caffe's LMDB records as arrays
    whiten    GCN + ZCA; whiten.load('data/cifar10/zca.npz').apply(images) for new images
    check     the statistics that a right preparation has
    show      contact sheets
"""
