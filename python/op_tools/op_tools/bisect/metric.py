"""A number that a script prints as it goes, e.g. "step 3 loss 0.25", and where two runs of it part."""

import math
import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """The first value that differs."""

    step: int  # counted from 0, in the order of printing
    good: float
    bad: float


def series(text: str, name: str) -> list[float]:
    """Every value that `text` gives for `name`, as in "loss: 0.25", "loss=0.25", '"loss": 0.25'."""
    pattern = rf"\b{re.escape(name)}\b[\"']?\s*[:=]?\s*([-+]?(?:nan|inf|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+))"
    return [float(found) for found in re.findall(pattern, text, re.IGNORECASE)]


def parting(good: list[float], bad: list[float], rtol: float) -> Parting | None:
    """Where `bad` leaves `good` by more than `rtol` of its size, or ends before it; None where it does not."""
    for step, value in enumerate(good):
        other = bad[step] if step < len(bad) else math.nan
        same = (math.isnan(value) and math.isnan(other)) or value == other
        if not same and not abs(value - other) <= rtol * abs(value):
            return Parting(step=step, good=value, bad=other)
    return None
