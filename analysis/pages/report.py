"""The report: a page with every result beside the paper's and verdicts from code, and a page on speed and faults."""

import os

import beyond as beyond_figures
import fig2
import fig3
import fig4
import reliability
import risk_coverage
import speed as speed_figures
import uncertain_images
from command_line import write
from drawing import style
from pages.html import Html, page
from pages.sections import beyond, claims, experiments, faults, own_nets, provenance
from pages.sections import rules as rules_section
from pages.sections import speed, uncertainty, undecided
from records.from_bcnn import paper
from verdicts import rules, statements

FIGURES = (('fig2', fig2), ('fig3', fig3), ('fig4', fig4), ('reliability', reliability),
           ('risk_coverage', risk_coverage), ('uncertain_images', uncertain_images)) + speed_figures.FIGURES
REPORT, SPEED = 'report.html', 'report_speed.html'
TITLE = 'Bayesian CNNs by MC dropout: a reproduction on Caffe'
LEAD = Html('Gal and Ghahramani, <cite>Bayesian Convolutional Neural Networks with Bernoulli Approximate Variational '
            'Inference</cite> (ICLR 2016 workshop track): every figure and table of its experiments, beside what was '
            'published.')


def make(tables, out, pictures=None, judgement=None):
    """Writes both pages; gives their paths. pictures: {name: PNG bytes}, drawn here where not given."""
    pictures = pictures or draw(tables, out)
    return [write(os.path.join(out, REPORT), build(tables, pictures, judgement)),
            write(os.path.join(out, SPEED), build_speed(tables, pictures))]


def draw(tables, out):
    """{name: PNG bytes} of all figures, which are also saved."""
    pictures = {}
    for name, module in FIGURES + beyond_figures.asked(tables):
        png = style.maker(module.draw, name)(tables, out)[0]
        with open(png, 'rb') as file:
            pictures[name] = file.read()
    return pictures


def build(tables, pictures, judgement=None):
    """The report, in the reader's order: claims, figures, what is open, uncertainty, own nets; then how it was made."""
    judged, asked, history = judgement or rules.judge(tables)
    sections = [claims.section(tables, judged, asked, len(history.changed))]
    sections += [experiments.section(tables, name, judged, asked, pictures) for name in paper.EXPERIMENTS]
    sections += [experiments.time(judged, SPEED), undecided.section(tables, judged + asked),
                 uncertainty.section(tables, pictures)]
    sections += beyond.sections(tables, statements.beyond_paper(tables), beyond_figures.FIGURES, pictures)
    sections += [own_nets.section(tables), experiments.setup(),
                 rules_section.section(history), provenance.section(tables)]
    return page(TITLE, LEAD, sections, [Html('<a href="%s">Speed and faults</a>' % SPEED)])


def build_speed(tables, pictures):
    """The second page: how fast, and what was tried to break it."""
    return page('Speed and faults', Html('The second page of <a href="%s">the report</a>.' % REPORT),
                [speed.section(tables, pictures), faults.section(tables)])
