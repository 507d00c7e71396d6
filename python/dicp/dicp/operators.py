"""The table of operators that the generator writes beside the vendor's libraries."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from diopigen.malformed import MALFORMED
from diopigen.typed import typed

TABLE_VERSION = 4


class NoTable(Exception):
    """The vendor was built without a compiler's table; the message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A parameter of a function of the contract."""

    name: str
    c: str
    role: str
    kind: str
    optional: bool
    many: bool
    length: int | None
    count: str | None
    element: str | None
    default: Any
    layouts: tuple[str, ...]  # e.g. ("NHWC",): the only memory orders that the vendor takes; others are converted


@dataclass(frozen=True, slots=True, kw_only=True)
class InplaceFunction:
    """Does the same in the memory of one input, with the same parameters but the output."""

    symbol: str
    signature: str
    param: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    signature: str
    params: tuple[Param, ...]
    elements: dict[str, tuple[str, ...]]
    layouts: tuple[str, ...]  # e.g. ("NCHW", "NHWC"): the memory orders that the operator knows of
    inplace: InplaceFunction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    symbol: str
    sources: dict[str, list[Any]]
    require: dict[str, Any]
    scalar_tensor: str | None
    ranks: dict[str, int]  # e.g. {"input": 4}: the only number of dimensions that the argument may have
    updates: dict[str, int]  # e.g. {"running_mean": 3}: the result that is the parameter's new value
    when: list[list[Any]]  # what must hold of the operator's arguments
    permute: list[int]  # e.g. [0, 2, 1, 3]: of tensors with so many dimensions, where the operator has each
    undrawn: list[str]  # e.g. ["gen"]: generators that the function draws nothing from

    def results(self) -> set[int]:
        """The results that the function writes, by number."""
        returned = (source[1] for source in self.sources.values() if source[0] == "return")
        return {*returned, *self.updates.values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    name: str
    param: str
    equals: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """An elementwise expression as C++ over one compute type C."""

    params: tuple[str, ...]
    conditions: tuple[Condition, ...]
    body: str
    boolean: bool
    floating: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    op: str
    kernel: str | None
    reduce: str | None  # e.g. "sum"
    routes: tuple[Route, ...]


def overload_of(name: str) -> str:
    """What the table calls an operator of ATen, e.g. "relu" for "aten.relu.default"."""
    return name.removeprefix("aten.").removesuffix(".default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    functions: dict[str, Function]
    kernels: dict[str, KernelText]
    operators: dict[str, Operator]
    digest: str  # of the text, for the cache's key

    def bound(self, name: str) -> Operator | None:
        """How an operator of torch is bound; None for any that is not, e.g. "aten.add.Tensor"."""
        return self.operators.get(overload_of(name)) if name.startswith("aten.") else None

    def signatures(self) -> dict[str, str]:
        """The declaration of every function that a program may call."""
        inplace = (function.inplace for function in self.functions.values() if function.inplace is not None)
        return {f.symbol: f.signature for f in inplace} | {name: f.signature for name, f in self.functions.items()}


# The compiler's own expressions: what torch has as operators of memory and the schemas have as no function.
OWN_KERNELS = {
    "copy": KernelText(params=("input",), conditions=(), body="input", boolean=False, floating=False),
    "arange": KernelText(
        params=("start", "step", "index"),
        conditions=(),
        body="static_cast<C>(start + (index * step))",
        boolean=False,
        floating=False,
    ),
}


@cache
def table(path: Path) -> Table:
    """Raises NoTable when the file is missing, damaged or of another version."""
    import hashlib

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise NoTable(f"there is no table of operators at {path}: run `make build`") from error
    with whole(path):
        read = json.loads(text)
        if read["version"] != TABLE_VERSION:
            raise NoTable(
                f"{path} is of version {read['version']}, this compiler reads {TABLE_VERSION}: run `make build`"
            )
        found = typed(Table, {**read, "digest": hashlib.sha256(text.encode()).hexdigest()})
    return replace(found, kernels=found.kernels | OWN_KERNELS)


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Raises NoTable where what is read of a file of the build has another form than the build gives it."""
    try:
        yield
    except MALFORMED as error:
        raise NoTable(f"{path} is damaged ({error}): run `make build`") from None
