"""How C++ spells what a vendor needs of one parameter."""

from dataclasses import dataclass

from diopigen.model.vendor import Conversion
from diopigen.vocabulary.layouts import CONTIGUOUS, of_rank, own_ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    name: str  # e.g. "kRule1"
    expression: str  # e.g. "Rule().cast(diopi_dtype_float64, diopi_dtype_float32)"


def rule_expression(conversion: Conversion, separator: str = "") -> str:
    """e.g. "Rule().cast(diopi_dtype_float64, diopi_dtype_float32).order<4, Order::channels_last>()".

    `separator` stands before each step, to fold a long rule.
    """
    steps = [f".cast(diopi_dtype_{cast.source.word}, diopi_dtype_{cast.target.word})" for cast in conversion.casts]
    for rank in own_ranks(conversion.layouts):
        steps.append(f".order<{rank}, Order::{_order(of_rank(conversion.layouts, rank))}>()")
    if conversion.contiguous or of_rank(conversion.layouts, None):
        steps.append(".contiguous()")
    return f"Rule(){separator}" + separator.join(steps)


def _order(orders: tuple[str, ...]) -> str:
    """How C++ names `orders` of one rank; of two, the first is the one that others become."""
    first = "first" if orders[0] == CONTIGUOUS else "last"
    return f"channels_{first}" if len(orders) == 1 else f"prefer_{first}"
