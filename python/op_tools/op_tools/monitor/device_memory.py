"""Device memory by process, as a vendor's own tool tells it from outside.

Only nvidia-smi is known. The contract of vendor libraries has no such question: other chips of dipu have no answer.
"""

import subprocess
from collections.abc import Iterable

VENDOR = "nvidia"

_QUERY = ("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")
_SECONDS = 10  # it answers within one, unless its driver hangs
_MEBI = 1 << 20


def by_process() -> dict[int, int] | None:
    """Bytes by process number, of all devices together; None where there is no nvidia-smi, or it fails.

    Processes of which it does not say how much they use are left out.
    """
    try:
        done = subprocess.run(_QUERY, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode:
        return None
    found: dict[int, int] = {}
    for line in done.stdout.splitlines():
        process, _, mebibytes = (part.strip() for part in line.partition(","))
        if process.isdecimal() and mebibytes.isdecimal():
            found[int(process)] = found.get(int(process), 0) + int(mebibytes) * _MEBI
    return found


def sum_of(processes: Iterable[int]) -> int | None:
    """The bytes of these together; None where none of them is told."""
    told = by_process() or {}
    known = [told[process] for process in processes if process in told]
    return sum(known) if known else None
