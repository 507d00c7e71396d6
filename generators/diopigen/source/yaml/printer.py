"""Prints the entries of a YAML file in the form that a style asks for, every comment with its entry."""

import re
from collections.abc import Iterable, Iterator

from diopigen.source.yaml.comments import Notes, assign
from diopigen.source.yaml.flow import WIDTH, flow_lines, in_flow, verbatim
from diopigen.source.yaml.layout import Comment, Group, Layout, Page, Text, Unit
from diopigen.source.yaml.text import text_lines

_HEADER = re.compile(" [|>][-+0-9]*")  # of a scalar that begins on the next line

Path = tuple[str, ...]  # the keys from an entry down, e.g. ("backward", "keeps"); "-" for an item of a list


class Style:
    """What is asked of the values at each path; a plain one asks for nothing."""

    def order(self, path: Path) -> tuple[str, ...]:
        """The keys of a mapping that have a place of their own, in order."""
        return ()

    def strangers_first(self, path: Path) -> bool:
        """Whether keys without a place stand before the others."""
        return False

    def opened(self, path: Path) -> bool:
        """Whether a value is never in brackets: one line for each entry."""
        return False

    def closed(self, path: Path) -> bool:
        """Whether a value is in brackets where it fits."""
        return False

    def broken(self, path: Path) -> bool:
        """Whether a value that is not in brackets never gets them."""
        return False

    def rows(self, path: Path) -> bool:
        """Whether a list holds rows, each on a line as long as it may be."""
        return False


class Printer:
    """Prints the parts of one page."""

    def __init__(self, page: Page, style: Style) -> None:
        self._page = page
        self._style = style
        self._notes = assign(page)

    def notes(self, unit: Unit) -> Notes:
        """The comments of one unit."""
        return self._notes.get(unit.number, Notes())

    def block(self, group: Group, indent: int, path: Path | None) -> Iterator[str]:
        """The lines of a mapping or sequence that is not in brackets."""
        pad = " " * indent
        for unit in self._ordered(group, path):
            notes = self.notes(unit)
            yield from (pad + comment.text for comment in notes.above)
            if unit.key is None:
                yield from self.item(unit, indent, path)
            else:
                yield from self.entry(unit, indent, path)
            yield from (pad + comment.text for comment in notes.below)

    def entry(self, unit: Unit, indent: int, path: Path | None) -> Iterator[str]:
        """One key; `path` is that of the mapping around it, None for the file."""
        assert unit.key is not None
        inner: Path = () if path is None else (*path, unit.key.value)
        yield from self._value(unit, " " * indent + unit.key.source + ":", indent, inner)

    def item(self, unit: Unit, indent: int, path: Path | None) -> Iterator[str]:
        """One item; `path` is that of the list."""
        inner = (*(path or ()), "-")
        if not self._in_block(unit, inner, indent) or not isinstance(unit.value, Group):
            yield from self._value(unit, " " * indent + "-", indent, inner)
            return
        around = path if unit.value.mapping and not self._style.rows(path or ()) else inner
        lines = list(self.block(unit.value, indent + 2, around))
        first = next((at for at, line in enumerate(lines) if not line.lstrip().startswith("#")), 0)
        yield from (line[2:] for line in lines[:first])  # above an entry that is now the first
        yield " " * indent + "- " + lines[first][indent + 2 :]
        yield from lines[first + 1 :]

    def _value(self, unit: Unit, head: str, indent: int, path: Path) -> Iterator[str]:
        """`head` and what stands behind it; a comment stays at its side where that leaves the line short enough."""
        notes = self.notes(unit)
        lines = self._value_lines(unit, head, indent, path)
        sides = [comment.text for comment in notes.side]
        line = f"{lines[0]}  {sides[-1]}" if sides else lines[0]
        ends = len(lines) == 1 or self._in_block(unit, path, indent) or _HEADER.fullmatch(lines[0][len(head) :])
        if sides and ends and len(line) <= WIDTH:
            lines[0] = line
            sides.pop()
        yield from (" " * indent + side for side in sides)
        yield from lines

    def _value_lines(self, unit: Unit, head: str, indent: int, path: Path) -> list[str]:
        value = unit.value
        if not isinstance(value, Group):
            return text_lines(value, head, indent, unit.column)
        if self._in_block(unit, path, indent):
            return [head, *self.block(value, indent + 2, path)]
        if self.notes(unit).inside:
            return verbatim(value, head, self._page.text)
        return flow_lines(value, head, self._order(path))

    def _in_block(self, unit: Unit, path: Path, indent: int) -> bool:
        """Whether the value of `unit` gets a line for each of its entries."""
        value = unit.value
        if not isinstance(value, Group) or not value.units or self.notes(unit).inside:
            return False
        if self._style.opened(path):
            return True
        words = not value.mapping and all(isinstance(item.value, Text) for item in value.units)
        closable = self._style.closed(path) or words
        return not value.flow and not (closable and self._fits_brackets(value, unit, indent, path))

    def _fits_brackets(self, value: Group, unit: Unit, indent: int, path: Path) -> bool:
        """Whether a block can stand in brackets: nothing in it has a comment, or a text that brackets would split."""
        if (
            self._style.broken(path)
            or not in_flow(value)
            or any(self._has_notes(inner) for inner in _inner_units(value))
        ):
            return False
        head = " " * indent + ("-" if unit.key is None else unit.key.source + ":")
        return self._style.rows(path[:-1]) or len(flow_lines(value, head)) == 1

    def _has_notes(self, unit: Unit) -> bool:
        notes = self.notes(unit)
        return bool(notes.above or notes.side or notes.below or notes.inside)

    def _order(self, path: Path | None) -> tuple[str, ...]:
        return () if path is None else self._style.order(path)

    def _ordered(self, group: Group, path: Path | None) -> Iterable[Unit]:
        if not group.mapping or path is None:
            return group.units
        order = self._style.order(path)
        places = {key: place for place, key in enumerate(order)}
        strangers = -1 if self._style.strangers_first(path) else len(places)
        return sorted(group.units, key=lambda unit: places.get(unit.key.value if unit.key else "", strangers))


def _inner_units(layout: Layout) -> Iterator[Unit]:
    if isinstance(layout, Group):
        for unit in layout.units:
            yield unit
            yield from _inner_units(unit.value)


def spaced(comments: list[Comment]) -> Iterator[str]:
    """Comments between entries keep the blank lines that set them apart."""
    for comment in comments:
        yield comment.text
        if comment.gap:
            yield ""
