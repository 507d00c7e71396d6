"""How C++ spells what a vendor needs of one parameter."""

from dataclasses import dataclass

from diopigen.model.vendor import Conversion

_LAST = {"NLC": 3, "NHWC": 4, "NDHWC": 5}
_FIRST = {"NCL": 3, "NCHW": 4, "NCDHW": 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleView:
    name: str  # ex) "kRule1"
    expression: str  # ex) "Rule().cast(diopi_dtype_float64, diopi_dtype_float32)"


def rule_expression(conversion: Conversion, separator: str = "") -> str:
    """ex) "Rule().cast(diopi_dtype_float64, diopi_dtype_float32).order<4, Order::channels_last>()".

    `separator` stands before each step, to fold a long rule.
    """
    steps = [f".cast(diopi_dtype_{cast.source.word}, diopi_dtype_{cast.target.word})" for cast in conversion.casts]
    for rank in (3, 4, 5):
        order = _order(conversion.layouts, rank)
        if order is not None:
            steps.append(f".order<{rank}, Order::{order}>()")
    if conversion.contiguous:
        steps.append(".contiguous()")
    return f"Rule(){separator}" + separator.join(steps)


def _order(layouts: tuple[str, ...], rank: int) -> str | None:
    """What the layouts of one rank ask for; of two, the first named is the one that others become."""
    named = [name for name in layouts if rank in (_LAST.get(name), _FIRST.get(name))]
    if not named:
        return None
    first = "last" if named[0] in _LAST else "first"
    both = any(name in _LAST for name in named) and any(name in _FIRST for name in named)
    return f"prefer_{first}" if both else f"channels_{first}"
