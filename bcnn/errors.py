"""Errors that are the user's to mend: the tools print them as one line, without a traceback."""


class UserError(Exception):
    """What is wrong, where, and what to do: one line. The command was not carried out."""

    exit_code = 2


class CaffeError(UserError):
    """Caffe aborted in the middle of its work; the message is its own."""

    exit_code = 1
