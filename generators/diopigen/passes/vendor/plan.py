"""Decides, for one vendor, whose code serves each function and what the adaptor converts for it."""

from dataclasses import replace

from diopigen.diagnostics import Diagnostics
from diopigen.model.program import Program
from diopigen.model.vendor import FunctionPlan
from diopigen.passes.composition.choose import choose_compositions
from diopigen.passes.vendor.check_conversions import check_primitives, check_rules
from diopigen.passes.vendor.choose_implementations import choose_implementations
from diopigen.passes.vendor.resolve_conversions import Resolver, conversions


def plan_vendor(program: Program, diagnostics: Diagnostics) -> Program:
    """Fills `plans`, in the order of functions; a function that nobody implements has no plan."""
    vendor = program.vendor
    if vendor is None:
        return program
    implemented = choose_implementations(vendor, program, diagnostics)
    chosen, composed = choose_compositions(vendor, program, implemented, diagnostics)
    resolver = Resolver(vendor=vendor, dtypes=program.dtypes)
    decisions = {
        function.symbol: tuple(resolver.decisions(function, chosen[function.symbol]))
        for function in program.functions
        if function.symbol in chosen
    }
    plans = tuple(
        FunctionPlan(symbol=symbol, implementation=chosen[symbol], conversions=conversions(decided))
        for symbol, decided in decisions.items()
    )
    program = replace(program, plans=plans, compositions=composed)
    check_rules(program, vendor, decisions, diagnostics)
    check_primitives(vendor, plans, diagnostics)
    return program
