"""Decides, for one vendor, whose code serves each function and what the adaptor converts for it."""

from dataclasses import replace

from diopigen.diagnostics import Diagnostics
from diopigen.model.op import Function, Op
from diopigen.model.program import Program
from diopigen.model.vendor import Implementation, Origin, Plan
from diopigen.passes.check_conversions import check_primitives, check_rules
from diopigen.passes.choose_compositions import choose_compositions
from diopigen.passes.choose_implementations import choose_implementations
from diopigen.passes.resolve_conversions import Decision, Resolver, conversions


def plan_vendor(program: Program, diagnostics: Diagnostics) -> Program:
    """Fills `plans`, in the order of functions; a function that nobody implements has no plan."""
    vendor = program.vendor
    if vendor is None:
        return program
    implemented = choose_implementations(vendor, program, diagnostics)
    chosen, composed = choose_compositions(vendor, program, implemented, diagnostics)
    resolver = Resolver(vendor=vendor, dtypes=program.dtypes)
    ops = {op.name: op for op in program.ops}
    decisions = {
        function.symbol: _decisions(resolver, chosen[function.symbol], function, ops[function.op])
        for function in program.functions
        if function.symbol in chosen
    }
    plans = tuple(
        Plan(symbol=symbol, implementation=chosen[symbol], conversions=conversions(decided))
        for symbol, decided in decisions.items()
    )
    check_rules(program, vendor, decisions, diagnostics)
    check_primitives(vendor, plans, diagnostics)
    return replace(program, plans=plans, compositions=composed)


def _decisions(resolver: Resolver, code: Implementation, function: Function, op: Op) -> tuple[Decision, ...]:
    """What is converted and why; nothing for a composition, whose parts convert for themselves."""
    return () if code.origin is Origin.COMPOSITE else tuple(resolver.decisions(function, op, code))
