"""The tables of docs/ on speed, from what tools/bench.py has recorded."""

from drawing import bench_chart
from pages.markdown import markdown
from records import names
from records.from_bcnn import cost, durations, paper
from records.load import Tables, where


def training_times(tables: Tables) -> str:
    """A step of each net, and the paper's whole training."""
    speeds, rows = cost.speeds(tables['bench'].to_dict('records')), []
    for run in paper.RUNS:
        step = cost.of_step(speeds, run.dataset, run.net)
        if run.experiment in ('fig2', 'table1') and step is not None:
            rows.append(['%s on %s' % (paper.title(run.net), paper.title(run.dataset)),
                         names.count(paper.batch(run.dataset, run.net)), '%s ms' % names.count(round(1000 * step)),
                         names.count(sum(run.iterations)), durations.rough(step * sum(run.iterations))])
    return markdown(['net', 'batch', 'a step', "the paper's iterations", 'all of them'], rows)


def training_steps(tables: Tables) -> str:
    """Milliseconds of a training step by our driver; beside it the others that were measured for a net."""
    rows = where(tables['bench'], part='training')
    rows = rows[rows['value'].notnull()]
    others, lines = ('caffe train', 'PyTorch', 'PyTorch, channels_last'), []
    for _, ours in where(rows, way='driver').sort_values('subject').iterrows():
        here = where(rows, subject=ours['subject'])
        if set(others) & set(here['way']):
            lines.append([bench_chart.title(ours['subject']), bench_chart.three_digits(ours['value'])]
                         + [_ratio(where(here, way=way)['times']) for way in others])
    return markdown(['net', '`tools/train.py`, ms', '`caffe train`, times as long'] + [
        '%s, times as long' % way for way in others[1:]], lines)


def ways(tables: Tables) -> str:
    """Microseconds an image and pass of every way to do MC dropout, at the largest T that was measured."""
    rows = bench_chart.evaluations(tables)
    subjects, T = bench_chart.panels_of(rows)[0], int(rows['T'].max())
    rows = where(bench_chart.ranked(rows), T=T)
    order = list(rows.groupby('way')['value'].mean().sort_values().index)
    lines = []
    for way in sorted(order, key=lambda way: (way not in bench_chart.OURS, order.index(way))):
        cells = [where(rows, way=way, subject=subject)['value'] for subject in subjects]
        lines.append([way] + [bench_chart.three_digits(cell.iloc[0]) if len(cell) else '' for cell in cells])
    return markdown(['T = %d' % T] + [bench_chart.title(subject) for subject in subjects], lines)


def equal_accuracy(tables: Tables) -> str:
    """How long every way takes for a mean of equal variance, beside plain passes, at the largest T."""
    rows = bench_chart.evaluations(tables)
    rows = rows[rows['equal'].notnull()]
    if not len(rows):
        return 'Not measured yet: `python tools/bench.py --record`.'
    subjects, T = bench_chart.panels_of(rows)[0], int(rows['T'].max())
    rows = where(rows, T=T)
    lines = [[way] + [_ratio(where(rows, way=way, subject=subject)['equal']) for subject in subjects]
             for way in rows.groupby('way')['equal'].mean().sort_values().index]
    return markdown(['T = %d' % T] + [bench_chart.title(subject) for subject in subjects], lines)


def _ratio(values):
    """'0.26'; nothing where it was not measured."""
    return '%.2f' % values.iloc[0] if len(values) else ''


def settings(tables: Tables) -> str:
    """What other settings cost, beside those of tools/mc_eval.py; processes among them."""
    lines = []
    for part in ('settings', 'processes'):
        rows = where(tables['bench'], part=part)
        for _, row in rows[rows['times'] != 1].sort_values(['subject', 'times']).iterrows():
            lines.append([row['way'], bench_chart.title(row['subject']), '%.2f' % row['times']])
    return markdown(['setting', 'net', 'times as long'], lines, left=2)


def growth(tables: Tables) -> str:
    """Seconds and megabytes of a whole mc_eval.py of lenet-all by T and by images, with one process."""
    rows, lines = where(tables['growth'], net='lenet_all', jobs=1), []
    for vary in ('T', 'images'):
        for _, row in where(rows, vary=vary).sort_values(vary).iterrows():
            lines.append([names.count(row['T']), names.count(row['images']), '%.1f' % row['seconds'],
                          '%.0f' % row['megabytes']])
    return markdown(['T', 'images', 'seconds', 'largest process, MB'], lines, left=0)


def machine(tables: Tables) -> str:
    """What the speeds were measured on."""
    return 'Measured on: %s.' % '; '.join(sorted(set(tables['bench']['machine'])))
