"""Reads what tools left in a folder, file by file. A file that cannot be read is named, and the others are read."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from diopigen.atomic import MALFORMED
from op_tools.results import beside
from op_tools.store import layout
from op_tools.store.reader import BadCapture, Capture, read_capture
from op_tools.summary import RECORDED

TIMES, COMPARED = "op_elasped_info", "op_autocompare_info"


@dataclass(slots=True)
class Sources:
    """Everything that was found, in the order of the files' names."""

    timings: list[dict[str, Any]] = field(default_factory=list)  # as the timing tool writes them beside its table
    time_rows: list[dict[str, str]] = field(default_factory=list)  # of tables that have no timings beside them
    compared_rows: list[dict[str, str]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)  # of op-tools run, what each tool found
    captures: list[Capture] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)  # that were read
    broken: list[str] = field(default_factory=list)  # why others were not

    @property
    def empty(self) -> bool:
        return not (self.files or self.captures or self.broken)


def read(folder: Path) -> Sources:
    """What lies in `folder` and below."""
    found = Sources()
    memories = {path.parent for path in folder.rglob(layout.MEMORY) if path.is_dir()}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if any(root in path.parents for root in memories if root != folder) or path.name.startswith("."):
            continue
        _read_file(path, found)
    for root in sorted(memories):
        for call in layout.captures_in(root):
            _attempt(lambda call=call, root=root: found.captures.append(read_capture(call, root)), found)  # type: ignore[misc]
    return found


def _read_file(path: Path, found: Sources) -> None:
    if path.suffix == ".csv" and TIMES in path.name:
        if not beside(path).exists():
            _attempt(lambda: found.time_rows.extend(_rows(path, ("name", "forward_elasped"))), found, path)
    elif path.suffix == ".csv" and COMPARED in path.name:
        _attempt(lambda: found.compared_rows.extend(_rows(path, ("name", "allclose"))), found, path)
    elif path.suffix == ".json" and path.name not in (layout.INPUT, layout.OUTPUT):
        _attempt(lambda: _read_json(path, found), found)


def _read_json(path: Path, found: Sources) -> None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except MALFORMED as error:
        raise ValueError(f"{path} is no JSON: {error}") from None
    if isinstance(content, dict) and isinstance(content.get("timings"), list):
        found.timings += content["timings"]
    elif isinstance(content, dict) and any(isinstance(content.get(tool), dict) for tool in RECORDED):
        found.records.append(content)
    else:
        return
    found.files.append(path)


def _rows(path: Path, needed: Iterable[str]) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = [name for name in needed if name not in (reader.fieldnames or ())]
        if missing:
            raise ValueError(f"{path} has no column '{missing[0]}'")
        yield from (row for row in reader if row["name"] != "name")  # a header again, as other tools write it


def _attempt(read: Callable[[], object], found: Sources, path: Path | None = None) -> None:
    try:
        read()
    except (BadCapture, OSError, *MALFORMED) as error:
        found.broken.append(str(error))
    else:
        if path is not None:
            found.files.append(path)
