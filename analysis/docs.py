"""The tables in README.md and docs/, from the recorded results: writes them between their markers, or --check.

A table stands between <!-- table: NAME --> and <!-- end -->; pages/doc_tables.py has a function for each NAME.
"""

import glob
import os
import re

from command_line import parser, run, write
from pages import doc_tables
from records.from_bcnn import UserError
from records.requirements import ROOT

PLACE = re.compile(r'(<!-- table: (\w+) -->\n).*?(<!-- end -->)', re.DOTALL)


def pages(root):
    """The README and what is in docs/."""
    return [os.path.join(root, 'README.md')] + sorted(glob.glob(os.path.join(glob.escape(root), 'docs', '*.md')))


def filled(text, tables, path):
    """A page with its tables as recorded."""
    begun, places = text.count('<!-- table:'), len(PLACE.findall(text))
    if begun != places:
        raise UserError('%s: %d tables begin, %d are whole: <!-- table: NAME -->, the table, <!-- end -->'
                        % (path, begun, places))

    def fill(match):
        if match.group(2) not in doc_tables.TABLES:
            raise UserError('%s: no table %s; there are: %s'
                            % (path, match.group(2), ', '.join(sorted(doc_tables.TABLES))))
        return match.group(1) + doc_tables.TABLES[match.group(2)](tables) + '\n' + match.group(3)

    return PLACE.sub(fill, text)


def make(tables, root, check=False):
    """Writes what has changed, and gives the paths; with check only says what would."""
    for path in pages(root):
        with open(path, encoding='utf-8') as file:
            old = file.read()
        new = filled(old, tables, path)
        if new != old and check:
            raise UserError('%s: its tables are not those of the recorded results: python analysis/docs.py' % path)
        if new != old:
            yield write(path, new)


if __name__ == '__main__':
    options = parser(__doc__.split('\n')[0])
    options.set_defaults(out=ROOT)
    options.add_argument('--check', action='store_true', help='write nothing; fail where a table is not as recorded')
    args = options.parse_args()
    run(args, lambda tables, out: make(tables, out, args.check))
