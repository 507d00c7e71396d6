"""Decides, for one vendor, whose code serves each function."""

from collections.abc import Iterator

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.program import Program
from diopigen.model.vendor import Implementation, Origin, Rule, Vendor
from diopigen.passes.vendor.bases import PORTABLE
from diopigen.text import suggestion

# What `implementation` may name beside vendors and their namespaces.
_NAMES = tuple(origin.value for origin in Origin if origin not in (Origin.VENDOR, Origin.BASE))


def choose_implementations(vendor: Vendor, program: Program, diagnostics: Diagnostics) -> dict[str, Implementation]:
    """The one that the vendor's configuration names, else the first of the candidates, by symbol.

    What is composed of other functions is decided after this, when it is known which of them there are.
    """
    found = candidates(vendor, program)
    chosen = {}
    for symbol, several in found.items():
        first = _first(several)
        if first is None or first.origin is not Origin.EXPORTED:
            first = _asked_by_base(vendor, symbol, several) or first
        if first is not None:
            chosen[symbol] = first
    for rule in vendor.rules:
        if rule.implementation is not None:
            name, span = rule.implementation
            for symbol, _ in rule.functions if name != Origin.COMPOSITE.value else ():
                named = _named(name, found.get(symbol, []))
                if named is not None:
                    chosen[symbol] = named
                else:
                    _report(name, span, symbol, found, vendor, diagnostics)
            if not rule.functions:
                diagnostics.error(
                    "common-implementation",
                    "'common_config' cannot choose an implementation",
                    span,
                    "name the functions with 'ops', or reorder the bases in vendor.yaml",
                )
    return chosen


def _first(several: list[Implementation]) -> Implementation | None:
    """What the first folder exports itself, which takes the symbol; else what stands in its namespace."""
    first = next((i for i in several if not i.nested), None)
    own = (i for i in several if first is not None and i.name == first.name)
    return next((i for i in own if i.origin is Origin.EXPORTED), first)


def candidates(vendor: Vendor, program: Program) -> dict[str, list[Implementation]]:
    """All that implements each function, best first: the vendor's own, its bases' in order, the generated ones."""
    found: dict[str, list[Implementation]] = {}
    for implementation in (*vendor.implementations, *_generated(vendor, program)):
        found.setdefault(implementation.symbol, []).append(implementation)
    return found


def _generated(vendor: Vendor, program: Program) -> Iterator[Implementation]:
    for called in program.calls:
        yield Implementation.of_schema(called.symbol, Origin.ATEN, called.span)
    for function in program.functions:
        if function.kernel is not None and (PORTABLE in vendor.base or function.header == program.own_header):
            yield Implementation.of_schema(function.symbol, Origin.GENERATED, function.span)


def _asked_by_base(vendor: Vendor, symbol: str, several: list[Implementation]) -> Implementation | None:
    """What the base that serves the function chooses itself among several."""
    first = next((i for i in several if not i.nested or i.origin is Origin.BASE), None)
    if first is None or first.origin is not Origin.BASE:
        return None
    base = next(b for b in vendor.bases if b.name == first.name.partition("::")[0])
    rule = _entry(base.rules, symbol)
    if rule is None or rule.implementation is None:
        return None
    name = rule.implementation[0]
    return _named(f"{base.name}::{name}", several) or _named(name, several)


def _entry(rules: tuple[Rule, ...], symbol: str) -> Rule | None:
    return next((rule for rule in rules if any(symbol == named for named, _ in rule.functions)), None)


def _named(name: str, several: list[Implementation]) -> Implementation | None:
    return next((i for i in several if i.name == name), None)


def _report(
    name: str,
    span: Span,
    symbol: str,
    found: dict[str, list[Implementation]],
    vendor: Vendor,
    diagnostics: Diagnostics,
) -> None:
    here = [i.name for i in found.get(symbol, [])]
    listed = f"'{symbol}' is implemented by {', '.join(here)}" if here else f"nothing implements '{symbol}'"
    everywhere = {i.name: None for several in found.values() for i in several}
    known = dict.fromkeys((vendor.name, *vendor.base, *_NAMES, *everywhere))
    if name in known:
        diagnostics.error("missing-implementation", f"'{name}' does not implement '{symbol}'", span, listed)
    else:
        hint = suggestion(name, here or known)
        diagnostics.error(
            "unknown-implementation",
            f"there is no implementation '{name}'",
            span,
            f"{hint} {listed}" if hint else listed,
        )
