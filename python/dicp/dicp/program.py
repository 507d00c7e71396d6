"""What a compiled program is: memory, views of it, and instructions in order. A pass takes one and gives the next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TypeAlias

import sympy
import torch

NAMESPACES = ("aten", "prims")  # of operators that do nothing but what their schema says, e.g. no communication

Dim: TypeAlias = int | sympy.Expr  # a length, stride or offset: a number, or what follows from the symbols


class RootKind(Enum):
    """Whose memory a root is."""

    INPUT = "input"  # that of an argument
    ARENA = "arena"  # a part of the program's own
    OUTPUT = "output"  # the caller's, allocated for each run
    ISLAND = "island"  # what an operator of the framework returned
    CONSTANT = "constant"  # of a tensor that the program brings along
    ZEROS = "zeros"  # what the program keeps of zeros, which nobody writes
    SLOT = "slot"  # a tensor that only islands touch: of another device, or of sizes that only data decide


@dataclass(slots=True, kw_only=True, eq=False)
class Root:
    """A block of memory. What shares memory has one root: that is all that a program knows of aliases."""

    kind: RootKind
    index: int = 0  # of an input: which argument; of a constant: which one; of a slot: an argument, constant, or -1
    bytes: Dim = 0
    offset: Dim = 0  # in the arena, as the memory plan says; of a slot: where an argument or constant is put

    @property
    def is_given(self) -> bool:
        """Whether it is an argument's or a constant's, of which several may share memory that nobody writes."""
        return self.kind in (RootKind.INPUT, RootKind.CONSTANT) or (self.kind is RootKind.SLOT and self.index >= 0)

    def may_be(self, other: "Root") -> bool:
        """Whether tensors of one storage may lie over the two."""
        return self is other or self.is_given or other.is_given


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """A tensor over a root; strides and the offset count elements."""

    root: Root
    dtype: torch.dtype
    sizes: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim = 0
    conjugate: bool = False  # who reads it takes the conjugate of what lies there
    negative: bool = False  # or the negative
    slot: int = -1  # of a tensor that only islands touch: its number, and nothing else is known of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """A number inside a kernel or a call."""

    value: bool | int | float | sympy.Expr


class Index:
    """The row-major number of an element in its kernel's loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One elementwise expression of a kernel: what it reads, and in which type it computes."""

    kernel: str  # e.g. "add", of the table of operators; "copy" and "arange" are the compiler's own
    operands: "tuple[Operand, ...]"  # in the order of the kernel's parameters
    compute: torch.dtype  # e.g. torch.float32
    dtype: torch.dtype  # of the result, which a store rounds to
    rounds: bool  # an operator that only changes the dtype: what it drops is gone
    name: str  # e.g. "add_3", the node of the graph
    fold: bool = False  # a reduction along the loop's last dimension: `kernel` is a fold of reduction/folds.h

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


Operand: TypeAlias = View | Step | Scalar | Index


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernel:
    """A fused loop over `sizes`: each result is a step and the view that it is stored to."""

    sizes: tuple[Dim, ...]
    results: list[tuple[View, Step]]
    names: list[str] = field(default_factory=list)

    @property
    def folds(self) -> bool:
        """It reduces rows: the last dimension of the loop is not joined with others."""
        return any(step.fold for step in self.steps)

    @property
    def counts(self) -> bool:
        """It computes with the number of an element, which is that of this loop."""
        return any(isinstance(operand, Index) for step in self.steps for operand in step.operands)

    @cached_property
    def reads(self) -> tuple[View, ...]:
        found: dict[int, View] = {}
        for step in self.steps:
            for operand in step.operands:
                if isinstance(operand, View):
                    found[id(operand)] = operand
        return tuple(found.values())

    @property
    def writes(self) -> tuple[View, ...]:
        return tuple(view for view, _ in self.results)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every step once, operands before what reads them."""
        seen: set[int] = set()
        return tuple(each for _, step in self.results for each in _ordered(step, seen))


def _ordered(step: Step, seen: set[int]) -> Iterator[Step]:
    stack: list[tuple[Step, bool]] = [(step, False)]
    while stack:
        current, ready = stack.pop()
        if ready:
            yield current
        elif id(current) not in seen:
            seen.add(id(current))
            stack.append((current, True))
            stack.extend((operand, False) for operand in reversed(current.operands) if isinstance(operand, Step))


@dataclass(frozen=True, slots=True, kw_only=True)
class CallArgument:
    """An argument of a function of the vendor's library."""

    kind: str  # e.g. "tensor", "tensors", "Scalar", "int", "sizes", "generator", "stored generator", "undrawn", "null"
    value: object = None  # views (of a generator seed and offset behind the call), numbers or texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Inplace:
    """The function that does what a call does in the memory of what it reads, without the argument that it writes."""

    symbol: str  # e.g. "diopiScatterInp"
    read: int  # which argument of the call
    written: int


@dataclass(slots=True, kw_only=True, eq=False)
class LibraryCall:
    """A function of the vendor's library."""

    symbol: str  # e.g. "diopiMm"
    arguments: tuple[CallArgument, ...]
    reads: tuple[View, ...]
    writes: tuple[View, ...]
    inplace: Inplace | None = None
    substitute: "Island | None" = None  # the eager operator, where the library refuses the call
    names: list[str] = field(default_factory=list)

    @property
    def random(self) -> bool:
        return any(argument.kind == "generator" for argument in self.arguments)

    @property
    def state(self) -> tuple[View | None, View | None]:
        """Where seed and offset of the generator are kept as the call leaves it, if they are."""
        kept = [argument.value for argument in self.arguments if argument.kind == "generator"]
        return next((value for value in kept if isinstance(value, tuple)), (None, None))

    def inplace_views(self) -> tuple[View, View] | None:
        """What the function in place reads and writes, if there is one and nothing else touches that memory."""
        if self.inplace is None:
            return None
        read, written = (self.arguments[at].value for at in (self.inplace.read, self.inplace.written))
        assert isinstance(read, View) and isinstance(written, View)
        reads = [view for view in self.reads if view.root in (read.root, written.root)]
        return (read, written) if len(reads) == len(self.writes) == 1 else None


@dataclass(slots=True, kw_only=True, eq=False)
class Island:
    """An operator of the framework, called without Python where the program cannot run it itself.

    Of those beyond torch's own nobody knows when they are done, and what they do to others: they stay in their order,
    and what they read has memory of its own.
    """

    operator: str  # e.g. "aten::nonzero"
    overload: str
    arguments: tuple[CallArgument, ...]
    reads: tuple[View, ...]
    writes: tuple[View, ...]  # what it mutates, then what it returns
    results: tuple[View | None, ...]
    reason: str  # e.g. "no binding"
    random: bool = False
    names: list[str] = field(default_factory=list)

    @property
    def foreign(self) -> bool:
        return self.operator.partition("::")[0] not in NAMESPACES


Instruction = Kernel | LibraryCall | Island


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run returns at one place."""

    kind: str  # "view", "argument", "number" or "nothing"
    value: View | int | Dim | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Instructions on several streams, by instruction."""

    streams: tuple[int, ...]  # 0: that of whoever runs the program
    waits: tuple[tuple[int, ...], ...]  # for instructions of other streams
    before: tuple[int, ...]  # those that are over when it begins, as bits


@dataclass(slots=True, kw_only=True)
class Program:
    """A graph, ready to be optimized and emitted."""

    device: torch.device
    arguments: int
    symbols: dict[sympy.Symbol, int]  # the argument that is the symbol's value
    instructions: list[Instruction]
    results: list[Result]
    constants: list[torch.Tensor] = field(default_factory=list)
    values: dict[str, View] = field(default_factory=dict)  # by the name of the graph's node
    slots: int = 0  # how many tensors only islands touch
    arena_bytes: Dim = 0
    unplanned_bytes: Dim = 0  # the sum of what the arena holds
    launches_unfused: int = 0
    schedule: Schedule | None = None  # None: one behind the other

    def views(self) -> Iterator[View]:
        """Every view that an instruction or a result names, each once."""
        seen: set[int] = set()
        named = (view for i in self.instructions for view in (*i.reads, *i.writes))
        returned = (r.value for r in self.results if isinstance(r.value, View))
        for view in (*named, *returned):
            if id(view) not in seen:
                seen.add(id(view))
                yield view

    def roots(self) -> Sequence[Root]:
        return list({id(view.root): view.root for view in self.views()}.values())

    def lives(self) -> dict[int, tuple[int, int]]:
        """By the id of a root: the first and the last instruction that touches it."""
        return {root: (_lowest(bits), bits.bit_length() - 1) for root, bits in self.touches().items()}

    def touches(self) -> dict[int, int]:
        """By the id of a root: the instructions that touch it, as bits."""
        found: dict[int, int] = {}
        for at, instruction in enumerate(self.instructions):
            for view in (*instruction.reads, *instruction.writes):
                found[id(view.root)] = found.get(id(view.root), 0) | 1 << at
        return found

    def before(self, at: int) -> int:
        """The instructions that are over when one begins, as bits."""
        return (1 << at) - 1 if self.schedule is None else self.schedule.before[at]


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def product(sizes: Sequence[Dim]) -> Dim:
    """The number of elements."""
    result: Dim = 1
    for size in sizes:
        result = result * size
    return result


def extent(sizes: Sequence[Dim], strides: Sequence[Dim]) -> Dim:
    """Elements from the first to behind the last; none of an empty tensor, as far as that is known."""
    if any(isinstance(size, int) and size == 0 for size in sizes):
        return 0
    last: Dim = 1
    for size, stride in zip(sizes, strides, strict=True):
        last = last + (size - 1) * stride
    return last
