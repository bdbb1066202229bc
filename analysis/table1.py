"""Table 1 beside the paper's figures: Markdown, CSV and LaTeX."""

import csv
import io
import os
from collections import OrderedDict

from command_line import start, write
from records import evaluations, names, smaller
from records.from_bcnn import csv_tables, paper
from records.names import DASH

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
    return [row(net, group) for net in paper.TABLE1
            for group in evaluations.chosen(tables, 'cifar10', net) or [None]]


def row(net, group):
    """One line: an evaluation beside what was published."""
    published = paper.PUBLISHED[net]
    line = dict.fromkeys(COLUMNS)
    line.update(net=net, paper_standard=published.standard, paper_mc=published.mc, paper_std=published.std,
                paper_lowest=published.lowest, shorter='not run')
    if group is not None:
        line.update(evaluations.measured(group), shorter='; '.join(smaller.evaluation(group)))
    return line


# --- three ways to write it --------------------------------------------------------------------

def cells(line, empty=DASH):
    """The line as text; `empty` for what is not known."""
    def text(name):
        value = line[name]
        if value is None:
            return empty
        if name == 'mcnemar_p':
            return '%.2g' % value
        return '%.2f' % value if isinstance(value, float) else names.count(value) if name == 'n' else str(value)

    middle = [text(name) for name in list(COLUMNS)[1:-1]]
    return [paper.title(line['net']) + mark(line)] + middle + [line['shorter']]


def mark(line):
    """'*' where a run is smaller than the paper's."""
    return '*' if line['shorter'] and line['shorter'] != 'not run' else ''


CAPTION = ('Test error on CIFAR-10 in percent: Standard dropout, and MC dropout as mean and standard deviation of the '
           'repetitions, beside the figures published in the paper (T = %d, %d repetitions). n: test images. McNemar '
           'p: Standard against MC on the same images, median of the repetitions. Scores averaged: the softmax of the '
           'mean score instead of the mean of the softmax; the paper does not say which it took.'
           % (paper.of_net('cifar10', 'dsn').T, paper.REPETITIONS))
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
        writer.writerow([csv_tables.cell(None if line[name] is None else line[name]) for name in COLUMNS])
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
    notes = [escape('%s: %s' % (paper.title(line['net']), line['shorter'])) for line in lines if line['shorter']]
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
    return [write(os.path.join(out, 'tables', 'table1' + kind), text(lines))
            for kind, text in (('.md', markdown), ('.csv', comma_separated), ('.tex', latex))]


if __name__ == '__main__':
    start(__doc__, make)
