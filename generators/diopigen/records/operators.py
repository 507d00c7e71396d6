"""operators.json: which function serves an overload, from where its parameters come, and its kernel."""

from dataclasses import dataclass
from typing import Any

Tree = tuple[Any, ...]  # e.g. ("+", ("name", "self"), ("number", "1")): a word and what it is of


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A parameter of a C function; `count` parameters follow the last list that names them."""

    name: str  # e.g. "alpha"
    c: str  # e.g. "const diopiScalar_t*"
    role: str  # e.g. "in"
    kind: str  # "tensor", or the word of the schema: e.g. "Scalar"
    optional: bool
    many: bool
    length: int | None  # e.g. 2 for "int[2]"
    count: str | None  # e.g. "num_inputs"
    element: str | None  # e.g. "T", "promote(T, U)", "i64"
    default: Any  # e.g. 1; of a number that ATen may leave out
    layouts: tuple[str, ...]  # e.g. ("NHWC",): the only memory orders that the vendor takes; others are converted


@dataclass(frozen=True, slots=True, kw_only=True)
class InplaceFunction:
    """The function that does the same in the memory of one input, with the same parameters but the output."""

    symbol: str  # e.g. "diopiScatterInp"
    signature: str
    param: str  # e.g. "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    signature: str  # e.g. "diopiError_t diopiRelu(diopiContextHandle_t ctx, ...)"
    params: tuple[Param, ...]
    elements: dict[str, tuple[str, ...]]  # e.g. {"T": ("f16", "f32")}
    layouts: tuple[str, ...]  # e.g. ("NCHW", "NHWC"): the memory orders that the operator knows of
    innermost: tuple[str, ...]  # e.g. ("f16",): the element types whose images the vendor wants with channels innermost
    inplace: InplaceFunction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One function that may serve an overload."""

    symbol: str
    sources: dict[str, Tree]  # e.g. {"input": ("arg", "self"), "alpha": ("literal", "1")}
    require: dict[str, Any]  # e.g. {"transposed": False}
    scalar_tensor: str | None  # e.g. "other": only where this tensor is a 0-d one of the host
    ranks: dict[str, int]  # e.g. {"input": 4}: the only number of dimensions that the argument may have
    rounds: tuple[str, ...]  # e.g. ("other",): the numbers that are rounded to the halves that they meet
    updates: dict[str, int]  # e.g. {"running_mean": 3}: the result that is the parameter's new value
    when: tuple[Tree, ...]  # what must hold of the operator's arguments
    permute: tuple[int, ...]  # e.g. (0, 2, 1, 3): of tensors with so many dimensions, where the operator has each
    # e.g. {"gen": (("arg", "dropout_p"), ("return", 6), ("return", 7))}: the probability that draws nothing where it is
    # zero, and seed and offset behind the call: results of the forward operator, arguments of the backward
    draws: dict[str, tuple[Tree, Tree, Tree]]

    def results(self) -> set[int]:
        """The results that the function writes, by number."""
        returned = (source[1] for source in self.sources.values() if source[0] == "return")
        return {*returned, *self.updates.values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What the host decides once for all elements: a comparison of an argument, or whether it is there."""

    name: str  # e.g. "approximate_is_tanh"
    param: str  # e.g. "approximate"
    equals: str | None  # e.g. "tanh", or the C enumerator; None: that the argument is given


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """An elementwise expression as a C++ function over one compute type C."""

    params: tuple[str, ...]  # e.g. ("input", "other", "alpha"), then the conditions
    conditions: tuple[Condition, ...]
    body: str  # e.g. "static_cast<C>(input + alpha * other)"
    boolean: bool  # it gives bool
    floating: bool  # integers become floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    op: str  # e.g. "add"
    kernel: str | None  # the key of the kernel
    reduce: str | None  # e.g. "sum": a fold of the elements along "dim", or of all where there is no such argument
    routes: tuple[Route, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """operators.json."""

    version: int = 7
    functions: dict[str, Function]
    kernels: dict[str, KernelText]  # by the op's name, "<op>.backward" for its gradient
    operators: dict[str, Operator]  # by the overload, e.g. "add.Tensor"
    separate_elements: tuple[str, ...]  # e.g. ("batch_norm",): ops whose elementwise part the vendor wants in loops
