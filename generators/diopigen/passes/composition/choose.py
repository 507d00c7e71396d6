"""Decides, for one vendor, which functions are composed of others, and of which."""

from dataclasses import dataclass

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.composition import Composition
from diopigen.model.program import Program
from diopigen.model.vendor import Implementation, Origin, Rule, Vendor
from diopigen.passes.composition.derive import compositions
from diopigen.passes.composition.match_call import contract_of
from diopigen.text import listing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """Why a function should be composed."""

    rule: Rule
    span: Span
    named: bool  # in an entry of its own, so that it is a mistake if it cannot be


def choose_compositions(
    vendor: Vendor, program: Program, chosen: dict[str, Implementation], diagnostics: Diagnostics
) -> tuple[dict[str, Implementation], tuple[Composition, ...]]:
    """`chosen` with what is composed, and the compositions in the order of functions.

    No composition is taken before all of its parts are served, so none can end up calling itself.
    """
    wishes = _wishes(vendor, program, chosen)
    if not wishes:
        return chosen, ()
    served = {symbol: code for symbol, code in chosen.items() if symbol not in wishes}
    contract = contract_of(program.functions)
    ways = {symbol: tuple(compositions(contract.functions[symbol], contract, program.dtypes)) for symbol in wishes}
    taken = reachable(ways, set(served))
    _report(vendor, wishes, ways, {*served, *taken}, diagnostics)
    topics = {op.name: op.topic for op in program.ops}
    for symbol in taken:
        function = contract.functions[symbol]
        served[symbol] = Implementation(
            symbol=symbol,
            origin=Origin.COMPOSITE,
            name=Origin.COMPOSITE.value,
            namespace="impl::composite",
            source=program.source(topics[function.op]),
            span=function.span,
        )
    for symbol, code in chosen.items():
        served.setdefault(symbol, code)
    return served, tuple(taken[f.symbol] for f in program.functions if f.symbol in taken)


def _wishes(vendor: Vendor, program: Program, chosen: dict[str, Implementation]) -> dict[str, _Wish]:
    """The functions that a rule lets be composed, and that nobody serves or that should be composed all the same."""
    common = next((rule for rule in vendor.rules if not rule.functions and rule.composite is not None), None)
    own = {symbol: (rule, span) for rule in vendor.rules for symbol, span in rule.functions}
    wishes: dict[str, _Wish] = {}
    for function in program.functions:
        rule, span = own.get(function.symbol, (None, None))
        if rule is not None and span is not None and rule.implementation is not None:
            word, span = rule.implementation
            if word == Origin.COMPOSITE.value:
                wishes[function.symbol] = _Wish(rule=rule, span=span, named=True)
        elif function.symbol in chosen:
            continue
        elif rule is not None and span is not None and rule.composite is not None:
            if rule.composite:
                wishes[function.symbol] = _Wish(rule=rule, span=span, named=True)
        elif common is not None and common.composite:
            wishes[function.symbol] = _Wish(rule=common, span=common.span, named=False)
    return wishes


def reachable(ways: dict[str, tuple[Composition, ...]], served: set[str]) -> dict[str, Composition]:
    """The best composition of each function of `ways` whose parts are served, or are composed themselves."""
    taken: dict[str, Composition] = {}
    before = -1
    while before != len(taken):
        before = len(taken)
        for symbol, candidates in ways.items():
            whole = (c for c in candidates if all(part in served or part in taken for part in c.parts))
            found = None if symbol in taken else next(whole, None)
            if found is not None:
                taken[symbol] = found
    return taken


def _report(
    vendor: Vendor,
    wishes: dict[str, _Wish],
    ways: dict[str, tuple[Composition, ...]],
    served: set[str],
    diagnostics: Diagnostics,
) -> None:
    lacking = {symbol: wish for symbol, wish in wishes.items() if symbol not in served}
    for symbol, wish in lacking.items():
        if wish.named and ways[symbol]:
            missing = [part for part in ways[symbol][0].parts if part not in served]
            diagnostics.error(
                "missing-part",
                f"'{symbol}' cannot be composed: '{vendor.name}' does not implement {listing(missing)}",
                wish.span,
                "implement what is missing, or allow composing it",
            )
        elif wish.named:
            diagnostics.error(
                "no-composition",
                f"'{symbol}' has no composition",
                wish.span,
                "write 'compose:' in its schema, or implement it",
            )
    left = [symbol for symbol, wish in lacking.items() if not wish.named and ways[symbol]]
    if left:
        first = ways[left[0]][0]
        missing = [part for part in first.parts if part not in served]
        others = f" and {len(left) - 1} more" if len(left) > 1 else ""
        diagnostics.note(
            "missing-part",
            f"'{left[0]}'{others} could be composed if no part were missing: it lacks {listing(missing)}",
            lacking[left[0]].span,
        )
