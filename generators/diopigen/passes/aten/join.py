"""Several ops behind one overload, e.g. convolutions of planes and of volumes: each serves arguments of its own."""

from dataclasses import replace

from diopigen.model.aten import Binding, Route


def are_apart(first: Binding, second: Binding) -> bool:
    """Whether no arguments fit both: of each two routes the conditions exclude one another.

    The outputs of a structured overload are those of its meta function, whichever op serves it.
    """
    generated = first.wrapper is None and second.wrapper is None
    pairs = ((one, other) for one in first.routes for other in second.routes)
    return generated and first.overload.cpp.meta is None and all(_exclude(*pair) for pair in pairs)


def _exclude(one: Route, other: Route) -> bool:
    required, ranks = dict(other.require), dict(other.ranks)
    differ = any(name in required and required[name] != value for name, value in one.require)
    return differ or any(name in ranks and ranks[name] != rank for name, rank in one.ranks)


def merged(first: Binding, second: Binding) -> Binding:
    """The routes of both; `first` names the op."""
    routes = (*first.routes, *second.routes)
    symbols = tuple(dict.fromkeys(route.symbol for route in routes))
    checks = tuple(dict.fromkeys((*first.checks, *second.checks)))
    return replace(first, routes=routes, symbols=symbols, checks=checks)
