"""Which function has a judgement of its own, by symbol.

A judgement may put what a library gave into the reference's order, in place: the elements are then compared as ever. It
gives the outputs that it has judged completely, and a message where they are wrong.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from diopi_conformance.cases.plan import Function
    from diopi_conformance.prepare import Prepared

Finding = tuple[tuple[str, ...], str]
Judgement = Callable[["Prepared", dict[str, Any]], Finding]

_BY_SYMBOL: dict[str, Judgement] = {}


def judgement_for(*symbols: str) -> Callable[[Judgement], Judgement]:
    """Registers the decorated judgement for these C symbols."""

    def register(judgement: Judgement) -> Judgement:
        for symbol in symbols:
            assert symbol not in _BY_SYMBOL, f"'{symbol}' has two judgements"
            _BY_SYMBOL[symbol] = judgement
        return judgement

    return register


def written_judgement(function: "Function") -> Judgement | None:
    """The judgement written for this function, if there is one."""
    return _BY_SYMBOL.get(function.symbol)
