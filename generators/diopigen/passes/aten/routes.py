"""Matches one ATen overload with the C functions of an op: which of them serve it, and what feeds each parameter."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from diopigen.model.aten import (
    Absent,
    AtenArg,
    FromArg,
    FromDerive,
    FromLiteral,
    FromReturn,
    Overload,
    Route,
    Source,
)
from diopigen.model.expr import names
from diopigen.model.op import AtenClause, Form, Function, Op, Param, Role
from diopigen.model.type import TensorType, Value, ValueType, shape_names
from diopigen.text import listing, suggestion

_T = TypeVar("_T")

# What the outputs themselves carry, so that no C parameter is missed: dtype and place, and which gradients are wanted.
IMPLIED = ("dtype", "layout", "device", "pin_memory", "output_mask")

_NUMBERS = ("Scalar", "Scalar?", "int", "SymInt", "float", "bool")
_ACCEPTED: dict[Value, tuple[str, ...]] = {
    Value.SCALAR: (*_NUMBERS, "int?", "float?"),
    Value.INT: ("int", "SymInt", "Scalar"),
    Value.INT32: ("int", "SymInt"),
    Value.DIM: ("int", "SymInt"),
    Value.FLOAT: ("float", "Scalar", "int"),
    Value.FLOAT32: ("float", "Scalar"),
    Value.BOOL: ("bool",),
    Value.STR: ("str",),
    Value.GENERATOR: ("Generator", "Generator?"),
    Value.POINTER: (),
    Value.REDUCTION: ("int",),
    Value.ROUND_MODE: ("str?", "str"),
    Value.MEMORY_FORMAT: ("MemoryFormat?", "MemoryFormat"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """Why no function of the op serves an overload."""

    code: str  # e.g. "aten-unprovided"
    message: str  # e.g. "no argument of 'mm' gives 'bias' of 'diopiLinear'"
    hint: str | None = None


def routes(
    op: Op,
    clause: AtenClause,
    overload: Overload,
    functions: Sequence[Function],
    backward: bool,
    results: Sequence[tuple[str, int]] = (),
) -> tuple[Route, ...] | Mismatch:
    """The functions behind `overload`, in the order tried, or why there are none.

    `functions` are those of `op`, and any that the clause names. `results` are C outputs with the result that each is;
    without them each output is a result, in order.
    """
    chosen = _candidates(op, clause, overload, functions, backward)
    if isinstance(chosen, Mismatch):
        return chosen
    found: list[Route] = []
    for function, scalar_tensor in chosen:
        route = _route(op, clause, overload, function, scalar_tensor, dict(results))
        if isinstance(route, Mismatch):
            return route
        found.append(route)
    return tuple(found)


def _candidates(
    op: Op, clause: AtenClause, overload: Overload, functions: Sequence[Function], backward: bool
) -> list[tuple[Function, str | None]] | Mismatch:
    """Functions with, for a scalar form that a tensor overload may reach, the tensor that must be a CPU scalar."""
    if clause.function is not None:
        named = next((f for f in functions if f.symbol == clause.function), None)
        if named is None:
            return Mismatch(
                code="aten-function",
                message=f"there is no function '{clause.function}'",
                hint=suggestion(clause.function, (f.symbol for f in functions)),
            )
        return [(named, None)]
    by_form = {f.form: f for f in functions if f.op == op.name}
    if backward:
        function = by_form.get(Form.BACKWARD)
        if function is None:
            return Mismatch(code="aten-form", message=f"'{op.name}' has no backward function")
        return [(function, None)]
    tensor = _first(by_form, (Form.INPLACE, Form.OUT) if overload.inplace else (Form.OUT,))
    scalar = _first(by_form, (Form.INPLACE_SCALAR, Form.SCALAR) if overload.inplace else (Form.SCALAR,))
    return _by_scalars(op, clause, overload, tensor, scalar)


def _by_scalars(
    op: Op, clause: AtenClause, overload: Overload, tensor: Function | None, scalar: Function | None
) -> list[tuple[Function, str | None]] | Mismatch:
    dual = [arg.name for arg in op.args if arg.scalar]
    given = [a for name in dual if (a := _matching(clause, overload, name)) is not None]
    if given and all(not a.type.startswith("Tensor") for a in given):
        return [(scalar, None)] if scalar is not None else _lacks(op, overload, "scalar")
    found: list[tuple[Function, str | None]] = []
    if len(given) == 1 and scalar is not None:
        found.append((scalar, given[0].name))
    if tensor is not None:
        found.append((tensor, None))
    return found or _lacks(op, overload, "in-place" if overload.inplace else "out")


def _lacks(op: Op, overload: Overload, form: str) -> Mismatch:
    return Mismatch(code="aten-form", message=f"'{op.name}' has no {form} form for '{overload.name}'")


def _first(by_form: dict[Form, Function], forms: Iterable[Form]) -> Function | None:
    return next((by_form[f] for f in forms if f in by_form), None)


def _matching(clause: AtenClause, overload: Overload, name: str) -> AtenArg | None:
    return overload.arg(dict(clause.rename).get(name, name))


def _route(
    op: Op,
    clause: AtenClause,
    overload: Overload,
    function: Function,
    scalar_tensor: str | None,
    results: dict[str, int],
) -> Route | Mismatch:
    shortfall = _outputs(overload, function) if not results else _named_outputs(overload, function, results)
    if shortfall is not None:
        return shortfall
    sources = _sources(clause, overload, function, results)
    for param, source in sources:
        if source is None:
            return Mismatch(
                code="aten-unprovided",
                message=f"no argument of '{overload.name}' gives '{param.name}' of '{function.symbol}'",
                hint="rename an ATen argument, derive it, or give it a default",
            )
        arg = overload.arg(source.name) if isinstance(source, FromArg) else None
        if arg is not None and arg.name != scalar_tensor and not accepts(param, arg):
            return Mismatch(
                code="aten-type",
                message=f"'{param.name}' of '{function.symbol}' is {param.type}, but "
                f"'{overload.name}' gives {arg.type} {arg.name}",
            )
    stray = _stray(op, clause, function)
    if stray is not None:
        return stray
    used = {s.name for _, s in sources if isinstance(s, FromArg)} | _shape_names(op, function)
    for _, source in sources:
        used |= set(names(source.expr)) if isinstance(source, FromDerive) else set()
    require = _given(clause.require, overload)
    settled = {*clause.ignore, *IMPLIED, *(n for n, _ in require), *used}
    missed = [a.name for a in overload.args if not a.out and a.name not in settled]
    if missed:
        return Mismatch(
            code="aten-unconsumed",
            message=f"'{function.symbol}' does not use {listing(missed)} of '{overload.name}'",
            hint="list it under 'ignore' or 'require' if that is correct",
        )
    return Route(
        op=op.name,
        symbol=function.symbol,
        args=tuple((param.name, source) for param, source in sources if source is not None),
        require=require,
        ranks=_given(clause.ranks, overload),
        shapes=tuple((n, e) for n, e in clause.derive if function.param(n) is None),
        scalar_tensor=scalar_tensor,
        rounds=clause.rounds,
        raises=clause.raises,
        updates=_updates(overload, function, sources),
    )


def _given(pairs: tuple[tuple[str, _T], ...], overload: Overload) -> tuple[tuple[str, _T], ...]:
    """Of what a clause says of arguments, that of the overload's."""
    return tuple((name, value) for name, value in pairs if overload.arg(name) is not None)


def _stray(op: Op, clause: AtenClause, function: Function) -> Mismatch | None:
    """What is derived is a parameter, or the sizes of an argument whose gradient has its shape."""
    known = [*(p.name for p in function.params), *(f"{arg.name}_sizes" for arg in op.args)]
    for name, _ in clause.derive:
        if name not in known:
            message = f"'derive' names '{name}', which '{function.symbol}' does not have"
            return Mismatch(code="aten-argument", message=message, hint=suggestion(name, known))
    return None


def _outputs(overload: Overload, function: Function) -> Mismatch | None:
    """An in-place function writes its inout; any other has an output for each return."""
    outs = len(function.outs)
    updated = [r for r in overload.returns if r.name is not None and r.name in _updated_names(overload)]
    if any(p.role is Role.CALLEE_OUT for p in function.outs) and any(a.out for a in overload.args):
        return Mismatch(
            code="aten-returns",
            message=f"'{overload.name}' writes tensors of the caller, but '{function.symbol}' allocates its own",
        )
    if outs == len(overload.returns) - len(updated) or (outs == 0 and any(a.mutated for a in overload.args)):
        return None
    return Mismatch(
        code="aten-returns",
        message=f"'{overload.name}' returns {len(overload.returns)} values, but '{function.symbol}' writes {outs}",
    )


def _named_outputs(overload: Overload, function: Function, results: dict[str, int]) -> Mismatch | None:
    """Each output is a result of the operator that is a tensor, or need not be written."""
    for param in function.outs:
        at = results.get(param.name)
        if at is None and not param.type.optional:
            return Mismatch(
                code="aten-returns",
                message=f"'results' does not say which result '{param.name}' of '{function.symbol}' is",
                hint=f"give the index of one of the {len(overload.returns)} that '{overload.name}' returns",
            )
        if at is not None and not (0 <= at < len(overload.returns) and overload.returns[at].type.startswith("Tensor")):
            return Mismatch(code="aten-returns", message=f"result {at} of '{overload.name}' is not a tensor")
    return None


def _updated_names(overload: Overload) -> dict[str, str]:
    """By the name of a result: the argument whose new value it is, where torch has an operator write nothing."""
    return {f"{a.name}_out": a.name for a in overload.args if not a.mutated}


def _updates(
    overload: Overload, function: Function, sources: Sequence[tuple[Param, Source | None]]
) -> tuple[tuple[str, int], ...]:
    """The parameters that the function updates and torch returns anew, with the place of that result."""
    given = {s.name: p.name for p, s in sources if isinstance(s, FromArg) and p.role is Role.INOUT}
    names = _updated_names(overload)
    return tuple(
        (given[names[r.name]], index)
        for index, r in enumerate(overload.returns)
        if r.name is not None and names.get(r.name) in given
    )


def _sources(
    clause: AtenClause, overload: Overload, function: Function, results: dict[str, int]
) -> list[tuple[Param, Source | None]]:
    rename, derive = dict(clause.rename), dict(clause.derive)
    free = {a.name for a in overload.args if not a.out}
    taken = {rename.get(p.name, p.name) for p in function.params if p.role not in _WRITTEN}
    self_free = "self" in free and "self" not in taken
    index = 0
    found: list[tuple[Param, Source | None]] = []
    for param in function.params:
        name = rename.get(param.name, param.name)
        if param.role in _WRITTEN and results and param.name not in results:
            found.append((param, Absent()))
        elif param.role in _WRITTEN:
            found.append((param, FromReturn(index=results.get(param.name, index))))
            index += 1
        elif param.name in derive:
            found.append((param, FromDerive(expr=derive[param.name])))
        elif name in free:
            found.append((param, FromArg(name=name)))
        elif param.arg in free:
            found.append((param, FromArg(name=param.arg)))
        elif self_free and param.tensor is not None and not _is_incoming(param):
            self_free = False
            found.append((param, FromArg(name="self")))
        else:
            found.append((param, _left_out(param)))
    return found


_WRITTEN = (Role.OUT, Role.CALLEE_OUT, Role.HOST_OUT)


def _is_incoming(param: Param) -> bool:
    """A gradient that ATen names otherwise is renamed, never taken for `self`."""
    return param.name != param.arg and param.role is Role.IN


def _left_out(param: Param) -> Source | None:
    if param.has_default and param.default is not None:
        return FromLiteral(value=param.default)
    if param.type.optional or param.has_default:
        return Absent()
    if isinstance(param.type, ValueType) and param.type.value is Value.GENERATOR:
        return Absent()
    return None


def _shape_names(op: Op, function: Function) -> set[str]:
    """The arguments that a shape rule reads; ATen may have one that C has not, as `keepdim` of a reduction."""
    found: set[str] = set()
    for shape in (p.shape for p in function.outs):
        found |= set(shape_names(shape)) if shape is not None else set()
    return found


def accepts(param: Param, arg: AtenArg) -> bool:
    """ATen's type can become the C parameter's."""
    kind = param.type
    if isinstance(kind, TensorType):
        wanted = ("Tensor[]", "Tensor?[]") if kind.count is not None else ("Tensor", "Tensor?")
        return arg.type in wanted
    if kind.many:
        return arg.type.rstrip("?").partition("[")[0] in ("int", "SymInt", "float", "bool")
    plain = _ACCEPTED[kind.value]
    return arg.type in plain or (arg.type.endswith("?") and arg.type[:-1] in plain)
