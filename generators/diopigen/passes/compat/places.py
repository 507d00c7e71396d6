"""Points each declaration of the contract at the YAML that gives it, instead of at the header."""

from dataclasses import replace

from diopigen.diagnostics import Span
from diopigen.model.interface import DeclaredEnum, DeclaredFunction, Interface
from diopigen.model.program import Program


def with_places(interface: Interface, program: Program) -> Interface:
    """`interface` with the places of schemas/; what no schema gives keeps its place in the header."""
    functions = {f.symbol: f.span for f in program.functions} | {f.name: f.span for f in program.runtime.functions}
    params = {(f.symbol, p.name): p.span for f in program.functions for p in f.params}
    enums = {e.name: e.span for e in program.runtime.enums}
    return replace(
        interface,
        functions=tuple(_function(f, functions.get(f.name, f.span), params) for f in interface.functions),
        enums=tuple(_enum(e, enums.get(e.name)) for e in interface.enums),
    )


def _function(function: DeclaredFunction, span: Span, params: dict[tuple[str, str], Span]) -> DeclaredFunction:
    # The context, counts of lists and what runtime.yaml spells in C have no line of their own.
    placed = tuple(replace(p, span=params.get((function.name, p.name), span)) for p in function.params)
    return replace(function, span=span, params=placed)


def _enum(enum: DeclaredEnum, span: Span | None) -> DeclaredEnum:
    if span is None:
        return enum
    return replace(enum, span=span, enumerators=tuple(replace(e, span=span) for e in enum.enumerators))
