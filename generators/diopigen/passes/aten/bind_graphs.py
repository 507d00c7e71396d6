"""Binds what stands under `compiled:`: overloads that only graphs of a compiler have, which no backend registers."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from diopigen.diagnostics import Span
from diopigen.model.aten import Binding, Declared, FromArg, FromReturn, Overload, Route
from diopigen.model.expr import calls, names
from diopigen.model.op import AtenClause, CompiledClause, Function, Op
from diopigen.model.program import Program
from diopigen.model.type import Value, ValueType
from diopigen.passes.aten.catalog import Catalog, report_unknown
from diopigen.passes.aten.drift import Drift
from diopigen.passes.aten.join import are_apart, merged
from diopigen.passes.aten.routes import Mismatch, routes
from diopigen.text import suggestion

# What `derive` and `when` may call: given(x, y) is x, or y where it is absent; same(a, b) is of two tensors' sizes.
FUNCTIONS = ("given", "rank", "same", "size", "sqrt")


def bind_graphs(program: Program, owners: dict[str, str], catalog: Catalog, drift: Drift) -> tuple[Binding, ...]:
    """In the order of ops. `owners` are the ops that the backend registers for an overload."""
    found: list[Binding] = []
    for op in program.ops:
        functions = program.forms(op.name)
        for clause in op.aten:
            written = [(False, *place) for place in clause.compiled.forward]
            written += [(True, *place) for place in clause.compiled.backward]
            overloads: list[Overload] = []
            for backward, name, span in written:
                overload = catalog.overload(name)
                if overload is None:
                    if not drift.absent(name, op.name, span, partial(_is, name)):
                        report_unknown(name, span, catalog, drift.diagnostics)
                    continue
                overloads.append(overload)
                told = _routes(op, clause, overload, functions, backward)
                if isinstance(told, Mismatch):
                    fits = partial(_fits, op, clause, functions, backward)
                    if not drift.changed(overload, op.name, span, fits):
                        drift.diagnostics.error(told.code, told.message, span, told.hint)
                else:
                    found.append(_binding(op, clause, overload, told, span))
            if len(overloads) == len(written):
                _check(clause, overloads, functions, drift)
    joined: dict[str, Binding] = {}
    for binding in found:
        name = binding.overload.name
        joined[name] = binding if name not in joined else _joined(joined[name], binding, owners.get(name))
    return tuple(joined.values())


def _joined(first: Binding, second: Binding, owner: str | None) -> Binding:
    """Functions of two ops behind one overload.

    Where both may fit, the op that the backend registers is tried first; what it says of the operator holds for both.
    """
    if are_apart(first, second):
        return merged(first, second)
    if second.op == owner:
        first, second = second, first
    said = first.routes[0]
    routes = tuple(
        replace(
            route,
            require=(*said.require, *(pair for pair in route.require if pair not in said.require)),
            ranks=said.ranks,
            when=(*said.when, *route.when),
            permute=said.permute,
        )
        for route in second.routes
    )
    return replace(first, routes=(*first.routes, *routes), symbols=(*first.symbols, *second.symbols))


def _routes(
    op: Op, clause: AtenClause, overload: Overload, functions: Sequence[Function], backward: bool
) -> tuple[Route, ...] | Mismatch:
    # what the clause derives, this operator may be given
    lacking = tuple((name, expr) for name, expr in clause.derive if overload.arg(name) is None)
    graphs = replace(clause, derive=(*lacking, *clause.compiled.derive))
    return routes(op, graphs, overload, functions, backward, clause.compiled.results)


def _is(name: str, declared: Declared) -> bool:
    return declared.overload == name


def _fits(op: Op, clause: AtenClause, functions: Sequence[Function], backward: bool, overload: Overload) -> bool:
    return not isinstance(_routes(op, clause, overload, functions, backward), Mismatch)


def _binding(op: Op, clause: AtenClause, overload: Overload, told: tuple[Route, ...], span: Span) -> Binding:
    graphs = clause.compiled
    ranks = tuple((name, rank) for name, rank in graphs.ranks if overload.arg(name) is not None)
    when = tuple(c for c in graphs.when if all(overload.arg(name) is not None for name in names(c)))
    draws = _draws(graphs, overload)
    return Binding(
        overload=overload,
        op=op.name,
        routes=tuple(
            replace(route, ranks=(*route.ranks, *ranks), when=when, permute=graphs.permute, draws=draws)
            for route in told
        ),
        wrapper=None,
        symbols=tuple(route.symbol for route in told),
        span=span,
    )


def _draws(graphs: CompiledClause, overload: Overload) -> tuple[tuple[str, tuple[FromArg | FromReturn, ...]], ...]:
    results = {returned.name: index for index, returned in enumerate(overload.returns)}

    def place(word: str) -> FromArg | FromReturn:
        return FromReturn(index=results[word]) if word in results else FromArg(name=word)

    return tuple((generator, tuple(map(place, words))) for generator, words in graphs.draws)


def _check(clause: AtenClause, overloads: Sequence[Overload], functions: Sequence[Function], drift: Drift) -> None:
    """Each name is an argument of at least one of the overloads, in some release, or a parameter of a function."""
    graphs = clause.compiled
    expressions = (*graphs.when, *(expr for _, expr in graphs.derive))
    given = {arg.name for o in overloads for args in (o.args, *(d.args for d in drift.differing(o))) for arg in args}
    outs = {param.name for function in functions for param in function.outs}
    generators = {
        param.name
        for function in functions
        for param in function.params
        if isinstance(param.type, ValueType) and param.type.value is Value.GENERATOR
    }

    def check(what: str, words: Iterable[str], known: Iterable[str], lacks: str) -> None:
        for word in words:
            if word not in known:
                message = f"'{what}' names '{word}', {lacks}"
                drift.diagnostics.error("aten-argument", message, clause.span, suggestion(word, known))

    none_has = "which none of the operators has"
    if not (clause.overloads or clause.backward):  # of others, what names arguments is looked up where they are bound
        check("rename", (aten for _, aten in clause.rename), given, none_has)
        check("require", (name for name, _ in clause.require), given, none_has)
        check("ignore", clause.ignore, given, none_has)
    check("rank", (name for name, _ in graphs.ranks), given, none_has)
    check("when", (name for expr in graphs.when for name in names(expr)), given, none_has)
    check("derive", (name for _, expr in graphs.derive for name in names(expr)), given, none_has)
    check("results", (name for name, _ in graphs.results), outs, "which is no output of the functions")
    check("draws", (name for name, _ in graphs.draws), generators, "which is no generator of the functions")
    for overload in overloads:  # a gradient that is not told where the generator stood would draw others
        told = {arg.name for arg in overload.args} | {returned.name for returned in overload.returns if returned.name}
        lacks = f"which '{overload.name}' neither takes nor returns"
        check("draws", (word for _, words in graphs.draws for word in words), told, lacks)
    called = (call.function for expr in expressions for call in calls(expr))
    check("compiled", called, FUNCTIONS, "which expressions of graphs do not have")
    if sorted(graphs.permute) != list(range(len(graphs.permute))):
        message = f"'permute' is [{', '.join(map(str, graphs.permute))}], which does not name each dimension once"
        drift.diagnostics.error(
            "aten-permute", message, clause.span, "number the dimensions from 0 on, e.g. [0, 2, 1, 3]"
        )
