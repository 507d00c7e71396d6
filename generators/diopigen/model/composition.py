"""Functions composed of other functions: the calls that the statements of a schema become."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from diopigen.diagnostics import Span
from diopigen.model.compose import Operand, Temporary
from diopigen.model.expr import Expr
from diopigen.model.op import Param


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """A tensor of no dimension that holds a number, where a function takes tensors only."""

    value: Expr  # e.g. 0
    like: str  # e.g. "input": the tensor whose dtype it takes
    widened: bool  # a fraction makes a float of an integer's dtype, as it would in an expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A null handle or pointer."""


Passed = Operand | Fill | Absent


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCall:
    """A call of one C function, with what stands for each of its parameters."""

    symbol: str  # e.g. "diopiMul"
    args: tuple[tuple[Param, Passed], ...]  # in C order, the context and counts left out
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Calls that run only where the host finds a condition true."""

    condition: Expr
    then: tuple["Action", ...]
    otherwise: tuple["Action", ...]


Action = Temporary | StepCall | Branch


class Source(Enum):
    """What a composition follows from, best first."""

    WRITTEN = "compose"  # the schema's `compose:` lines
    KERNEL = "kernel"  # the schema's `kernel:` line
    SCALAR = "tensor form"  # the form with a tensor, which a number fills
    INPLACE = "out form"  # the form with an output, copied back
    OUT = "in-place form"  # a copy that the in-place form changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """One way to compose a function."""

    symbol: str  # e.g. "diopiLinear"
    source: Source
    actions: tuple[Action, ...]

    @property
    def parts(self) -> tuple[str, ...]:
        """The functions that it calls, each once, in order."""
        return tuple(dict.fromkeys(_symbols(self.actions)))


def _symbols(actions: tuple[Action, ...]) -> Iterator[str]:
    for action in actions:
        match action:
            case StepCall():
                if any(isinstance(passed, Fill) for _, passed in action.args):
                    yield "diopiFill"
                yield action.symbol
            case Branch():
                yield from _symbols(action.then)
                yield from _symbols(action.otherwise)
            case Temporary():
                pass
