"""The end of the process waits for torch's backward threads, and is not ended by daemon threads.

Such a thread drops the last graph after ``backward()`` has returned, and takes Python's lock for that. If Python ends
meanwhile, the thread is ended in the middle of a destructor and the process aborts. torch starts these threads for each
device but the CPU. A daemon thread that runs operators does not end by itself: it is put to sleep in place of that.
"""

import atexit
import functools
import time
from collections.abc import Iterator
from pathlib import Path

from torch_dipu import _native

_TASKS = Path("/proc/self/task")
_PREFIX = "pt_autograd_"  # what torch names them
_PAUSE = 0.001  # seconds
_LONGEST = 2.0


def _states() -> Iterator[str]:
    """The state of each backward thread, e.g. "S" for one that sleeps."""
    for task in _TASKS.glob("*"):
        try:
            name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:  # it ended
            continue
        if name.startswith(_PREFIX):
            yield rest.split()[0]


def wait() -> None:
    """Let the threads have Python's lock until all of them sleep, two looks in a row; at most two seconds."""
    _native.load().let_daemon_threads_sleep()
    until = time.monotonic() + _LONGEST
    quiet = 0
    while quiet < 2 and time.monotonic() < until:
        states = list(_states())
        if not states:
            return
        time.sleep(_PAUSE)  # without the lock: who waits for it gets it now
        quiet = quiet + 1 if all(state == "S" for state in _states()) else 0


@functools.cache
def register() -> None:
    """From the first use of the device on; more calls do nothing."""
    atexit.register(wait)
