"""The expressions of `kernel:` and `derive:`: a typed tree, never text that is pasted."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """An argument of the op, an output of its forward function, or an enumerator of an argument's enum."""

    name: str  # e.g. "input"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A literal; `text` keeps what was written."""

    text: str  # e.g. "0.5", "1e-3", "inf"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A quoted word, only ever compared with an argument of type str."""

    text: str  # e.g. "tanh"

    def __str__(self) -> str:
        return f'"{self.text}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary:
    op: str  # one of "-", "~", "not"
    operand: "Expr"

    def __str__(self) -> str:
        return f"not {_wrap(self.operand)}" if self.op == "not" else f"{self.op}{_wrap(self.operand)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    op: str  # one of + - * / == != < <= > >= and or & | ^
    left: "Expr"
    right: "Expr"

    def __str__(self) -> str:
        return f"{_wrap(self.left)} {self.op} {_wrap(self.right)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function of diopi::math (runtime_cpp/kernels/math/math.h), or where(condition, a, b)."""

    function: str  # e.g. "exp"
    args: tuple["Expr", ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.args))})"


Expr = Name | Number | Text | Unary | Binary | Call


def _wrap(expr: Expr) -> str:
    return f"({expr})" if isinstance(expr, Binary | Unary) else str(expr)


def names(expr: Expr) -> tuple[str, ...]:
    """The names that `expr` reads, each once, in the order of first use."""
    return tuple(dict.fromkeys(part.name for part in walk(expr) if isinstance(part, Name)))


def children(expr: Expr) -> tuple[Expr, ...]:
    """The expressions that `expr` is made of."""
    match expr:
        case Unary():
            return (expr.operand,)
        case Binary():
            return (expr.left, expr.right)
        case Call():
            return expr.args
        case Name() | Number() | Text():
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """`expr` and all that is in it, the outer ones first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def signed_constants(expr: Expr) -> Iterator[Expr]:
    """The numbers in `expr`, with their signs."""
    if isinstance(expr, Number) or (isinstance(expr, Unary) and expr.op == "-" and isinstance(expr.operand, Number)):
        yield expr
    else:
        for child in children(expr):
            yield from signed_constants(child)


def calls(expr: Expr) -> Iterator[Call]:
    """Every call in `expr`, the outer ones first."""
    return (part for part in walk(expr) if isinstance(part, Call))
