"""The pieces of the report's HTML: everything that comes from data is escaped here."""

import base64
import html
import re

# How a verdict is shown: a sign besides the colour.
MARKS = {'reproduced': (u'\u2713', 'yes'), 'not reproduced': (u'\u2717', 'no'), 'not decided': ('?', 'open'),
         'not decided at this scale': ('?', 'open'), 'not run': (u'\u2026', 'open')}
PARTS = (('summary', 'Summary'), ('general', 'Set-up'), ('fig2', 'Figure 2'), ('fig3', 'Figure 3'),
         ('table1', 'Table 1'), ('fig4', 'Figure 4'),
         ('uncertainty', 'Uncertainty'), ('speed', 'Speed'), ('not-run', 'Not run'), ('faults', 'Faults'),
         ('provenance', 'Provenance'))

CSS = '''
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 0 1rem 4rem; max-width: 64rem;
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  color: #1c1c1c; background: #fff; overflow-wrap: break-word; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 2rem 0 .4rem; }
h2 { font-size: 1.35rem; margin: 3rem 0 .6rem; padding-top: .7rem; border-top: 2px solid #12379c; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1rem; list-style: none; padding: 0; margin: .8rem 0; }
a { color: #12379c; }
.lead { font-size: 1.15rem; }
.small, .why, .numbers, figcaption { font-size: .875rem; color: #4a4a4a; }
.why::before { content: "Why: "; font-weight: 600; }
.scroll { overflow-x: auto; margin: .6rem 0; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; min-width: 60%; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid #ddd; text-align: right; vertical-align: top; }
th { border-bottom: 2px solid #888; font-weight: 600; vertical-align: bottom; }
td { white-space: nowrap; }
.l { text-align: left; white-space: normal; min-width: 6.5rem; }
figure { margin: 1.2rem 0; }
figure img { display: block; width: 100%; height: auto; max-width: 60rem; margin: 0 auto; }
.names td:first-child { min-width: 9rem; } .names th, .names td { padding: .35rem .4rem; }
.stack td:first-child { white-space: nowrap; }
figcaption { max-width: 60rem; margin: .3rem auto 0; }
.claims { list-style: none; padding: 0; }
.claims li { margin: .7rem 0; padding-left: .8rem; border-left: 3px solid #ccc; }
.badge { display: inline-block; white-space: nowrap; padding: 0 .5em; border-radius: .3em; font-size: .85rem;
  font-weight: 600; border: 1px solid; }
.yes { color: #0c5c33; background: #e4f5ea; } .no { color: #8f1d14; background: #fdeceb; }
  .open { color: #4a4a4a; background: #f1f1f1; }
pre { background: #f5f6f8; padding: .8rem; overflow-x: auto; font-size: .8125rem; line-height: 1.45;
  border-radius: .3rem; }
code { font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace; }
@media (max-width: 40rem) { body { padding: 0 .8rem 3rem; } h1 { font-size: 1.4rem; } h2 { font-size: 1.2rem; }
  figure img { min-width: 40rem; } pre { white-space: pre-wrap; }
  .stack thead { display: none; } .stack tr { display: block; padding: .5rem 0; border-bottom: 1px solid #ddd; }
  .stack td { display: block; border: 0; padding: .1rem 0; } .l { min-width: 5rem; } }
@media print { body { max-width: none; font-size: 10.5pt; padding: 0; } nav { display: none; }
  h2 { break-after: avoid; } h3 { break-after: avoid; }
  figure, tr, .claims li { break-inside: avoid; } .scroll { overflow: visible; } figure img { min-width: 0; }
  table { font-size: 8pt; min-width: 0; } th, td { padding: .15rem .3rem; }
  pre { white-space: pre-wrap; border: 1px solid #ddd; } a { color: inherit; text-decoration: none; } }
'''


def text(value):
    """A value as HTML: escaped, `code` marked, +- as one sign."""
    escaped = html.escape(u'%s' % (value,)).replace(' +- ', u' \u00b1 ')
    return re.sub('`([^`]*)`', r'<code>\1</code>', escaped)


def badge(word):
    sign, kind = MARKS[word]
    return '<span class="badge %s"><span aria-hidden="true">%s</span> %s</span>' % (kind, sign, word)


def table(heads, rows, raw=False, left=1, kind_of='scrolls'):
    """A table; the first `left` columns are words, set left; raw: cells are HTML already.

    On a phone it scrolls sideways; with kind_of='stack' its cells stand one below another.
    """
    def kind(k):
        return ' class="l"' if k < left else ''

    head = ''.join('<th scope="col"%s>%s</th>' % (kind(k), text(name)) for k, name in enumerate(heads))
    body = ''.join('<tr>%s</tr>' % ''.join('<td%s>%s</td>' % (kind(k), cell if raw else text(cell)) for k,
                                           cell in enumerate(row)) for row in rows)
    return ('<div class="scroll" tabindex="0" role="region" aria-label="table"><table '
            'class="%s"><thead><tr>%s</tr></thead>'
            '<tbody>%s</tbody></table></div>') % (
        kind_of, head, body)


def figure(png, alt, caption):
    """A picture inside the page."""
    return ('<figure><div class="scroll"><img alt="%s" src="data:image/png;base64,%s"></div>'
            '<figcaption>%s</figcaption></figure>') % (
        html.escape(alt), base64.b64encode(png).decode(), text(caption))


def code(lines):
    """Commands, each once."""
    unique = sorted(set(lines), key=lines.index)
    return '<pre><code>%s</code></pre>' % html.escape('\n'.join(unique))


def nothing(command):
    return '<p class="small">Nothing recorded yet: <code>%s</code> fills this.</p>' % html.escape(command)


def whole(body):
    """The page around its sections."""
    links = ''.join('<li><a href="#%s">%s</a></li>' % part for part in PARTS)
    return ('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" '
            'content="width=device-width, initial-scale=1">\n'
            '<title>Bayesian CNNs by MC dropout: a reproduction on '
            'Caffe</title>\n<style>%s</style>\n</head>\n<body>\n<header>'
            '<h1>Bayesian CNNs by MC dropout: a reproduction on Caffe</h1><p>Gal and Ghahramani, <cite>Bayesian '
            'Convolutional Neural Networks with '
            'Bernoulli Approximate Variational Inference</cite> (ICLR 2016 workshop track): every figure and table of '
            'its experiments, '
            'beside what was published.</p><nav '
            'aria-label="sections"><ul>%s</ul></nav></header>\n<main>\n%s\n</main>\n</body>\n</html>\n'
            % (CSS, links, body))
