"""What the library's client and the process with Caffe tell each other: what to load, to predict, and what came out."""

from typing import Any, List, NamedTuple, Optional, Tuple

from ..inputs.preprocessing import Options


class Spec(NamedTuple):
    """What to load."""

    prototxt: Optional[str] = None    # either this, or
    net: Optional[str] = None         # a net of the paper
    dataset: Optional[str] = None     # of the paper
    weights: Optional[str] = None
    training_seed: Optional[int] = None
    options: Options = Options()
    shape: Optional[Tuple[int, int, int]] = None
    output: Optional[str] = None
    classes: Optional[str] = None     # file of class names
    standard_only: bool = False
    digits: bool = False              # pictures are photos of digits, to be made like those of MNIST
    gpu: Optional[int] = None


class Request(NamedTuple):
    """What to predict."""

    images: Any                       # array (N, channels, height, width), or a list of paths and pictures
    names: Optional[List[str]] = None  # of pictures, for messages
    T: int = 50
    seed: int = 1
    adaptive: Optional[float] = None  # the probability of settling on another class; None for T passes each
    antithetic: bool = False
    keep_samples: bool = False
    batch: Optional[int] = None
    jobs: int = 1


class Prediction(NamedTuple):
    """Predictions for N images; arrays of numpy, a row an image. None of MC dropout where it was not asked for."""

    standard: Any                      # N x classes: probabilities with Standard dropout
    mean: Any = None                   # N x classes: mean of the probabilities of the passes
    std: Any = None                    # N x classes: their standard deviation over the passes
    entropy: Any = None                # N: of the mean, in nats: all uncertainty
    expected_entropy: Any = None       # N: mean entropy of the passes: what more passes and data would not remove
    mutual_information: Any = None     # N: entropy less expected entropy: what the passes disagree about
    variation_ratio: Any = None        # N: share of the passes that do not vote for the most voted class
    passes: Any = None                 # N: how many passes an image took; T unless adaptive
    samples: Any = None                # T x N x classes: the probabilities of every pass, if they were to be kept
    names: Optional[List[str]] = None  # of the classes, where they are known

    @property
    def best(self) -> Any:
        """N: the class of each image, by MC dropout where there is any."""
        return (self.standard if self.mean is None else self.mean).argmax(axis=1)
