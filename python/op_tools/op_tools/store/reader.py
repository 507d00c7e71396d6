"""Reads captured calls."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._ops import OpOverload

from diopigen.atomic import MALFORMED
from op_tools.calls import OperatorCall
from op_tools.overloads import Overload, beyond_tensors, overload_of
from op_tools.store import layout
from op_tools.store.json_values import from_json
from op_tools.store.memory import MemoryReader

# What is read of the two files, beside the format.
_INPUT: dict[str, Any] = {
    "operator": str,
    "function": str | None,
    "symbols": list,
    "number": int,
    "phase": str,
    "device": str,
    "shown": dict,
    "arguments": dict,
}
_OUTPUT = {"outputs": dict}


class BadCapture(ValueError):
    """A folder that is no capture, or one that is damaged; the text says which file and why."""


class NotAllowed(BadCapture):
    """A capture of an operator that may do more than compute tensors."""

    def __init__(self, text: str, operator: str) -> None:
        super().__init__(text)
        self.operator = operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One captured call."""

    folder: Path
    root: Path
    record: dict[str, Any]  # input.json
    result: dict[str, Any]  # output.json
    allowed: frozenset[str] = frozenset()  # operators that the user lets run though they do more than compute tensors

    @property
    def operator(self) -> str:
        """e.g. "aten.addmm.default"."""
        return str(self.record["operator"])

    @property
    def title(self) -> str:
        """What the program called, or the operator."""
        return str(self.record["function"] or self.record["operator"])

    def overload(self) -> Overload:
        """Raises BadCapture where this torch has no such operator."""
        found: Any = torch.ops
        for name in self.operator.split("."):
            found = getattr(found, name, None)
        if not isinstance(found, OpOverload):
            raise BadCapture(f"{self.folder}: torch {torch.__version__} has no operator '{self.operator}'")
        return overload_of(found)

    def call(self, device: torch.device | str) -> OperatorCall:
        """The call with its arguments on `device`, new ones each time.

        A capture says by itself which operator it calls. Raises NotAllowed for one that does more than compute tensors,
        and BadCapture for a damaged file.
        """
        home = torch.device(device)
        overload = self.overload()
        reason = "" if self.operator in self.allowed else beyond_tensors(overload.function)
        if reason:
            raise NotAllowed(f"{self.folder}: '{self.operator}' is not run, because {reason}", self.operator)
        given = self._tensors(self.record["arguments"], home)
        schema = overload.function._schema.arguments
        args = [given[a.name] for a in schema if not a.kwarg_only and a.name in given]
        kwargs = {a.name: given[a.name] for a in schema if a.kwarg_only and a.name in given}
        return OperatorCall(overload, self.record["function"], tuple(args), kwargs)

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
        except KeyError as error:
            raise BadCapture(f"{self.folder}: a tensor lacks {error}") from None
        except (ValueError, TypeError, AttributeError, OverflowError, RuntimeError) as error:
            raise BadCapture(f"{self.folder}: {str(error).partition(chr(10))[0]}") from None


def read_capture(folder: Path, root: Path, allowed: frozenset[str] = frozenset()) -> Capture:
    """The capture in a folder; operators that are `allowed` run whatever they do. Raises BadCapture."""
    record, result = (_json(folder / name) for name in (layout.INPUT, layout.OUTPUT))
    for name, content in ((layout.INPUT, record), (layout.OUTPUT, result)):
        if content.get("format") != layout.FORMAT:
            raise BadCapture(
                f"{folder / name} is of format {content.get('format')}; this version reads {layout.FORMAT}"
            )
        for key, kind in (_INPUT if name == layout.INPUT else _OUTPUT).items():
            if not isinstance(content.get(key), kind):
                raise BadCapture(f"{folder / name} is damaged: its '{key}' is missing or of another kind")
    return Capture(folder=folder, root=root, record=record, result=result, allowed=allowed)


def captures(root: Path, allowed: frozenset[str] = frozenset()) -> Iterator[Capture]:
    """Every complete capture below `root`. Raises BadCapture for one that is damaged, or where there is no folder."""
    top = root
    while not (top / layout.MEMORY).is_dir() and top != top.parent:
        top = top.parent
    if not root.is_dir() or not (top / layout.MEMORY).is_dir():
        raise BadCapture(f"{root} holds no captures")
    for folder in layout.captures_in(root):
        yield read_capture(folder, top, allowed)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, *MALFORMED) as error:
        raise BadCapture(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise BadCapture(f"{path} is no capture")
    return content
