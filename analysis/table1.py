"""Table 1 beside the paper's figures: Markdown, CSV and LaTeX."""

import csv
import io
import os
from collections import OrderedDict

import common
import fig4

# name in the CSV -> heading for people
COLUMNS = OrderedDict([
    ('net', 'model'), ('standard', 'Standard'), ('mc', 'MC mean'), ('std', 'MC std'), ('lowest', 'lowest'),
    ('paper_standard', 'paper Standard'), ('paper_mc', 'paper MC'), ('paper_std', 'paper std'),
    ('paper_lowest', 'paper lowest'),
    ('mc_scores', 'MC mean, scores averaged'), ('std_scores', 'std, scores averaged'), ('T', 'T'), ('n', 'n'),
    ('repetitions', 'repetitions'), ('mcnemar_p', 'McNemar p'), ('seed', 'training seed'),
    ('shorter', 'shorter than the paper')])
HEADS = list(COLUMNS.values())


def rows(tables):
    """A dictionary a line: each net of Table 1, once for each training seed; None for what is not known."""
    found = []
    for net in common.paper.TABLE1:
        for group in common.evaluations(tables, 'cifar10', net) or [None]:
            found.append(row(net, group))
    return found


def row(net, group):
    """One line: an evaluation beside what was published."""
    published = common.paper.PUBLISHED[net]
    line = dict.fromkeys(COLUMNS)
    line.update(net=net, paper_standard=published.standard, paper_mc=published.mc, paper_std=published.std,
                paper_lowest=published.lowest, shorter='not run')
    if group is not None:
        line.update(measured(group), shorter='; '.join(fig4.shorter(group)))
    return line


def measured(group):
    """Our figures of an evaluation, errors in percent; what the paper calls MC is the mean of probabilities.

    McNemar's p is the median over the repetitions, each tested against Standard on the same
    images: one p would depend on which repetition is taken.
    """
    standard, mc = common.where(group, method='standard').iloc[0], common.where(group, method='mc', average='probs')
    mean, std, lowest = _spread(mc)
    mean_scores, std_scores, _ = _spread(common.where(group, method='mc', average='scores'))
    return dict(standard=fig4.error_of_standard(group), mc=mean, std=std, lowest=lowest,
                mc_scores=mean_scores,
                std_scores=std_scores, T=int(mc['T'].max()), n=int(standard['n']), repetitions=len(mc),
                mcnemar_p=mc['mcnemar_p'].median(),
                seed=None if standard['seed'] != standard['seed'] else int(standard['seed']))


def _spread(rows):
    """Mean, standard deviation and lowest error of repetitions, None for what there is too little for."""
    errors = 100.0 * rows['errors'] / rows['n']
    if not len(rows):
        return None, None, None
    return errors.mean(), errors.std(ddof=1) if len(rows) > 1 else None, errors.min()


# --- three ways to write it --------------------------------------------------------------------

DASH = u'\u2013'


def cells(line, empty=DASH):
    """The line as text; `empty` for what is not known."""
    def text(name):
        value = line[name]
        if value is None:
            return empty
        if name == 'mcnemar_p':
            return '%.2g' % value
        return '%.2f' % value if isinstance(value, float) else common.count(value) if name == 'n' else str(value)

    middle = [text(name) for name in list(COLUMNS)[1:-1]]
    return [common.paper.title(line['net']) + mark(line)] + middle + [line['shorter']]


def mark(line):
    """'*' where a run is smaller than the paper's."""
    return '*' if line['shorter'] and line['shorter'] != 'not run' else ''


CAPTION = ('Test error on CIFAR-10 in percent: Standard dropout, and MC dropout as mean and standard deviation of the '
           'repetitions, '
           'beside the figures published in the paper (T = 100, 5 repetitions). n: test images. McNemar p: Standard '
           'against MC on the '
           'same images, median of the repetitions. Scores averaged: the softmax of the mean score instead of the '
           'mean of the '
           'softmax; the paper does not say which it took.')
STAR = '* smaller than the paper\'s run, see the last column.'


def markdown(lines):
    """The table in Markdown."""
    table = [HEADS, ['---'] + ['--:'] * (len(HEADS) - 2) + ['---']] + [cells(line) for line in lines]
    text = '\n'.join('| %s |' % ' | '.join(str(part).replace('|', r'\|') for part in line) for line in table)
    return '%s\n\n%s\n%s' % (CAPTION, text, '\n%s\n' % STAR if any(map(mark, lines)) else '')


def comma_separated(lines):
    """The table as CSV, with all digits that mean something."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator='\n')
    writer.writerow(list(COLUMNS))
    for line in lines:
        writer.writerow([common.results.cell(None if line[name] is None else line[name]) for name in COLUMNS])
    return out.getvalue()


SPECIAL = {'\\': r'\textbackslash{}', '&': r'\&', '%': r'\%', '$': r'\$', '#': r'\#', '_': r'\_', '{': r'\{',
           '}': r'\}',
           '~': r'\textasciitilde{}', '^': r'\textasciicircum{}', DASH: '--'}


def escape(text):
    """Text for LaTeX."""
    return ''.join(SPECIAL.get(letter, letter) for letter in text)


def latex(lines):
    """The table in LaTeX, with booktabs; the last column becomes notes below it."""
    head = ' & '.join(escape(name) for name in HEADS[:-1])
    body = '\n'.join('%s \\\\' % ' & '.join(escape(part) for part in cells(line)[:-1]) for line in lines)
    notes = [escape('%s: %s' % (common.paper.title(line['net']), line['shorter'])) for line in lines if line['shorter']]
    text = ' '.join([escape(CAPTION)] + ([r'$^*$ or -- : ' + '. '.join(notes) + '.'] if notes else []))
    lines = [r'\begin{table}', r'\centering', r'\small', r'\begin{tabular}{l%s}' % ('r' * (len(HEADS) - 2)),
             r'\toprule',
             head + r' \\', r'\midrule', body, r'\bottomrule', r'\end{tabular}', r'\caption{%s}' % text,
             r'\label{tab:table1}',
             r'\end{table}']
    return '\n'.join(lines) + '\n'


def make(tables, out):
    """Writes the three files; gives their paths."""
    lines = rows(tables)
    return [common.write(os.path.join(out, 'tables', 'table1' + kind), text(lines))
            for kind, text in (('.md', markdown), ('.csv', comma_separated), ('.tex', latex))]


if __name__ == '__main__':
    common.start(__doc__, make)
