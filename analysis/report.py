"""The report: one self-contained page that puts every result beside the paper's, with verdicts from code."""

import os

import bench_chart
import bench_growth
import causes
import claims
import common
import deviations
import fig2
import fig3
import fig4
import page
import pairs
import reliability
import report_commands
import report_numbers
import report_speed
import risk_coverage
import robustness
import style
import table1
import uncertain_images
from bcnn import cost  # on the path since `common`

MODULES = (fig2, fig3, fig4, reliability, risk_coverage, uncertain_images, bench_chart, bench_growth)


def make(tables, out, pictures=None):
    """Writes report.html; gives its path in a list. pictures: {name: PNG bytes}, drawn here where not given."""
    pictures = pictures or draw(tables, out)
    return [common.write(os.path.join(out, 'report.html'), build(tables, pictures))]


def draw(tables, out):
    """{name: PNG bytes} of all figures, which are also saved."""
    pictures = {}
    for module in MODULES:
        png = style.make(module.draw, module.__name__)(tables, out)[0]
        with open(png, 'rb') as file:
            pictures[module.__name__] = file.read()
    return pictures


def build(tables, pictures):
    """The page as text."""
    found = claims.check(tables)
    parts = [summary(tables, found), general()]
    for experiment, module in (('fig2', fig2), ('fig3', fig3), ('table1', None), ('fig4', fig4)):
        parts.append(section(tables, experiment, module, found, pictures))
    parts += [extras(tables, pictures), report_speed.section(tables, pictures), not_run(tables),
              robustness.section(tables), provenance(tables)]
    return page.whole('\n'.join(parts))


# --- the sections ----------------------------------------------------------------------------

def summary(tables, found):
    """What reproduces, in numbers and as a table of all claims."""
    if common.is_empty(tables):
        lead = '<p class="lead">%s</p>' % page.text('Nothing is recorded yet. Train and evaluate, then run `%s` and '
                                                    '`python analysis/plot.py`.' % common.FILLS)
    else:
        counts = [(word, sum(1 for claim in found if verdict(claim) == word)) for word in page.MARKS]
        words = ', '.join('<b>%d %s</b>' % (n, word) for word, n in counts if n)
        lead = '<p class="lead">Of %d statements of the paper: %s.</p>' % (len(found), words)
    rows = [['<a href="#%s">%s</a>' % (claim.experiment, page.text(short_name(claim.experiment))),
             page.text(claim.statement),
             page.badge(verdict(claim)) + scope(claim)] for claim in found]
    return ('<section id="summary"><h2>What reproduces</h2>%s%s<p class="small">Verdicts are computed from the '
            'recorded results by '
            '<code>analysis/claims.py</code>; its rules stand at its top. Figures are drawn from the files in '
            '<code>analysis/results/</code>; errors are in percent of the test images.</p></section>'
            % (lead, page.table(['where', 'what the paper says', 'here'], rows, raw=True, left=3, kind_of='stack')))


def verdict(claim):
    """The report's word for a claim's verdict."""
    known = {claims.SUPPORTED: 'reproduced', claims.CONTRADICTED: 'not reproduced'}
    if claim.verdict in known:
        return known[claim.verdict]
    if claim.scope is None:
        return 'not run'
    return 'not decided at this scale' if claim.scope else 'not decided'


def scope(claim):
    return '<br><span class="small">%s</span>' % page.text('with ' + claim.scope) if claim.scope else ''


def short_name(experiment):
    return common.paper.EXPERIMENTS[experiment].split(':')[0]


def general():
    """What holds for every experiment."""
    return ('<section id="general"><h2>What holds for all experiments</h2><p>Standard dropout: one pass with the '
            'weights scaled, as usual at test. MC dropout: '
            'the dropout layers keep sampling at test, and the softmax outputs of T passes are averaged; in stock '
            'Caffe one field does it, <code>phase: TRAIN</code> '
            'on the dropout layers. Standard and MC dropout are always measured on the same '
            'weights.</p><h3>Deviations and their reasons</h3>%s</section>'
            % _deviations(deviations.general()))


def _deviations(some):
    return '<ul>%s</ul>' % ''.join('<li>%s <span class="why">%s</span></li>' % (page.text(one.what), page.text(one.why))
                                   for one in some)


def section(tables, experiment, module, found, pictures):
    """An experiment: claims with verdicts, figure, numbers, deviations, commands."""
    items = ''.join('<li>%s %s%s<br><span class="numbers">%s</span></li>' % (
        page.badge(verdict(claim)), page.text(claim.statement), scope(claim), page.text(claim.numbers))
        for claim in found if claim.experiment == experiment)
    parts = ['<h3>What the paper claims, and what came out</h3><ul class="claims">%s</ul>' % items]
    if module:
        parts.append(page.figure(pictures[module.__name__], report_numbers.ALTS[experiment](tables),
                                 CAPTIONS[experiment]))
    parts.append('<h3>Numbers beside the paper\'s</h3>' + report_numbers.NUMBERS[experiment](tables))
    if experiment == 'table1':
        parts.append(causes.section(tables))
    parts.append('<h3>Deviations and their reasons</h3>%s<p class="small">Also <a href="#general">what holds for all '
                 'experiments</a>.</p>'
                 % _deviations(deviations.of(experiment)))
    parts.append('<h3>How to make it again</h3>' + page.code(report_commands.commands(tables, experiment)))
    return '<section id="%s"><h2>%s</h2>%s</section>' % (
        experiment, page.text(common.paper.EXPERIMENTS[experiment]), '\n'.join(parts))


CAPTIONS = {
    'fig2': 'Test error against training iterations. Blue lenet-all, green lenet-ip, dotted red lenet-none; dashed '
            'Standard dropout, solid MC dropout.',
    'fig3': 'Test error of LeNet trained on all, a quarter and 1/32 of MNIST. Left lenet-ip with Standard dropout, '
            'right lenet-all with MC dropout.',
    'fig4': 'Test error after averaging T stochastic passes, with one standard deviation of the repetitions, against '
            'Standard dropout.'}


def extras(tables, pictures):
    """Three figures that the paper does not have."""
    rows = [[reliability.name(*pair)] + report_numbers.quality(tables, *pair) for pair in common.evaluated(tables)]
    heads = ['net', 'ECE Standard', 'ECE MC', 'NLL Standard', 'NLL MC', 'error at 20% rejected, Standard',
             'the same, MC entropy', 'the same, mutual information']
    body = [page.figure(pictures[name], alt, caption) for name, alt, caption in (
        ('reliability', report_numbers.alt_reliability(tables),
         'Reliability: accuracy against confidence. On the diagonal a net knows how often it is right.'),
        ('risk_coverage', report_numbers.alt_risk(tables),
         'Risk-coverage: the error that is left when the most uncertain images are handed to a person.'),
        ('uncertain_images', report_numbers.alt_images(tables), 'What the nets find hardest and easiest.'))]
    numbers = page.table(heads, rows) if rows else page.nothing('python tools/mc_eval.py')
    return ('<section id="uncertainty"><h2>Beyond the paper: is the uncertainty worth something?</h2><p>The paper '
            'argues for MC dropout as approximate '
            'Bayesian inference but reports errors only. These figures ask whether the predictive distribution is '
            'calibrated, and whether its '
            'uncertainty finds the errors.</p>%s<h3>Numbers</h3>%s%s<h3>How to make it again</h3>%s</section>'
            % ('\n'.join(body), numbers, pairs.section(tables),
               page.code(report_commands.evaluation_commands(tables, common.evaluated(tables)))))


def not_run(tables):
    """What is shorter than the paper's, and what the rest would cost."""
    known = cost.speeds(tables['bench'].to_dict('records'))
    rows = _trainings_left(tables, known) + _evaluations_left(tables, known)
    body = page.table(['where', 'run', 'done', "paper's", 'share', 'the rest, one CPU core'], rows,
                      left=2) if rows else '<p>All runs are as long as the paper\'s.</p>'
    machine = sorted(set(tables['bench']['machine']))
    how = ('from the steps and passes that <code>tools/bench.py --record</code> measured on one core (%s)'
           % page.text(', '.join(machine)) if machine else
           'once <code>tools/bench.py --record</code> has measured them')
    return ('<section id="not-run"><h2>What was not run, and what it would cost</h2><p>Time of training and of the '
            'repeated MC evaluations, %s; where no pass was measured, from a third of a step. Runs of the same net and '
            'data share their training. No GPU was at hand to measure on.</p>%s</section>' % (how, body))


def _trainings_left(tables, known):
    """Rows for the trainings that are shorter than the paper's."""
    rows = []
    for run in common.paper.RUNS:
        done, full = reached(tables, run), sum(run.iterations)
        if done < full and run.experiment != 'fig4' and run.weights == 'trained':
            rows.append(_left(run, 'training', done, full, 'iterations', cost.of_step(known, run.dataset, run.net)))
    return rows


def _evaluations_left(tables, known):
    """Rows for the repetitions of Table 1 that are missing: all passes, on all images, with fully trained weights."""
    rows = []
    for run in common.paper.find('table1'):
        lines = [table1.measured(group) for group in common.evaluations(tables, run.dataset, run.net)
                 if common.share(group.iloc[0]) >= 1]
        done = max([0] + [line['repetitions'] for line in lines
                          if line['n'] >= common.paper.TEST_IMAGES and line['T'] >= run.T])
        a_pass = cost.of_pass(known, run.dataset, run.net)
        if done < run.repetitions:
            rows.append(_left(run, 'MC evaluation', done, run.repetitions, 'repetitions',
                              None if a_pass is None else a_pass * run.T * common.paper.TEST_IMAGES))
    return rows


def _left(run, what, done, full, unit, seconds):
    """The row of a run of which `full - done` is left, at so many seconds each (None: not measured)."""
    return [short_name(run.experiment),
            '%s of %s on %s' % (what, common.paper.title(run.net), common.paper.title(run.dataset)),
            common.count(done), '%s %s' % (common.count(full), unit), common.percent(done / float(full)),
            u'\u2013' if seconds is None else duration((full - done) * seconds / 3600.0)]


def reached(tables, run):
    """The most iterations recorded for a run of the paper, by its curve or its evaluation."""
    rows = common.where(tables['curves'], dataset=run.dataset, net=run.net)
    by_curve = max([0] + [rows_of['iteration'].max()
                          for rows_of in [common.curve(tables, run.dataset, run.net, 'standard')] if len(rows)])
    by_evaluation = common.where(tables['evaluations'], dataset=run.dataset, net=run.net)['iterations'].max()
    return int(max(by_curve, 0 if by_evaluation != by_evaluation else by_evaluation))


def duration(hours):
    """'5 hours', '4 days', '2.1 years'"""
    for size, word in ((24 * 365.0, 'years'), (24.0, 'days')):
        if hours >= 2 * size:
            return '%.2g %s' % (hours / size, word)
    return '%.2g hours' % hours


def provenance(tables):
    """What computed the results, configuration by configuration."""
    rows = []
    columns = ['dataset', 'net', 'seed', 'config', 'caffe', 'device', 'commit', 'profile']
    for name in ('curves', 'evaluations'):
        table = tables[name]
        for values, group in table.groupby([table[column].fillna(-1) if column == 'seed' else table[column]
                                            for column in columns]):
            dataset, net, seed, config, caffe, device, commit, profile = values
            rows.append([{'curves': 'training curve', 'evaluations': 'MC evaluation'}[name],
                         '%s on %s' % (common.paper.title(net), common.paper.title(dataset)),
                         'published weights' if seed < 0 else '%d' % seed, config, caffe, device, commit, profile,
                         '%d' % len(group)])
    heads = ['what', 'run', 'training seed', 'config', 'Caffe', 'device', 'commit', 'profile', 'rows']
    body = page.table(heads, [[cell or u'\u2013' for cell in row] for row in rows],
                      left=9) if rows else page.nothing(common.FILLS)
    return ('<section id="provenance"><h2>Provenance</h2><p>Each row of the recorded tables carries these. '
            '<em>config</em> begins the SHA-256 of '
            'everything that decides the numbers: nets, data, weights, seeds, T.</p>%s<h3>From the records to this '
            'page</h3>%s</section>'
            % (body, page.code(['python tools/record.py     # runs/ -> analysis/results/*.csv',
                                'python analysis/plot.py    # figures, tables, this page'])))


if __name__ == '__main__':
    common.start(__doc__, make)
