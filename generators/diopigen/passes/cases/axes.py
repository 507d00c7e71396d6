"""What the cases of a function may vary, and which values of the axes can meet: the space that is covered by pairs.

Axes are the change of the row, the element types, the layout, the view and the fill. Which rows suit a value, and
which values exclude each other, follows from the schema.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from diopigen.model.case import Fill, View
from diopigen.model.op import CaseRow, Function, Op
from diopigen.passes.cases.changes import EMPTY, changed_rows, shapes
from diopigen.passes.cases.limits import (
    Choice,
    demands,
    fillable,
    result_fits,
    sort_of,
    takes_fill,
    twins_of_types,
    viewable,
)
from diopigen.passes.cases.pairwise import Space
from diopigen.passes.cases.rows import rows_for
from diopigen.passes.contract.elements import main_choice, other_choices
from diopigen.vocabulary.dtype import DTypes, Kind
from diopigen.vocabulary.layouts import rank_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The values of a function's axes, and its rows with what changes make of them."""

    numbers: tuple[int, ...]  # e.g. (0, 2): where the rows stand under `cases:`
    changes: Mapping[str, Mapping[int, CaseRow]]  # e.g. {"": {0: row}}: by the places of the rows
    elements: tuple[Choice, ...]
    layouts: tuple[str, ...]
    views: tuple[View, ...]
    fills: tuple[Fill, ...]


def choices(op: Op, function: Function, rows: tuple[CaseRow, ...]) -> Choices:
    """All that the schema lets a case of `function` vary."""
    suited = rows_for(op, function.form, rows)
    changes: dict[str, dict[int, CaseRow]] = {}
    for place, (_, row) in enumerate(suited):
        for word, changed in changed_rows(op, function, row):
            changes.setdefault(word, {})[place] = changed
    return Choices(
        numbers=tuple(number for number, _ in suited),
        changes=changes,
        elements=(main_choice(function), *other_choices(function)),
        layouts=("", *(name.lower() for name in op.layouts if name.endswith("C"))),
        views=tuple(View),
        fills=tuple(fill for fill in Fill if fill is Fill.USUAL or takes_fill(op, function, fill)),
    )


def space(op: Op, function: Function, chosen: Choices, dtypes: DTypes) -> Space:
    """The values of `chosen` as numbers: changes, elements, layouts, views, fills."""
    sizes = [len(axis) for axis in (chosen.changes, chosen.elements, chosen.layouts, chosen.views, chosen.fills)]
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    axes = tuple(tuple(range(start, start + size)) for start, size in zip(starts, sizes, strict=True))
    rows = _Rows(op=op, function=function, chosen=chosen, dtypes=dtypes)
    return Space(
        axes=axes,
        rows=tuple(tuple(rows.suited(word, axes)) for word in chosen.changes),
        apart=_apart(op, function, chosen, axes),
        needed=_needed(function, chosen, axes),
        hiding=_hiding(chosen, axes),
        row_needed=0 if function.kernel is not None else sum(1 << v for axis in axes[1:4] for v in axis),
    )


class _Rows:
    """Which rows suit which values."""

    def __init__(self, op: Op, function: Function, chosen: Choices, dtypes: DTypes) -> None:
        self.op, self.function, self.chosen, self.dtypes = op, function, chosen, dtypes
        own = [demands(op, row) for row in chosen.changes[""].values()]
        self.elements = [(choice, sort_of(choice, own)) for choice in chosen.elements]
        self.telling = _telling(op, chosen)

    def suited(self, word: str, axes: tuple[tuple[int, ...], ...]) -> Iterator[int]:
        """For each value the rows that suit it under the change `word`; unusual ones only where they are seen."""
        usual = {axis[0] for axis in axes}
        for value, places in enumerate(self._places(word)):
            mask = _mask(places)
            yield mask if value in usual else mask & self.telling

    def _places(self, word: str) -> Iterator[Iterable[int]]:
        op, function, chosen, rows = self.op, self.function, self.chosen, self.chosen.changes[word]
        known = {place: tuple(shape for _, shape in shapes(op, row)) for place, row in rows.items()}
        asked = {place: demands(op, row) for place, row in rows.items()}
        for name in chosen.changes:
            yield rows if name == word else ()
        for choice, sort in self.elements:
            yield [
                place
                for place, row in rows.items()
                if sort.takes(asked[place]) and result_fits(op, function, row, choice, self.dtypes)
            ]
        for layout in chosen.layouts:
            yield [p for p in rows if not layout or any(len(s) == rank_of(layout) for s in known[p])]
        for view in chosen.views:
            yield [p for p, row in rows.items() if viewable(op, function, row, known[p], view)]
        for fill in chosen.fills:
            usual = fill is Fill.USUAL
            yield [p for p, row in rows.items() if usual or (not row.data and any(0 not in s for s in known[p]))]


def _telling(op: Op, chosen: Choices) -> int:
    """The rows with something to see, which alone meet unusual values; all where none has."""
    every = chosen.changes[""]
    full = _mask(p for p, row in every.items() if all(prod(s) > 0 for _, s in shapes(op, row)) and _many(op, row))
    return full or _mask(every)


def _many(op: Op, row: CaseRow) -> bool:
    return any(prod(shape) > 1 for _, shape in shapes(op, row)) or not any(True for _ in shapes(op, row))


def _mask(places: Iterable[int]) -> int:
    return sum(1 << place for place in places)


def _apart(op: Op, function: Function, chosen: Choices, axes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """Pairs of values that mean nothing together, whatever the row."""
    changes, elements, _, views, fills = axes
    found = [0] * (fills[-1] + 1)

    def part(first: int, second: int) -> None:
        found[first] |= 1 << second
        found[second] |= 1 << first

    for value, word in zip(changes, chosen.changes, strict=True):
        if word in EMPTY:
            for other in (*views[1:], *fills[1:]):
                part(value, other)
    for value, choice in zip(elements, chosen.elements, strict=True):
        for other, fill in zip(fills, chosen.fills, strict=True):
            if not fillable(op, function, choice, fill):
                part(value, other)
        if not twins_of_types(op, function, choice):
            part(value, views[chosen.views.index(View.ALIASED)])
    return tuple(found)


def _hiding(chosen: Choices, axes: tuple[tuple[int, ...], ...]) -> int:
    """Empty and 0-d tensors have too few elements to show anything else; NaN and infinities spread over results."""
    words = [v for v, word in zip(axes[0], chosen.changes, strict=True) if word in (*EMPTY, "0-d")]
    return sum(1 << value for value in (*words, *axes[4][1:]))


def _needed(function: Function, chosen: Choices, axes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    """The pairs to be seen: all of them, and of elementwise functions a choice.

    Their loops run over memory in order or in steps, which every element type and fill meets; the rest of what the
    axes can do is one code for all types, and met by one of each sort.
    """
    every = [_mask(axis) for axis in axes]
    found = [0] * (axes[-1][-1] + 1)
    for axis, own in zip(axes, every, strict=True):
        for value in axis:
            found[value] = sum(every) & ~own
    if function.kernel is None:
        return tuple(found)
    few = _mask(_representatives(chosen, axes[1]))
    loops = 1 << axes[3][chosen.views.index(View.CONTIGUOUS)] | 1 << axes[3][chosen.views.index(View.STRIDED)]
    changes, elements, layouts, views, fills = axes
    allowed = {
        **dict.fromkeys(changes, few | every[2] | every[3]),
        **{v: loops | (sum(every) if few >> v & 1 else 0) for v in elements},
        **dict.fromkeys(layouts, every[0] | few | every[3]),
        **{v: every[0] | every[2] | few | (every[1] | every[4] if loops >> v & 1 else 0) for v in views},
        **dict.fromkeys(fills, few | loops),
    }
    return tuple(partners & allowed[value] for value, partners in enumerate(found))


def _representatives(chosen: Choices, elements: tuple[int, ...]) -> Iterator[int]:
    """The first of each sort of element types: narrow and other floats, integers, bool, complex."""
    seen: set[tuple[Kind, bool]] = set()
    for value, choice in zip(elements, chosen.elements, strict=True):
        sorts = {(dtype.kind, dtype.kind is Kind.FLOAT and dtype.size == 2) for dtype in choice.values()}
        if len(sorts) == 1 and not sorts <= seen:
            seen |= sorts
            yield value
        elif value == elements[0]:
            yield value
