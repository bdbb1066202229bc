#!/bin/sh
# tools/test.sh [PYTEST ARGS]  -  sets up if needed, then runs the tests; shows where they are and how long they still take.
#     tools/test.sh                 everything
#     tools/test.sh -m "not caffe"  only what needs no Caffe, in about a minute
#     tools/test.sh -k dropout      pytest's own options pass through
# On every core a file at a time; in one process, to watch or to debug: tools/python -m pytest -s
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
"$here/setup.sh"
cd "$here/.."
exec "$here/python" -m pytest -p tests.showing -n auto --dist loadfile "$@"
