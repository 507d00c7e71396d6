"""One call with all that goes in and should come out, as plain values that a program can hold."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from diopi_conformance.cases.plan import CasePlan
from diopi_conformance.expected.expectations import SCRATCH
from diopi_conformance.judgement.checks import order_is_free
from diopi_conformance.prepare import Prepared
from diopi_conformance.process.wire import FRESH
from diopi_conformance.repro.bounds import targets
from diopi_conformance.repro.choices import choices
from diopi_conformance.values.elements import COMPLEX, Array, is_float, rounded
from diopigen.vocabulary.checks import CHECK

_MOST_BYTES = 4_000_000  # of all storages together


class Unwritable(Exception):
    """The call has something that cannot be written down; the text says what."""


class TooLarge(Exception):
    """The call has more data than belongs into a source file; the text says how much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a tensor should hold, element by element in row-major order.

    Numbers of floats: `values`, two for each element of a complex type, and how far each element may be away. Whole
    numbers: for each element those that are right, one unless ties allow others. Neither: nobody can tell.
    """

    values: tuple[float, ...] = ()
    bounds: tuple[float, ...] = ()
    choices: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One tensor that the caller makes."""

    name: str  # e.g. "input", "tensors[2]"
    dtype: str
    number: int  # the dtype's enumerator
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    elements: int  # of the storage
    before: bytes  # the whole storage
    role: str  # input, output, or scratch: of which nothing is promised
    unwritten: bool  # nobody has put values there: other bytes before the second call
    expectation: Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """One tensor that the function allocates; without `present` it must not."""

    name: str
    dtype: str
    number: int
    present: bool
    optional: bool
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None  # None: not promised
    expectation: Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One number that the function writes into memory of the caller."""

    name: str
    kind: str  # e.g. "int64"
    expectation: Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument after the context; `value` is as in a worker's request."""

    name: str
    passing: str
    role: str
    value: Any
    count: int = 1  # handles that a tensor* has room for


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One call."""

    symbol: str
    arguments: tuple[Argument, ...]
    tensors: tuple[Tensor, ...]
    made: tuple[Made, ...]
    host: tuple[Host, ...]
    fresh: tuple[int, ...]  # of which bytes fresh memory is, in each of the calls


def example(plan: CasePlan, prepared: Prepared) -> Example:
    """The prepared call. Raises TooLarge and Unwritable."""
    size = sum(buffer.before.nbytes for buffer in prepared.buffers)
    if size > _MOST_BYTES:
        raise TooLarge(f"its tensors have {size / 1e6:.1f} MB, which is too much for a source file")
    if order_is_free(prepared):
        raise Unwritable("the order of its results is free, which a stand-alone file cannot judge")
    return Example(
        symbol=prepared.function.symbol,
        arguments=tuple(
            Argument(
                name=param.name,
                passing=param.passing,
                role=param.role,
                value=entry["value"],
                count=entry.get("count", 1),
            )
            for param, entry in zip(prepared.function.params, prepared.request["args"], strict=True)
        ),
        tensors=tuple(
            Tensor(
                name=buffer.label,
                dtype=buffer.dtype,
                number=plan.dtypes[buffer.dtype][0],
                sizes=buffer.layout.sizes,
                strides=buffer.layout.strides,
                offset=buffer.layout.offset,
                elements=buffer.layout.elements,
                before=buffer.before.tobytes(),
                role="scratch" if buffer.scratch else "input" if buffer.expected is None else "output",
                unwritten=buffer.unwritten,
                expectation=_expectation(prepared, buffer.label, buffer.dtype, buffer.expected),
            )
            for buffer in prepared.buffers
        ),
        made=tuple(
            Made(
                name=slot.label,
                dtype=slot.dtype,
                number=plan.dtypes[slot.dtype][0],
                present=slot.expected is not None,
                optional=slot.param.optional,
                sizes=() if slot.expected is None else slot.expected.shape,
                strides=prepared.strides.get(slot.label),
                expectation=_expectation(prepared, slot.label, slot.dtype, slot.expected),
            )
            for slot in prepared.slots
        ),
        host=tuple(_host(prepared, p.name, p.passing) for p in prepared.function.params if p.role == "host"),
        fresh=(FRESH,) if "draws" in prepared.request else (FRESH, prepared.request["fresh"]),
    )


def _expectation(prepared: Prepared, label: str, dtype: str, expected: Array | None) -> Expectation:
    if expected is None or (CHECK[prepared.function.check].random and prepared.function.form != "backward"):
        return Expectation()
    exact = rounded(expected, dtype)
    if not (is_float(dtype) or dtype in COMPLEX):
        found = choices(prepared, label, exact)
        return Expectation(choices=found or tuple((int(n),) for n in exact.reshape(-1)))
    aims, near = targets(prepared, label, dtype, expected)
    flat = np.ascontiguousarray(aims).reshape(-1)
    values = flat.view(np.float64) if dtype in COMPLEX else flat
    return Expectation(values=tuple(map(float, values)), bounds=tuple(map(float, near.reshape(-1))))


def _host(prepared: Prepared, name: str, passing: str) -> Host:
    if prepared.expected[name] is SCRATCH:
        raise Unwritable(f"'{name}' may be any number, which a stand-alone file cannot judge")
    expected = np.asarray(prepared.expected[name]).reshape(()).item()
    kind = passing.removesuffix("*")
    if not isinstance(expected, float):
        return Host(name=name, kind=kind, expectation=Expectation(choices=((int(expected),),)))
    dtype = next(iter(prepared.case.dtypes.values()))
    _, near = targets(prepared, name, dtype, np.array(expected))
    return Host(name=name, kind=kind, expectation=Expectation(values=(expected,), bounds=(float(near.item()),)))
