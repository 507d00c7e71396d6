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

Reorders = Callable[["Prepared"], bool]

_BY_SYMBOL: dict[str, Judgement] = {}
_REORDERS: dict[str, Reorders] = {}


def judgement_for(*symbols: str, reorders: Reorders | None = None) -> Callable[[Judgement], Judgement]:
    """Registers the decorated judgement for these C symbols; `reorders` says of which calls the order is free."""

    def register(judgement: Judgement) -> Judgement:
        for symbol in symbols:
            assert symbol not in _BY_SYMBOL, f"'{symbol}' has two judgements"
            _BY_SYMBOL[symbol] = judgement
            if reorders is not None:
                _REORDERS[symbol] = reorders
        return judgement

    return register


def written_judgement(function: "Function") -> Judgement | None:
    """The judgement written for this function, if there is one."""
    return _BY_SYMBOL.get(function.symbol)


def may_reorder(prepared: "Prepared") -> bool:
    """Whether a judgement takes the results of this call into the reference's order."""
    reorders = _REORDERS.get(prepared.function.symbol)
    return reorders is not None and reorders(prepared)
