"""Findings about convert_config.yaml: rules that can never apply, conversions that the vendor has no code for."""

from diopigen.diagnostics import Diagnostics, Span
from diopigen.model.dtype import DTypes
from diopigen.model.op import Function
from diopigen.model.program import Program
from diopigen.model.vendor import Cast, Plan, Rule, Vendor
from diopigen.passes.resolve_conversions import CAST, COPY, PRIMITIVES, RANKS, element_dtypes, element_of, fitting


def check_rules(program: Program, vendor: Vendor, plans: tuple[Plan, ...], diagnostics: Diagnostics) -> None:
    """Warns of each cast and layout that no function of its entry can ever use."""
    planned = {plan.symbol for plan in plans}
    for rule in vendor.rules:
        named = {symbol for symbol, _ in rule.functions}
        for symbol, span in rule.functions:
            if symbol in PRIMITIVES:
                diagnostics.error(
                    "primitive-converted",
                    f"'{symbol}' is what conversions are made of, so it takes every tensor as it is",
                    span,
                    "remove the entry",
                )
            elif symbol not in planned:
                diagnostics.warning(
                    "rule-never-applies", f"nothing implements '{symbol}', so its entry has no effect", span
                )
        functions = [f for f in program.functions if f.symbol in planned and (f.symbol in named or not named)]
        if functions:
            _check_casts(program, rule, functions, diagnostics)
            _check_layouts(program, rule, functions, diagnostics)


def _check_casts(program: Program, rule: Rule, functions: list[Function], diagnostics: Diagnostics) -> None:
    for cast in rule.casts:
        if not any(_takes(cast, f, None, program.dtypes) for f in functions):
            _never(cast.span, f"no tensor of {_those(rule)} can be '{cast.source.word}'", diagnostics)
    for single in rule.tensor_casts:
        for cast in single.casts:
            if not any(_takes(cast, f, single.param, program.dtypes) for f in functions):
                _never(cast.span, f"'{single.param}' can never be '{cast.source.word}'", diagnostics)


def _check_layouts(program: Program, rule: Rule, functions: list[Function], diagnostics: Diagnostics) -> None:
    ops = [op for op in program.ops if any(f.op == op.name for f in functions)]
    for layouts in rule.layouts:
        for name in layouts.names:
            if not any(fitting((name,), op) for op in ops):
                message = f"no tensor of {_those(rule)} has {RANKS[name]} dimensions with a layout"
                _never(layouts.span, message, diagnostics)


def _takes(cast: Cast, function: Function, param: str | None, dtypes: DTypes) -> bool:
    return any(
        cast.source in element_dtypes(element_of(p), function, dtypes)
        for p in function.params
        if p.tensor is not None and param in (None, p.name)
    )


def _those(rule: Rule) -> str:
    if not rule.functions:
        return "any function"
    first = f"'{rule.functions[0][0]}'"
    return first if len(rule.functions) == 1 else f"{first} or the others"


def _never(span: Span, why: str, diagnostics: Diagnostics) -> None:
    diagnostics.warning("rule-never-applies", f"this rule has no effect: {why}", span, "remove it")


def check_primitives(vendor: Vendor, plans: tuple[Plan, ...], diagnostics: Diagnostics) -> None:
    """Refuses conversions that the vendor has no code to make."""
    present = {plan.symbol for plan in plans}
    conversions = [c for plan in plans for c in plan.conversions]
    casts = next((cast.span for c in conversions for cast in c.casts), None)
    copies = next((s for c in conversions for s in (c.layout_span, c.contiguous_span) if s is not None), None)
    for symbol, needed_by in ((CAST, casts), (COPY, copies)):
        if needed_by is not None and symbol not in present:
            diagnostics.error(
                "missing-primitive",
                f"this rule needs '{symbol}', which '{vendor.name}' does not implement",
                needed_by,
                f"implement it in namespace impl::{vendor.name}, or write 'base: portable' in vendor.yaml",
            )
