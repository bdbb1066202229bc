"""How fast MC evaluation is, beside what people would use instead, and how its cost grows: two figures."""

from command_line import start
from drawing import bench_chart, bench_growth, style

FIGURES = (('bench_chart', bench_chart), ('bench_growth', bench_growth))


def make(tables, out):
    """Draws both figures; gives the paths."""
    return [path for name, module in FIGURES for path in style.maker(module.draw, name)(tables, out)]


if __name__ == '__main__':
    start(__doc__, make)
