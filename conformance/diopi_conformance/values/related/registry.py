"""Which functions have inputs that cannot be drawn one by one: e.g. the order that sorts the scores."""

from collections.abc import Callable, Mapping
from typing import Any

from diopi_conformance.cases.plan import Function

Fit = Callable[[Mapping[str, Any]], dict[str, Any]]

_BY_SYMBOL: dict[str, Fit] = {}


def related_inputs_for(*symbols: str) -> Callable[[Fit], Fit]:
    """Registers the decorated function for these C symbols.

    It gets all inputs as they were drawn, arrays by parameter, and gives those that take the place of drawn ones.
    """

    def register(fit: Fit) -> Fit:
        for symbol in symbols:
            assert symbol not in _BY_SYMBOL, f"the inputs of '{symbol}' are made to fit twice"
            _BY_SYMBOL[symbol] = fit
        return fit

    return register


def related_inputs(function: Function) -> Fit | None:
    """What makes the inputs of this function fit each other, if that is needed."""
    return _BY_SYMBOL.get(function.symbol)
