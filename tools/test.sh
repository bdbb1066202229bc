#!/bin/sh
# tools/test.sh [PYTEST ARGS]  -  sets up if needed, then runs the tests.
#     tools/test.sh                 everything
#     tools/test.sh -m "not caffe"  only what needs no Caffe, in under a minute
#     tools/test.sh -k dropout      pytest's own options pass through
#     tools/test.sh -n 0 -s         in one process, to watch or to debug; otherwise a file a core at a time
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
"$here/setup.sh"
cd "$here/.."
exec "$here/python" -m pytest -n auto --dist loadfile "$@"
