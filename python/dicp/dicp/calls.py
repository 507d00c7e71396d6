"""Calls of the vendor's library: which function serves a node of the graph, and with which arguments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import sympy
import torch

from dicp.dtypes import SCHEMA_NAMES
from dicp.expressions import Unknown, holds, value_of
from dicp.operators import Table
from dicp.program import CallArgument, Inplace, LibraryCall, View
from diopigen.records.operators import Function, Param, Route, Tree

_REDUCTIONS = ("ReductionNone", "ReductionMean", "ReductionSum")
_ROUNDING = {None: "RoundModeNone", "trunc": "RoundModeTrunc", "floor": "RoundModeFloor"}
_DTYPES = {name: dtype for dtype, name in SCHEMA_NAMES.items()}
_INTEGERS = ("int", "int32", "Dim")


class Unserved(Exception):
    """No function serves the node; the message says why, in a few words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A call, and what must be copied before it: the function updates a tensor that torch's operator returns anew."""

    call: LibraryCall
    copies: tuple[tuple[View, View], ...]  # from an argument to a result
    results: set[int]  # those that the call writes, by number; the operator knows nothing of the others but zeros


@dataclass(slots=True, kw_only=True)
class _Tensors:
    """What a call reads, writes and updates so far."""

    reads: list[View] = field(default_factory=list)
    writes: list[View] = field(default_factory=list)
    copies: list[tuple[View, View]] = field(default_factory=list)
    states: set[int] = field(default_factory=set)  # results that tell where the generator stands, by number
    kinds: dict[str, str] = field(default_factory=dict)  # the dtype of each variable of the function's types


def bound_call(
    table: Table,
    overload: str,
    arguments: dict[str, Any],
    outputs: Sequence[View | None],
    served: Callable[[str], bool],
) -> Served:
    """The call behind a node. Raises Unserved where only the eager operator knows how to run it."""
    misfits: dict[str, None] = {}
    reason: str | None = None
    for route in table.operators[overload].routes:
        misfit = _misfit(route, arguments, served)
        if misfit is not None:
            misfits[misfit] = None
            continue
        try:
            return _call(table.functions[route.symbol], route, arguments, outputs, served)
        except Unserved as why:
            reason = str(why)
    raise Unserved(reason or "; ".join(misfits))


def _misfit(route: Route, arguments: dict[str, Any], served: Callable[[str], bool]) -> str | None:
    """The condition of a route that the arguments do not meet."""
    if not served(route.symbol):
        return f"the vendor has no {route.symbol}"
    for name, value in route.require.items():
        if arguments[name] != value:
            return f"{name} is not {value}"
    for name, rank in route.ranks.items():
        if len(arguments[name].sizes) != rank:
            return f"{name} is not {rank}-dimensional"
    if not all(_holds(condition, arguments) for condition in route.when):
        return "arguments that only the eager operator takes"
    if route.scalar_tensor is not None and isinstance(arguments[route.scalar_tensor], View):
        return f"{route.scalar_tensor} is a tensor"
    return None


def _call(
    function: Function,
    route: Route,
    arguments: dict[str, Any],
    outputs: Sequence[View | None],
    served: Callable[[str], bool],
) -> Served:
    found = _Tensors()
    made: list[CallArgument] = []
    places: dict[str, int] = {}  # of each parameter among the arguments
    last = {p.count: i for i, p in enumerate(function.params) if p.count is not None}
    _bind_elements(function, route, arguments, outputs, found.kinds)
    for index, param in enumerate(function.params):
        value = derived(route.sources[param.name], arguments, outputs)
        places[param.name] = len(made)
        if param.kind == "tensor":
            if param.name in route.updates and isinstance(value, View):
                updated = outputs[route.updates[param.name]]
                if updated is None:
                    raise Unserved(f"nobody reads what becomes of '{param.name}'")
                if updated.dtype != value.dtype:  # torch foresees another dtype than it is given
                    raise Unserved(f"'{param.name}' is {value.dtype}, and would become {updated.dtype}")
                found.copies.append((value, updated))
                found.writes.append(updated)
                value = updated
            made.append(_tensor(function, param, _permuted(value, route.permute), found))
            if param.count is not None and last[param.count] == index:
                made.append(CallArgument(kind="int", value=len(value)))
        elif param.name in route.draws:
            made.append(_drawn(route.draws[param.name], arguments, outputs, found))
        else:
            made.append(_plain(param, value))
    call = LibraryCall(
        symbol=route.symbol,
        arguments=tuple(made),
        reads=tuple(found.reads),
        writes=tuple(found.writes),
        inplace=_inplace(function, places, served),
    )
    return Served(call=call, copies=tuple(found.copies), results=route.results() | found.states)


def _drawn(
    told: tuple[Tree, Tree, Tree], arguments: dict[str, Any], outputs: Sequence[View | None], found: _Tensors
) -> CallArgument:
    """The generator of the device, whose state behind the call is kept where somebody reads it.

    A gradient gets one that stands where it stood behind the forward operator.
    """
    if derived(told[0], arguments) == 0:
        return CallArgument(kind="undrawn")
    state = tuple(derived(source, arguments, outputs) for source in told[1:])
    if told[1][0] == "arg":
        found.reads.extend(state)
        return CallArgument(kind="stored generator", value=state)
    if None in state:
        return CallArgument(kind="generator")
    found.states.update(source[1] for source in told[1:])
    found.writes.extend(state)
    return CallArgument(kind="generator", value=state)


def _bind_elements(
    function: Function, route: Route, arguments: dict[str, Any], outputs: Sequence[View | None], kinds: dict[str, str]
) -> None:
    """The variables of the tensors' types by those that have the dtype itself: others follow from them."""
    for param in function.params:
        if param.kind == "tensor" and param.element in function.elements:
            value = derived(route.sources[param.name], arguments, outputs)
            if isinstance(value, View) and (name := SCHEMA_NAMES.get(value.dtype)) is not None:
                kinds.setdefault(param.element, name)


def _holds(condition: Tree, arguments: dict[str, Any]) -> bool:
    try:
        return holds(condition, arguments)
    except Unknown:
        return False


def _permuted(value: Any, order: Sequence[int]) -> Any:
    """A tensor with its dimensions in the function's order, where it has as many."""
    if not isinstance(value, View) or not order or len(value.sizes) != len(order):
        return value
    sizes, strides = (tuple(of[place] for place in order) for of in (value.sizes, value.strides))
    return replace(value, sizes=sizes, strides=strides)


def _inplace(function: Function, places: dict[str, int], served: Callable[[str], bool]) -> Inplace | None:
    other = function.inplace
    if other is None or not served(other.symbol):
        return None
    (written,) = (param.name for param in function.params if param.role == "out")
    return Inplace(symbol=other.symbol, read=places[other.param], written=places[written])


def derived(source: Tree, arguments: dict[str, Any], outputs: Sequence[View | None] = ()) -> Any:
    """What a parameter is given: an argument of the operator, a result, or a constant. Raises Unserved."""
    match source:
        case ["arg", name]:
            return arguments[name]
        case ["return", index]:
            return outputs[index]
        case ["literal", value]:
            return value
        case ["absent"]:
            return None
        case ["derive", tree]:
            try:
                return value_of(tree, arguments)
            except Unknown:
                pass
    raise Unserved("an argument that only the eager operator derives")


def _tensor(function: Function, param: Param, value: Any, found: _Tensors) -> CallArgument:
    """What is updated, and is no result, keeps its value: the operator writes no argument."""
    if param.role not in ("in", "out", "inout"):
        raise Unserved(f"'{param.name}' is allocated by the function")
    if param.count is not None:
        if param.role == "out" or not isinstance(value, list | tuple) or not all(isinstance(v, View) for v in value):
            raise Unserved(f"the list '{param.name}'")
        for item in value:
            _agree(function, param, item, found.kinds)
        found.reads.extend(value)
        return CallArgument(kind="tensors", value=tuple(value))
    if value is None:
        if not param.optional:
            raise Unserved(f"'{param.name}' is absent")
        return CallArgument(kind="null")
    if not isinstance(value, View):
        raise Unserved(f"'{param.name}' is not a tensor")
    _agree(function, param, value, found.kinds)
    (found.writes if param.role == "out" else found.reads).append(value)
    return CallArgument(kind="tensor", value=value)


def _agree(function: Function, param: Param, view: View, kinds: dict[str, str]) -> None:
    """What shares a variable of the schema has one dtype; where the rule is more than that, eager knows it."""
    element = param.element or ""
    name = SCHEMA_NAMES.get(view.dtype)
    if name is None:
        raise Unserved(f"{view.dtype} in '{param.name}'")
    words = _words(element)
    variables = [v for v in function.elements if v in words]
    if variables and words[0] == "promote" and all(variable in kinds for variable in variables):
        expected = _promoted([kinds.get(word, word) for word in words[1:]])
        if name != expected:
            raise Unserved(f"'{param.name}' is {name}, not {expected}")
        return
    if not variables:
        if element != name:
            raise Unserved(f"'{param.name}' is {name}, not {element}")
        return
    for variable in variables:
        if name not in function.elements[variable]:
            raise Unserved(f"'{param.name}' is {name}")
        if kinds.setdefault(variable, name) != name:
            raise Unserved(f"'{param.name}' is {name} beside {kinds[variable]}")


def _promoted(names: Sequence[str]) -> str:
    return SCHEMA_NAMES[reduce(torch.promote_types, (_DTYPES[name] for name in names))]


def _words(element: str) -> list[str]:
    return element.replace("(", " ").replace(")", " ").replace(",", " ").split()


def _plain(param: Param, value: Any) -> CallArgument:
    if param.kind == "Generator" and value is None and not param.many:  # the operator draws from the default one
        return CallArgument(kind="generator")
    if param.kind in ("Generator", "pointer") or param.role != "in":
        raise Unserved(f"'{param.name}' is of the kind {param.kind}")
    if param.many:
        return _many(param, value)
    if value is None:
        if param.optional:
            return CallArgument(kind="null")
        value = param.default
    if isinstance(value, str) and value in ("inf", "-inf", "nan"):
        value = float(value)
    match param.kind:
        case "str":
            return CallArgument(kind="text", value="" if value is None else value)
        case "Reduction":
            return CallArgument(kind="word", value=value if isinstance(value, str) else _REDUCTIONS[value])
        case "RoundMode":
            named = value if isinstance(value, str) and value.startswith("RoundMode") else _ROUNDING[value]
            return CallArgument(kind="word", value=named)
        case "MemoryFormat":
            if not isinstance(value, str):
                raise Unserved(f"'{param.name}' is a memory format")
            return CallArgument(kind="word", value=value)
    if not isinstance(value, bool | int | float | sympy.Expr):
        raise Unserved(f"'{param.name}' is not a number")
    kind = "Scalar" if param.kind == "Scalar" else f"{param.kind}?" if param.optional else param.kind
    if param.kind in _INTEGERS and isinstance(value, float):
        raise Unserved(f"'{param.name}' is no integer")
    return CallArgument(kind=kind, value=value)


def _many(param: Param, value: Any) -> CallArgument:
    pointer = param.c.endswith("*")
    if value is None:
        if not (param.optional or pointer):
            value = param.default if param.default is not None else []
        else:
            return CallArgument(kind="null")
    if isinstance(value, int | sympy.Expr):
        value = [value]
    if not all(isinstance(v, int | sympy.Expr) for v in value):
        raise Unserved(f"'{param.name}' is not a list of integers")
    if param.length is not None and len(value) == 1:
        value = list(value) * param.length
    return CallArgument(kind="sizes*" if pointer else "sizes", value=tuple(value))
