"""The table of operators that the generator writes beside the vendor's libraries."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

from diopigen.atomic import MALFORMED
from diopigen.records.codec import OtherVersion, read_record
from diopigen.records.operators import Function, KernelText, Operator, Operators

Read = TypeVar("Read")


class NoTable(Exception):
    """The vendor was built without a compiler's table; the message is one sentence."""


def overload_of(name: str) -> str:
    """What the table calls an operator of ATen, e.g. "relu" for "aten.relu.default"."""
    return name.removeprefix("aten.").removesuffix(".default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    functions: dict[str, Function]
    kernels: dict[str, KernelText]
    operators: dict[str, Operator]
    separate_elements: tuple[str, ...]
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


def read(kind: type[Read], path: Path, named: str) -> Read:
    """What the generator wrote beside the libraries. Raises NoTable: it is missing, damaged or of another version."""
    with whole(path):
        try:
            return read_record(kind, path)
        except OSError as error:
            raise NoTable(f"there {named} at {path}: run `make build`") from error
        except OtherVersion as other:
            message = f"{path} is of version {other.found}, this compiler reads {other.wanted}: run `make build`"
            raise NoTable(message) from None


@cache
def table(path: Path) -> Table:
    """Raises NoTable when the file is missing, damaged or of another version."""
    found = read(Operators, path, "is no table of operators")
    return Table(
        functions=found.functions,
        kernels=found.kernels | OWN_KERNELS,
        operators=found.operators,
        separate_elements=found.separate_elements,
        digest=hashlib.sha256(path.read_bytes()).hexdigest(),
    )


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Raises NoTable where what is read of a file of the build has another form than the build gives it."""
    try:
        yield
    except MALFORMED as error:
        raise NoTable(f"{path} is damaged ({error}): run `make build`") from None
