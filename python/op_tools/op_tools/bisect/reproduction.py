"""A program that runs one captured call and says whether the device gives what the CPU gives."""

from pathlib import Path

import torch

from diopigen.atomic import write_bytes
from op_tools.replay import Replayed, replay
from op_tools.store.reader import Capture
from op_tools.values import mapped

_TEXT = '''\
"""{operator}: {message}

{given}

`python reproduce.py [DEVICE [TIMES]]` runs the call up to TIMES times, each after one with other numbers.
"""

import sys
from pathlib import Path

from op_tools.bisect.reproduction import repeated
from op_tools.store.reader import read_capture

HERE = Path(__file__).resolve().parent
device = sys.argv[1] if len(sys.argv) > 1 else {device!r}
times = int(sys.argv[2]) if len(sys.argv) > 2 else 500
capture = read_capture(HERE / {folder!r}, HERE, allowed=frozenset({{{operator!r}}}))
result, run = repeated(capture, device, times)
print(f"run {{run}}: {{result.text}}")
sys.exit(0 if result.good else 1)
'''


def write_reproduction(root: Path, *, folder: Path, operator: str, message: str, given: str, device: str) -> Path:
    """Writes `root`/reproduce.py for the capture in `folder`, below `root`; gives its path."""
    path = root / "reproduce.py"
    inside = folder.relative_to(root).as_posix()
    text = _TEXT.format(operator=operator, message=message, given=given, folder=inside, device=device)
    write_bytes(path, text.encode())
    return path


def repeated(capture: Capture, device: str, times: int) -> tuple[Replayed, int]:
    """The first of `times` runs of a call that is wrong beside the CPU, or the last, and its number, counted from 1.

    Before each run but the first the call runs with other numbers: what is left over from the call before shows.
    """
    result = replay(capture, device, against_cpu=True)
    for run in range(2, times + 1):
        if not result.good or result.skipped:
            return result, run - 1
        _disturb(capture, device)
        result = replay(capture, device, against_cpu=True)
    return result, times


def _disturb(capture: Capture, device: str) -> None:
    """Runs the call with half of each number."""
    call = capture.call(device)
    args, kwargs = (mapped(part, _halved) for part in (call.args, call.kwargs))
    call.with_arguments(args, kwargs)()


def _halved(value: object) -> object:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach() * 0.5
    return value
