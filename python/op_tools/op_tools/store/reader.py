"""Reads captured calls."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from diopigen.malformed import MALFORMED
from op_tools.calls import Call
from op_tools.overloads import Overload, overload_of
from op_tools.store import layout
from op_tools.store.memory import MemoryReader
from op_tools.store.plain_values import from_json


class BadCapture(ValueError):
    """A folder that is no capture, or one that is damaged; the text says which file and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One captured call."""

    folder: Path
    root: Path
    record: dict[str, Any]  # input.json
    result: dict[str, Any]  # output.json

    @property
    def operator(self) -> str:
        """ex) "aten.addmm.default"."""
        return str(self.record["operator"])

    @property
    def title(self) -> str:
        """What the program called, or the operator."""
        return str(self.record["function"] or self.record["operator"])

    def overload(self) -> Overload:
        """Raises BadCapture where this torch has no such operator."""
        namespace, name, which = self.operator.split(".")
        try:
            return overload_of(getattr(getattr(getattr(torch.ops, namespace), name), which))
        except AttributeError:
            raise BadCapture(f"{self.folder}: torch {torch.__version__} has no operator '{self.operator}'") from None

    def call(self, device: torch.device | str) -> Call:
        """The call with its arguments on `device`, new ones each time. Raises BadCapture for a damaged file."""
        home = torch.device(device)
        given = self._tensors(self.record["arguments"], home)
        overload = self.overload()
        schema = overload.function._schema.arguments
        args = [given[a.name] for a in schema if not a.kwarg_only and a.name in given]
        kwargs = {a.name: given[a.name] for a in schema if a.kwarg_only and a.name in given}
        return Call(overload, self.record["function"], tuple(args), kwargs)

    def outputs(self, device: torch.device | str = "cpu") -> dict[str, torch.Tensor]:
        """What the call gave and wrote, by place. Raises BadCapture for a damaged file."""
        found: dict[str, torch.Tensor] = self._tensors(self.result["outputs"], torch.device(device))
        return found

    def _tensors(self, value: Any, device: torch.device) -> Any:
        memory = MemoryReader(self.root, device)

        def read(entry: Any) -> Any:
            if isinstance(entry, list):
                return [read(one) for one in entry]
            if isinstance(entry, dict) and "tensor" in entry:
                return memory.tensor(entry)
            return from_json(entry, device)

        try:
            return {name: read(entry) for name, entry in value.items()}
        except (*MALFORMED, RuntimeError) as error:
            raise BadCapture(f"{self.folder}: {error}") from None


def read_capture(folder: Path, root: Path) -> Capture:
    """The capture in a folder. Raises BadCapture."""
    record, result = (_json(folder / name) for name in (layout.INPUT, layout.OUTPUT))
    for name, content in ((layout.INPUT, record), (layout.OUTPUT, result)):
        if content.get("format") != layout.FORMAT:
            raise BadCapture(
                f"{folder / name} is of format {content.get('format')}; this version reads {layout.FORMAT}"
            )
    return Capture(folder=folder, root=root, record=record, result=result)


def captures(root: Path) -> Iterator[Capture]:
    """Every complete capture below `root`. Raises BadCapture for one that is damaged, or where there is no folder."""
    top = root
    while not (top / layout.MEMORY).is_dir() and top != top.parent:
        top = top.parent
    if not root.is_dir() or not (top / layout.MEMORY).is_dir():
        raise BadCapture(f"{root} holds no captures")
    for folder in layout.captures_in(root):
        yield read_capture(folder, top)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, *MALFORMED) as error:
        raise BadCapture(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise BadCapture(f"{path} is no capture")
    return content
