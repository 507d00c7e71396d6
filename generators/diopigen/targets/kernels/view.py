"""What the kernel template lays out: one functor for each expression, one function for each C symbol."""

from dataclasses import dataclass

from diopigen.c_spelling import CArg, c_args
from diopigen.model.op import Form, Function, Param, Role
from diopigen.model.program import Program
from diopigen.model.type import TensorType, Value
from diopigen.targets.cpp.lines import WIDTH, folded
from diopigen.targets.kernels.cpp_expr import Condition
from diopigen.targets.kernels.printed import PrintedKernel, printed_kernel
from diopigen.text import mentions, wrapped
from diopigen.vocabulary.dtype import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctorView:
    name: str  # e.g. "AddKernel"
    base: str  # e.g. " : math::UsualAngle"
    expression: tuple[str, ...]  # a comment, as the schema has it: ("// input + alpha * other",)
    head: tuple[str, ...]  # e.g. ("static DIOPI_HD C apply(C input, C other, C alpha)",)
    body: tuple[str, ...]  # e.g. ("return static_cast<C>(input + alpha * other);",)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionView:
    head: tuple[str, ...]  # e.g. ("diopiError_t diopiAdd(diopiContextHandle_t ctx, ...)",)
    body: tuple[str, ...]  # e.g. ("return elementwise<AddKernel, Any, Compute::promote>(ctx, out, input);",)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelsView:
    source: str  # e.g. "schemas/ops/arithmetic.yaml"
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
            of_op = [f for f in program.forms(op.name) if (f.form is Form.BACKWARD) == backward]
            wanted = [f for f in of_op if f.symbol in symbols and f.kernel is not None]
            if wanted:
                kernel = printed_kernel(op, wanted[0], of_op)
                functors.append(_functor(of_op[0], kernel))
                functions += [_function(f, kernel, functors[-1].name) for f in wanted]
                texts = texts or any(condition.text for condition in kernel.conditions)
    source = program.source(topic)
    return KernelsView(source=source, texts=texts, functors=tuple(functors), functions=tuple(functions))


def _functor(first: Function, kernel: PrintedKernel) -> FunctorView:
    params = ", ".join(f"C {name}" for name in kernel.params)
    return FunctorView(
        name=f"{first.symbol.removeprefix('diopi')}Kernel",
        base=f" : math::{kernel.usual}" if kernel.usual else "",
        expression=wrapped(kernel.expression, WIDTH, "// "),
        head=folded(f"static DIOPI_HD {'bool' if kernel.boolean else 'C'} apply({params})", indent=4, after=2),
        body=folded(f"return {kernel.body};", indent=8),
    )


def _function(function: Function, kernel: PrintedKernel, functor: str) -> FunctionView:
    params = {p.name: p for p in function.params}
    written = next(p for p in function.params if p.role in (Role.OUT, Role.INOUT))
    inputs = [_argument(params[p.name], function) for p in function.params if p.name in kernel.values]
    conditions = [_host(condition) for condition in kernel.conditions]
    args = ", ".join(("ctx", written.name, *inputs, *conditions))
    declared = ", ".join(_declared(arg, args) for arg in c_args(function))
    compute = "floating" if kernel.floating else "promote"
    called = f"elementwise<{functor}, {_set(function, kernel.floating)}, Compute::{compute}>({args})"
    return FunctionView(
        head=folded(f"diopiError_t {function.symbol}({declared})", after=2), body=folded(f"return {called};", indent=4)
    )


def _declared(arg: CArg, used: str) -> str:
    """A parameter; the name of one that the kernel does not read is a comment."""
    if arg.name == "ctx" or mentions(used, arg.name):
        return str(arg)
    return f"{arg.type} /*{arg.name}*/"


_READ = {
    Value.INT: "int64_t",
    Value.DIM: "int64_t",
    Value.INT32: "int64_t",
    Value.FLOAT: "double",
    Value.FLOAT32: "double",
    Value.BOOL: "bool",
}


def _host(condition: Condition) -> str:
    return f"bool({condition.host})" if condition.text else condition.host


def _argument(param: Param, function: Function) -> str:
    if isinstance(param.type, TensorType):
        if not param.type.optional:
            return param.name
        # An absent tensor is not read; some tensor must stand in its place.
        other = next(p for p in function.ins if isinstance(p.type, TensorType) and not p.type.optional)
        return f"{param.name} != nullptr ? {param.name} : diopiConstTensorHandle_t({other.name})"
    if param.type.value is Value.SCALAR and param.type.optional:
        return f"or_zero({param.name})"
    read = _READ.get(param.type.value)
    narrow = param.type.value in (Value.INT32, Value.FLOAT32)
    return param.name if read is None or not (narrow or param.c is not None) else f"{read}({param.name})"


def _set(function: Function, floating: bool) -> str:
    """The narrowest of the kernels' sets that holds what the expression may compute in."""
    if floating:
        return "Float"
    kinds = {t.kind for _, members in function.elements for t in members.members}
    if Kind.FLOAT not in kinds:
        return "Integer"
    if Kind.BOOL in kinds:
        return "Any"
    return "Number" if Kind.INTEGER in kinds else "Float"
