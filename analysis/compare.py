"""Every two recorded evaluations of the same images, image by image: how many are right in one alone."""

from command_line import start
from pages.sections import same_images


def show(tables, _):
    """Prints a line a pair; writes nothing."""
    for cells in [same_images.HEADS] + same_images.rows(tables):
        print('%-36s %-36s %7s  %16s  %17s  %-36s %s' % tuple(cells))
    return []


if __name__ == '__main__':
    start(__doc__, show)
