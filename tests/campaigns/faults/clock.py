"""Runs a Python command under a clock that jumps: python clock.py SEED COMMAND ARGS...

Each time the time of day is asked for, it may have been set by somebody: years back, years
forth. Only time.time() is: the monotonic clock cannot be set, and the files' times are the
kernel's (the campaign changes those with utime).
"""

import random
import runpy
import sys
import time

JUMPS = (-3e8, -86400, -3600, -1, 1, 3600, 86400, 3e8)  # seconds

if __name__ == '__main__':
    rng, real, offset = random.Random(int(sys.argv[1])), time.time, [0.0]

    def jumping():
        if rng.random() < 0.2:
            offset[0] += rng.choice(JUMPS)
        return real() + offset[0]

    time.time = jumping
    del sys.argv[:2]
    sys.path.insert(0, sys.argv[0].rsplit('/', 1)[0])  # as for a script that is started itself
    runpy.run_path(sys.argv[0], run_name='__main__')
