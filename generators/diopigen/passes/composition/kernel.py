"""Takes the expression of a `kernel:` line apart into calls: one for each operator and function in it."""

from dataclasses import dataclass, field, replace

from diopigen.model.compose import Argument, Choice, Statement, Step, Temporary
from diopigen.model.expr import Binary, Call, Expr, Name, Number, Unary, names
from diopigen.model.op import Function, Param, Role
from diopigen.model.reserved import free_name
from diopigen.model.type import Element, Fixed, Promote, ShapeCall, ShapeName, TensorType, variables_of
from diopigen.passes.composition.scope import Scope
from diopigen.vocabulary.dtype import DTypes, Kind

_BINARY = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "and": "logical_and",
    "or": "logical_or",
    "&": "bitwise_and",
    "|": "bitwise_or",
}
_UNARY = {"-": "neg", "not": "logical_not", "~": "bitwise_not"}
_CALLS = {"min": "minimum", "max": "maximum"}  # the others are ops of the same name
_ROUNDED = {"floor_div": "floor", "trunc_div": "trunc"}  # forms of div
_TRUTHS = ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_not", "isnan")
_EXACT = ("minimum", "maximum", "where", "neg", "abs", "sign", "floor", "ceil", "trunc")  # they never round
_COMMUTATIVE = ("add", "mul")


class _NoCalls(Exception):
    """Some part of the expression has no function."""


def kernel_statements(function: Function, dtypes: DTypes) -> tuple[Statement, ...] | None:
    """The calls that compute the function's kernel, or None where it says what no function computes.

    Values between the calls are in float32 at least where the elements are floats, as they are in a kernel.
    """
    written = [p for p in function.params if p.role in (Role.OUT, Role.INOUT) and p.tensor is not None]
    if function.kernel is None or len(written) != 1:
        return None
    for wide in (False, True):
        steps = _Steps(function, written[0], dtypes, wide)
        try:
            statements = steps.all(function.kernel)
        except _NoCalls:
            return None
        if wide or not steps.rounds:
            return statements
    return None


@dataclass(slots=True)
class _Steps:
    """Collects the statements of one function."""

    function: Function
    written: Param
    dtypes: DTypes
    wide: bool  # inputs are cast first, the result at the end
    scope: Scope = field(init=False)
    stand_ins: dict[str, str] = field(default_factory=dict)  # e.g. {"input": "input_wide"}
    count: int = 0
    rounds: bool = False  # a value between two calls is rounded, and could be wider

    def __post_init__(self) -> None:
        self.scope = Scope(self.function)

    def all(self, kernel: Expr) -> tuple[Statement, ...]:
        block: list[Statement] = []
        if not self.wide:
            self._into(kernel, self.written.name, block)
            return tuple(block)
        for name in names(kernel):
            if self.scope.tensor(Name(name=name)) is not None:
                if self.scope.optional(name):
                    raise _NoCalls
                stand_in = self._free(f"{name}_wide")
                self._declare(stand_in, self._element(), (name,), block)
                block.append(self._step("cast_dtype", Name(name=stand_in), Name(name=name)))
                self.stand_ins[name] = stand_in
        result = self._tensor(kernel, block)
        block.append(self._step("cast_dtype", Name(name=self.written.name), Name(name=result)))
        return tuple(block)

    def _free(self, name: str) -> str:
        return free_name(name, {*self.scope.names, *self.function.counts, *self.stand_ins.values()})

    # -- values ---------------------------------------------------------------------------------------------

    def _operand(self, expr: Expr, block: list[Statement]) -> Expr:
        """A number as it is; anything else as the tensor that holds it."""
        return expr if self.scope.number(expr) else Name(name=self._tensor(expr, block))

    def _tensor(self, expr: Expr, block: list[Statement]) -> str:
        """The tensor that holds `expr`; a temporary if it has to be computed."""
        if isinstance(expr, Name):
            if self.scope.tensor(expr) is None:
                raise _NoCalls
            return self.stand_ins.get(expr.name, expr.name)
        if self.scope.number(expr):
            raise _NoCalls
        self.count += 1
        name = self._free(f"{_word(expr)}{self.count}")
        truth = _word(expr) in _TRUTHS
        self._declare(name, self._dtype("bool") if truth else self._element(), names(expr), block)
        self._into(expr, name, block)
        self.rounds = self.rounds or (self._floats() and _word(expr) not in (*_TRUTHS, *_EXACT))
        return name

    def _into(self, expr: Expr, target: str, block: list[Statement]) -> None:
        """Adds what writes `expr` to the tensor `target`."""
        match expr:
            case Unary():
                self._call(_UNARY[expr.op], target, (expr.operand,), block)
            case Binary():
                self._binary(expr, target, block)
            case Call(function="where", args=(condition, first, second)):
                self._where(condition, first, second, target, block)
            case Call(function=function, args=args) if function in _ROUNDED:
                left, right = (self._operand(arg, block) for arg in args)
                mode = Argument(name="rounding_mode", value=Name(name=_ROUNDED[function]), span=self.function.span)
                step = self._step("div", Name(name=target), left, right)
                block.append(replace(step, args=(*step.args, mode)))
            case Call(function=function, args=args):
                self._call(_CALLS.get(function, function), target, args, block)
            case Name():
                block.append(self._step("diopiCopyInp", Name(name=self._tensor(expr, block)), Name(name=target)))
            case _:
                raise _NoCalls

    def _binary(self, expr: Binary, target: str, block: list[Statement]) -> None:
        op = _BINARY.get(expr.op)
        if op is None:
            raise _NoCalls
        left, right = expr.left, expr.right
        if op in _COMMUTATIVE and self.scope.number(left):
            left, right = right, left
        self._call(op, target, (left, right), block)

    def _call(self, op: str, target: str, args: tuple[Expr, ...], block: list[Statement]) -> None:
        operands = [self._operand(arg, block) for arg in args]
        block.append(self._step(op, Name(name=target), *operands))

    def _where(self, condition: Expr, first: Expr, second: Expr, target: str, block: list[Statement]) -> None:
        if self.scope.condition(condition):
            then: list[Statement] = []
            otherwise: list[Statement] = []
            self._into_any(first, target, then)
            self._into_any(second, target, otherwise)
            span = self.function.span
            block.append(Choice(condition=condition, then=tuple(then), otherwise=tuple(otherwise), span=span))
            return
        if isinstance(condition, Name) and self.scope.tensor(condition) is not None:
            truth: Expr = condition
            if not isinstance(self._type(condition).element, Fixed):
                truth = Binary(op="!=", left=condition, right=Number(text="0"))
            self._call("where", target, (truth, first, second), block)
        else:
            self._call("where", target, (condition, first, second), block)

    def _into_any(self, expr: Expr, target: str, block: list[Statement]) -> None:
        if self.scope.number(expr):
            block.append(self._step("diopiFill", Name(name=target), expr))
        else:
            self._into(expr, target, block)

    # -- statements -----------------------------------------------------------------------------------------

    def _declare(self, name: str, element: Element, read: tuple[str, ...], block: list[Statement]) -> None:
        tensors = tuple(ShapeName(name=n) for n in read if self.scope.tensor(Name(name=n)) is not None)
        if not tensors:
            raise _NoCalls
        shape = ShapeCall(rule="broadcast", args=tensors) if len(tensors) > 1 else tensors[0]
        temporary = Temporary(name=name, type=TensorType(element=element), shape=shape, span=self.function.span)
        block.append(temporary)

    def _step(self, callee: str, *operands: Expr) -> Step:
        span = self.function.span
        return Step(
            callee=callee, args=tuple(Argument(name=None, value=value, span=span) for value in operands), span=span
        )

    # -- element types --------------------------------------------------------------------------------------

    def _element(self) -> Element:
        """What values between the calls are kept in."""
        element = self._type(Name(name=self.written.name)).element
        return Promote(elements=(element, self._dtype("f32"))) if self.wide else element

    def _floats(self) -> bool:
        """Whether the result is a float in every call, so that more of its digits can be kept."""
        variables = variables_of(self._type(Name(name=self.written.name)).element)
        kinds = {t.kind for name, members in self.function.elements if name in variables for t in members.members}
        return kinds == {Kind.FLOAT}

    def _type(self, name: Name) -> TensorType:
        type_ = self.scope.tensor(name)
        assert type_ is not None
        return type_

    def _dtype(self, name: str) -> Fixed:
        dtype = self.dtypes.named(name)
        assert dtype is not None, f"dtypes.yaml lacks '{name}'"
        return Fixed(dtype=dtype)


def _word(expr: Expr) -> str:
    """The op that computes `expr` last."""
    match expr:
        case Unary():
            return _UNARY[expr.op]
        case Binary():
            return _BINARY.get(expr.op, "")
        case Call():
            return "div" if expr.function in _ROUNDED else _CALLS.get(expr.function, expr.function)
        case _:
            return ""
