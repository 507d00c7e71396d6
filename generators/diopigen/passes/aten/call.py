"""Turns bindings round: for each function the ATen operators that compute it, and what each of their arguments is."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from diopigen.diagnostics import Span
from diopigen.model.aten import (
    AtenCall,
    Calls,
    Condition,
    Equals,
    FromArg,
    Overload,
    Route,
)
from diopigen.model.op import AtenClause, Form, Function, Op, Role
from diopigen.model.program import Program
from diopigen.model.type import Value, ValueType
from diopigen.passes.aten.catalog import Catalog
from diopigen.passes.aten.feeds import call_of, preallocated
from diopigen.passes.aten.routes import Mismatch, routes

_PLAIN_FORM = {Form.INPLACE: Form.OUT, Form.INPLACE_SCALAR: Form.SCALAR}

Candidate = tuple[Overload, Route, Span]


def call_aten(program: Program, catalog: Catalog) -> Program:
    """Fills `calls`: the operators that the bindings name, and those called as the op is for what they leave out.

    An in-place function without an operator of its own takes that of the plain form, and is written over.
    """
    bound: dict[str, list[Candidate]] = {}
    for binding in (*program.bindings, *program.compiled):
        for route in binding.routes:
            if not (binding.overload.overrideable or route.when or route.permute or route.draws):
                bound.setdefault(route.symbol, []).append((binding.overload, route, binding.span))
    ops = {op.name: op for op in program.ops}
    functions: dict[str, list[Function]] = {}
    for function in program.functions:
        functions.setdefault(function.op, []).append(function)
    found: dict[str, Calls] = {}
    for function in program.functions:
        siblings = functions[function.op]
        told = bound.get(function.symbol, [])
        calls = _chosen(function, told)
        if calls is None or not calls.complete:  # e.g. only prod.dim_int is bound, not prod of all elements
            calls = _chosen(function, [*told, *_called_alike(ops[function.op], function, siblings, catalog)])
        if calls is not None:
            found[function.symbol] = calls
    for function in program.functions:
        if function.symbol not in found and function.form in _PLAIN_FORM:
            plain = next((f for f in functions[function.op] if f.form is _PLAIN_FORM[function.form]), None)
            written = None if plain is None else _written_over(function, found.get(plain.symbol))
            if written is not None:
                found[function.symbol] = written
    ordered = tuple(found[f.symbol] for f in program.functions if f.symbol in found)
    return replace(program, calls=ordered)


def _called_alike(op: Op, function: Function, siblings: list[Function], catalog: Catalog) -> Iterator[Candidate]:
    """The operators that have the op's own name and take its arguments by their names."""
    backward = function.form is Form.BACKWARD
    name = f"{op.name}_backward" if backward else op.name
    clause = _plain_clause(op)
    for base in (name, f"{name}_") if function.form.inplace else (name,):
        for overload in catalog.packet(base):
            matched = routes(op, clause, overload, siblings, backward)
            if not isinstance(matched, Mismatch):
                yield from ((overload, route, op.span) for route in matched if route.symbol == function.symbol)


def _plain_clause(op: Op) -> AtenClause:
    return AtenClause(
        overloads=(),
        backward=(),
        rename=(),
        require=(),
        ignore=(),
        derive=(),
        function=None,
        raises=None,
        wrapper=None,
        span=op.span,
    )


def _chosen(function: Function, candidates: Iterable[Candidate]) -> Calls | None:
    """The simplest call for each set of conditions, those with the most conditions first."""
    best: dict[tuple[Condition, ...], tuple[tuple[int, ...], AtenCall, Span]] = {}
    for overload, route, span in candidates:
        call = call_of(function, overload, route)
        if call is None:
            continue
        effort = _effort(function, overload, route)
        known = best.get(call.conditions)
        if known is None or effort < known[0]:
            best[call.conditions] = (effort, call, span)
    if not best:
        return None
    if () in best:  # of the others only those for a word that the general one does not know
        best = {conditions: b for conditions, b in best.items() if all(_is_word(function, c) for c in conditions)}
    ordered = sorted(best.values(), key=lambda b: (-len(b[1].conditions), b[0]))
    return Calls(symbol=function.symbol, calls=tuple(call for _, call, _ in ordered), span=ordered[0][2])


def _any_strides(overload: Overload) -> bool:
    """Only TensorIterator writes outputs with gaps; where it also reduces, it asks for room for what it reduces."""
    return overload.cpp.iterator and overload.arg("reduction") is None


def _is_word(function: Function, condition: Condition) -> bool:
    param = function.param(condition.name)
    kind = None if param is None else param.type
    return isinstance(condition, Equals) and isinstance(kind, ValueType) and kind.value is Value.STR


def _effort(function: Function, overload: Overload, route: Route) -> tuple[int, ...]:
    """Numbers stay numbers; what writes its outputs itself saves a copy; the fewest arguments that nobody gives."""
    scalars = int(route.scalar_tensor is not None)
    given = {s.name for _, s in route.args if isinstance(s, FromArg)}
    out = any(a.out for a in overload.args)
    copies = not (out and _any_strides(overload) and all(map(preallocated, function.outs)))
    return (
        scalars,
        int(overload.inplace != function.form.inplace),
        copies + 2 * (copies and out),
        len(overload.args) - len(given),
    )


def _written_over(function: Function, plain: Calls | None) -> Calls | None:
    """The plain form's functional call, whose one result goes to the tensor that the function changes."""
    target = next((p.name for p in function.params if p.role is Role.INOUT), None)
    if plain is None or target is None:
        return None
    calls = tuple(replace(call, results=((0, target),)) for call in plain.calls if len(call.results) == 1)
    return Calls(symbol=function.symbol, calls=calls, span=plain.span) if len(calls) == len(plain.calls) else None
