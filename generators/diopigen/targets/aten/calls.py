"""The C++ function that an operator's forms share: it makes the tensors ready and calls the C function."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from diopigen.model.aten import Absent, FromArg, FromDerive, Route, Source
from diopigen.model.expr import Expr, Name, names
from diopigen.model.op import Function, Literal, Param, Role
from diopigen.model.type import TensorType, Value, ValueType
from diopigen.targets.aten.arguments import CPP, Argument, derived, tensor_argument, value_argument
from diopigen.targets.aten.casts import Casts
from diopigen.targets.aten.elements import writes_floats
from diopigen.targets.aten.served import Served, output_name, outputs, written_tensors
from diopigen.targets.aten.text import cpp_type
from diopigen.targets.cpp.lines import folded


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteView:
    """One C function in the body of a call."""

    condition: str | None  # e.g. "is_host_scalar(other)"
    usual: tuple[str, ...]  # e.g. ("is_number_of(common, alpha)",): else torch's own kernel computes
    setup: tuple[str, ...]  # e.g. ("Context context(self);", "const In self_arg(self);")
    guards: tuple[str, ...]  # e.g. ("alpha_arg",): what must be supported
    run: tuple[str, ...]  # the return statement


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    head: tuple[str, ...]  # e.g. ("bool call_relu(const at::Tensor& self, const at::Tensor& out)",)
    done: str | None  # e.g. "out.numel() == 0": there is nothing to compute
    routes: tuple[RouteView, ...]
    open: bool  # every route has a condition, so that none may hold


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapperCall:
    """A call and what a wrapper passes to it."""

    name: str  # e.g. "call_relu"
    args: tuple[str, ...]  # the ATen arguments that it takes, in order
    outs: tuple[str, ...]  # the outputs, in order
    common: bool  # its last parameter is the common dtype
    params: str  # e.g. "const at::Tensor& self, const at::Tensor& out, c10::ScalarType common"
    view: CallView


@dataclass(slots=True, kw_only=True)
class _Body:
    """Collects one call's parameters while its routes are spelled."""

    served: Served
    used: dict[str, None] = field(default_factory=dict)
    common: bool = False


def call(served: Served) -> WrapperCall:
    """The call behind a binding."""
    body = _Body(served=served)
    routes = tuple(
        _route_view(body, route, function)
        for route, function in zip(served.binding.routes, served.functions, strict=True)
    )
    overload = served.overload
    types = dict((n, t) for t, n in overload.cpp.params)
    args = tuple(n for _, n in overload.cpp.params if n in body.used)
    outs = outputs(served)
    declared = [f"{_read(cpp_type(types[n]))} {n}" for n in args]
    declared += [f"{_out_type(p)} {name}" for p, name in outs]
    declared += ["c10::ScalarType common"] if body.common else []
    params = ", ".join(declared)
    name = f"call_{overload.cpp.operator}" if served.alone else f"call_{overload.cpp.operator}_{served.binding.op}"
    written = written_tensors(served)
    return WrapperCall(
        name=name,
        args=args,
        outs=tuple(name for _, name in outs),
        common=body.common,
        params=params,
        view=CallView(
            head=folded(f"bool {name}({params})", after=2),
            done=f"{written[0]}.numel() == 0" if served.elementwise and len(written) == 1 else None,
            routes=routes,
            open=routes[-1].condition is not None,
        ),
    )


def _read(type_: str) -> str:
    """A call never rebinds an argument: it takes a tensor that it writes as const, too."""
    return "const at::Tensor&" if type_ == "at::Tensor&" else type_


def _out_type(param: Param) -> str:
    match param.role:
        case Role.HOST_OUT:
            assert isinstance(param.type, ValueType)
            return f"{CPP.get(param.type.value, str(param.type))}&"
        case Role.CALLEE_OUT:
            return "at::Tensor&"
        case _:
            return "const at::Tensor&" if param.tensor is None or param.tensor.count is None else "at::TensorList"


def _route_view(body: _Body, route: Route, function: Function) -> RouteView:
    served = body.served
    device = _device(body, function, route)
    arguments = list(_arguments(body, route, function, device))
    usual = _usual(body, route, function)
    setup = (f"Context context({device});", *(line for a in arguments for line in a.lines))
    operands = [part for a in arguments for part in ((a.call, f"{a.call}.size()") if a.counted else (a.call,))]
    guards = [a.guard for a in arguments if a.guard is not None] + _same_dtypes(route, function)
    flushes = [_flush(served, p, a, function) for p, a in zip(function.params, arguments, strict=True) if _flushes(p)]
    raised = "" if route.raises is None else f", {_raised(body, route.raises)}"
    called = f'ran(vendor::{function.symbol}({", ".join(("context", *operands))}), "{function.symbol}"{raised})'
    condition = _condition(body, route, function)
    indent = 4 if condition is None else 8
    return RouteView(
        condition=condition,
        usual=folded(usual, indent + 5, hang=0, after=3) if usual else (),
        setup=setup,
        guards=folded(f"!supported({', '.join(guards)})", indent + 4, hang=0, after=3) if guards else (),
        run=folded(f"return {' && '.join((called, *flushes))};", indent),
    )


def _usual(body: _Body, route: Route, function: Function) -> str:
    """What torch's own kernel does without: operands are of one dtype, and numbers within it."""
    served = body.served
    if not served.overload.host:
        return ""
    casts = Casts(served, route, function)
    operands, dtype = casts.operands(), casts.numbers()
    conditions = [f"one_dtype({', '.join(operands)})"] if operands else []
    conditions += [f"is_fraction({dtype})"] if dtype is not None and writes_floats(function) else []
    for param, source in _sourced(route, function):
        if dtype is not None and isinstance(source, FromArg) and param.tensor is None:
            arg = served.overload.arg(source.name)
            if arg is not None and arg.type in ("Scalar", "Scalar?"):
                conditions.append(f"is_number_of({dtype}, {source.name})")
    if not conditions:
        return ""
    body.used |= dict.fromkeys((*operands, *casts.read))
    body.common |= casts.common
    every = " && ".join(conditions)
    return f"({every})" if len(conditions) > 1 else every


def _raised(body: _Body, raises: Expr) -> str:
    """The class of torch's error: one that the schema names, or what a function of derive.h says of the arguments."""
    if isinstance(raises, Name):
        return f"Raises::k{raises.name}"
    body.used |= dict.fromkeys(names(raises))
    return derived(raises)


def _same_dtypes(route: Route, function: Function) -> list[str]:
    """A function of lists writes each tensor in its own dtype, which what all of them meet must not raise."""
    sources = dict(route.args)
    written = [p for p in function.params if p.tensor is not None and p.tensor.count and p.role is not Role.IN]
    lists = [p for p in function.params if p.tensor is not None and p.tensor.count and p.role is not Role.OUT]
    others = [p for p in function.params if p.tensor is None or not p.tensor.count]
    if not written or not lists:
        return []
    first = sources[lists[0].name]
    names = [s.name for p in others if _raises(p) and isinstance(s := sources[p.name], FromArg)]
    return [f"keeps_dtypes({first.name}, {name})" for name in names] if isinstance(first, FromArg) else []


def _raises(param: Param) -> bool:
    return param.tensor is not None or (isinstance(param.type, ValueType) and param.type.value is Value.SCALAR)


def _flushes(param: Param) -> bool:
    if isinstance(param.type, TensorType):
        return param.role in (Role.OUT, Role.INOUT, Role.CALLEE_OUT) and param.type.count is None
    return False


def _flush(served: Served, param: Param, argument: Argument, function: Function) -> str:
    if param.role is Role.CALLEE_OUT:
        return f"take({output_name(served, function, param)}, {argument.call})"
    return f"{argument.call}.flush()"


def _condition(body: _Body, route: Route, function: Function) -> str | None:
    parts = [f"is_host_scalar({route.scalar_tensor})"] if route.scalar_tensor is not None else []
    if route.require and _takes_all(body.served.binding.routes[-1]):
        parts.append(
            f"vendor::{function.symbol}.address != nullptr"
        )  # else the general function serves these values, too
    types = {n: t for t, n in body.served.overload.cpp.params}
    for name, value in route.require:
        body.used[name] = None
        parts.append(_required(name, value, types[name]))
    for name, rank in route.ranks:
        body.used[name] = None
        parts.append(f"{name}.dim() == {rank}")
    if route.scalar_tensor is not None:
        body.used[route.scalar_tensor] = None
    return " && ".join(parts) or None


def _takes_all(route: Route) -> bool:
    return route.scalar_tensor is None and not route.require and not route.ranks


def _required(name: str, value: Literal, type_: str) -> str:
    match value:
        case bool():
            return name if value else f"!{name}"
        case None:
            return f"!{name}.has_value()"
        case tuple():
            numbers = ", ".join(str(v) for v in value)
            return f"{name}.equals({{{numbers}}})" if "ArrayRef" in type_ else f"{name} == {{{numbers}}}"
        case str():
            return f'{name} == "{value}"'
        case _:
            return f"{name} == {value}" if "Scalar" not in type_ else f"{name}.equal({value})"


def _device(body: _Body, function: Function, route: Route) -> str:
    """The tensor on whose device the function runs: what it writes, else its first tensor."""
    written = written_tensors(body.served)
    masked = {output_name(body.served, function, p) for p in function.outs if p.type.optional}
    lists = [output_name(body.served, function, p) for p in function.outs if p.tensor is not None and p.tensor.count]
    for name in written:
        if name not in masked:
            if body.served.overload.inplace:
                body.used[name] = None
                arg = body.served.overload.arg(name)
                return f"first_of({name})" if arg is not None and arg.type == "Tensor[]" else name
            return f"first_of({name})" if name in lists else name
    for param, source in _sourced(route, function):
        if param.tensor is not None and isinstance(source, FromArg) and not param.type.optional:
            body.used[source.name] = None
            return source.name if param.tensor.count is None else f"first_of({source.name})"
    raise AssertionError(f"{function.symbol} has no tensor")


def _sourced(route: Route, function: Function) -> Iterator[tuple[Param, Source]]:
    sources = dict(route.args)
    for param in function.params:
        yield param, sources[param.name]


def _arguments(body: _Body, route: Route, function: Function, device: str) -> Iterator[Argument]:
    served = body.served
    types = {n: t for t, n in served.overload.cpp.params}
    casts = Casts(served, route, function)
    for param, source in _sourced(route, function):
        body.used |= {n: None for n in _read_names(source) if n in types}
        if param.tensor is None and param.role is not Role.HOST_OUT:
            rounded = casts.numbers() if isinstance(source, FromArg) and source.name in route.rounds else None
            yield value_argument(param, source, types, route.scalar_tensor, f"{device}.device()", rounded)
        elif param.role is Role.HOST_OUT:
            yield Argument(call=f"&{output_name(served, function, param)}")
        elif param.role is Role.CALLEE_OUT:
            yield Argument(lines=(f"CalleeOut {param.name}_arg;",), call=f"{param.name}_arg")
        elif param.role is Role.OUT:
            yield casts.output(param)
        elif isinstance(source, Absent):
            yield Argument(call="nullptr")
        elif param.role is Role.INOUT:
            yield casts.inout(param, _tensor(source))
        else:
            place, counted = f"{device}.device()", casts.ends_list(param)
            yield tensor_argument(param, _tensor(source), casts.input(param), place, counted)
    body.common |= casts.common


def _tensor(source: Source) -> str:
    return (
        source.name if isinstance(source, FromArg) else derived(source.expr) if isinstance(source, FromDerive) else ""
    )


def _read_names(source: Source) -> tuple[str, ...]:
    match source:
        case FromArg():
            return (source.name,)
        case FromDerive():
            return names(source.expr)
        case _:
            return ()
