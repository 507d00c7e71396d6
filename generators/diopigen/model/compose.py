"""The statements of `compose:`, as a schema writes them."""

from dataclasses import dataclass

from diopigen.diagnostics import Span
from diopigen.model.expr import Expr
from diopigen.model.type import Shape, TensorType

OF_TENSORS = ("numel", "size", "rank")  # functions of the host whose first argument is a tensor

Operand = Expr | tuple[Expr, ...]  # a name, a number, or a list of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Temporary:
    """A tensor that lives as long as the call. e.g. "product: Tensor<T> like input"."""

    name: str  # e.g. "product"
    type: TensorType
    shape: Shape  # e.g. broadcast(input, other)
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """What stands in one place of a call."""

    name: str | None  # e.g. "alpha" for "alpha=2"; None: by its place
    value: Operand
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call as written. e.g. "mul(product, input, other)"."""

    callee: str  # e.g. "mul", an op, or "diopiMulInp"
    args: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Statements that run only where the host finds a condition true. e.g. "if bias"."""

    condition: Expr
    then: tuple["Statement", ...]
    otherwise: tuple["Statement", ...]
    span: Span


Statement = Temporary | Step | Choice
