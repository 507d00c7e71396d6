"""Says when an operator gives infinities or NaN, and what its numbers are like."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from op_tools.calls import OperatorCall, location
from op_tools.interception import Proceed
from op_tools.tool import OpTool
from op_tools.values import tensors_in


class Overflow(RuntimeError):
    """An operator gave an infinity or NaN, and `stop_on_overflow` was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """Of a tensor of floats; those of the statistics that are finite count."""

    shape: tuple[int, ...]
    nan: int
    inf: int
    least: float
    greatest: float
    mean: float
    std: float  # of the population
    norm: float  # the 2-norm

    @classmethod
    def of(cls, tensor: torch.Tensor) -> "Numbers":
        """Counted and summed in float64, on the CPU."""
        values = tensor.detach().resolve_conj().resolve_neg().cpu()
        values = (torch.view_as_real(values) if values.is_complex() else values).double().reshape(-1)
        good = values[values.isfinite()]
        nan, inf = int(values.isnan().sum()), int(values.isinf().sum())
        if not good.numel():
            return cls(
                shape=tuple(tensor.shape),
                nan=nan,
                inf=inf,
                least=math.nan,
                greatest=math.nan,
                mean=math.nan,
                std=math.nan,
                norm=math.nan,
            )
        return cls(
            shape=tuple(tensor.shape),
            nan=nan,
            inf=inf,
            least=float(good.min()),
            greatest=float(good.max()),
            mean=float(good.mean()),
            std=float(good.std(correction=0)),
            norm=float(good.norm()),
        )

    def __str__(self) -> str:
        return (
            f"{list(self.shape)}: {self.nan} NaN, {self.inf} infinite, from {self.least:.4g} to {self.greatest:.4g}, "
            f"mean {self.mean:.4g}, std {self.std:.4g}, norm {self.norm:.4g}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A call that gave infinities or NaN."""

    number: int
    operator: str
    phase: str
    place: str  # e.g. "result[0]", "self"
    numbers: Numbers
    inputs: dict[str, Numbers]  # of those that were floats: where it may come from
    location: str


class OpOverflowCheck(OpTool):
    """Looks at every result, and at what is written in place; `found` lists the calls with infinities or NaN.

    With `stop_on_overflow` the first one raises Overflow. `write` gets a line for each; left out, they are printed.
    With `every` each call is printed, with the numbers of its inputs and results. See OpTool for the rest.
    """

    variable: ClassVar[str] = "OVERFLOW_CHECK"
    layer: ClassVar[int] = 2

    def __init__(
        self,
        ops: Any = None,
        *,
        stop_on_overflow: bool = False,
        every: bool = False,
        write: Callable[[str], Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(ops, **options)
        self._stop, self._every, self._write = stop_on_overflow, every, write or print
        self.found: list[Found] = []

    def serves(self, overload: Any) -> bool:
        return bool(overload.computes) and not overload.aliases

    def apply(self, call: OperatorCall, proceed: Proceed) -> Any:
        before = {place: Numbers.of(t) for place, t in tensors_in(call.given) if _is_float(t)} if self._every else {}
        result = proceed(call)
        written = {name: call.given.get(name) for name in call.overload.written}
        seen: set[int] = set()
        for place, tensor in (*tensors_in(result, "result"), *tensors_in(written)):
            if id(tensor) in seen or not _is_float(tensor):
                continue
            seen.add(id(tensor))
            if self._every:
                inputs = ", ".join(f"{name} {numbers}" for name, numbers in before.items())
                self._write(f"{call.number} {call.title} {place} {Numbers.of(tensor)} of {inputs or 'no floats'}")
            if not bool(tensor.detach().isfinite().all()):
                self._report(call, place, tensor, before)
        return result

    def _report(self, call: OperatorCall, place: str, tensor: torch.Tensor, before: dict[str, Numbers]) -> None:
        inputs = before or {
            name: Numbers.of(t)
            for name, t in tensors_in(call.given)
            if _is_float(t) and name.partition("[")[0] not in call.overload.written
        }
        found = Found(
            number=call.number,
            operator=call.overload.name,
            phase=call.phase,
            place=place,
            numbers=Numbers.of(tensor),
            inputs=inputs,
            location=location(),
        )
        self.found.append(found)
        first = "" if all(n.nan + n.inf == 0 for n in inputs.values()) else " (so were inputs)"
        text = f"{call.number} {call.title} ({call.overload.name}, {found.phase}) {place} {found.numbers}{first}"
        self._write(f"{text} at {found.location}" if found.location else text)
        if self._stop:
            raise Overflow(text)


def _is_float(tensor: torch.Tensor) -> bool:
    return (tensor.is_floating_point() or tensor.is_complex()) and tensor.layout is torch.strided and tensor.numel() > 0
