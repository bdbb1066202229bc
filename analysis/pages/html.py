"""The pieces of a page. Plain text is escaped wherever it goes into a template; only `Html` goes in as it is."""

import base64
import html
import os
import re
import string
from typing import List, NamedTuple, Sequence, Union

TEMPLATES = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'templates')


class Html(str):
    """Text that is HTML already."""


Text = Union[str, Html]


class Section(NamedTuple):
    """A part of a page."""
    anchor: str  # its id in the page
    link: str    # in the list of sections at the top
    title: str
    body: Html


def text(value: Text) -> Html:
    """A value as HTML: escaped, `code` marked, +- as one sign."""
    if isinstance(value, Html):
        return value
    escaped = html.escape(u'%s' % (value,)).replace(' +- ', u' \u00b1 ')
    return Html(re.sub('`([^`]*)`', r'<code>\1</code>', escaped))


def _template(name: str) -> str:
    with open(os.path.join(TEMPLATES, name), encoding='utf-8') as file:
        return file.read()


def put(template: str, **values: Text) -> Html:
    """A template with these values in its named places."""
    return Html(string.Template(template).substitute({name: text(value) for name, value in values.items()}))


def fill(template_name: str, **values: Text) -> Html:
    """The file templates/<template_name>.html with these values in its named places."""
    return put(_template(template_name + '.html').rstrip('\n'), **values)


def join(parts: Sequence[Text], between: str = '\n') -> Html:
    """Pieces one after another."""
    return Html(between.join(text(part) for part in parts))


def page(title: str, lead: Text, sections: List[Section], more: Sequence[Html] = ()) -> Html:
    """A whole page; more: links beside those to its sections."""
    links = [put('<li><a href="#$anchor">$link</a></li>', anchor=section.anchor, link=section.link)
             for section in sections]
    bodies = [fill('section', anchor=section.anchor, title=section.title, body=section.body) for section in sections]
    return Html(fill('page', title=title, lead=lead, style=Html(_template('style.css')),
                     links=join(links + [put('<li>$link</li>', link=link) for link in more], ''),
                     sections=join(bodies)) + '\n')


# --- pieces --------------------------------------------------------------------------------------

# How a verdict is shown: a sign besides the colour.
MARKS = {'reproduced': (u'\u2713', 'yes'), 'not reproduced': (u'\u2717', 'no'), 'yes': (u'\u2713', 'yes'),
         'no': (u'\u2717', 'no'), 'undecided': ('?', 'open'), 'not run': (u'\u2026', 'open')}


def badge(word: str) -> Html:
    """A verdict's word in its colour."""
    sign, kind = MARKS[word]
    return put('<span class="badge $kind"><span aria-hidden="true">$sign</span> $word</span>', kind=kind, sign=sign,
               word=word)


def small(words: Text) -> Html:
    return put('<p class="small">$words</p>', words=words)


def table(heads: Sequence[Text], rows: Sequence[Sequence[Text]], left: int = 1, kind: str = 'scrolls') -> Html:
    """A table; the first `left` columns are words, set left.

    On a phone it scrolls sideways; with kind='stack' its cells stand one below another.
    """
    def cell(tag, k, value):
        return put(tag, kind=Html(' class="l"' if k < left else ''), value=value)

    head = [cell('<th scope="col"$kind>$value</th>', k, name) for k, name in enumerate(heads)]
    body = [put('<tr>$cells</tr>', cells=join([cell('<td$kind>$value</td>', k, value) for k, value in enumerate(row)],
                                              '')) for row in rows]
    return put('<div class="scroll" tabindex="0" role="region" aria-label="table"><table class="$kind">'
               '<thead><tr>$head</tr></thead><tbody>$body</tbody></table></div>',
               kind=kind, head=join(head, ''), body=join(body, ''))


def items(entries: Sequence[Text]) -> Html:
    """A list with bullets."""
    return put('<ul>$entries</ul>', entries=join([put('<li>$entry</li>', entry=entry) for entry in entries], ''))


def figure(png: bytes, alt: str, caption: str) -> Html:
    """A picture inside the page."""
    return put('<figure><div class="scroll"><img alt="$alt" src="data:image/png;base64,$picture"></div>'
               '<figcaption>$caption</figcaption></figure>',
               alt=Html(html.escape(alt)), picture=base64.b64encode(png).decode(), caption=caption)


def code(lines: List[str]) -> Html:
    """Commands, each once."""
    unique = sorted(set(lines), key=lines.index)
    return put('<pre><code>$lines</code></pre>', lines=Html(html.escape('\n'.join(unique))))


def nothing(command: str) -> Html:
    """That nothing is there, and which command fills it."""
    return small(put('Nothing recorded yet: <code>$command</code> fills this.', command=Html(html.escape(command))))
