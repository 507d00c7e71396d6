"""The captures that a command is about."""

from collections.abc import Iterator
from pathlib import Path

from op_tools.names import NameList
from op_tools.phases import FORWARD
from op_tools.store.reader import Capture, captures


def chosen(
    folder: Path, names: NameList, *, only_forward: bool = False, allowed: frozenset[str] = frozenset()
) -> Iterator[Capture]:
    """Those below `folder` of operators that are named; those that are `allowed` run whatever they do.

    Raises BadCapture.
    """
    for capture in captures(folder, allowed):
        symbols = capture.record["symbols"]
        packet = capture.operator.rpartition(".")[0]
        named = names.matches((capture.record["function"], capture.operator, packet, *symbols))
        if named and not (only_forward and capture.record["phase"] != FORWARD):
            yield capture
