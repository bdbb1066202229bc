"""Beyond the paper: its open questions, each with verdicts, figures, numbers and commands; only what was run."""

from pages.html import Html, Section, code, figure, fill, join, small, table
from pages.sections.claims import OURS
from pages.sections.experiments import claim_list, surprises
from records import names
from records import open_questions as runs
from records.from_bcnn import beyond

RECORD = ['python tools/record.py --profile beyond', 'python analysis/plot.py']


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
    return fill('open_question', anchor='beyond-' + question, question=beyond.QUESTIONS[question],
                claims=claim_list(judged, question, OURS),
                surprise=surprises(tables, question), figures=join(shown),
                numbers=_layers(tables) if question == 'pooling' else Html(''),
                commands=code([_command(tables, question)] + RECORD))


def _command(tables, question):
    """What asks it again; of the files in weights/ where the recorded answer is theirs, not the profile's."""
    asked = tables['off_data']
    if question != 'off_data' or beyond.ITERATIONS[question] in set(asked['iterations']):
        return 'tools/run_all.sh --profile beyond --only %s' % question
    return 'python tools/study.py off_data ' + ' '.join(
        'weights/mnist-%s-seed1.caffemodel' % net for net in runs.off_data_nets(tables))


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
