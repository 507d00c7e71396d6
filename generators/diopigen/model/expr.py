"""The expressions of `kernel:` and `derive:`: a typed tree, never text that is pasted."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """An argument of the op, an output of its forward function, or an enumerator of an argument's enum."""

    name: str  # ex) "input"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A literal; `text` keeps what was written."""

    text: str  # ex) "0.5", "1e-3", "inf"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A quoted word, only ever compared with an argument of type str."""

    text: str  # ex) "tanh"

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
    """A function of diopi::math (runtime_cpp/kernels/core/math.h), or where(condition, a, b)."""

    function: str  # ex) "exp"
    args: tuple["Expr", ...]

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.args))})"


Expr = Name | Number | Text | Unary | Binary | Call


def _wrap(expr: Expr) -> str:
    return f"({expr})" if isinstance(expr, Binary | Unary) else str(expr)


def names(expr: Expr) -> tuple[str, ...]:
    """The names that `expr` reads, each once, in the order of first use."""
    found: dict[str, None] = {}
    _collect(expr, found)
    return tuple(found)


def _collect(expr: Expr, found: dict[str, None]) -> None:
    match expr:
        case Name():
            found[expr.name] = None
        case Unary():
            _collect(expr.operand, found)
        case Binary():
            _collect(expr.left, found)
            _collect(expr.right, found)
        case Call():
            for arg in expr.args:
                _collect(arg, found)
        case Number() | Text():
            pass


def calls(expr: Expr) -> Iterator[Call]:
    """Every call in `expr`, the outer ones first."""
    match expr:
        case Call():
            yield expr
            for arg in expr.args:
                yield from calls(arg)
        case Unary():
            yield from calls(expr.operand)
        case Binary():
            yield from calls(expr.left)
            yield from calls(expr.right)
        case Name() | Number() | Text():
            return
