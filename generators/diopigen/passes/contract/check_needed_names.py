"""The rule that C++ in runtime_cpp finds every name of the contract that it uses in the generated headers."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from diopigen.diagnostics import Diagnostics, Span
from diopigen.project import Project
from diopigen.source.cpp.declared import Record
from diopigen.source.yaml.nodes import span_of

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_WORD = re.compile(r"\b[A-Za-z_]\w+")
_DECLARED = re.compile(r"\b(diopi\w+|DIOPI_\w+_TYPES)\b|^ {4}(\w+) = -?\d+,? *$|\(\*(\w+)\)", re.MULTILINE)


def check_needed_names(text: str, project: Project, diagnostics: Diagnostics) -> None:
    """Reports each name that the headers written last declare, that those of this run lack, and that a source uses.

    `text` is this run's headers but for functions of operators.
    """
    folder = project.generated / "include" / "diopi"
    headers = [path for path in sorted(folder.glob("*.h")) if not path.name.startswith(("functions", "abi"))]
    before = _COMMENT.sub("", "".join(path.read_text(encoding="utf-8", errors="replace") for path in headers))
    record = Record(project.cache / "names.txt", before + text)
    if record.is_known():
        return
    declared = {name for names in _DECLARED.findall(before) for name in names if name}
    lost = declared - set(_WORD.findall(_COMMENT.sub("", text)))
    for name, place in _uses(lost, project):
        message = f"'{name}' no longer exists, but {place} uses it"
        hint = f"keep '{name}', or change the sources first"
        diagnostics.error("missing-name", message, _place(name, project), hint)
    if not lost:
        record.keep()


def _uses(names: set[str], project: Project) -> Iterator[tuple[str, str]]:
    """The first place of each name in runtime_cpp."""
    left = set(names)
    walked = os.walk(project.runtime, followlinks=True) if left else ()
    files = (Path(folder, name) for folder, _, names in walked for name in names)
    for path in sorted(path for path in files if path.suffix in (".h", ".cpp", ".cu")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in _WORD.finditer(_COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), text)):
            if match[0] in left:
                left.remove(match[0])
                yield match[0], f"{path.relative_to(project.home)}:{text.count(chr(10), 0, match.start()) + 1}"


def _place(name: str, project: Project) -> Span:
    """The part of dtypes.yaml or runtime.yaml where such a name is declared."""
    file, key = "runtime.yaml", "functions" if re.fullmatch(r"diopi[A-Z]\w*(?<!_t)", name) else "enums"
    if name.startswith(("DIOPI_", "diopi_dtype_")):
        file, key = "dtypes.yaml", "sets" if name.startswith("DIOPI_") else "types"
    path = project.schemas / file
    return span_of(path, project.shown(path), key)
