"""Decides, for one vendor, whose code serves each function."""

from collections.abc import Iterator

from diopigen.diagnostics import Span
from diopigen.model.program import Program
from diopigen.model.vendor import Implementation, Origin, Vendor


def choose_implementations(vendor: Vendor, program: Program) -> dict[str, Implementation]:
    """The first of the candidates, by symbol."""
    return {symbol: several[0] for symbol, several in candidates(vendor, program).items()}


def candidates(vendor: Vendor, program: Program) -> dict[str, list[Implementation]]:
    """All that implements each function, best first: the vendor's own, its base's, the generated ones."""
    found: dict[str, list[Implementation]] = {}
    for implementation in (*vendor.implementations, *_generated(vendor, program)):
        found.setdefault(implementation.symbol, []).append(implementation)
    return found


def _generated(vendor: Vendor, program: Program) -> Iterator[Implementation]:
    for called in program.calls:
        yield _of_schema(called.symbol, Origin.ATEN, called.span, program)
    if vendor.base is not None:
        for function in program.functions:
            if function.kernel is not None:
                yield _of_schema(function.symbol, Origin.GENERATED, function.span, program)


def _of_schema(symbol: str, origin: Origin, span: Span, program: Program) -> Implementation:
    function = program.function(symbol)
    op = None if function is None else program.op(function.op)
    assert op is not None
    return Implementation(
        symbol=symbol,
        origin=origin,
        namespace="impl::generated",
        source=f"schemas/ops/{op.topic}.yaml",
        span=span,
    )
