"""Decides, for one vendor, whose code serves each function."""

from diopigen.model.program import Program
from diopigen.model.vendor import Implementation, Origin, Vendor


def choose_implementations(vendor: Vendor, program: Program) -> dict[str, Implementation]:
    """The first of the vendor's own, its base's and the generated one, by symbol."""
    chosen: dict[str, Implementation] = {}
    for implementation in vendor.implementations:
        chosen.setdefault(implementation.symbol, implementation)
    topics = {op.name: op.topic for op in program.ops}
    for called in program.calls:
        function = program.function(called.symbol)
        assert function is not None
        calling = Implementation(
            symbol=called.symbol,
            origin=Origin.ATEN,
            namespace="impl::generated",
            source=f"schemas/ops/{topics[function.op]}.yaml",
            span=called.span,
        )
        chosen.setdefault(called.symbol, calling)
    if vendor.base is None:
        return chosen
    for function in program.functions:
        if function.kernel is not None:
            generated = Implementation(
                symbol=function.symbol,
                origin=Origin.GENERATED,
                namespace="impl::generated",
                source=f"schemas/ops/{topics[function.op]}.yaml",
                span=function.span,
            )
            chosen.setdefault(function.symbol, generated)
    return chosen
