"""All about one call but the library: its tensors, what they hold before, what they should hold after."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from diopi_conformance.cases.plan import Case, Function, Param
from diopi_conformance.judgement.tolerance import Terms
from diopi_conformance.values.elements import Array
from diopi_conformance.values.inputs import Values
from diopi_conformance.values.views import Layout, Sizes

_WHOLE = {"int32": "i32", "int64": "i64"}


@dataclass(slots=True, kw_only=True)
class Buffer:
    """One tensor of a call: where it lies and what its storage held before."""

    param: Param
    label: str  # e.g. "input", "tensors[2]"
    dtype: str
    layout: Layout
    before: Array  # the storage's words
    expected: Array | None  # the values after the call; None for inputs
    source: Array | None  # what was written into the view before; parameters that share it share the tensor
    scratch: bool = False  # the function may leave anything in it

    @property
    def unwritten(self) -> bool:
        """Whether nobody has put values there before the call."""
        return self.source is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A handle that the function fills, and the tensor that it should lead to."""

    param: Param
    label: str  # e.g. "out", "outlist[1]"
    dtype: str
    expected: Array | None  # None where there should be no tensor


@dataclass(slots=True, kw_only=True)
class Prepared:
    """Everything about one call but the library."""

    case: Case
    function: Function
    values: Values  # numpy, by parameter
    forward: Values | None  # of a backward function: what its forward was given
    expected: dict[str, Any]  # numpy, by written parameter
    buffers: list[Buffer]
    request: dict[str, Any]
    strides: dict[str, Sizes]  # of tensors that the function allocates in a memory order it was asked for
    terms: Callable[[], dict[str, Terms]]  # of its outputs; it takes a while

    @property
    def blobs(self) -> list[bytes]:
        return [b.before.tobytes() for b in self.buffers]

    @property
    def slots(self) -> list[Slot]:
        """What the function allocates, in the order of its handles; one parameter may have room for several."""
        return [
            slot
            for param in self.function.params
            if param.passing == "tensor*"
            for slot in _slots(param, self.case.dtypes[param.name], self.expected[param.name])
        ]


def _slots(param: Param, dtype: str, expected: Any) -> list[Slot]:
    """Of several tensors behind one parameter only the first has its type for sure: whole numbers have their own."""
    if not isinstance(expected, list):
        return [Slot(param=param, label=param.name, dtype=dtype, expected=expected)]
    return [
        Slot(param=param, label=f"{param.name}[{i}]", dtype=_WHOLE.get(e.dtype.name, dtype), expected=e)
        for i, e in enumerate(expected)
    ]
