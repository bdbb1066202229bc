"""The figures of questions beyond the paper; those without runs are left out."""

from command_line import start
from drawing import (beyond_data, beyond_kernels, beyond_off_data, beyond_pooling, beyond_probability, beyond_rotation,
                     style)

# (name, its module, the caption that it has in the report), in the order of the questions
FIGURES = (
    ('beyond_pooling', beyond_pooling, 'Standard beside MC dropout with both poolings; and where weight averaging, '
     'layer by layer, departs from the mean over masks.'),
    ('beyond_off_data', beyond_off_data, 'How well uncertainty tells rotated digits and Fashion-MNIST from the test '
     'images.'),
    ('beyond_rotation', beyond_rotation, 'A digit as it is turned, and what each pass says of it.'),
    ('beyond_probability', beyond_probability, 'Errors, calibration and mutual information against the dropout '
     'probability.'),
    ('beyond_kernels', beyond_kernels, 'How dropout affects the filters that are learnt.'),
    ('beyond_data', beyond_data, 'Test error against training images.'))


def asked(tables):
    """((name, module), ...) of the figures for which there are runs."""
    return tuple((name, module) for name, module, _ in FIGURES if module.there(tables))


def make(tables, out):
    """Draws them; gives the paths."""
    return [path for name, module in asked(tables) for path in style.maker(module.draw, name)(tables, out)]


if __name__ == '__main__':
    start(__doc__, make)
