"""A program that runs one captured call and says whether the device gives what the CPU gives."""

from pathlib import Path

_TEXT = '''\
"""{operator}: {message}

{given}
"""

import sys
from pathlib import Path

from op_tools.replay import replay
from op_tools.store.reader import read_capture

HERE = Path(__file__).resolve().parent
device = sys.argv[1] if len(sys.argv) > 1 else {device!r}
result = replay(read_capture(HERE / {folder!r}, HERE), device, against_cpu=True)
print(result.text)
sys.exit(0 if result.good else 1)
'''


def write_reproduction(root: Path, *, folder: Path, operator: str, message: str, given: str, device: str) -> Path:
    """Writes `root`/reproduce.py for the capture in `folder`, below `root`; gives its path."""
    path = root / "reproduce.py"
    inside = folder.relative_to(root).as_posix()
    text = _TEXT.format(operator=operator, message=message, given=given, folder=inside, device=device)
    path.write_text(text, encoding="utf-8")
    return path
