"""What the kernel template lays out: one functor for each expression, one function for each C symbol."""

import re
from dataclasses import dataclass

from diopigen.model.dtype import Kind
from diopigen.model.op import Form, Function, Op, Param, Role
from diopigen.model.program import Program
from diopigen.model.type import FloatOf, TensorType, Value
from diopigen.targets.c_spelling import CArg, c_args
from diopigen.targets.kernels.cpp_expr import Condition, ExprPrinter
from diopigen.text import pascal


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctorView:
    name: str  # ex) "AddKernel"
    expression: str  # ex) "input + alpha * other", as the schema has it
    params: str  # ex) "C input, C other, C alpha"
    result: str  # "C" or "bool"
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionView:
    symbol: str  # ex) "diopiAdd"
    params: tuple[str, ...]  # ex) ("diopiContextHandle_t ctx", ...)
    functor: str
    set: str  # ex) "Any"
    compute: str  # ex) "promote"
    args: tuple[str, ...]  # ex) ("ctx", "out", "input", "other", "alpha")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelsView:
    source: str  # ex) "schemas/ops/arithmetic.yaml"
    texts: bool  # a host condition compares texts
    functors: tuple[FunctorView, ...]
    functions: tuple[FunctionView, ...]


def kernels_view(program: Program, topic: str, symbols: frozenset[str]) -> KernelsView:
    """The kernels of one topic for the functions in `symbols`."""
    functors: list[FunctorView] = []
    functions: list[FunctionView] = []
    texts = False
    for op in program.ops:
        if op.topic != topic:
            continue
        for backward in (False, True):
            of_op = [f for f in program.functions if f.op == op.name and (f.form is Form.BACKWARD) == backward]
            wanted = [f for f in of_op if f.symbol in symbols and f.kernel is not None]
            if wanted:
                printer = ExprPrinter(params={p.name: p for f in of_op for p in f.params})
                functors.append(_functor(op, wanted[0], printer, backward))
                functions += [_function(op, f, printer, functors[-1].name) for f in wanted]
                texts = texts or any("string_view" in c.host for c in printer.conditions.values())
    source = f"schemas/ops/{topic}.yaml"
    return KernelsView(source=source, texts=texts, functors=tuple(functors), functions=tuple(functions))


def _functor(op: Op, function: Function, printer: ExprPrinter, backward: bool) -> FunctorView:
    assert function.kernel is not None
    body = printer.body(function.kernel)
    names = [*_ordered(printer, function), *printer.conditions]
    return FunctorView(
        name=f"{pascal(op.name)}{'Backward' if backward else ''}Kernel",
        expression=str(function.kernel),
        params=", ".join(f"C {name}" for name in names),
        result="bool" if body.boolean else "C",
        body=body.text,
    )


def _ordered(printer: ExprPrinter, function: Function) -> list[str]:
    """The arguments that the expression reads, in the order of the op."""
    return [p.name for p in function.params if p.name in printer.values]


def _function(op: Op, function: Function, printer: ExprPrinter, functor: str) -> FunctionView:
    params = {p.name: p for p in function.params}
    written = next(p for p in function.params if p.role in (Role.OUT, Role.INOUT))
    inputs = [_argument(params[name], function) for name in _ordered(printer, function)]
    conditions = [_host(condition) for condition in printer.conditions.values()]
    return FunctionView(
        symbol=function.symbol,
        params=tuple(_declared(arg, f"{written.name} {' '.join((*inputs, *conditions))}") for arg in c_args(function)),
        functor=functor,
        set=_set(op, function),
        compute="floating" if _floating(op, function) else "promote",
        args=("ctx", written.name, *inputs, *conditions),
    )


def _declared(arg: CArg, used: str) -> str:
    """A parameter; the name of one that the kernel does not read is a comment."""
    if arg.name == "ctx" or re.search(rf"\b{arg.name}\b", used):
        return str(arg)
    return f"{arg.type} /*{arg.name}*/"


def _host(condition: Condition) -> str:
    return f"bool({condition.host})" if "string_view" in condition.host else condition.host


def _argument(param: Param, function: Function) -> str:
    if isinstance(param.type, TensorType):
        if not param.type.optional:
            return param.name
        # An absent tensor is not read; some tensor must stand in its place.
        other = next(p for p in function.ins if isinstance(p.type, TensorType) and not p.type.optional)
        return f"{param.name} != nullptr ? {param.name} : diopiConstTensorHandle_t({other.name})"
    if param.type.value is Value.SCALAR and param.type.optional:
        return f"or_zero({param.name})"
    return f"double({param.name})" if param.type.value is Value.FLOAT32 else param.name


def _floating(op: Op, function: Function) -> bool:
    """Whether integers become floats, as they do where the op's output is `float(T)`."""
    outs = [out.type for out in op.outs] if function.form is not Form.BACKWARD else []
    return any(isinstance(type_, TensorType) and isinstance(type_.element, FloatOf) for type_ in outs)


def _set(op: Op, function: Function) -> str:
    """The narrowest of the kernels' sets that holds what the expression may compute in."""
    if _floating(op, function):
        return "Float"
    kinds = {t.kind for _, members in function.elements for t in members.members}
    if Kind.FLOAT not in kinds:
        return "Integer"
    if Kind.BOOL in kinds:
        return "Any"
    return "Number" if Kind.INTEGER in kinds else "Float"
