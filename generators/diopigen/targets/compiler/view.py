"""What a compiler needs of the bindings: which function serves an overload, from where its parameters come, its kernel.

The compiler reads this as data, so that compiling a program needs neither the schemas nor the generator.
"""

from dataclasses import dataclass

from diopigen.model.aten import Absent, FromArg, FromDerive, FromLiteral, FromReturn, Route, Source
from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary
from diopigen.model.op import Form, Function, Literal, Op, Param, Role
from diopigen.model.program import Program
from diopigen.model.type import ENUMERATORS, TensorType, ValueType
from diopigen.model.vendor import Plan
from diopigen.targets.c_spelling import c_signature, c_type
from diopigen.targets.kernels.printed import printed_kernel

VERSION = 4  # of the table's form

Tree = str | tuple[object, ...]  # an expression: a leaf's text, or its word and operands


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamView:
    """A parameter of a C function; `count` parameters follow the last list that names them."""

    name: str  # ex) "alpha"
    c: str  # ex) "const diopiScalar_t*"
    role: str  # ex) "in"
    kind: str  # "tensor", or the word of the schema: ex) "Scalar"
    optional: bool
    many: bool
    length: int | None  # ex) 2 for "int[2]"
    count: str | None  # ex) "num_inputs"
    element: str | None  # ex) "T", "promote(T, U)", "i64"
    default: object  # ex) 1; of a number that ATen may leave out
    layouts: tuple[str, ...]  # ex) ("NHWC",): the only memory orders that the vendor takes; others are converted


@dataclass(frozen=True, slots=True, kw_only=True)
class InplaceView:
    """The function that does the same in the memory of one input, with the same parameters but the output."""

    symbol: str  # ex) "diopiScatterInp"
    signature: str
    param: str  # ex) "input"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionView:
    signature: str  # ex) "diopiError_t diopiRelu(diopiContextHandle_t ctx, ...)"
    params: tuple[ParamView, ...]
    elements: dict[str, tuple[str, ...]]  # ex) {"T": ("f16", "f32")}
    layouts: tuple[str, ...]  # ex) ("NCHW", "NHWC"): the memory orders that the operator knows of
    inplace: InplaceView | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteView:
    """One function that may serve an overload."""

    symbol: str
    sources: dict[str, Tree]  # ex) {"input": ("arg", "self"), "alpha": ("literal", "1")}
    require: dict[str, object]  # ex) {"transposed": False}
    scalar_tensor: str | None  # ex) "other": only where this tensor is a 0-d one of the host
    ranks: dict[str, int]  # ex) {"input": 4}: the only number of dimensions that the argument may have
    updates: dict[str, int]  # ex) {"running_mean": 3}: the result that is the parameter's new value
    when: tuple[Tree, ...]  # what must hold of the operator's arguments
    permute: tuple[int, ...]  # ex) (0, 2, 1, 3): of tensors with so many dimensions, where the operator has each
    undrawn: tuple[str, ...]  # ex) ("gen",): generators that the function draws nothing from


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionView:
    """What the host decides once for all elements: a comparison of an argument, or whether it is there."""

    name: str  # ex) "approximate_is_tanh"
    param: str  # ex) "approximate"
    equals: str | None  # ex) "tanh", or the C enumerator; None: that the argument is given


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelView:
    """An elementwise expression as a C++ function over one compute type C."""

    params: tuple[str, ...]  # ex) ("input", "other", "alpha"), then the conditions
    conditions: tuple[ConditionView, ...]
    body: str  # ex) "static_cast<C>(input + alpha * other)"
    boolean: bool  # it gives bool
    floating: bool  # integers become floats


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorView:
    op: str  # ex) "add"
    kernel: str | None  # the key of the kernel
    reduce: str | None  # ex) "sum": a fold of the elements along "dim", or of all where there is no such argument
    routes: tuple[RouteView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    version: int
    functions: dict[str, FunctionView]
    kernels: dict[str, KernelView]  # by the op's name, "<op>.backward" for its gradient
    operators: dict[str, OperatorView]  # by the overload, ex) "add.Tensor"


def table(program: Program) -> Table:
    """Everything that is bound by data alone; an overload with a hand-written wrapper is left to the eager operator."""
    functions = {f.symbol: f for f in program.functions}
    ops = {op.name: op for op in program.ops}
    kernels: dict[str, KernelView] = {}
    operators: dict[str, OperatorView] = {}
    reached: dict[str, FunctionView] = {}
    for binding in (*program.bindings, *program.compiled):
        if binding.wrapper is not None or not binding.routes:
            continue
        main = functions[binding.routes[-1].symbol]
        key = _kernel_key(main)
        if key is not None and key not in kernels:
            kernels[key] = _kernel(ops[main.op], program, main.form is Form.BACKWARD)
        routes = tuple(_route(route, functions[route.symbol]) for route in binding.routes)
        operators[binding.overload.name] = OperatorView(
            op=binding.op, kernel=key, reduce=_reduction(ops[main.op], main), routes=routes
        )
        reached |= {route.symbol: _function(functions[route.symbol], ops, program) for route in binding.routes}
    return Table(version=VERSION, functions=reached, kernels=kernels, operators=operators)


def _kernel_key(function: Function) -> str | None:
    if function.kernel is None:
        return None
    return f"{function.op}.backward" if function.form is Form.BACKWARD else function.op


def _reduction(op: Op, function: Function) -> str | None:
    return None if function.form is Form.BACKWARD else op.reduce


def _kernel(op: Op, program: Program, backward: bool) -> KernelView:
    of_op = [f for f in program.functions if f.op == op.name and (f.form is Form.BACKWARD) == backward]
    kernel = printed_kernel(op, next(f for f in of_op if f.kernel is not None), of_op)
    return KernelView(
        params=kernel.params,
        conditions=tuple(ConditionView(name=c.name, param=c.param, equals=c.equals) for c in kernel.conditions),
        body=kernel.body,
        boolean=kernel.boolean,
        floating=kernel.floating,
    )


def _function(function: Function, ops: dict[str, Op], program: Program) -> FunctionView:
    plan = program.plan(function.symbol)
    return FunctionView(
        signature=c_signature(function),
        params=tuple(_param(param, plan) for param in function.params),
        elements={name: tuple(t.name for t in members.members) for name, members in function.elements},
        layouts=ops[function.op].layouts,
        inplace=_inplace(function, program),
    )


def _inplace(function: Function, program: Program) -> InplaceView | None:
    forms = {Form.OUT: Form.INPLACE, Form.SCALAR: Form.INPLACE_SCALAR}
    names = [p.name for p in function.params if p not in function.outs]
    for other in program.functions:
        if other.op != function.op or other.form is not forms.get(function.form):
            continue
        written = [p for p in other.params if p.role is Role.INOUT]
        if [p.name for p in other.params] == names and len(written) == len(function.outs) == 1:
            listed = written[0].tensor is None or written[0].tensor.count is not None
            signature = c_signature(other)
            return None if listed else InplaceView(symbol=other.symbol, signature=signature, param=written[0].name)
    return None


def _param(param: Param, plan: Plan | None) -> ParamView:
    conversion = None if plan is None else plan.conversion(param.name)
    type_ = param.type
    tensor = type_ if isinstance(type_, TensorType) else None
    value = type_ if isinstance(type_, ValueType) else None
    return ParamView(
        name=param.name,
        c=c_type(param),
        role=param.role.value,
        kind="tensor" if value is None else value.value.value,
        optional=type_.optional,
        many=value.many if value is not None else False,
        length=value.length if value is not None else None,
        count=tensor.count if tensor is not None else None,
        element=str(tensor.element) if tensor is not None else None,
        default=param.default if param.has_default else None,
        layouts=() if conversion is None else conversion.layouts,
    )


def _route(route: Route, function: Function) -> RouteView:
    kinds = {p.name: p for p in function.params}
    return RouteView(
        symbol=route.symbol,
        sources={name: _source(kinds[name], source) for name, source in route.args},
        require=dict(route.require),
        scalar_tensor=route.scalar_tensor,
        ranks=dict(route.ranks),
        updates=dict(route.updates),
        when=tuple(map(_tree, route.when)),
        permute=route.permute,
        undrawn=route.undrawn,
    )


def _source(param: Param, source: Source) -> Tree:
    match source:
        case FromArg():
            return ("arg", source.name)
        case FromReturn():
            return ("return", source.index)
        case FromDerive():
            return ("derive", _tree(source.expr))
        case FromLiteral():
            return ("literal", _literal(param, source.value))
        case Absent():
            return ("absent",)


def _literal(param: Param, value: Literal) -> object:
    """The schema's value; an enumerator by its name in C."""
    type_ = param.type
    if isinstance(type_, ValueType) and type_.value in ENUMERATORS and isinstance(value, str):
        return ENUMERATORS[type_.value][value]
    return value


def _tree(expr: Expr) -> Tree:
    match expr:
        case Name():
            return ("name", expr.name)
        case Number() | Text():
            return ("text" if isinstance(expr, Text) else "number", expr.text)
        case Unary():
            return (expr.op, _tree(expr.operand))
        case Binary():
            return (expr.op, _tree(expr.left), _tree(expr.right))
        case Call():
            return ("call", expr.function, *map(_tree, expr.args))
