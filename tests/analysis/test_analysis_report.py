"""The report as a page: whole, self-contained, honest about what is missing, and safe with whatever the data says."""

import os
import random
import re
import subprocess
from html.parser import HTMLParser

import pytest

import table1
from analysishelp import ROOT, Synthetic, whole_paper
from drawing import style
from pages import commands, html, report
from pages.sections import claims, faults, numbers, own_nets, undecided
from records.names import NIN_AS_DSN
from verdicts import deviations, rules, statements
from verdicts.judging import CONTRADICTED, SUPPORTED, UNDECIDED

VOID = ('meta', 'img', 'br', 'link', 'hr')
PICTURES = {name: b'\x89PNG stand-in' for name, _ in report.FIGURES}


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


PAGES = {report.REPORT: report.build, report.SPEED: report.build_speed}
BUILT = {}


def built_once(name, results):
    """(name of the file, as text, as a Page), each built once for all tests."""
    if (name, results) not in BUILT:
        text = PAGES[name](SETS[results].tables(), PICTURES)
        BUILT[name, results] = name, text, Page(text)
    return BUILT[name, results]


@pytest.fixture(scope='module', params=sorted(SETS))
def built(request):
    """(name of the set, the report as text, as a Page)"""
    return (request.param,) + built_once(report.REPORT, request.param)[1:]


@pytest.fixture(scope='module', params=[(page, name) for page in sorted(PAGES) for name in sorted(SETS)], ids=str)
def page(request):
    """(name of the file, as text, as a Page) of both pages and every set."""
    return built_once(*request.param)


def test_links_go_somewhere_and_ids_are_unique(page):
    name, _, found = page
    assert len(found.links) > (15 if name == report.REPORT else 2) and len(set(found.ids)) == len(found.ids)
    inside = [link for link in found.links if link.startswith('#')]
    assert [link for link in inside if link[1:] not in found.ids] == []
    outside = [link for link in found.links if link not in inside]
    assert set(outside) == {report.SPEED if name == report.REPORT else report.REPORT}  # the other page


def test_the_order_is_the_readers(built):
    assert built[2].ids == ['claims', 'fig2', 'fig3', 'table1', 'fig4', 'time', 'undecided', 'uncertainty', 'own-nets', 'setup',
                            'rules', 'provenance']


def test_headings_are_in_order(page):
    levels = page[2].headings
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:]))


def test_every_picture_is_inside_and_has_words(page):
    images = page[2].images
    assert len(images) == (6 if page[0] == report.REPORT else 2)
    for image in images:
        assert image['src'].startswith('data:image/png;base64,') and len(image['alt']) > 40


def test_the_page_needs_no_network(page):
    _, text, found = page
    assert not re.search(r'(src|href)="(?!data:|#|report_speed.html"|report.html")', text) and '@import' not in text and 'url(' not in text
    assert not [tag for tag, _ in found.tags if tag in ('script', 'link', 'iframe')]


def test_the_page_is_for_phones_and_for_print(page):
    _, text, found = page
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
    words = built_once(report.REPORT, 'empty')[2].words()
    assert 'Nothing is recorded yet' in words and 'python tools/record.py' in words


def test_verdicts_in_the_report_are_those_of_the_statements(built):
    name, text, _ = built
    tables = SETS[name].tables()
    summary = re.search('<section id="claims">(.*?)</section>', text, re.S).group(1)
    badges = re.findall('<span class="badge [a-z]+"><span aria-hidden="true">.</span> ([a-z ]+)</span>', summary)
    judged, asked = statements.of_paper(tables), statements.of_ours(tables)
    assert badges == [claims.word(statement) for statement in judged] + [
        claims.word(statement, claims.OURS) for statement in asked]
    for statement, badge in zip(judged, badges):
        assert (badge == 'reproduced') == (statement.verdict == SUPPORTED)
        assert (badge == 'not reproduced') == (statement.verdict == CONTRADICTED)
        assert (badge == 'not run') == (statement.scope is None)


def test_badges_say_on_what_they_rest():
    words = built_once(report.REPORT, 'short')[2].words()
    assert '1% of the schedule, 1 seed, noise of images' in words
    assert '1% of the schedule, 1 seed, 5 repetitions, noise of masks' in words
    assert 'published weights, 5 repetitions, noise of masks' in words


def squeezed(text):
    """Without spaces and the marks of code, which a page has as elements."""
    return ''.join(text.replace('`', '').split())


def test_every_open_statement_says_what_would_decide_it(built):
    name, text, _ = built
    part = Page(re.search('<section id="undecided">(.*?)</section>', text, re.S).group(1)).words()
    tables = SETS[name].tables()
    for statement in statements.of_paper(tables) + statements.of_ours(tables):
        assert bool(statement.decides) == (statement.verdict == UNDECIDED), statement.key
        assert not statement.decides or squeezed(statement.decides) in squeezed(part)


def test_the_report_discloses_its_rules_and_what_the_paper_cannot_mean(built):
    words = built[2].words()
    for piece in ('cff2dd5', 'Rules for runs that are still to come', 'schedule 1/20', 'cannot be as printed',
                  'What is not covered', 'How much errors vary', 'in nothing else: the same weights'):
        assert piece in words, piece


def test_no_verdict_is_typed_by_hand():
    typed = {}
    for folder, _, names in os.walk(os.path.dirname(os.path.dirname(report.__file__))):
        for name in (name for name in names if name.endswith(('.py', '.html')) and not name.startswith('report')):
            with open(os.path.join(folder, name), encoding='utf-8') as file:
                words = re.findall(r"\b(?:not )?reproduced\b", file.read())
            if words:
                typed[name] = words
    # their colours, and the one mapping from verdicts to words
    assert typed == {'html.py': ['reproduced', 'not reproduced'], 'claims.py': ['reproduced', 'not reproduced']}


def test_a_contradiction_is_said():
    made = Synthetic().evaluation('cifar10', 'nin', 1000, [[1050 + k] * 100 for k in range(5)])
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
    assert html.text('a < b & `c<d` 1 +- 2') == u'a &lt; b &amp; <code>c&lt;d</code> 1 \u00b1 2'
    assert html.code(['x < 1', 'y', 'x < 1']) == '<pre><code>x &lt; 1\ny</code></pre>'


def test_commands_tell_what_was_run():
    made = Synthetic()
    made.curve('mnist_4', 'lenet_all', 'mc', {100: 5, 500: 4}, seed=3, T=10, n=200)
    made.evaluation('cifar10', 'nin', 10, [[9, 9], [8, 8]], n=100)
    made.evaluation('cifar10', 'nin', 10, [[8, 9]], n=100, config='later', mc_seed=7)
    made.evaluation('cifar10', 'dsn', 10, [[9, 9]], n=100, weights='trained', seed=2, iterations=30)
    for stage in (1, 2, 3):
        made.curve('cifar10', 'dsn', 'standard', {10: 9}, seed=2, stage=stage, n=100)
    tables = made.tables()
    assert ('python tools/train.py --net lenet_all --dataset mnist_4 --seed 3 --iters 500 --T 10 --test-limit 200 '
            '--streams 1') in \
        commands.commands(tables, 'fig3')
    table1 = commands.commands(tables, 'table1')
    assert table1[0] == ('python tools/mc_eval.py --net nin --dataset cifar10 --T 2 --repeats 2 '
                         '--weights data/nin_weights/cifar10_nin.caffemodel --limit 100 --streams 1')
    assert table1[1] == ('python tools/mc_eval.py --net nin --dataset cifar10 --T 2 --repeats 1 '
                         '--weights data/nin_weights/cifar10_nin.caffemodel --seed 7 --limit 100 --streams 1')
    assert ('python tools/train.py --net dsn --dataset cifar10 --seed 2 --iters 10,10,10 --test-limit 100 '
            '--streams 1') in table1
    assert ('python tools/mc_eval.py --net dsn --dataset cifar10 --T 2 --repeats 1 --training-seed 2 '
            '--limit 100 --streams 1') in table1
    assert [line for line in table1 if 'dsn_aug' in line][0].endswith('# not run yet')


@pytest.mark.parametrize('streams, option', [(None, ' --streams 1'), (2, '')])
def test_commands_name_random_numbers_of_before(streams, option):
    made = Synthetic().curve('mnist', 'lenet_none', 'standard', {100: 5})
    made.described('c-mnist-lenet_none-1', streams)
    assert ('python tools/train.py --net lenet_none --dataset mnist --seed 1 --iters 100' + option
            in commands.commands(made.tables(), 'fig2'))


def test_templates_escape_whatever_is_not_html():
    assert html.put('<b>$x</b>$y', x='<i>', y=html.Html('<i>')) == '<b>&lt;i&gt;</b><i>'
    with pytest.raises(KeyError):
        html.put('$missing')


def test_own_nets_have_a_section_and_stay_out_of_the_papers():
    made = Synthetic().evaluation('own', 'net', 100, [[90] * 5, [92] * 5], n=1000, weights='unknown')
    made.evaluation('cifar10', 'nin', 104, [[102] * 5], n=1000)
    words = Page(own_nets.section(made.tables()).body).words()
    assert u'net on own 10.00 9.10 \u00b1 0.14 5 1,000 2 0.01' in words and 'NIN' not in words
    assert 'Nothing recorded yet' in own_nets.section(Synthetic().tables()).body


def test_a_run_from_given_weights_stands_beside_table_1_and_below_figure_4s_numbers():
    made = Synthetic().evaluation('cifar10', 'dsn_aug', 795, [[900] * 9 + [771 + k] * 91 for k in range(5)], seed=1,
                                  weights='trained', iterations=200000)
    made.curve('cifar10', 'dsn_aug', 'mc', {100: 55, 500: 50}, stage=3, T=20, n=500, init='ab' * 32)
    made.evaluation('cifar10', 'dsn_aug', 1060, [[1200] * 9 + [1040 + k] * 91 for k in range(5)], seed=1, config='own',
                    weights='trained', iterations=750, init='ab' * 32)
    tables = made.tables()
    started = 'started from weights abababab'
    assert [line['standard'] for line in table1.rows(tables) if line['net'] == 'dsn_aug'] == [7.95]
    words = Page(own_nets.departing(tables, of_table1=True)).words()
    assert u'Augmented-DSN on CIFAR-10 10.60 10.42 \u00b1 0.02 100 10,000 5 0.01 ' + started in words
    words = Page(numbers.NUMBERS['fig4'](tables)).words()
    own = 'Augmented-DSN from weights abababab'
    assert u'%s 10.60 12.00 \u00b1 0.00 10.42 \u00b1 0.02' % own in words
    assert 'T = 10 \u2013 \u2013' in words and words.index('7.95') < words.index(own)
    made_by = commands.commands(tables, 'table1')
    train, = [line for line in made_by if '--init' in line]
    assert '--net dsn_aug --dataset cifar10 --seed 1 --iters 0,0,750 --T 20 --test-limit 500' in train
    assert '--init runs/start.caffemodel --out runs/dsn_aug-from-abababab    # SHA-256 abababab...' in train
    assert [line for line in made_by if '--weights runs/dsn_aug-from-abababab/final.caffemodel' in line]
    assert not [line for line in made_by if 'nin_to_dsn' in line]
    for row in made.rows['curves'] + made.rows['evaluations']:
        row['init'] = row['init'] and NIN_AS_DSN[0]
    made_by = commands.commands(made.tables(), 'table1')
    assert 'python tools/nin_to_dsn.py --out runs/start.caffemodel' in made_by
    assert "started from NIN's weights" in Page(own_nets.departing(made.tables(), of_table1=True)).words()


def test_what_is_left_is_estimated():
    made = Synthetic().curve('mnist', 'lenet_all', 'standard', {100000: 50})
    words = Page(undecided.section(made.tables(), []).body).words()
    assert u'training of lenet-all on MNIST 100,000 10,000,000 iterations 1% \u2013' in words and 'bench.py --record has measured' in words
    made.step('mnist', 'lenet_all', 33)
    words = Page(undecided.section(made.tables(), []).body).words()
    assert 'training of lenet-all on MNIST 100,000 10,000,000 iterations 1% 3.8 days' in words  # 9.9 million steps of 33 ms
    assert 'measured on one core (a machine)' in words
    assert 'training of NIN' not in words  # published weights: nothing to train


def test_missing_repetitions_are_estimated_where_a_pass_was_measured():
    made = Synthetic().evaluation('cifar10', 'nin', 1043, [[1030] * 100])
    made.evaluation('cifar10', 'nin', 1043, [[1030] * 100], config='later', mc_seed=2)
    made.evaluation('cifar10', 'dsn', 20, [[19] * 100] * 5, n=200, weights='trained', seed=1, iterations=200000)
    made.speed('MC', 'cifar10/nin', 100, 'stream', 3600)
    words = Page(undecided.section(made.tables(), []).body).words()
    assert 'MC evaluation of NIN on CIFAR-10 2 5 repetitions 40% 3 hours' in words  # 3 times a million passes of 3.6 ms
    assert u'MC evaluation of DSN on CIFAR-10 0 5 repetitions 0% \u2013' in words  # five, but of 200 images only
    made.step('cifar10', 'dsn', 3840)  # a pass is a third of it for 100 images: 13 ms, five million times
    assert 'MC evaluation of DSN on CIFAR-10 0 5 repetitions 0% 18 hours' in Page(undecided.section(made.tables(), []).body).words()
    whole = whole_paper()
    assert 'repetitions' not in Page(undecided.section(whole.tables(), []).body).words()


def test_one_repetition_has_no_spread_and_two_have():
    made = Synthetic().evaluation('cifar10', 'nin', 1043, [[1030] * 100])
    assert 'NIN 10.43 10.30 10.30' in Page(numbers.NUMBERS['fig4'](made.tables())).words()
    made.evaluation('cifar10', 'nin', 1043, [[1050] * 100], config='later', mc_seed=2)
    assert u'NIN 10.43 10.40 \u00b1 0.14' in Page(numbers.NUMBERS['fig4'](made.tables())).words()


@pytest.mark.parametrize('errors, words', [
    ([990, 980, 960, 950], 'T = 1'), ([1050, 1010, 990, 980], 'T = 3'), ([1050, 990, 1000, 980], 'T = 4'),  # level is not below
    ([1050, 990, 980, 1001], 'never')])
def test_from_which_pass_mc_stays_below_standard(errors, words):
    made = Synthetic().evaluation('cifar10', 'dsn_aug', 1000, [errors])
    page = Page(numbers.NUMBERS['fig4'](made.tables()))
    row = page.words().split('DSN')[1]  # of Augmented-DSN
    assert re.search(r'%s 7\.95' % words, row), row


def test_what_surprised_stands_with_its_experiment():
    made = whole_paper()
    made.add('surprises', question='table1', words='Less & more.')
    page = report.build(made.tables(), PICTURES)
    table1, fig4 = page.index('id="table1"'), page.index('id="fig4"')
    assert table1 < page.index('<b>What surprised.</b> Less &amp; more.') < fig4 and page.count('What surprised') == 1


def test_faults_are_added_up():
    made = Synthetic()
    assert 'campaign.py' in Page(faults.section(made.tables()).body).words()
    for target, cases in (('train', 7), ('train', 5), ('record', 1000)):
        made.fault(target=target, what=str(cases), cases=cases, seconds=1800.0)
    made.fault(kind='soak', target='train and mc_eval', cases=720, seconds=3600.0)
    words = Page(faults.section(made.tables()).body).words()
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
        for _, module in report.FIGURES:
            module.draw(tables)


def test_the_readme_lists_every_module():
    folder = os.path.join(ROOT, 'analysis')
    with open(os.path.join(folder, 'README.md'), encoding='utf-8') as file:
        listed = set(re.findall(r'([\w/]+\.py)`', file.read()))
    for place, _, names in os.walk(folder):
        modules = [name for name in names if name.endswith('.py') and name != '__init__.py']
        assert len(modules) <= 15, place
        for name in modules:
            path = os.path.relpath(os.path.join(place, name), folder)
            assert path in listed or name in listed, path
            with open(os.path.join(place, name), encoding='utf-8') as file:
                assert len(file.readlines()) <= 350, path


def test_every_rule_names_a_commit_of_its_date():
    for rule in rules.RULES:
        shown = subprocess.run(['git', 'show', '-s', '--format=%cd', '--date=short', rule.commit], cwd=ROOT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        if shown.returncode:
            pytest.skip('no history here')
        assert shown.stdout.strip() == rule.date, rule.text
