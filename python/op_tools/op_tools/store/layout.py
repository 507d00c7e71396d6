"""The files of a capture.

    <root>/<operator>/<pid>/<number>/<time>/input.json    the call: operator, arguments, where it came from
    <root>/<operator>/<pid>/<number>/<time>/output.json   what it gave and wrote
    <root>/memory/<digest>.safetensors                    the memory of tensors, by content

Each file is whole or not there. `output.json` comes last, so that a call
without it was cut off.
"""

import os
import re
from pathlib import Path

FORMAT = 1
INPUT, OUTPUT, MEMORY = "input.json", "output.json", "memory"
DEFAULT = "op_capture_results"


def call_folder(root: Path, operator: str, number: int, stamp: str) -> Path:
    """Of one call of this process."""
    return root / re.sub(r"[^\w.]", "_", operator) / str(os.getpid()) / str(number) / stamp


def memory_file(root: Path, digest: str) -> Path:
    return root / MEMORY / f"{digest}.safetensors"


def captures_in(root: Path) -> list[Path]:
    """The folders of complete captures below `root`, in the order of their calls within each process."""
    found = [path.parent for path in root.rglob(OUTPUT) if (path.parent / INPUT).exists()]
    return sorted(found, key=_order)


def _order(folder: Path) -> tuple[int, int, str]:
    process, number = folder.parent.parent.name, folder.parent.name
    return (int(process) if process.isdecimal() else -1, int(number) if number.isdecimal() else -1, str(folder))
