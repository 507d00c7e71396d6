"""The rule that kernels and run time find every dtype that they name in the generated headers."""

import re
from pathlib import Path

from diopigen.diagnostics import Diagnostics
from diopigen.model.runtime import Runtime

_NAMED = re.compile(r"\bdiopi_dtype_(\w+)")


def check_dtype_words(runtime: Runtime, folder: Path, shown: str, diagnostics: Diagnostics) -> None:
    """Reports each dtype that a source in `folder`, which is called `shown`, names and the contract does not have."""
    enum = runtime.enum("diopiDtype_t")
    if enum is None:
        return
    known = {enumerator.name for enumerator in enum.enumerators}
    for path in sorted((*folder.rglob("*.h"), *folder.rglob("*.cpp"))):
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in _NAMED.finditer(text):
            if match[0] not in known:
                known.add(match[0])  # one place is enough
                place = f"{shown}/{path.relative_to(folder).as_posix()}:{text.count(chr(10), 0, match.start()) + 1}"
                message = f"there is no '{match[0]}', which {place} names"
                diagnostics.error("missing-dtype", message, enum.span, f"keep the word '{match[1]}' in dtypes.yaml")
