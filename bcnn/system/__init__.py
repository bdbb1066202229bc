"""The machine: what every other package needs of it.

    files, npz, store       files that are whole or not there: text, arrays, JSON records with checksums
    places                  where runs, evaluations, recorded tables and weights lie, and what their files are called
    locks                   one process at a time
    processes               child processes for what may abort
    blas, cuda              how the BLAS library computes; what the NVIDIA driver says
    provenance              what computed a result
    progress, durations     what a long step shows; times as people read them
    arguments               what holds for the command line of every tool

Knows nothing else of bcnn but its errors.
"""
