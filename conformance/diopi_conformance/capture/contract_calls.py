"""An ATen call as a call of the contract: which function, and what each of its op's arguments is given.

Routes are the schemas' own, as the generator binds them; they are tried in order, as PyTorch's backend tries them.
"""

from collections.abc import Iterable
from typing import Any, assert_never

from diopi_conformance.capture.handwritten_routes import HAND_ROUTES
from diopi_conformance.capture.recorder import AtenCall, Tensor
from diopigen.model.aten import Absent, Binding, FromArg, FromDerive, FromLiteral, FromReturn, Route, Source
from diopigen.model.expr import Call, Name, Number, Text
from diopigen.model.op import Form, Function, Op, Param, Role
from diopigen.model.program import Program
from diopigen.model.type import ENUMERATORS, Value, ValueType
from diopigen.passes.aten.routes import IMPLIED

Given = dict[str, Any]  # parameter: Tensor, list of Tensors, plain value, or None where absent


class Unmapped(Exception):
    """The contract cannot say the call; the text tells why, in few words."""


class Routes:
    """The routes of every overload."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._routes = {b.overload.name: b.routes for b in program.bindings if b.routes}
        self._routes.update({name: (route,) for name, route in HAND_ROUTES.items()})
        self._into: dict[tuple[str, tuple[str, ...]], tuple[Route, ...]] = {}
        for binding in program.bindings:
            if any(arg.out for arg in binding.overload.args) and binding.routes:
                self._into.setdefault(_form(binding), binding.routes)

    def taken(self, call: AtenCall) -> tuple[Function, Given]:
        """The function that serves `call`, with what its parameters get. Raises Unmapped."""
        routes = self._routes.get(call.overload) or self._into.get(
            (call.overload.partition(".")[0], tuple(sorted(set(call.args) - set(IMPLIED))))
        )
        if routes is None:
            raise Unmapped("nothing in the contract")
        reason = Unmapped("no form of the function fits")
        for route in routes:
            try:
                return self._given(route, call)
            except Unmapped as unmapped:
                reason = unmapped
        raise reason

    def _given(self, route: Route, call: AtenCall) -> tuple[Function, Given]:
        function = self._program.function(route.symbol)
        assert function is not None, f"a route names '{route.symbol}', which no schema has"
        if any(call.args.get(name) != value for name, value in route.require):
            raise Unmapped("a value that the function has no parameter for")
        if route.scalar_tensor is not None and isinstance(call.args[route.scalar_tensor], Tensor):
            raise Unmapped("a tensor where a number is wanted")
        given = {name: _value(source, call) for name, source in route.args}
        return function, {name: _fitted(function, name, value) for name, value in given.items()}


def _form(binding: Binding) -> tuple[str, tuple[str, ...]]:
    """The packet, and the arguments of its functional form."""
    inputs = (arg.name for arg in binding.overload.args if not arg.out and arg.name not in IMPLIED)
    return binding.overload.name.partition(".")[0], tuple(sorted(inputs))


def _value(source: Source, call: AtenCall) -> Any:
    match source:
        case FromArg():
            return call.args.get(source.name)
        case FromReturn():
            return call.results[source.index]
        case FromDerive():
            return _derived(source, call)
        case FromLiteral():
            return source.value
        case Absent():
            return None
        case _:
            assert_never(source)


def _derived(source: FromDerive, call: AtenCall) -> Any:
    match source.expr:
        case Number() as number:
            return float(number.text)
        case Text() as text:
            return text.text
        case Name() as name:
            return call.args.get(name.name, name.name)
        case Call(function="conv_bias_sizes"):
            wanted = call.args["output_mask"][2]
            return [call.args["grad_output"].sizes[1]] if wanted else None
        case other:
            raise Unmapped(f"'{other}' is derived")


def _fitted(function: Function, name: str, value: Any) -> Any:
    param = function.param(name)
    assert param is not None
    if param.tensor is not None:
        return _tensor(param, value)
    assert isinstance(param.type, ValueType)
    return None if value is None and param.type.value not in ENUMERATORS else _plain(param, param.type, value)


def _tensor(param: Param, value: Any) -> Any:
    assert param.tensor is not None
    many = param.tensor.count is not None
    entries = value if many and isinstance(value, list) else [value]
    if any(entry is not None and not isinstance(entry, Tensor) for entry in entries):
        raise Unmapped("a number where a tensor is wanted")
    return list(entries) if many else value


def _plain(param: Param, kind: ValueType, value: Any) -> Any:
    if isinstance(value, Tensor) or (isinstance(value, list) and any(isinstance(v, Tensor) for v in value)):
        raise Unmapped("a tensor where a number is wanted")
    if kind.value in ENUMERATORS:
        return _enumerator(kind.value, value)
    if isinstance(value, complex):
        raise Unmapped("a complex number")
    if not kind.many:
        return value
    values = list(value) if isinstance(value, Iterable) else [value]
    if kind.length is None or len(values) == kind.length:
        return values
    if len(values) != 1:
        raise Unmapped(f"{len(values)} sizes for '{param.name}'")
    return values * kind.length


def _enumerator(kind: Value, value: Any) -> str:
    words = tuple(ENUMERATORS[kind])
    if isinstance(value, int):
        return words[value]
    word = "none" if value is None and "none" in words else str(value).removeprefix("torch.").removesuffix("_format")
    if word not in words:
        raise Unmapped(f"'{word}' has no enumerator")
    return word


def row(op: Op, function: Function, given: Given) -> dict[str, Any]:
    """The values of a case by argument of the op: shapes of tensors, lists of shapes, plain values.

    A backward function's are those of its forward. What the call does not tell is as in the schema's first row.
    """
    values = _backward_row(op, function, given) if function.form is Form.BACKWARD else _plain_row(function, given)
    missing = [arg.name for arg in op.args if arg.name not in values and not arg.has_default and not arg.type.optional]
    example = dict(op.cases[0].values) if op.cases else {}
    values.update({name: example[name] for name in missing if name in example and not _is_shape(op, name)})
    return values


def _is_shape(op: Op, name: str) -> bool:
    arg = next(a for a in op.args if a.name == name)
    return not isinstance(arg.type, ValueType)


def _plain_row(function: Function, given: Given) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for param in function.params:
        if param.role in (Role.IN, Role.INOUT) and not _is_default(param, value := given.get(param.name)):
            values[param.arg] = _shape(value)
    return values


def _backward_row(op: Op, function: Function, given: Given) -> dict[str, Any]:
    assert op.backward is not None
    names = {arg.name for arg in op.args}
    values: dict[str, Any] = {}
    for keep in op.backward.keeps:
        if keep.source in names and given.get(keep.name) is not None:
            values[keep.source] = _shape(given[keep.name])
        elif keep.source is None and isinstance(keep.type, ValueType) and not keep.name.endswith("_sizes"):
            values[keep.name] = given[keep.name]
        sized = keep.name.removesuffix("_sizes")
        if sized in names and sized != keep.name and given.get(keep.name):
            values[sized] = list(given[keep.name])
    for param in function.params:
        argument = param.arg.removeprefix("grad_")
        if param.role is Role.OUT and argument in names and given.get(param.name) is not None:
            values[argument] = _shape(given[param.name])
        elif param.tensor is None and param.arg in names and not _is_default(param, given.get(param.name)):
            values[param.arg] = given[param.name]
    return values


def _is_default(param: Param, value: Any) -> bool:
    if value is None or (isinstance(param.type, ValueType) and param.type.value is Value.GENERATOR):
        return True
    if isinstance(value, list):  # a schema's single number stands for all of a list
        same = tuple(value) == param.default or (value != [] and all(v == param.default for v in value))
        return param.has_default and same
    return param.has_default and type(value) is type(param.default) and bool(value == param.default)


def _shape(value: Any) -> Any:
    if isinstance(value, Tensor):
        return list(value.sizes)
    return [_shape(entry) for entry in value] if isinstance(value, list) else value
