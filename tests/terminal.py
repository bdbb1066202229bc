"""A small terminal: what someone sees after a program has written these bytes, and after the window was made narrower."""

import re

TOKENS = re.compile(r'\033\[([0-9;?]*)([A-Za-z])|(\r)|(\n)|([^\033\r\n]+)')


class Terminal:
    """Rows of text with a cursor; what scrolls off the top is kept."""

    def __init__(self, columns=80):
        self.columns, self.rows, self.row, self.column = columns, [''], 0, 0
        self.wrapped = {0: False}  # row: whether it goes on the row before
        self.colours = 0

    def feed(self, text):
        for code, letter, back, line, plain in TOKENS.findall(text):
            if letter == 'A':
                self.row = max(self.row - int(code or 1), 0)
            elif letter == 'J':
                self.rows[self.row:] = [self.rows[self.row][:self.column]]
            elif letter == 'm':
                self.colours += 1
            elif letter:
                raise AssertionError('code %s%s is not known here' % (code, letter))
            elif back:
                self.column = 0
            elif line:
                self._next_row(False)
            for character in plain:
                self._put(character)
        return self

    def _next_row(self, wrapped):
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.rows):
            self.rows.append('')
        self.wrapped[self.row] = wrapped

    def _put(self, character):
        if self.column == self.columns:
            self._next_row(True)
        here = self.rows[self.row].ljust(self.column)
        self.rows[self.row] = here[:self.column] + character + here[self.column + 1:]
        self.column += 1

    def resize(self, columns):
        """Lines are wrapped anew, as terminals do; the cursor stays at its character."""
        lines, cursor = [], None
        for number, row in enumerate(self.rows):
            if not self.wrapped.get(number):
                lines.append('')
            if number == self.row:
                cursor = len(lines) - 1, len(lines[-1]) + self.column
            lines[-1] += row
        self.columns, self.rows, self.wrapped = columns, [], {}
        for number, line in enumerate(lines):
            if number == cursor[0]:
                self.row, self.column = len(self.rows) + cursor[1] // columns, cursor[1] % columns
            for start in range(0, max(len(line), 1), columns):
                self.wrapped[len(self.rows)] = start > 0
                self.rows.append(line[start:start + columns])
        return self

    def seen(self):
        """The rows, without empty ones at the end."""
        return '\n'.join(row.rstrip() for row in self.rows).rstrip('\n').split('\n')
