"""The report as a page: whole, self-contained, honest about what is missing, and safe with whatever the data says."""

import os
import random
import re
import sys
from html.parser import HTMLParser

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from analysishelp import Synthetic, whole_paper  # noqa: E402

import claims  # noqa: E402
import deviations  # noqa: E402
import page  # noqa: E402
import report  # noqa: E402
import report_commands  # noqa: E402
import style  # noqa: E402

VOID = ('meta', 'img', 'br', 'link', 'hr')
PICTURES = {module.__name__: b'\x89PNG stand-in' for module in report.MODULES}


class Page(HTMLParser):
    """What a browser would find: tags that close, ids, links, headings, pictures, text."""

    def __init__(self, text):
        HTMLParser.__init__(self)
        self.open, self.ids, self.links, self.headings, self.images, self.tags, self.text = [], [], [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append((tag, values))
        if tag not in VOID:
            self.open.append(tag)
        if 'id' in values:
            self.ids.append(values['id'])
        if tag == 'a':
            self.links.append(values['href'])
        if tag == 'img':
            self.images.append(values)
        if re.match('h[1-6]$', tag):
            self.headings.append(int(tag[1]))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, '</%s> closes %s' % (tag, self.open[-1:])
        self.open.pop()

    def handle_data(self, data):
        if self.open[-1:] != ['style']:
            self.text.append(data)

    def words(self):
        return ' '.join(' '.join(self.text).split())


SETS = {'empty': Synthetic(), 'full': whole_paper(), 'short': whole_paper(seeds=(1,), length=0.01),
        'one': Synthetic().evaluation('cifar10', 'nin', 1043, [[1050, 1040], [1045, 1030]])}


@pytest.fixture(scope='module', params=sorted(SETS))
def built(request):
    text = report.build(SETS[request.param].tables(), PICTURES)
    return request.param, text, Page(text)


def test_links_go_somewhere_and_ids_are_unique(built):
    _, _, found = built
    assert len(found.links) > 15 and len(set(found.ids)) == len(found.ids)
    for link in found.links:
        assert link.startswith('#') and link[1:] in found.ids, link


def test_headings_are_in_order(built):
    levels = built[2].headings
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:]))


def test_every_picture_is_inside_and_has_words(built):
    images = built[2].images
    assert len(images) == len(report.MODULES) == 8
    for image in images:
        assert image['src'].startswith('data:image/png;base64,') and len(image['alt']) > 40


def test_the_page_needs_no_network(built):
    _, text, found = built
    assert not re.search(r'(src|href)="(?!data:|#)', text) and '@import' not in text and 'url(' not in text
    assert not [tag for tag, _ in found.tags if tag in ('script', 'link', 'iframe')]


def test_the_page_is_for_phones_and_for_print(built):
    _, text, found = built
    assert ('meta', {'name': 'viewport', 'content': 'width=device-width, initial-scale=1'}) in found.tags
    assert '@media print' in text and '@media (max-width' in text
    assert ('html', {'lang': 'en'}) in found.tags and ('meta', {'charset': 'utf-8'}) in found.tags


def test_each_experiment_has_claim_numbers_deviations_and_command(built):
    _, text, _ = built
    for name in ('fig2', 'fig3', 'table1', 'fig4'):
        part = re.search('<section id="%s">(.*?)</section>' % name, text, re.S).group(1)
        for piece in ('What the paper claims', "Numbers beside the paper's", 'Deviations and their reasons',
                      'How to make it again',
                      'class="badge', '<pre><code>python tools/'):
            assert piece in part, (name, piece)


def test_an_empty_report_says_which_command_fills_it():
    words = Page(report.build(SETS['empty'].tables(), PICTURES)).words()
    assert 'Nothing is recorded yet' in words and 'python tools/record.py' in words


def test_verdicts_in_the_report_are_those_of_the_claims(built):
    name, text, _ = built
    found = claims.check(SETS[name].tables())
    summary = re.search('<section id="summary">(.*?)</section>', text, re.S).group(1)
    badges = re.findall('<span class="badge [a-z]+"><span aria-hidden="true">.</span> ([a-z ]+)</span>', summary)
    assert badges == [report.verdict(claim) for claim in found]
    for claim, badge in zip(found, badges):
        assert (badge == 'reproduced') == (claim.verdict == claims.SUPPORTED)
        assert (badge == 'not reproduced') == (claim.verdict == claims.CONTRADICTED)
        assert (badge == 'not run') == (claim.scope is None)
        assert not badge.endswith('at this scale') or claim.scope


def test_no_verdict_is_typed_by_hand():
    for name in ('report.py', 'report_numbers.py', 'deviations.py'):
        with open(os.path.join(os.path.dirname(report.__file__), name)) as file:
            source = file.read()
        typed = re.findall(r"'(?:not )?reproduced'", source)
        assert len(typed) == (2 if name == 'report.py' else 0), name  # the two words of the one mapping


def test_a_contradiction_is_said():
    made = Synthetic().evaluation('cifar10', 'nin', 1000, [[1050] * 100, [1060] * 100])
    words = Page(report.build(made.tables(), PICTURES)).words()
    assert '1 not reproduced' in words


def test_text_from_data_is_escaped():
    evil = '<script>alert(1)</script>"&\'`x`'
    made = Synthetic().evaluation('cifar10', 'nin', 1043, [[1050], [1040]], config='a<b>&"c')
    for rows in made.rows.values():
        for row in rows:
            for column in ('caffe', 'device', 'commit', 'profile'):
                if column in row:
                    row[column] = evil
    made.curve('mnist', 'lenet_all', 'standard', {100: 5})
    made.rows['curves'][0]['commit'] = evil
    text = report.build(made.tables(), PICTURES)
    found = Page(text)
    assert '<script' not in text and 'a&lt;b&gt;' in text
    assert '<script>alert(1)</script>' in found.words()


def test_text():
    assert page.text('a < b & `c<d` 1 +- 2') == u'a &lt; b &amp; <code>c&lt;d</code> 1 \u00b1 2'
    assert page.code(['x < 1', 'y', 'x < 1']) == '<pre><code>x &lt; 1\ny</code></pre>'


def test_commands_tell_what_was_run():
    made = Synthetic()
    made.curve('mnist_4', 'lenet_all', 'mc', {100: 5, 500: 4}, seed=3, T=10, n=200)
    made.evaluation('cifar10', 'nin', 10, [[9, 9], [8, 8]], n=100)
    made.evaluation('cifar10', 'nin', 10, [[8, 9]], n=100, config='later', mc_seed=7)
    made.evaluation('cifar10', 'dsn', 10, [[9, 9]], n=100, weights='trained', seed=2, iterations=30)
    for stage in (1, 2, 3):
        made.curve('cifar10', 'dsn', 'standard', {10: 9}, seed=2, stage=stage, n=100)
    tables = made.tables()
    assert 'python tools/train.py --net lenet_all --dataset mnist_4 --seed 3 --iters 500 --T 10 --test-limit 200' in \
        report_commands.commands(tables, 'fig3')
    table1 = report_commands.commands(tables, 'table1')
    assert table1[0] == ('python tools/mc_eval.py --net nin --dataset cifar10 --T 2 --repeats 2 '
                         '--weights data/nin_weights/cifar10_nin.caffemodel --limit 100')
    assert table1[1] == ('python tools/mc_eval.py --net nin --dataset cifar10 --T 2 --repeats 1 '
                         '--weights data/nin_weights/cifar10_nin.caffemodel --seed 7 --limit 100')
    assert 'python tools/train.py --net dsn --dataset cifar10 --seed 2 --iters 10,10,10 --test-limit 100' in table1
    assert ('python tools/mc_eval.py --net dsn --dataset cifar10 --T 2 --repeats 1 --training-seed 2 '
            '--limit 100') in table1
    assert [line for line in table1 if 'dsn_aug' in line][0].endswith('# not run yet')


def test_what_is_left_is_estimated():
    made = Synthetic().curve('mnist', 'lenet_all', 'standard', {100000: 50})
    words = Page(report.not_run(made.tables())).words()
    assert u'training of lenet-all on MNIST 100,000 10,000,000 iterations 1% \u2013' in words and 'bench.py --record has measured' in words
    made.step('mnist', 'lenet_all', 33)
    words = Page(report.not_run(made.tables())).words()
    assert 'training of lenet-all on MNIST 100,000 10,000,000 iterations 1% 3.8 days' in words  # 9.9 million steps of 33 ms
    assert 'measured on one core (a machine)' in words
    assert 'training of NIN' not in words  # published weights: nothing to train


def test_missing_repetitions_are_estimated_where_a_pass_was_measured():
    made = Synthetic().evaluation('cifar10', 'nin', 1043, [[1030] * 100])
    made.evaluation('cifar10', 'nin', 1043, [[1030] * 100], config='later', mc_seed=2)
    made.evaluation('cifar10', 'dsn', 20, [[19] * 100] * 5, n=200, weights='trained', seed=1, iterations=200000)
    made.speed('MC', 'cifar10/nin', 100, 'stream', 3600)
    words = Page(report.not_run(made.tables())).words()
    assert 'MC evaluation of NIN on CIFAR-10 2 5 repetitions 40% 3 hours' in words  # 3 times a million passes of 3.6 ms
    assert u'MC evaluation of DSN on CIFAR-10 0 5 repetitions 0% \u2013' in words  # five, but of 200 images only
    made.step('cifar10', 'dsn', 3840)  # a pass is a third of it for 128 images: 10 ms, five million times
    assert 'MC evaluation of DSN on CIFAR-10 0 5 repetitions 0% 14 hours' in Page(report.not_run(made.tables())).words()
    whole = whole_paper()
    assert 'repetitions' not in Page(report.not_run(whole.tables())).words()


def test_one_repetition_has_no_spread_and_two_have():
    made = Synthetic().evaluation('cifar10', 'nin', 1043, [[1030] * 100])
    assert 'NIN 10.43 10.30 10.30' in Page(report.report_numbers.NUMBERS['fig4'](made.tables())).words()
    made.evaluation('cifar10', 'nin', 1043, [[1050] * 100], config='later', mc_seed=2)
    assert u'NIN 10.43 10.40 \u00b1 0.14' in Page(report.report_numbers.NUMBERS['fig4'](made.tables())).words()


def test_faults_are_added_up():
    made = Synthetic()
    assert 'campaign.py' in Page(report.robustness.section(made.tables())).words()
    for target, cases in (('train', 7), ('train', 5), ('record', 1000)):
        made.fault(target=target, what=str(cases), cases=cases, seconds=1800.0)
    made.fault(kind='soak', target='train and mc_eval', cases=720, seconds=3600.0)
    words = Page(report.robustness.section(made.tables())).words()
    assert 'faults injected into train 12 12 2 0 0 0 1.00' in words
    assert 'all: faults 1,012 18 3 0 0 0 1.50' in words and 'long run of train and mc_eval 720' in words


def test_every_experiment_has_deviations_with_reasons():
    assert deviations.general()
    for experiment in ('fig2', 'fig3', 'table1', 'fig4'):
        assert deviations.of(experiment)
    assert all(len(one.why) > 20 and one.what.endswith('.') for one in deviations.DEVIATIONS)


@pytest.mark.parametrize('seed', range(5))
def test_any_part_of_the_results_gives_a_report_and_every_figure(seed):
    """Rows taken out at random: seeds that share no iteration, evaluations without some of their rows ..."""
    rng, made = random.Random(seed), whole_paper(length=0.1)
    for name, rows in made.rows.items():
        share = rng.choice([0.02, 0.2, 0.7])
        made.rows[name] = [row for row in rows if rng.random() < share]
    tables = made.tables()
    Page(report.build(tables, PICTURES))
    with style.drawing():
        for module in report.MODULES:
            module.draw(tables)
