"""Beyond the paper: its open questions, each with verdicts, figures, numbers and commands; only what was run."""

from pages.html import Html, Section, code, figure, fill, join, put, small, table
from pages.sections.claims import OURS
from pages.sections.experiments import claim_list
from records import names
from records import open_questions as runs
from records.from_bcnn import beyond

# What surprised, a sentence a question, written by a person who has seen the results; nothing where nobody has yet.
SURPRISES = {}
RECORD = ['python tools/record.py --profile beyond runs/beyond', 'python analysis/plot.py']


def sections(tables, judged, figures, pictures):
    """[the section], [] where no question was asked; figures: (name, its script, caption) of all of them."""
    asked = [question for question in beyond.QUESTIONS if runs.was_asked(tables, question)]
    parts = [_part(tables, question, judged, [one for one in figures if one[1].QUESTION == question], pictures)
             for question in asked]
    return [Section('beyond', 'Beyond', 'Beyond the paper: its open questions', fill('beyond', parts=join(parts)))
            ] if parts else []


def _part(tables, question, judged, figures, pictures):
    shown = [figure(pictures[name], script.words(tables), caption) for name, script, caption in figures
             if script.there(tables)]
    surprise = SURPRISES.get(question)
    return fill('open_question', anchor='beyond-' + question, question=beyond.QUESTIONS[question],
                claims=claim_list(judged, question, OURS),
                surprise=put('<p><b>What surprised.</b> $words</p>', words=surprise) if surprise else Html(''),
                figures=join(shown), numbers=_layers(tables) if question == 'pooling' else Html(''),
                commands=code(['tools/run_all.sh --profile beyond --only %s' % question] + RECORD))


def _layers(tables):
    """Where the distance grows, layer by layer: reported without a verdict, as its rule says."""
    rows = []
    for net, pooling in ((beyond.NET, 'MAX'), (beyond.AVERAGE, 'AVE')):
        for _, row in runs.layers(tables, net).iterrows():
            grows = row['growth_low'] > 0
            rows.append([pooling, row['layer'], row['type'], '%.1f' % runs.percent_of_size(row['distance']),
                         '%+.4f [%+.4f, %+.4f]' % (row['growth'], row['growth_low'], row['growth_high']),
                         'grows' if grows else 'falls' if row['growth_high'] < 0 else names.DASH])
    if not rows:
        return Html('')
    heads = ['pooling', 'layer', 'kind', 'distance, % of its size', 'growth of its square', '']
    return join([table(heads, rows, left=3),
                 small('Distance of the mean over masks from weight averaging; the growth, from the layer before, with '
                       'an interval of 95% over images. No verdict rests on it.')])
