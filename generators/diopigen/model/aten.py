"""ATen operators and how they reach the functions of the contract."""

from dataclasses import dataclass
from enum import Enum

from diopigen.diagnostics import Span
from diopigen.model.expr import Expr
from diopigen.model.op import Literal, word


class Provision(Enum):
    """How torch provides an overload when the backend registers nothing for it."""

    STRUCTURED = "structured"  # the out form of a structured group
    DELEGATE = "delegate"  # the functional or in-place form of a structured group
    COMPOSITE = "composite"  # torch decomposes it
    PLAIN = "plain"  # a kernel with its own shape rule is needed


@dataclass(frozen=True, slots=True, kw_only=True)
class AtenArg:
    """One argument of an ATen schema."""

    name: str  # e.g. "self"
    type: str  # e.g. "Tensor?", as the schema prints it
    default: str | None  # e.g. "1"
    keyword: bool  # after the star
    out: bool  # an argument of an out= form
    mutated: bool  # e.g. True for "Tensor(a!)"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtenReturn:
    """One return of an ATen schema."""

    name: str | None  # e.g. "values"
    type: str  # e.g. "Tensor"
    alias: bool  # e.g. True for "Tensor(a!)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """How C++ spells an overload: the kernel that a backend registers, and the calls that it makes of torch."""

    operator: str  # e.g. "add_Tensor", the struct in at::_ops
    header: str  # e.g. "add": the stem of ATen/ops/add_ops.h
    returns: str  # e.g. "at::Tensor"
    params: tuple[tuple[str, str], ...]  # e.g. (("const at::Tensor &", "self"),): type, name
    redispatch: tuple[str, ...]  # e.g. ("self", "c10::fromIntArrayRefSlow(size)"), for at::_ops::X::redispatch
    meta: str | None  # e.g. "add_Tensor": at::meta::structured_add_Tensor; None outside structured groups
    meta_args: tuple[str, ...]  # e.g. ("self", "other", "alpha"), for the meta function
    iterator: bool  # the meta class is a TensorIterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """One ATen operator of the installed torch."""

    name: str  # e.g. "add.out"
    args: tuple[AtenArg, ...]
    returns: tuple[AtenReturn, ...]
    provision: Provision
    group: str | None  # e.g. "add.out": the structured group's primary overload
    composite_kernel: bool  # torch has a composite kernel that beats a boxed fallback
    implicit: bool  # its composite kernel carries the derivative: a backend that overrides it loses autograd
    view: bool  # the result aliases an input
    host: bool  # torch has a kernel for the CPU
    cpp: Signature
    one_device: bool = False  # torch's wrapper for a device refuses tensors of two devices, numbers on the CPU too
    pointwise: bool = False  # an element of the result depends on those at its place alone, by torch's own tag

    @property
    def inplace(self) -> bool:
        """It writes an argument of its own, as `add_.Tensor` does, and has no out= argument."""
        return any(a.mutated and not a.out for a in self.args) and not any(a.out for a in self.args)

    @property
    def overrideable(self) -> bool:
        """Only a backend computes it, e.g. `convolution_overrideable`: torch's own kernel refuses."""
        return self.name.partition(".")[0].endswith("_overrideable")

    def arg(self, name: str) -> AtenArg | None:
        return next((a for a in self.args if a.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """An overload as a supported release of torch declares it."""

    release: str  # e.g. "2.12"
    overload: str  # e.g. "add.out"
    schema: str  # e.g. "relu(Tensor self) -> Tensor"
    args: tuple[AtenArg, ...]
    returns: tuple[AtenReturn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """An overload that is left out, since the installed torch lacks it or declares it otherwise."""

    overload: str  # e.g. "add.out"
    op: str | None  # e.g. "add"; None for an operator that no function computes at once
    reason: str  # e.g. "torch 2.14 has no such operator; it is known of torch 2.13"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One function that a binding may reach, and from where each of its parameters comes."""

    symbol: str  # e.g. "diopiAdd"
    args: tuple[tuple[str, "Source"], ...]  # C parameter, source; in C order
    require: tuple[tuple[str, Literal], ...]  # ATen argument, value
    op: str = ""  # e.g. "add": whose clause it is
    shapes: tuple[tuple[str, Expr], ...] = ()  # e.g. (("bias_sizes", AtenCall),): what only outputs need
    scalar_tensor: str | None = None  # e.g. "other": only when this tensor is a 0-d one on the CPU
    rounds: tuple[str, ...] = ()  # e.g. ("other",): numbers that are of the dtype of the tensors that they meet
    raises: Expr | None = None  # e.g. Name("IndexError"): where a position is out of range
    ranks: tuple[tuple[str, int], ...] = ()  # e.g. (("input", 4),): ATen argument, its only number of dimensions
    # e.g. (("running_mean", 3),): C parameter that is updated, the result that has its new value
    updates: tuple[tuple[str, int], ...] = ()
    when: tuple[Expr, ...] = ()  # of ATen arguments; all must hold
    permute: tuple[int, ...] = ()  # e.g. (0, 2, 1, 3): of tensors with so many dimensions, where ATen has each
    # e.g. (("gen", (FromArg("dropout_p"), FromReturn(6), FromReturn(7))),): a generator, the probability that draws
    # nothing where it is zero, and seed and offset behind the call: results of the forward operator, arguments of the
    # backward
    draws: tuple[tuple[str, tuple["FromArg | FromReturn", ...]], ...] = ()

    @property
    def conditions(self) -> tuple[tuple[str, str], ...]:
        """ATen arguments, each with what must hold of it, e.g. (("input", "is 4-dimensional"),)."""
        numbers = () if self.scalar_tensor is None else ((self.scalar_tensor, "is a number on the CPU"),)
        values = tuple((name, f"is {word(value)}") for name, value in self.require)
        return (*values, *((name, f"is {rank}-dimensional") for name, rank in self.ranks), *numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class FromArg:
    """The value of an ATen argument."""

    name: str  # e.g. "self"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class FromReturn:
    """A tensor that the operator returns, freshly allocated or given by out=."""

    index: int  # e.g. 0

    def __str__(self) -> str:
        return f"result {self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FromDerive:
    """A value that ATen does not give, computed by the schema's `derive` expression."""

    expr: Expr

    def __str__(self) -> str:
        return str(self.expr)


@dataclass(frozen=True, slots=True, kw_only=True)
class FromLiteral:
    """The schema's default, for a parameter that ATen does not have."""

    value: Literal  # e.g. 1

    def __str__(self) -> str:
        return word(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """A null handle or pointer: the parameter is optional and ATen has nothing for it."""

    def __str__(self) -> str:
        return "absent"


Source = FromArg | FromReturn | FromDerive | FromLiteral | Absent


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """An overload that the backend registers and the functions behind it, tried in order."""

    overload: Overload
    op: str  # e.g. "add"; the first of several, whose routes exclude each other
    routes: tuple[Route, ...]  # empty with `wrapper`
    wrapper: str | None  # e.g. "optimizer": hand-written in runtime_cpp/torch/ops/optimizer.cpp
    symbols: tuple[str, ...]  # every function that it may reach
    span: Span  # the schema's `aten:` line
    checks: tuple[Expr, ...] = ()  # what the wrapper calls first: it throws where torch refuses the arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class FromParam:
    """The value of a C parameter."""

    name: str  # e.g. "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """A tensor in the common element type, which an output has: to the contract one without dimensions counts, too."""

    name: str  # e.g. "other"
    out: str  # e.g. "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntoParam:
    """The tensor of a C parameter that the operator itself writes."""

    name: str  # e.g. "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeOf:
    """The element type of a C parameter."""

    name: str  # e.g. "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class SameRank:
    """Whether an output has as many dimensions as an input: the caller kept those that were reduced."""

    out: str  # e.g. "out"
    input: str  # e.g. "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """For each output whether the caller asks for it."""

    names: tuple[str, ...]  # e.g. ("grad_input", "grad_weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Always:
    """A value that the schema requires of the operator's argument."""

    value: Literal  # e.g. False


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """PyTorch's own default: no C parameter speaks of the argument."""


Feed = FromParam | Raised | IntoParam | DtypeOf | SameRank | Wanted | Always | Default


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A call serves only where an optional parameter is there, or only where it is not."""

    name: str  # e.g. "dim"
    given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Equals:
    """A call serves only one value of a parameter."""

    name: str  # e.g. "alpha"
    value: Literal  # e.g. 1


Condition = Given | Equals


@dataclass(frozen=True, slots=True, kw_only=True)
class AtenCall:
    """How one ATen operator computes a function: the opposite direction of a Route."""

    overload: Overload
    args: tuple[tuple[AtenArg, Feed], ...]  # every argument of the overload, in its order
    conditions: tuple[Condition, ...]  # all must hold
    results: tuple[tuple[int, str], ...]  # e.g. ((0, "out"),): returned tensors that are copied into parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls behind one function, tried in order."""

    symbol: str  # e.g. "diopiAny"
    calls: tuple[AtenCall, ...]  # those before the last have conditions
    span: Span  # the schema's `aten:` line, or the op where its own name told

    @property
    def complete(self) -> bool:
        """One of the calls serves whatever the parameters are."""
        sets = [c.conditions for c in self.calls]
        opposite = [s[0] for s in sets if len(s) == 1 and isinstance(s[0], Given)]
        both = {(g.name, g.given) for g in opposite}
        return not sets[-1] or any((name, not given) in both for name, given in both)


class Way(Enum):
    """How C++ names an operator of torch."""

    STRUCT = "struct"  # at::_ops::add_Tensor
    CALL = "call"  # at::add(...), or x.add(...)
    NAME = "name"  # at::native::add, or "add.Tensor" in a registration


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """An operator that hand-written C++ names, where it first stands in its item."""

    name: str  # e.g. "add_Tensor" of a struct, "add" of a call, "add.Tensor" of a registration
    way: Way
    count: int  # of the arguments of a call
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenItem:
    """A function, a type or a variable of a hand-written file."""

    name: str  # e.g. "softplus"; empty where nothing can refer to it
    words: frozenset[str]  # all that it may refer to
    mentions: tuple[Mention, ...]
    place: tuple[int, int]  # in the text of the file: the first character, and behind the last


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One kernel that a hand-written file registers, for one or more overloads."""

    words: frozenset[str]  # e.g. {"derived", "softplus"}: what it refers to in the file
    mentions: tuple[Mention, ...]  # what it needs of torch beside its overloads
    overloads: tuple[tuple[Mention, tuple[int, int]], ...]  # each with its place in the text
    place: tuple[int, int]  # of all that goes where no overload is left
    statement: tuple[int, int]  # that it is a part of


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A hand-written C++ file of the PyTorch backend, and what it names of torch."""

    path: str  # e.g. "runtime_cpp/torch/derived/padding.cpp"
    stem: str  # e.g. "padding": `register_padding`, or `derive_padding`
    derives: bool  # it derives operators, rather than serving a `wrapper` of the schemas
    listed: bool  # the generated registration calls it, if it registers anything
    text: str
    headers: tuple[
        tuple[str, tuple[int, int]], ...
    ]  # e.g. (("add", place),): the lines of ATen/ops/add_ops.h and add.h
    items: tuple[WrittenItem, ...]  # but for those that register
    registrations: tuple[Registration, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A hand-written file without what does not fit the installed torch."""

    path: str  # e.g. "runtime_cpp/torch/derived/padding.cpp"
    text: str  # empty if nothing is left
