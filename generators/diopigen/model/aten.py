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

    name: str  # ex) "self"
    type: str  # ex) "Tensor?", as the schema prints it
    default: str | None  # ex) "1"
    keyword: bool  # after the star
    out: bool  # an argument of an out= form
    mutated: bool  # ex) True for "Tensor(a!)"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtenReturn:
    """One return of an ATen schema."""

    name: str | None  # ex) "values"
    type: str  # ex) "Tensor"
    alias: bool  # ex) True for "Tensor(a!)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """How C++ spells an overload: the kernel that a backend registers, and the calls that it makes of torch."""

    operator: str  # ex) "add_Tensor", the struct in at::_ops
    header: str  # ex) "add": the stem of ATen/ops/add_ops.h
    returns: str  # ex) "at::Tensor"
    params: tuple[tuple[str, str], ...]  # ex) (("const at::Tensor &", "self"),): type, name
    redispatch: tuple[str, ...]  # ex) ("self", "c10::fromIntArrayRefSlow(size)"), for at::_ops::X::redispatch
    meta: str | None  # ex) "add_Tensor": at::meta::structured_add_Tensor; None outside structured groups
    meta_args: tuple[str, ...]  # ex) ("self", "other", "alpha"), for the meta function
    iterator: bool  # the meta class is a TensorIterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Overload:
    """One ATen operator of the installed torch."""

    name: str  # ex) "add.out"
    args: tuple[AtenArg, ...]
    returns: tuple[AtenReturn, ...]
    provision: Provision
    group: str | None  # ex) "add.out": the structured group's primary overload
    composite_kernel: bool  # torch has a composite kernel that beats a boxed fallback
    implicit: bool  # its composite kernel carries the derivative: a backend that overrides it loses autograd
    view: bool  # the result aliases an input
    host: bool  # torch has a kernel for the CPU
    cpp: Signature
    one_device: bool = False  # torch's wrapper for a device refuses tensors of two devices, numbers on the CPU too

    @property
    def inplace(self) -> bool:
        """It writes an argument of its own, as `add_.Tensor` does, and has no out= argument."""
        return any(a.mutated and not a.out for a in self.args) and not any(a.out for a in self.args)

    def arg(self, name: str) -> AtenArg | None:
        return next((a for a in self.args if a.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """An overload as a supported release of torch declares it."""

    release: str  # ex) "2.12"
    overload: str  # ex) "add.out"
    schema: str  # ex) "relu(Tensor self) -> Tensor"
    args: tuple[AtenArg, ...]
    returns: tuple[AtenReturn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drifted:
    """An overload that is left out, since the installed torch lacks it or declares it otherwise."""

    overload: str  # ex) "add.out"
    op: str | None  # ex) "add"; None for an operator that no function computes at once
    reason: str  # ex) "torch 2.14 has no such operator; it is known of torch 2.13"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One function that a binding may reach, and from where each of its parameters comes."""

    symbol: str  # ex) "diopiAdd"
    args: tuple[tuple[str, "Source"], ...]  # C parameter, source; in C order
    require: tuple[tuple[str, Literal], ...]  # ATen argument, value
    shapes: tuple[tuple[str, Expr], ...] = ()  # ex) (("bias_sizes", Call),): what only outputs need
    scalar_tensor: str | None = None  # ex) "other": only when this tensor is a 0-d one on the CPU
    raises: Expr | None = None  # ex) Name("IndexError"): where a position is out of range
    ranks: tuple[tuple[str, int], ...] = ()  # ex) (("input", 4),): ATen argument, its only number of dimensions
    # ex) (("running_mean", 3),): C parameter that is updated, the result that has its new value
    updates: tuple[tuple[str, int], ...] = ()
    when: tuple[Expr, ...] = ()  # of ATen arguments; all must hold
    permute: tuple[int, ...] = ()  # ex) (0, 2, 1, 3): of tensors with so many dimensions, where ATen has each
    undrawn: tuple[str, ...] = ()  # ex) ("gen",): generators that the function draws nothing from


@dataclass(frozen=True, slots=True, kw_only=True)
class FromArg:
    """The value of an ATen argument."""

    name: str  # ex) "self"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class FromReturn:
    """A tensor that the operator returns, freshly allocated or given by out=."""

    index: int  # ex) 0

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

    value: Literal  # ex) 1

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
    op: str  # ex) "add"
    routes: tuple[Route, ...]  # empty with `wrapper`
    wrapper: str | None  # ex) "optimizer": hand-written in runtime_cpp/torch/ops/optimizer.cpp
    symbols: tuple[str, ...]  # every function that it may reach
    span: Span  # the schema's `aten:` line
    checks: tuple[Expr, ...] = ()  # what the wrapper calls first: it throws where torch refuses the arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class FromParam:
    """The value of a C parameter."""

    name: str  # ex) "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """A tensor in the common element type, which an output has: to the contract one without dimensions counts, too."""

    name: str  # ex) "other"
    out: str  # ex) "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntoParam:
    """The tensor of a C parameter that the operator itself writes."""

    name: str  # ex) "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeOf:
    """The element type of a C parameter."""

    name: str  # ex) "out"


@dataclass(frozen=True, slots=True, kw_only=True)
class SameRank:
    """Whether an output has as many dimensions as an input: the caller kept those that were reduced."""

    out: str  # ex) "out"
    input: str  # ex) "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """For each output whether the caller asks for it."""

    names: tuple[str, ...]  # ex) ("grad_input", "grad_weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Always:
    """A value that the schema requires of the operator's argument."""

    value: Literal  # ex) False


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """PyTorch's own default: no C parameter speaks of the argument."""


Feed = FromParam | Raised | IntoParam | DtypeOf | SameRank | Wanted | Always | Default


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A call serves only where an optional parameter is there, or only where it is not."""

    name: str  # ex) "dim"
    given: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Equals:
    """A call serves only one value of a parameter."""

    name: str  # ex) "alpha"
    value: Literal  # ex) 1


Condition = Given | Equals


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """How one ATen operator computes a function: the opposite direction of a Route."""

    overload: Overload
    args: tuple[tuple[AtenArg, Feed], ...]  # every argument of the overload, in its order
    conditions: tuple[Condition, ...]  # all must hold
    results: tuple[tuple[int, str], ...]  # ex) ((0, "out"),): returned tensors that are copied into parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The calls behind one function, tried in order."""

    symbol: str  # ex) "diopiAny"
    calls: tuple[Call, ...]  # those before the last have conditions
    span: Span  # the schema's `aten:` line, or the op where its own name told

    @property
    def complete(self) -> bool:
        """One of the calls serves whatever the parameters are."""
        sets = [c.conditions for c in self.calls]
        opposite = [s[0] for s in sets if len(s) == 1 and isinstance(s[0], Given)]
        both = {(g.name, g.given) for g in opposite}
        return not sets[-1] or any((name, not given) in both for name, given in both)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A hand-written C++ file of the PyTorch backend, and what it names of torch, each where it first stands."""

    path: str  # ex) "runtime_cpp/torch/derived/padding.cpp"
    stem: str  # ex) "padding": `register_padding`, or `derive_padding`
    derives: bool  # it derives operators, rather than serving a `wrapper` of the schemas
    operators: tuple[tuple[str, Span], ...]  # ex) (("add_Tensor", span),): the structs of at::_ops
    headers: tuple[tuple[str, Span], ...]  # ex) (("add", span),): the stems of ATen/ops/add.h and add_ops.h
    registers: tuple[str, ...]  # ex) ("trunc_out",): the structs of the operators that it derives
