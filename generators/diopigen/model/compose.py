"""The statements of `compose:`, as a schema writes them."""

from dataclasses import dataclass

from diopigen.diagnostics import Span
from diopigen.model.expr import Expr
from diopigen.model.type import Shape, TensorType

OF_TENSORS = ("numel", "size", "rank")  # functions of the host whose first argument is a tensor

Operand = Expr | tuple[Expr, ...]  # a name, a number, or a list of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Temporary:
    """A tensor that lives as long as the call. ex) "product: Tensor<T> like input"."""

    name: str  # ex) "product"
    type: TensorType
    shape: Shape  # ex) broadcast(input, other)
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """What stands in one place of a call."""

    name: str | None  # ex) "alpha" for "alpha=2"; None: by its place
    value: Operand
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call as written. ex) "mul(product, input, other)"."""

    callee: str  # ex) "mul", an op, or "diopiMulInp"
    args: tuple[Argument, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Statements that run only where the host finds a condition true. ex) "if bias"."""

    condition: Expr
    then: tuple["Statement", ...]
    otherwise: tuple["Statement", ...]
    span: Span


Statement = Temporary | Step | Choice
