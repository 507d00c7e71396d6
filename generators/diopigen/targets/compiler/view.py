"""What a compiler needs of the bindings: which function serves an overload, from where its parameters come, its kernel.

The compiler reads this as data, so that compiling a program needs neither the schemas nor the generator.
"""

from diopigen.c_spelling import c_signature, c_type
from diopigen.model.aten import Absent, FromArg, FromDerive, FromLiteral, FromReturn, Route, Source
from diopigen.model.expr import Binary, Call, Expr, Name, Number, Text, Unary
from diopigen.model.op import Form, Function, Literal, Op, Param, Role
from diopigen.model.program import Program
from diopigen.model.type import ENUMERATORS, TensorType, ValueType
from diopigen.model.vendor import FunctionPlan
from diopigen.records import operators as records
from diopigen.targets.kernels.printed import printed_kernel


def table(program: Program) -> records.Operators:
    """Everything that is bound by data alone; an overload with a hand-written wrapper is left to the eager operator."""
    functions = {f.symbol: f for f in program.functions}
    ops = {op.name: op for op in program.ops}
    kernels: dict[str, records.KernelText] = {}
    operators: dict[str, records.Operator] = {}
    reached: dict[str, records.Function] = {}
    for binding in (*program.bindings, *program.compiled):
        if binding.wrapper is not None or not binding.routes:
            continue
        main = functions[binding.routes[-1].symbol]
        key = _kernel_key(main)
        if key is not None and key not in kernels:
            kernels[key] = _kernel(ops[main.op], program, main.form is Form.BACKWARD)
        routes = tuple(_route(route, functions[route.symbol]) for route in binding.routes)
        operators[binding.overload.name] = records.Operator(
            op=binding.op, kernel=key, reduce=_reduction(ops[main.op], main), routes=routes
        )
        reached |= {route.symbol: _function(functions[route.symbol], ops, program) for route in binding.routes}
    separate = () if program.vendor is None else program.vendor.separate_elements
    return records.Operators(functions=reached, kernels=kernels, operators=operators, separate_elements=separate)


def kernels(op: Op, program: Program) -> dict[str, records.KernelText]:
    """Those that the table has of an op whose kernels operators need, by their keys."""
    keys = {key: f for f in program.forms(op.name) if (key := _kernel_key(f)) is not None}
    return {key: _kernel(op, program, f.form is Form.BACKWARD) for key, f in keys.items()}


def _kernel_key(function: Function) -> str | None:
    if function.kernel is None:
        return None
    return f"{function.op}.backward" if function.form is Form.BACKWARD else function.op


def _reduction(op: Op, function: Function) -> str | None:
    return None if function.form is Form.BACKWARD else op.reduce


def _kernel(op: Op, program: Program, backward: bool) -> records.KernelText:
    of_op = [f for f in program.forms(op.name) if (f.form is Form.BACKWARD) == backward]
    kernel = printed_kernel(op, next(f for f in of_op if f.kernel is not None), of_op)
    return records.KernelText(
        params=kernel.params,
        conditions=tuple(records.Condition(name=c.name, param=c.param, equals=c.equals) for c in kernel.conditions),
        body=kernel.body,
        boolean=kernel.boolean,
        floating=kernel.floating,
    )


def _function(function: Function, ops: dict[str, Op], program: Program) -> records.Function:
    plan = program.plan(function.symbol)
    return records.Function(
        signature=c_signature(function),
        params=tuple(_param(param, plan) for param in function.params),
        elements={name: tuple(t.name for t in members.members) for name, members in function.elements},
        layouts=ops[function.op].layouts,
        innermost=_innermost(function.op, program),
        inplace=_inplace(function, program),
    )


def _innermost(op: str, program: Program) -> tuple[str, ...]:
    wanted = () if program.vendor is None else program.vendor.channels_innermost
    return tuple(dtype.name for name, dtypes in wanted if name == op for dtype in dtypes)


def _inplace(function: Function, program: Program) -> records.InplaceFunction | None:
    forms = {Form.OUT: Form.INPLACE, Form.SCALAR: Form.INPLACE_SCALAR}
    names = [p.name for p in function.params if p not in function.outs]
    for other in program.forms(function.op):
        if other.form is not forms.get(function.form):
            continue
        written = [p for p in other.params if p.role is Role.INOUT]
        if [p.name for p in other.params] == names and len(written) == len(function.outs) == 1:
            listed = written[0].tensor is None or written[0].tensor.count is not None
            if listed:
                return None
            signature, param = c_signature(other), written[0].name
            return records.InplaceFunction(symbol=other.symbol, signature=signature, param=param)
    return None


def _param(param: Param, plan: FunctionPlan | None) -> records.Param:
    conversion = None if plan is None else plan.conversion(param.name)
    type_ = param.type
    tensor = type_ if isinstance(type_, TensorType) else None
    value = type_ if isinstance(type_, ValueType) else None
    return records.Param(
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


def _route(route: Route, function: Function) -> records.Route:
    kinds = {p.name: p for p in function.params}
    return records.Route(
        symbol=route.symbol,
        sources={name: _source(kinds[name], source) for name, source in route.args},
        require=dict(route.require),
        scalar_tensor=route.scalar_tensor,
        ranks=dict(route.ranks),
        rounds=route.rounds,
        updates=dict(route.updates),
        when=tuple(map(_tree, route.when)),
        permute=route.permute,
        draws={name: tuple(_place(source) for source in told) for name, told in route.draws},  # type: ignore[misc]
    )


def _place(source: FromArg | FromReturn) -> records.Tree:
    return ("arg", source.name) if isinstance(source, FromArg) else ("return", source.index)


def _source(param: Param, source: Source) -> records.Tree:
    match source:
        case FromArg() | FromReturn():
            return _place(source)
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


def _tree(expr: Expr) -> records.Tree:
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
