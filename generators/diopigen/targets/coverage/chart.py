"""A bar for each topic, its functions by state, as lengths that a drawing takes as they are."""

from collections.abc import Iterable
from dataclasses import dataclass

from diopigen.targets.coverage.rows import State
from diopigen.targets.coverage.totals import Total

LABELS = 150  # units left of the bars
BARS = 560  # units of the longest bar
STEP = 18  # units from bar to bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    x: float
    width: float
    slug: str  # e.g. "kernel-line"
    title: str  # e.g. "arithmetic: 12 portable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    name: str
    y: int
    pieces: tuple[Piece, ...]
    end: float  # where the bar ends
    label: str  # e.g. "20 of 24"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    width: int
    height: int
    bars: tuple[Bar, ...]


def chart(topics: Iterable[Total]) -> Chart:
    """The chart of `topics`, in their order; the topic with the most functions fills the width."""
    totals = tuple(topics)
    most = max((total.functions for total in totals), default=1)
    bars = tuple(_bar(total, index * STEP, BARS / most) for index, total in enumerate(totals))
    return Chart(width=LABELS + BARS + 90, height=len(bars) * STEP, bars=bars)


def _bar(total: Total, y: int, unit: float) -> Bar:
    pieces, x = [], float(LABELS)
    for state, count in total.states:
        if count:
            width = count * unit
            title = f"{total.name}: {count} {_word(state)}"
            pieces.append(Piece(x=round(x, 2), width=round(width, 2), slug=state.slug, title=title))
            x += width
    label = f"{total.implemented} of {total.functions}"
    return Bar(name=total.name, y=y, pieces=tuple(pieces), end=round(x, 2), label=label)


def _word(state: State) -> str:
    return "of kernel lines" if state is State.KERNEL else state.value
