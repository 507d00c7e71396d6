"""Prints the expression of a kernel as C++ over one compute type C."""

from dataclasses import dataclass, field
from typing import assert_never

from diopigen.c_spelling import c_number, c_text
from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary
from diopigen.model.op import Param
from diopigen.model.reserved import free_name
from diopigen.model.type import ENUMERATORS, ValueType

_COMPARE = ("==", "!=", "<", "<=", ">", ">=")
_BITWISE = {"&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What the host decides once for all elements; the kernel gets it as a number."""

    name: str  # e.g. "approximate_is_tanh"
    param: str  # e.g. "approximate"
    equals: str | None  # e.g. "tanh", or an enumerator of C; None: that the argument is given
    text: bool  # the argument is a text

    @property
    def host(self) -> str:
        """In C++. e.g. 'std::string_view(approximate) == "tanh"'."""
        if self.equals is None:
            return f"{self.param} != nullptr"
        text = f"std::string_view({self.param}) == {c_text(self.equals)}"
        return text if self.text else f"{self.param} == {self.equals}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    text: str
    boolean: bool  # bool in C++; else a value of type C, or of what C's arithmetic gives


@dataclass(slots=True, kw_only=True)
class ExprPrinter:
    """Prints one kernel; collects the arguments and host conditions that it meets, in order."""

    params: dict[str, Param]
    values: dict[str, None] = field(default_factory=dict)  # arguments that are read for each element
    conditions: dict[tuple[str, str | None], Condition] = field(default_factory=dict)

    def body(self, expr: Expr) -> Printed:
        """The expression of a return statement."""
        printed = self._print(expr)
        if printed.boolean or (isinstance(expr, Name | Number | Call) and not _is_choice(expr)):
            return printed
        return Printed(text=f"static_cast<C>({printed.text})", boolean=False)

    def _print(self, expr: Expr) -> Printed:
        match expr:
            case Name():
                self.values[expr.name] = None
                return Printed(text=expr.name, boolean=False)
            case Number():
                return Printed(text=_number(expr.text), boolean=False)
            case Unary():
                return self._unary(expr)
            case Binary():
                return self._binary(expr)
            case Call():
                return self._call(expr)
            case Text():
                raise AssertionError("a text stands only in comparisons")
            case other:
                assert_never(other)

    def _unary(self, expr: Unary) -> Printed:
        if expr.op == "not":
            return Printed(text=f"!{self._truth(expr.operand)}", boolean=True)
        if expr.op == "~":
            return Printed(text=f"math::bitwise_not({self._argument(expr.operand)})", boolean=False)
        return Printed(text=f"-{self._operand(expr.operand)}", boolean=False)

    def _binary(self, expr: Binary) -> Printed:
        condition = self._host_condition(expr)
        if condition is not None:
            return condition
        if expr.op in ("and", "or"):
            word = "&&" if expr.op == "and" else "||"
            return Printed(text=f"{self._truth(expr.left)} {word} {self._truth(expr.right)}", boolean=True)
        if expr.op in _BITWISE:
            left, right = self._argument(expr.left), self._argument(expr.right)
            return Printed(text=f"math::{_BITWISE[expr.op]}({left}, {right})", boolean=False)
        if expr.op == "/":
            left, right = self._argument(expr.left), self._argument(expr.right)
            return Printed(text=f"math::divide({left}, {right})", boolean=False)
        text = f"{self._operand(expr.left)} {expr.op} {self._operand(expr.right)}"
        return Printed(text=text, boolean=expr.op in _COMPARE)

    def _host_condition(self, expr: Binary) -> Printed | None:
        """A comparison of a text or an enumerator, which has the same answer for every element."""
        param = self.params.get(expr.left.name) if isinstance(expr.left, Name) else None
        if param is None or not isinstance(param.type, ValueType) or expr.op not in ("==", "!="):
            return None
        match expr.right:
            case Text(text=word):
                equals = word
            case Name(name=word) if param.type.value in ENUMERATORS:
                equals = ENUMERATORS[param.type.value][word]
            case _:
                return None
        condition = self._condition(param.name, word or "empty", equals, text=isinstance(expr.right, Text))
        return Printed(text=f"{condition.name} {'!=' if expr.op == '==' else '=='} C(0)", boolean=True)

    def _condition(self, param: str, word: str, equals: str | None, text: bool) -> Condition:
        """The condition that `param` is `equals`, by a name that nothing else has."""
        taken = {*self.params, *(condition.name for condition in self.conditions.values())}
        name = free_name(f"{param}_is_{word}", taken)
        return self.conditions.setdefault((param, equals), Condition(name=name, param=param, equals=equals, text=text))

    def _call(self, expr: Call) -> Printed:
        if expr.function == "given":
            (arg,) = expr.args
            assert isinstance(arg, Name)
            given = self._condition(arg.name, "given", None, text=False)
            return Printed(text=f"{given.name} != C(0)", boolean=True)
        if expr.function == "where":
            condition, first, second = expr.args
            # The branch that is not taken must not be evaluated: it may divide by zero.
            text = f"({self._truth(condition)} ? {self._argument(first)} : {self._argument(second)})"
            return Printed(text=text, boolean=False)
        args = ", ".join(self._argument(arg) for arg in expr.args)
        return Printed(text=f"math::{expr.function}({args})", boolean=expr.function in ("isnan", "isinf"))

    def _truth(self, expr: Expr) -> str:
        printed = self._print(expr)
        if printed.boolean:
            return printed.text if isinstance(expr, Call) and expr.function != "given" else f"({printed.text})"
        return f"({printed.text} != C(0))"

    def _operand(self, expr: Expr) -> str:
        printed = self._print(expr)
        if printed.boolean:
            return f"C({printed.text})"
        compound = (isinstance(expr, Binary) and expr.op in "+-*") or isinstance(expr, Unary)
        return f"({printed.text})" if compound else printed.text

    def _argument(self, expr: Expr) -> str:
        """An operand of type C exactly, for templates deduce from it."""
        printed = self._print(expr)
        exact = isinstance(expr, Name | Number | Call) and not printed.boolean
        return printed.text if exact else f"C({printed.text})"


def _is_choice(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == "where"


def _number(text: str) -> str:
    if text == "inf":
        return "C(INFINITY)"
    return "C(NAN)" if text == "nan" else f"C({c_number(text)})"
