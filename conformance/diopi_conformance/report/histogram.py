"""How far from exact the cases are, in units in the last place, as the lengths of a drawing."""

from collections.abc import Iterable
from dataclasses import dataclass

BARS = 560  # units that the longest bar is wide
STEP = 20  # units from bar to bar
LABELS = 110  # units left of the bars

# Upper bounds of the bins; the first holds exact results alone, the last everything beyond.
_BOUNDS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1024.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    label: str  # e.g. "1 to 2"
    count: int
    share: str  # e.g. "12.3 %"
    y: int
    width: float

    @property
    def text(self) -> str:
        return f"{self.count} ({self.share})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    width: int
    height: int
    bars: tuple[Bar, ...]
    total: int


def histogram(ulps: Iterable[float]) -> Histogram:
    """Counts of errors in ULP; a bin holds what is above the bound before it and not above its own."""
    values = [abs(ulp) for ulp in ulps]
    counts = [0] * (len(_BOUNDS) + 1)
    for value in values:
        counts[next((i for i, bound in enumerate(_BOUNDS) if value <= bound), len(_BOUNDS))] += 1
    most = max(max(counts), 1)
    bars = tuple(
        Bar(
            label=_label(index),
            count=count,
            share=f"{100 * count / max(1, len(values)):.1f} %",
            y=index * STEP,
            width=round(BARS * count / most, 1),
        )
        for index, count in enumerate(counts)
    )
    return Histogram(width=LABELS + BARS + 120, height=len(bars) * STEP, bars=bars, total=len(values))


def _label(index: int) -> str:
    if index == 0:
        return "exact"
    if index == len(_BOUNDS):
        return f"above {_BOUNDS[-1]:g}"
    return f"{_BOUNDS[index - 1]:g} to {_BOUNDS[index]:g}"
