"""The process behind a net of the library's: it has Caffe, so that the user's own need not, and cannot be killed by it.

Started anew, not forked: numpy may be loaded in the user's process with other settings of BLAS, and a process with
threads (a notebook's) is not safe to fork. Answers (result, error) to (method, argument) until the other side is gone.
"""

import os
import threading
import time
import traceback
from multiprocessing.connection import Connection

from ..errors import CaffeError, UserError


def serve(number: int, parent: int) -> None:
    """Serves the connection with this file descriptor, as long as the process `parent` lives."""
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    connection = Connection(number)
    session = None
    while True:
        try:
            method, argument = connection.recv()
        except (EOFError, OSError):
            return
        try:
            if method == 'load':
                from .session import Session
                session = Session(argument)
                answer = session.about()
            else:
                answer = session.predict(argument)
            answer = answer, None
        except UserError as error:
            answer = None, (CaffeError if isinstance(error, CaffeError) else UserError, str(error))
        except Exception as error:
            answer = None, (RuntimeError, '%s: %s\n%s' % (type(error).__name__, error, traceback.format_exc()))
        connection.send(answer)


def _watch(parent):
    """Ends this process when its parent is gone, whatever it is doing."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
