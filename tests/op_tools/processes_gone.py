"""Whether a process is gone that this one has not started."""

import time
from pathlib import Path


def ended(pid: int, seconds: float = 20.0) -> bool:
    """Whether it ends within a time; one that nobody waits for has ended, too."""
    limit = time.monotonic() + seconds
    while runs(pid):
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
