"""Says what each comment of a YAML file belongs to, so that it moves along when its entry moves."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from diopigen.source.yaml.layout import Comment, Group, Layout, Page, Unit


@dataclass(slots=True, kw_only=True)
class Notes:
    """The comments of one unit."""

    above: list[Comment] = field(default_factory=list)
    side: list[Comment] = field(default_factory=list)  # behind it, on its line
    below: list[Comment] = field(default_factory=list)  # under its last line, indented as it or deeper
    inside: bool = False  # between the brackets of its value


def assign(page: Page) -> dict[int, Notes]:
    """The notes of every unit by its number; comments of a file without units belong to none."""
    units = [] if page.root is None else list(block_units(page.root))
    notes = {unit.number: Notes() for unit in units}
    if units:
        begins = [unit.begin for unit in units]
        by_number = {unit.number: unit for unit in units}
        for comment in page.comments:
            at = bisect_right(begins, comment.begin)
            before = units[at - 1] if at else None
            after = units[at] if at < len(units) else None
            _place(comment, before, after, page, by_number, notes)
    return notes


def block_units(layout: Layout) -> Iterator[Unit]:
    """Every unit that has a line of its own, parents before children; what stands in brackets has none."""
    if isinstance(layout, Group) and not layout.flow:
        for unit in layout.units:
            yield unit
            yield from block_units(unit.value)


def _place(
    comment: Comment,
    before: Unit | None,
    after: Unit | None,
    page: Page,
    units: dict[int, Unit],
    notes: dict[int, Notes],
) -> None:
    """`before` is the last unit that begins before the comment, `after` the first that begins behind it."""
    if before is not None and _encloses(before.value, comment):
        notes[before.number].inside = True
    elif before is not None and not comment.alone and comment.line in _own_lines(before, page):
        notes[before.number].side.append(comment)
    elif after is not None and _leads(comment, before, after):
        notes[after.number].above.append(comment)
    elif before is not None:
        notes[_owner(comment, before, units).number].below.append(comment)


def _encloses(value: Layout, comment: Comment) -> bool:
    return isinstance(value, Group) and value.flow and value.begin < comment.begin < value.end


def _own_lines(unit: Unit, page: Page) -> set[int]:
    """The lines of a unit that a comment can stand behind: those of its key and of a value that is no block."""
    lines = set() if unit.key is None else {page.line(unit.key.end)}
    if not isinstance(unit.value, Group) or unit.value.flow:
        lines |= {page.line(unit.value.begin), page.line(unit.value.end)}
    return lines


def _leads(comment: Comment, before: Unit | None, after: Unit) -> bool:
    """Whether a comment announces the unit behind it: one that is indented deeper closes the block before it."""
    nested = before is not None and after.parent == before.number
    return before is None or nested or not comment.alone or comment.column <= after.column


def _owner(comment: Comment, before: Unit, units: dict[int, Unit]) -> Unit:
    """The innermost of `before` and what holds it that is not indented deeper than the comment."""
    unit = before
    while unit.column > comment.column and unit.parent is not None and unit.parent in units:
        unit = units[unit.parent]
    return unit
