"""The calls of a recorded run as steps that have a counterpart in another run: lists are taken apart."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from op_tools.runs.difference import Value
from op_tools.store.memory import Record
from op_tools.store.recording import CALL, Recording

Source = tuple[int, str]  # a call's number, and a place among its outputs
Token = tuple[Any, ...]

_FOREACH = "_foreach_"
_OVERWRITES = frozenset({"fill", "zero", "copy", "_copy_from", "_copy_from_and_resize"})


@dataclass(eq=False, slots=False, kw_only=True)
class Step:
    """One call; or, of a call on lists of tensors, what it does to one entry."""

    run: Recording
    line: Record
    record_number: int  # the line of the file, counted from 1
    entry: int | None  # of the lists; None where the call has none
    arguments: dict[str, Any] = field(repr=False)
    outputs: dict[str, Value] = field(repr=False)

    @property
    def number(self) -> int:
        return int(self.line["number"])

    @property
    def operator(self) -> str:
        """e.g. "aten.add_.Tensor"."""
        return str(self.line["operator"])

    @property
    def base(self) -> str:
        """What it computes, wherever it writes that: "add" of "aten.add_.Tensor", "aten._foreach_add.List"."""
        name = self.operator.split(".")[1].removeprefix(_FOREACH)
        return name if name.startswith("__") else name.removesuffix("_")

    @property
    def phase(self) -> str:
        return str(self.line["phase"])

    @cached_property
    def arguments_by_place(self) -> dict[str, Value]:
        """All tensors that it is given; of an entry of lists, as the results name them."""
        tail = "" if self.entry is None else f"[{self.entry}]"
        return {
            f"{place}{tail if f'{place}{tail}' in self.outputs else ''}": value
            for place, value in _values(self.arguments, self.run).items()
        }

    @cached_property
    def inputs(self) -> dict[str, Value]:
        """The tensors that the result depends on, by place."""
        unread = self._unread
        found = self.arguments_by_place
        return {place: value for place, value in found.items() if place.partition("[")[0] not in unread}

    @cached_property
    def numbers(self) -> dict[str, Any]:
        """The arguments that are neither tensors nor say where results are made."""
        return {name: value for name, value in self.arguments.items() if _is_plain(value)}

    @property
    def random(self) -> bool:
        return bool(self.line.get("random"))

    @cached_property
    def unit(self) -> float:
        """The unit roundoff of the coarsest dtype that it reads or gives."""
        return max((value.unit for value in (*self.inputs.values(), *self.outputs.values())), default=0.0)

    @property
    def title(self) -> str:
        """e.g. "torch.nn.functional.linear (aten.addmm.default)"."""
        function = self.line["function"]
        return f"{function} ({self.operator})" if function else self.operator

    @cached_property
    def token(self) -> Token:
        """What its counterpart has, too."""
        shapes = tuple(value.shape for value in self.outputs.values())
        return (self.base, self.line["module"], shapes)

    @property
    def _unread(self) -> frozenset[str]:
        if self.base in _OVERWRITES or self.random:
            return frozenset(place.partition("[")[0] for place in self.outputs)
        return frozenset({"out"})


@dataclass(eq=False, kw_only=True)
class Segment:
    """Calls of one phase without a break, e.g. one step of the optimizer."""

    phase: str
    steps: list[Step]


def segments(run: Recording) -> list[Segment]:
    """The run in order, by phase."""
    found: list[Segment] = []
    for number, line in enumerate(run.lines, 2):
        if line["kind"] != CALL:
            continue
        for step in _steps(run, line, number):
            if not found or found[-1].phase != step.phase:
                found.append(Segment(phase=step.phase, steps=[]))
            found[-1].steps.append(step)
    return found


def _steps(run: Recording, line: Record, number: int) -> Iterator[Step]:
    outputs = _values(line["outputs"], run)
    if not outputs:
        return
    lengths = {len(value) for value in line["arguments"].values() if _is_tensors(value)}
    if _FOREACH not in line["operator"] or len(lengths) != 1:
        yield Step(run=run, line=line, record_number=number, entry=None, arguments=line["arguments"], outputs=outputs)
        return
    length = lengths.pop()
    for entry in range(length):
        given = {name: _entry(value, entry, length) for name, value in line["arguments"].items()}
        own = {place: value for place, value in outputs.items() if place.endswith(f"[{entry}]")}
        if own:
            yield Step(run=run, line=line, record_number=number, entry=entry, arguments=given, outputs=own)


def _entry(value: Any, entry: int, length: int) -> Any:
    return value[entry] if isinstance(value, list) and len(value) == length else value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, dict) and ("tensor" in value or "sketch" in value)


def _is_tensors(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_tensor, value))


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return "float" in value or "complex" in value
    return value is not None and not isinstance(value, str)


def _values(given: Any, run: Recording, label: str = "") -> dict[str, Value]:
    """Every tensor, by place as op_tools.values.tensors_in() names it."""
    if _is_tensor(given):
        return {label: Value(run.root, given)}
    found: dict[str, Value] = {}
    if isinstance(given, list):
        for index, entry in enumerate(given):
            found |= _values(entry, run, f"{label}[{index}]")
    elif isinstance(given, dict):
        for name, entry in given.items():
            found |= _values(entry, run, name if not label else f"{label}.{name}")
    return found


def sources_of(value: Value) -> tuple[Source, ...]:
    """The outputs of calls that it is made of."""
    return tuple((int(number), str(place)) for number, place in value.record.get("from", ()))


def same_numbers(a: Step, b: Step) -> list[str]:
    """The plain arguments that both were given and that differ, e.g. ["alpha is 1 in A and 2 in B"]."""
    shared = [name for name in a.numbers if name in b.numbers]
    told = [(name, a.numbers[name], b.numbers[name]) for name in shared]
    alone = [[(name, value) for name, value in one.numbers.items() if name not in shared] for one in (a, b)]
    if len(alone[0]) == len(alone[1]):  # a list's operator may call them otherwise
        told += [(name, value, other) for (name, value), (_, other) in zip(*alone, strict=True)]
    return [
        f"{name} is {_text(value)} in A and {_text(other)} in B"
        for name, value, other in told
        if not _alike(value, other)
    ]


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9)
    return bool(a == b)


def _text(value: Any) -> str:
    return str(next(iter(value.values()))) if isinstance(value, dict) else str(value)
