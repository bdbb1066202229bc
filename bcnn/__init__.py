"""Bayesian convolutional neural networks by MC dropout, on stock BVLC Caffe.

Reproduces Gal & Ghahramani, "Bayesian Convolutional Neural Networks with Bernoulli
Approximate Variational Inference". Importing the package itself loads nothing.
"""

__version__ = '0.1.0'
