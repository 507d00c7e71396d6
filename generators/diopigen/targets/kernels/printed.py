"""The elementwise expression of an op, printed once for all of its functions."""

from collections.abc import Iterable
from dataclasses import dataclass

from diopigen.model.expr import Call, Expr, Name
from diopigen.model.op import Form, Function, Op
from diopigen.model.type import FloatOf, TensorType
from diopigen.targets.kernels.cpp_expr import Condition, ExprPrinter

# functions with a faster form for usual operands, by the class of math.h that says which are usual
_USUAL = {
    **dict.fromkeys(("sin", "cos", "tan"), "UsualAngle"),
    "remainder": "UsualQuotient",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedKernel:
    """A function over one compute type C: its parameters are the values, then the conditions."""

    expression: str  # e.g. "input + alpha * other", as the schema has it
    values: tuple[str, ...]  # e.g. ("input", "other", "alpha"): arguments that are read for each element
    conditions: tuple[Condition, ...]
    body: str  # e.g. "static_cast<C>(input + alpha * other)"
    boolean: bool  # it gives bool; else C
    floating: bool  # integers become floats
    usual: str | None  # e.g. "UsualAngle" of math.h, for an expression such as sin(input)

    @property
    def params(self) -> tuple[str, ...]:
        return (*self.values, *(condition.name for condition in self.conditions))


def printed_kernel(op: Op, function: Function, of_op: Iterable[Function]) -> PrintedKernel:
    """The kernel of `function`, one of the functions `of_op` that share its expression."""
    assert function.kernel is not None
    printer = ExprPrinter(params={p.name: p for f in of_op for p in f.params})
    body = printer.body(function.kernel)
    return PrintedKernel(
        expression=" ".join(str(function.kernel).split()),
        values=tuple(p.name for p in function.params if p.name in printer.values),
        conditions=tuple(printer.conditions.values()),
        body=body.text,
        boolean=body.boolean,
        floating=_floating(op, function),
        usual=_usual(function.kernel),
    )


def _usual(kernel: Expr) -> str | None:
    if isinstance(kernel, Call) and all(isinstance(arg, Name) for arg in kernel.args):
        return _USUAL.get(kernel.function)
    return None


def _floating(op: Op, function: Function) -> bool:
    """Whether integers become floats, as they do where the op's output is `float(T)`."""
    outs = [out.type for out in op.outs] if function.form is not Form.BACKWARD else []
    return any(isinstance(type_, TensorType) and isinstance(type_.element, FloatOf) for type_ in outs)
