"""One capture: the calls of a running model become cases, each once, and what becomes none is counted."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch

from diopi_conformance.capture.contract_calls import Given, Routes, Unmapped, row
from diopi_conformance.capture.device_calls import on_device
from diopi_conformance.capture.elements import choose, elements_word, forward_dtypes, parameter_dtypes
from diopi_conformance.capture.listed_values import listed
from diopi_conformance.capture.recorder import AtenCall, Tensor, overload_name, recorded
from diopi_conformance.capture.store import Captured
from diopi_conformance.capture.whole_operators import kept_whole
from diopigen.model.op import Function, Role
from diopigen.model.program import Program
from diopigen.vocabulary.layouts import IMAGES

LARGEST = 500_000  # elements in all tensors of one call; larger ones cost more than they find

# What makes or reads memory without computing anything: no function of the contract stands behind it.
_SILENT = ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided", "_local_scalar_dense", "item")


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a capture saw."""

    calls: int = 0  # that compute something
    mapped: int = 0
    unmapped: Counter[tuple[str, str]] = field(default_factory=Counter)  # overload, why

    def add(self, other: "Tally") -> None:
        """Counts what `other` saw, too."""
        self.calls += other.calls
        self.mapped += other.mapped
        self.unmapped += other.unmapped


class Session:
    """Captures into `cases`, in the order of first appearance."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._routes = Routes(program)
        self.cases: dict[str, Captured] = {}
        self.tally = Tally()

    @contextmanager
    def capturing(self) -> Iterator[None]:
        """Records what runs inside."""
        with kept_whole(), recorded(self.hear):
            yield

    def hear(self, call: AtenCall) -> None:
        """Makes cases of one call, or counts it; calls that compute nothing are none."""
        if is_silent(call.overload):
            return
        for asked in on_device(call):
            self.tally.calls += 1
            try:
                captured = self._captured(asked)
            except Unmapped as unmapped:
                self.tally.unmapped[asked.overload, str(unmapped)] += 1
                continue
            self.tally.mapped += 1
            self.cases.setdefault(captured.key, captured)

    def _captured(self, call: AtenCall) -> Captured:
        function, given = self._routes.taken(call)
        op = self._program.op(function.op)
        assert op is not None
        if _elements(given) > LARGEST:
            raise Unmapped("too large")
        dtypes = self._program.dtypes
        chosen = choose(op, function, given, dtypes)
        layout, view = _lies(function, given)
        return Captured(
            topic=op.topic,
            function=function.symbol,
            elements=elements_word(function, chosen),
            dtypes=parameter_dtypes(function, chosen, dtypes),
            forward=forward_dtypes(op, function, chosen, dtypes),
            layout=layout,
            view=view,
            values=row(op, function, given),
            data=listed(op, function, given, every=call.exact),
        )


def is_silent(overload: str) -> bool:
    """Views and the like, which compute nothing, e.g. "view", "select.int"."""
    base, _, which = overload.partition(".")
    if base in _SILENT:
        return True
    found: Any = getattr(getattr(torch.ops.aten, base), which or "default")
    assert overload_name(found) == overload
    aliases = any(r.alias_info is not None and not r.alias_info.is_write for r in found._schema.returns)
    return bool(found.is_view) or aliases or base == "_unsafe_view"


def _elements(given: Given) -> int:
    return sum(prod(tensor.sizes) for value in given.values() for tensor in _tensors(value))


def _tensors(value: Any) -> Iterator[Tensor]:
    for entry in value if isinstance(value, list) else [value]:
        if isinstance(entry, Tensor):
            yield entry


def _lies(function: Function, given: Given) -> tuple[str, str]:
    """The memory order of images and the view, as the first input that has one that is not the usual.

    A case gives all its tensors the same.
    """
    read = [t for p in function.params if p.role in (Role.IN, Role.INOUT) for t in _tensors(given.get(p.name))]
    layout = IMAGES.word if any(t.channels_last for t in read) else ""
    views = (_view(t, function.kernel is not None) for t in read if not t.channels_last)
    return layout, next((view for view in views if view != "contiguous"), "contiguous")


def _view(tensor: Tensor, elementwise: bool) -> str:
    if tensor.contiguous:
        return "offset" if tensor.offset else "contiguous"
    if tensor.repeats:
        # What reduces would reduce equal values, and have nothing to tell apart.
        return "expanded" if elementwise else "contiguous"
    return "transposed" if _is_dense(tensor) else "strided"


def _is_dense(tensor: Tensor) -> bool:
    span = sum((size - 1) * step for size, step in zip(tensor.sizes, tensor.strides, strict=True))
    return span + 1 == prod(tensor.sizes)
