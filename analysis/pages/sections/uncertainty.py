"""Is the uncertainty worth something? Three figures that the paper does not have, and their numbers."""

from pages import alt_texts, commands
from pages.alt_texts import quality
from pages.html import Html, Section, code, figure, fill, join, nothing, small, table
from pages.sections import same_images
from records import evaluations, names
from records.uncertainty import HINGE, NO_LIKELIHOOD

HEADS = ['net', 'ECE Standard', 'ECE MC', 'NLL Standard', 'NLL MC', 'error at 20% rejected, Standard',
         'the same, MC entropy', 'the same, mutual information']
CAPTIONS = (
    ('reliability', 'Reliability: accuracy against confidence. On the diagonal a net knows how often it is right.'),
    ('risk_coverage', 'Risk-coverage: the error that is left when the most uncertain images are handed to a person.'),
    ('uncertain_images', 'What the nets find hardest and easiest.'))


def section(tables, pictures):
    """The figures, their numbers, and the evaluations compared image by image."""
    targets = evaluations.targets(tables)
    rows = [[names.target(*target) + (' *' if target[1] in HINGE else '')] + quality(tables, *target)
            for target in targets]
    note = small('* ' + NO_LIKELIHOOD) if any(net in HINGE for _, net in targets) else Html('')
    figures = [figure(pictures[name], alt_texts.ALTS[name](tables), caption) for name, caption in CAPTIONS]
    return Section('uncertainty', 'Uncertainty', 'Beyond the paper: is the uncertainty worth something?', fill(
        'uncertainty', figures=join(figures),
        numbers=join([table(HEADS, rows), note]) if rows else nothing('python tools/mc_eval.py'),
        same_images=same_images.part(tables),
        commands=code(commands.evaluation_commands(tables, targets))))
