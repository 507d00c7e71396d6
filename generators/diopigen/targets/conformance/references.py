"""Which PyTorch operators compute what a C function computes, and how to call them."""

from collections.abc import Iterable

from diopigen.model.aten import Absent, AtenArg, Binding, FromArg, FromDerive, FromLiteral, FromReturn, Route
from diopigen.model.expr import Number, Text
from diopigen.model.op import Function, Role
from diopigen.records.plan import Json, json_value

Routes = Iterable[tuple[Binding, Route]]


def references(function: Function, routes: Routes) -> list[Json]:
    """The usable calls, simplest first; the runner takes the first that applies to a case."""
    found = [
        (_effort(binding, route), position, call)
        for position, (binding, route) in enumerate(routes)
        if (call := _call(function, binding, route)) is not None
    ]
    return [call for _, _, call in sorted(found, key=lambda f: f[:2])]


def routes_of(bindings: Iterable[Binding]) -> dict[str, list[tuple[Binding, Route]]]:
    """By the symbol of the function that each reaches."""
    found: dict[str, list[tuple[Binding, Route]]] = {}
    for binding in bindings:
        for route in binding.routes:
            found.setdefault(route.symbol, []).append((binding, route))
    return found


def _effort(binding: Binding, route: Route) -> tuple[int, int]:
    """Few conditions first, functional overloads before those that write into their arguments."""
    conditions = sum(isinstance(source, FromDerive | Absent) for _, source in route.args) + len(route.require)
    writes = sum(arg.mutated or arg.out for arg in binding.overload.args)
    return conditions, writes


def _call(function: Function, binding: Binding, route: Route) -> Json:
    sources = dict(route.args)
    by_arg = {s.name: p for p, s in route.args if isinstance(s, FromArg)}
    inouts = [p.name for p in function.params if p.role is Role.INOUT]
    args: list[Json] = []
    for arg in binding.overload.args:
        if arg.out:
            args.append({"name": arg.name, "out": True})
            continue
        entry = _argument(arg, by_arg, dict(route.require))
        if entry is None:
            return None
        args.append(entry)
    returns: dict[str, Json] = {p: s.index for p, s in route.args if isinstance(s, FromReturn)}
    wanted = [p.name for p in function.outs]
    if any(name not in returns and not isinstance(sources.get(name), FromArg | Absent) for name in wanted):
        return None
    return {
        "overload": binding.overload.name,
        "args": [a for a in args if a != {}],
        "returns": returns,
        "writes": {p: s.name for p, s in route.args if isinstance(s, FromArg) and p in inouts},
        "absent": [p for p, s in route.args if isinstance(s, Absent)],
        "constants": _constants(route),
        "require": {by_arg[name]: json_value(v) for name, v in route.require if name in by_arg},
    }


def _constants(route: Route) -> dict[str, Json]:
    """The only values for which the overload computes the same: it has no such argument."""
    found: dict[str, Json] = {}
    for param, source in route.args:
        if isinstance(source, FromLiteral):
            found[param] = json_value(source.value)
        elif isinstance(source, FromDerive) and isinstance(source.expr, Number):
            found[param] = float(source.expr.text)
        elif isinstance(source, FromDerive) and isinstance(source.expr, Text):
            found[param] = source.expr.text
    return found


def _argument(arg: AtenArg, by_arg: dict[str, str], require: dict[str, object]) -> Json:
    """One argument; {} where PyTorch's own default does, None where nothing gives it."""
    entry: dict[str, Json] = {"name": arg.name, "type": arg.type}
    if arg.keyword:
        entry["keyword"] = True
    if arg.name in by_arg:
        return {**entry, "param": by_arg[arg.name]}
    if arg.name in require:
        return {**entry, "value": json_value(require[arg.name])}
    return {} if arg.default is not None else None
