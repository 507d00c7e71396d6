"""The C++ function that an operator's forms share: it makes the tensors ready and calls the C function."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from diopigen.model.aten import Absent, Binding, FromArg, FromDerive, FromReturn, Overload, Route, Source
from diopigen.model.expr import names
from diopigen.model.op import Function, Literal, Param, Role
from diopigen.model.type import Accumulate, Element, Fixed, TensorType, Var
from diopigen.targets.aten.arguments import Argument, derived, literal, tensor_argument, value_argument
from diopigen.targets.aten.elements import Elements, scalar_type, variables
from diopigen.targets.aten.text import cpp_type, folded


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteView:
    """One C function in the body of a call."""

    condition: str | None  # ex) "is_host_scalar(other)"
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    head: tuple[str, ...]  # ex) ("bool call_relu(const at::Tensor& self, const at::Tensor& out) {",)
    done: str | None  # ex) "out.numel() == 0": there is nothing to compute
    routes: tuple[RouteView, ...]
    open: bool  # every route has a condition, so that none may hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call and what a wrapper passes to it."""

    name: str  # ex) "call_relu"
    args: tuple[str, ...]  # the ATen arguments that it takes, in order
    outs: tuple[str, ...]  # the outputs, in order
    common: bool  # its last parameter is the common dtype
    view: CallView


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A binding with the functions behind its routes."""

    binding: Binding
    functions: tuple[Function, ...]  # one for each route

    @property
    def overload(self) -> Overload:
        return self.binding.overload

    @property
    def main(self) -> Function:
        """The last route's function: the one that takes everything."""
        return self.functions[-1]

    @property
    def elementwise(self) -> bool:
        return self.main.kernel is not None

    @property
    def promotes(self) -> bool:
        """Inputs of several dtypes meet in a common one, which TensorIterator or the wrapper computes."""
        plain = self.overload.cpp.meta is None
        return self.overload.cpp.iterator or (plain and self.elementwise and not self.overload.inplace)


@dataclass(slots=True, kw_only=True)
class _Body:
    """Collects one call's parameters while its routes are spelled."""

    served: Served
    used: dict[str, None] = field(default_factory=dict)
    common: bool = False


def call(served: Served) -> Call:
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
    params = [f"{_read(cpp_type(types[n]))} {n}" for n in args]
    params += [f"{_out_type(p)} {name}" for p, name in outs]
    params += ["c10::ScalarType common"] if body.common else []
    name = f"call_{overload.cpp.operator}"
    written = _written_tensors(served)
    return Call(
        name=name,
        args=args,
        outs=tuple(name for _, name in outs),
        common=body.common,
        view=CallView(
            head=folded(f"bool {name}(", params, ") {"),
            done=f"{written[0]}.numel() == 0" if served.elementwise and len(written) == 1 else None,
            routes=routes,
            open=routes[-1].condition is not None,
        ),
    )


def outputs(served: Served) -> tuple[tuple[Param, str], ...]:
    """The outputs of the main function with their C++ names; none for an in-place function."""
    taken = {n for _, n in served.overload.cpp.params}
    return tuple(
        (p, f"{p.name}_out" if p.name in taken and not _is_out(served, p.name) else p.name)
        for p in served.main.outs
        if not served.overload.inplace or p.role in (Role.HOST_OUT, Role.CALLEE_OUT)
    )


def _is_out(served: Served, name: str) -> bool:
    arg = served.overload.arg(name)
    return arg is not None and arg.out


def _written_tensors(served: Served) -> tuple[str, ...]:
    """The tensors that a call writes, by their names in the call."""
    if served.overload.inplace:
        return tuple(a.name for a in served.overload.args if a.mutated)
    return tuple(name for p, name in outputs(served) if p.role is Role.OUT)


def _read(type_: str) -> str:
    """A call never rebinds an argument: it takes a tensor that it writes as const, too."""
    return "const at::Tensor&" if type_ == "at::Tensor&" else type_


def _out_type(param: Param) -> str:
    match param.role:
        case Role.HOST_OUT:
            return f"{param.type}&"
        case Role.CALLEE_OUT:
            return "at::Tensor&"
        case _:
            return "const at::Tensor&"


def _route_view(body: _Body, route: Route, function: Function) -> RouteView:
    served = body.served
    device = _device(body, function, route)
    arguments = list(_arguments(body, route, function, device))
    lines = [f"Context context({device});"]
    lines += [line for a in arguments for line in a.lines]
    operands = [part for a in arguments for part in ((a.call, f"{a.call}.size()") if a.counted else (a.call,))]
    guards = [a.guard for a in arguments if a.guard is not None]
    written = [
        (p, a) for (p, a) in zip(function.params, arguments, strict=True) if _flushes(p)
    ]
    tail = "".join(f" && {_flush(served, p, a, function)}" for p, a in written)
    if guards:
        lines += [f"if (!supported({', '.join(guards)})) {{", "    return false;", "}"]
    head = f"return ran(vendor::{function.symbol}("
    lines += folded(head, ["context", *operands], f'), "{function.symbol}"){tail};')
    return RouteView(condition=_condition(body, route), lines=tuple(lines))


def _flushes(param: Param) -> bool:
    if isinstance(param.type, TensorType):
        return param.role in (Role.OUT, Role.INOUT, Role.CALLEE_OUT) and param.type.count is None
    return False


def _flush(served: Served, param: Param, argument: Argument, function: Function) -> str:
    if param.role is Role.CALLEE_OUT:
        return f"take({_out_name(served, function, param)}, {argument.call})"
    return f"{argument.call}.flush()"


def _out_name(served: Served, function: Function, param: Param) -> str:
    """The C++ name of an output: that of the main function's output at the same place."""
    index = function.outs.index(param)
    if served.overload.inplace and param.role is Role.OUT:
        return [a.name for a in served.overload.args if a.mutated][index]
    return outputs(served)[index][1]


def _condition(body: _Body, route: Route) -> str | None:
    parts = [f"is_host_scalar({route.scalar_tensor})"] if route.scalar_tensor is not None else []
    types = {n: t for t, n in body.served.overload.cpp.params}
    for name, value in route.require:
        body.used[name] = None
        parts.append(_required(name, value, types[name]))
    if route.scalar_tensor is not None:
        body.used[route.scalar_tensor] = None
    return " && ".join(parts) or None


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
    written = _written_tensors(body.served)
    masked = {_out_name(body.served, function, p) for p in function.outs if p.type.optional}
    for name in written:
        if name not in masked:
            if body.served.overload.inplace:
                body.used[name] = None
                arg = body.served.overload.arg(name)
                return f"first_of({name})" if arg is not None and arg.type == "Tensor[]" else name
            return name
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
    casts = _Casts(body, route, function)
    for param, source in _sourced(route, function):
        body.used |= {n: None for n in _read_names(source) if n in types}
        if param.tensor is None and param.role is not Role.HOST_OUT:
            yield value_argument(param, source, types, route.scalar_tensor, f"{device}.device()")
        elif param.role is Role.HOST_OUT:
            yield Argument(call=f"&{_out_name(served, function, param)}")
        elif param.role is Role.CALLEE_OUT:
            yield Argument(lines=(f"CalleeOut {param.name}_arg;",), call=f"{param.name}_arg")
        elif param.role is Role.OUT:
            yield casts.output(param)
        elif isinstance(source, Absent):
            yield Argument(call="nullptr")
        elif param.role is Role.INOUT:
            yield casts.inout(param, _tensor(source))
        else:
            yield tensor_argument(param, _tensor(source), casts.input(param), f"{device}.device()")


def _tensor(source: Source) -> str:
    return source.name if isinstance(source, FromArg) else derived(source.expr) if isinstance(source, FromDerive) else ""


def _read_names(source: Source) -> tuple[str, ...]:
    match source:
        case FromArg():
            return (source.name,)
        case FromDerive():
            return names(source.expr)
        case _:
            return ()


class _Casts:
    """The dtype of each tensor of one route, by the kind of wrapper: iterator, other structured, or plain."""

    def __init__(self, body: _Body, route: Route, function: Function) -> None:
        self.body = body
        self.served = body.served
        self.function = function
        self.sources = dict(route.args)
        self.elements = Elements(
            function=function,
            common="common" if self.served.promotes else None,
            inplace=self.served.overload.inplace,
        )
        self.linked = self.elements.linked()

    def output(self, param: Param) -> Argument:
        name = _out_name(self.served, self.function, param)
        local = f"{param.name}_arg"
        kind = "Out"
        if self.served.overload.inplace and not self.served.elementwise:
            kind = "Aside"
        dtype = self._written(param)
        return Argument(lines=(f"const {kind} {local}({', '.join(v for v in (name, dtype) if v)});",), call=local)

    def _written(self, param: Param) -> str | None:
        assert param.tensor is not None
        if self.served.overload.cpp.meta is not None and not self.served.overload.cpp.iterator:
            return None
        spelled = self.elements.output(param, self._known())
        if spelled is not None and "common" in spelled and self.served.promotes:
            if self.served.overload.cpp.iterator:
                spelled = "common"
            self.body.common = True
        return spelled if self.served.promotes or self.served.overload.cpp.meta is None else None

    def inout(self, param: Param, given: str) -> Argument:
        local = f"{param.name}_arg"
        if param.tensor is not None and param.tensor.count is not None:
            return Argument(lines=(f"OutList {local}({given});",), call=local, counted=True)
        cast = self.served.promotes and param.tensor is not None and self._is_linked(param.tensor.element)
        if cast and given in _written_tensors(self.served):
            self.body.common = True
            return Argument(lines=(f"const InOut {local}({given}, common);",), call=local)
        return Argument(lines=(f"const InOut {local}({given});",), call=local)

    def input(self, param: Param) -> str | None:
        """The dtype that an input is cast to; None where it is taken as it is."""
        assert param.tensor is not None
        element = param.tensor.element
        if isinstance(element, Fixed) or not self._is_linked(element):
            return None
        if self.served.promotes:
            self.body.common = True
            return "common"
        written = self._from_outputs(element)
        if written is not None:
            return written
        first = self._first(element)
        return None if first is None or first == self._given(param) else f"{first}.scalar_type()"

    def _is_linked(self, element: Element) -> bool:
        return any(v in self.linked for v in variables(element))

    def _from_outputs(self, element: Element) -> str | None:
        """Structured outputs have their dtype from torch's meta function; inputs follow it."""
        if self.served.overload.inplace and not self.served.promotes:
            target = next(iter(_written_tensors(self.served)))
            return f"{target}.scalar_type()"
        if self.served.overload.cpp.meta is None:
            return None
        for param in self.function.outs:
            if param.tensor is None or param.type.optional:
                continue
            if set(variables(param.tensor.element)) & set(variables(element)):
                name = _out_name(self.served, self.function, param)
                if isinstance(param.tensor.element, Accumulate):
                    first = self._first(element)
                    return f"summand_type({first}, {name})" if first is not None else None
                return f"{name}.scalar_type()"
        return None

    def _first(self, element: Element) -> str | None:
        """The first tensor argument with a variable of `element`."""
        wanted = set(variables(element))
        for param in self.function.params:
            if param.role in (Role.IN, Role.INOUT) and param.tensor is not None and not param.type.optional:
                if set(variables(param.tensor.element)) & wanted:
                    given = self._given(param)
                    if given:
                        return given if param.tensor.count is None else f"first_of({given})"
        return None

    def _given(self, param: Param) -> str:
        source = self.sources[param.name]
        return source.name if isinstance(source, FromArg) else ""

    def _known(self) -> dict[str, str]:
        return known_dtypes(self.function, self.sources)


def known_dtypes(function: Function, sources: dict[str, Source]) -> dict[str, str]:
    """The dtype of each variable: that of the first input with it."""
    found: dict[str, str] = {}
    for param in function.params:
        source = sources[param.name]
        if param.role not in (Role.IN, Role.INOUT) or param.tensor is None or param.type.optional:
            continue
        if isinstance(param.tensor.element, Var) and isinstance(source, FromArg):
            tensor = source.name if param.tensor.count is None else f"first_of({source.name})"
            found.setdefault(param.tensor.element.name, f"{tensor}.scalar_type()")
    return found
